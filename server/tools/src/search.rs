//! Finding tools: by words (`index`), by meaning, or by both.

#[cfg(feature = "embeddings")]
mod bert;
mod engine;
mod fuse;
#[cfg(feature = "embeddings")]
mod meaning;
#[cfg(feature = "embeddings")]
mod model;
// Without a model it is used by its tests alone.
#[cfg(any(test, feature = "embeddings"))]
mod vectors;

pub use engine::{Engine, Fits, Found};
#[cfg(feature = "embeddings")]
use fuse::combine;
pub use fuse::interleave;
