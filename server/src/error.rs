//! What stops the server from starting or serving. Failures of tools and scripts are results, not
//! errors of this type.

/// Why the server does not start or go on. The text never holds a value of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong; every message names the key.
    #[error("{0}")]
    Config(String),
    /// An upstream could not be used.
    #[error("upstream '{app}': {message}")]
    Upstream {
        /// Its id.
        app: String,
        /// What happened.
        message: String,
    },
    /// Speaking with the client failed.
    #[error("{0}")]
    Protocol(String),
    /// A file could not be read, a pipe broke.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}
