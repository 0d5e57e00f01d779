//! Generators: their methods. How they run is in [`generator`](crate::eval::generator).

use super::{Body, Row};
use crate::eval::generator::Resumption;

/// Methods of generators.
pub const METHODS: &[Row] = &[
    method("next", Resumption::Next, false),
    method("return", Resumption::Return, false),
    method("throw", Resumption::Throw, false),
];

/// Methods of async generators.
pub const ASYNC_METHODS: &[Row] = &[
    method("next", Resumption::Next, true),
    method("return", Resumption::Return, true),
    method("throw", Resumption::Throw, true),
];

const fn method(name: &'static str, how: Resumption, is_async: bool) -> Row {
    Row { name, length: 1, body: Body::Resume(how, is_async), direct: None }
}
