//! Exceptions and stops of an evaluation.
//!
//! A script can catch values. It cannot catch the end of its run: a limit, a refusal or a cancelled run passes every
//! `catch` and `finally`.

use crate::interface::error_code::ErrorCode;
use crate::interface::outcome::Failure;
use crate::value::Value;
use agentscript_lang::Refusal;

/// The result of evaluation.
pub type Result<T = Value> = std::result::Result<T, Thrown>;

/// What evaluation throws, boxed to keep results small.
pub struct Thrown(pub Box<Cause>);

/// What is thrown.
pub enum Cause {
    /// A value of the script, which it can catch.
    Value(Value),
    /// The end of the run.
    Stop(Box<Failure>),
}

impl Thrown {
    /// A thrown value.
    #[cold]
    pub fn value(value: Value) -> Self {
        Self(Box::new(Cause::Value(value)))
    }

    /// The end of the run.
    #[cold]
    pub fn stop(failure: Failure) -> Self {
        Self(Box::new(Cause::Stop(Box::new(failure))))
    }

    /// The end of the run at a limit or by the host, as `runtime_error`.
    #[cold]
    pub fn limit(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::stop(Failure::from_code(code, message))
    }

    /// The end of the run at something that is refused.
    #[cold]
    pub fn illegal(code: ErrorCode, refusal: Refusal, message: impl Into<String>) -> Self {
        let mut failure = Failure::from_code(code, message);
        failure.refusal = Some(refusal);
        Self::stop(failure)
    }
}
