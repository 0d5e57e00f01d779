//! The demo shop (`--demo`): four apps over one SQL database in memory, with the same data in every process.
//!
//! It behaves like a real service where that matters to a script. It has transactions, stock, money, errors with codes,
//! one slow tool and one that always fails. All changes are lost when the process ends.

mod billing;
mod inventory;
mod orders;
mod seed;
mod tool;
mod users;

use self::tool::DemoTool;
use super::{BoxFuture, ToolDefinition, ToolError, ToolResult, Upstream, UpstreamCall};
use codecall_base::tool::ErrorCode;
use rusqlite::Connection;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// Opens a new shop: four apps that share a database.
#[must_use]
pub fn open() -> Vec<Arc<dyn Upstream>> {
    let shop = Arc::new(Shop::open());
    let app = |name, tools| -> Arc<dyn Upstream> { Arc::new(DemoApp::new(name, tools, &shop)) };
    vec![
        app("users", users::tools()),
        app("orders", orders::tools()),
        app("billing", billing::tools()),
        app("inventory", inventory::tools()),
    ]
}

/// The database. A call locks it for well under a millisecond, and never across an `await`.
struct Shop(Mutex<Connection>);

impl Shop {
    #[expect(clippy::expect_used, reason = "schema and seed are part of the program; the tests open the shop")]
    fn open() -> Self {
        let filled = || {
            let mut db = Connection::open_in_memory()?;
            db.pragma_update(None, "foreign_keys", true)?;
            let opening = db.transaction()?;
            opening.execute_batch(include_str!("demo/schema.sql"))?;
            seed::seed(&opening)?;
            opening.commit()?;
            Ok::<_, rusqlite::Error>(db)
        };
        Self(Mutex::new(filled().expect("the demo shop opens")))
    }

    /// Runs a tool in a transaction: a tool that fails changes nothing.
    fn call(&self, tool: &DemoTool, input: Value) -> Result<Value, ToolError> {
        let mut db = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let output = db.transaction().map_err(Into::into).and_then(|transaction| {
            let output = (tool.run)(&transaction, input)?;
            transaction.commit()?;
            Ok(output)
        });
        output.map_err(|failure: tool::Failure| failure.0)
    }
}

/// An app of the shop.
struct DemoApp {
    name: &'static str,
    tools: Vec<(Arc<ToolDefinition>, DemoTool)>,
    shop: Arc<Shop>,
}

impl DemoApp {
    fn new(name: &'static str, tools: Vec<DemoTool>, shop: &Arc<Shop>) -> Self {
        let tools = tools.into_iter().map(|tool| (Arc::new(tool.definition(name, SOURCE)), tool)).collect();
        Self { name, tools, shop: Arc::clone(shop) }
    }
}

const SOURCE: &str = "inline";

impl Upstream for DemoApp {
    fn app(&self) -> &str {
        self.name
    }

    fn source(&self) -> &'static str {
        SOURCE
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|(definition, _)| Arc::clone(definition)).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let found = self.tools.iter().find(|(definition, _)| definition.name == call.tool.name);
            let Some((_, tool)) = found else {
                let message = format!("There is no tool '{}'", call.tool.full_name());
                return Err(ToolError::new(ErrorCode::ToolNotFound, message));
            };
            tokio::time::sleep(tool.delay).await;
            self.shop.call(tool, Value::Object(call.input)).map(ToolResult::Data)
        })
    }
}

#[cfg(test)]
mod tests;
