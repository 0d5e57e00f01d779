//! Every code that an outcome or a failed tool call can have, in one table. Tools have codes of their own beside these.

use crate::interface::outcome::Status;
use std::fmt;

/// Defines [`ErrorCode`] from the rows of the table.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal $status:ident $origin:ident,)+) => {
        /// A code that clients see. Texts of codes are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl ErrorCode {
            /// All codes, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The code as clients see it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// The status of a run that ends with it.
            #[must_use]
            pub const fn status(self) -> Status {
                match self {
                    $(Self::$name => Status::$status,)+
                }
            }

            /// Where it comes from.
            #[must_use]
            pub const fn origin(self) -> Origin {
                match self {
                    $(Self::$name => Origin::$origin,)+
                }
            }

            /// What it means, as one line of Markdown.
            #[must_use]
            pub fn doc(self) -> String {
                let lines: &[&str] = match self {
                    $(Self::$name => &[$($doc),+],)+
                };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }
        }
    };
}

/// Where a failure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The text of the script, or what it does.
    Script,
    /// A limit of the run.
    Limit,
    /// A tool call. The script can catch it; the status is that of a run that does not.
    Tool,
    /// The host, which ends the run or does not begin it.
    Host,
}

codes! {
    /// The text is not AgentScript.
    SyntaxError "SYNTAX_ERROR" SyntaxError Script,
    /// The script uses what it may not.
    ValidationError "VALIDATION_ERROR" IllegalAccess Script,
    /// The script has a loop of a kind that the policy does not allow.
    LoopNotAllowed "LOOP_NOT_ALLOWED" IllegalAccess Script,
    /// The script is longer than `maxScriptBytes`.
    ScriptTooLarge "SCRIPT_TOO_LARGE" SyntaxError Script,
    /// The script calls a tool of the server itself.
    SelfReferenceBlocked "SELF_REFERENCE_BLOCKED" IllegalAccess Script,
    /// The script calls a tool of an app that the request does not allow.
    ServerNotAllowed "SERVER_NOT_ALLOWED" IllegalAccess Script,
    /// The script failed: an error that it threw and did not catch, or an `await` of what can never happen.
    ExecutionError "EXECUTION_ERROR" RuntimeError Script,
    /// The result or an input cannot be written as JSON.
    SerializationError "SERIALIZATION_ERROR" RuntimeError Script,
    /// The run took longer than `timeoutMs` of its own time, or `maxDurationMs` in all.
    Timeout "TIMEOUT" Timeout Limit,
    /// The run took more than `maxSteps`.
    StepLimit "STEP_LIMIT" RuntimeError Limit,
    /// The loops of the run took more than `maxIterations` turns.
    IterationLimit "ITERATION_LIMIT" RuntimeError Limit,
    /// The run held more than `maxMemoryBytes`.
    MemoryLimit "MEMORY_LIMIT" RuntimeError Limit,
    /// The run made more calls than `maxToolCalls`.
    MaxToolCallsExceeded "MAX_TOOL_CALLS_EXCEEDED" RuntimeError Limit,
    /// The run wrote more lines or bytes to the console than it may.
    ConsoleLimit "CONSOLE_LIMIT" RuntimeError Limit,
    /// The result is longer than `maxResultBytes`.
    ResultTooLarge "RESULT_TOO_LARGE" RuntimeError Limit,
    /// A stateless run waited for tools more often than it may.
    MaxRoundsExceeded "MAX_ROUNDS_EXCEEDED" RuntimeError Limit,
    /// Calls and answers of a stateless run are longer together than they may be.
    JournalTooLarge "JOURNAL_TOO_LARGE" RuntimeError Limit,
    /// There is no tool of that name, or more than one.
    ToolNotFound "TOOL_NOT_FOUND" ToolError Tool,
    /// The tool is new or has changed, and waits for the approval of a person.
    ToolQuarantined "TOOL_QUARANTINED" ToolError Tool,
    /// The request does not allow this tool.
    AccessDenied "ACCESS_DENIED" ToolError Tool,
    /// The input does not fit the schema of the tool.
    InvalidInput "INVALID_INPUT" ToolError Tool,
    /// The result does not fit the schema that the tool gives.
    InvalidOutput "INVALID_OUTPUT" ToolError Tool,
    /// The tool was called too often; `details` say when it may be again.
    RateLimit "RATE_LIMIT" ToolError Tool,
    /// The call took longer than `toolTimeoutMs`.
    ToolTimeout "TOOL_TIMEOUT" ToolError Tool,
    /// The tool asks for input that the client cannot give, or has not given.
    InputRequired "INPUT_REQUIRED" ToolError Tool,
    /// A person has to approve the call first, and cannot be asked in this request; `details` has the id of the approval.
    ApprovalRequired "APPROVAL_REQUIRED" ToolError Tool,
    /// A person has denied the call. It was not made.
    ApprovalDenied "APPROVAL_DENIED" ToolError Tool,
    /// Nobody has approved the call in time. It was not made.
    ApprovalExpired "APPROVAL_EXPIRED" ToolError Tool,
    /// The server ended during the call, and the tool may have done its work. The call is not repeated, because its tool
    /// says neither that it only reads nor that it is idempotent.
    CallInterrupted "CALL_INTERRUPTED" ToolError Tool,
    /// The tool failed and has no code of its own.
    ToolExecutionError "TOOL_EXECUTION_ERROR" ToolError Tool,
    /// The server of the tool is still starting; try again soon. The call was not made.
    ServerStarting "SERVER_STARTING" ToolError Tool,
    /// The server of the tool cannot be reached or has ended; it is tried again. If it ended during the call, the tool may
    /// have done its work.
    ServerUnavailable "SERVER_UNAVAILABLE" ToolError Tool,
    /// A person must log in to the server of the tool with `codecall auth login`. The call was not made.
    LoginRequired "LOGIN_REQUIRED" ToolError Tool,
    /// `fetch` asks for an address or a method that `hosts` in the manifest of the tool does not name, or for a redirect to
    /// one. Nothing was sent there.
    FetchNotAllowed "FETCH_NOT_ALLOWED" ToolError Tool,
    /// The host that `fetch` asks for has a private, local or otherwise special address, which no rule of the manifest
    /// allows. Nothing was sent there.
    FetchAddressRefused "FETCH_ADDRESS_REFUSED" ToolError Tool,
    /// A request or response of `fetch` is longer than it may be, or the run has made as many requests as it may.
    FetchLimit "FETCH_LIMIT" ToolError Tool,
    /// The server that `fetch` asks cannot be reached, or its response cannot be read.
    FetchFailed "FETCH_FAILED" ToolError Tool,
    /// The fixture has no answer to this call.
    NoMockResponse "NO_MOCK_RESPONSE" ToolError Tool,
    /// An answer of a server or a message of a script is longer than it may be. The former fails the call, the latter
    /// ends the run.
    MessageTooLarge "MESSAGE_TOO_LARGE" RuntimeError Tool,
    /// An answer of a server or a message of a script cannot be read. The former fails the call, the latter ends the
    /// run.
    MessageInvalid "MESSAGE_INVALID" RuntimeError Tool,
    /// The run or the call was cancelled.
    ExecutionAborted "EXECUTION_ABORTED" RuntimeError Host,
    /// The script did not do what its journal says.
    ReplayMismatch "REPLAY_MISMATCH" RuntimeError Host,
    /// The request for a step is invalid; the message says what to change.
    InvalidRequest "INVALID_REQUEST" RuntimeError Host,
    /// The conversation went on before the code in it had ended.
    Interrupted "INTERRUPTED" RuntimeError Host,
    /// As many scripts wait for their turn as may; try again later.
    QueueFull "QUEUE_FULL" RuntimeError Host,
    /// The script waited too long for its turn; try again later.
    QueueTimeout "QUEUE_TIMEOUT" RuntimeError Host,
    /// The server shuts down.
    PoolDisposed "POOL_DISPOSED" RuntimeError Host,
    /// The thread or process that evaluates the script has crashed.
    WorkerCrashed "WORKER_CRASHED" RuntimeError Host,
    /// A step of the script did not end and was given up.
    WorkerTimeout "WORKER_TIMEOUT" RuntimeError Host,
    /// All runs together hold as much memory as they may, and this one the most.
    WorkerMemoryExceeded "WORKER_MEMORY_EXCEEDED" RuntimeError Host,
    /// No thread or process could be started for the script.
    WorkerStartupFailed "WORKER_STARTUP_FAILED" RuntimeError Host,
    /// The script sent more messages than it may.
    MessageFlood "MESSAGE_FLOOD" RuntimeError Host,
    /// More calls of the run wait for an answer than may.
    TooManyPendingCalls "TOO_MANY_PENDING_CALLS" RuntimeError Host,
}

impl ErrorCode {
    /// Whether a script can catch it.
    #[must_use]
    pub const fn is_catchable(self) -> bool {
        matches!(self.origin(), Origin::Tool)
    }

    /// The code of this text; absent: it is of a tool.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.as_str().into()
    }
}

impl PartialEq<ErrorCode> for String {
    fn eq(&self, code: &ErrorCode) -> bool {
        self == code.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentscript_lang::Code;

    #[test]
    fn texts_differ_and_lead_back() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
        }
        assert_eq!(ErrorCode::parse("EMAIL_TAKEN"), None);
    }

    #[test]
    fn codes_of_diagnostics_are_among_them() {
        for code in [
            Code::SyntaxError,
            Code::ValidationError,
            Code::LoopNotAllowed,
            Code::ScriptTooLarge,
            Code::SelfReferenceBlocked,
        ] {
            assert!(ErrorCode::parse(code.as_str()).is_some_and(|of| of.origin() == Origin::Script), "{code:?}");
        }
    }
}
