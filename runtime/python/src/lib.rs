//! The native module of the Python package: the types of `codecall-agentscript-bindings`, one to one.
//!
//! Everything idiomatic (functions as tools, asyncio, exceptions) is in `python/agentscript`. The interpreter lock is released
//! wherever a script is compiled or evaluated.

#![forbid(unsafe_code)]

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use agentscript::{Clock, SystemClock, ToolError, Tools};
    use codecall_agentscript_bindings as bindings;
    use pyo3::create_exception;
    use pyo3::exceptions::{PyException, PyValueError};
    use pyo3::prelude::*;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    create_exception!(
        _native,
        NotCompiled,
        PyException,
        "A script does not compile. Its argument is the outcome, as JSON text."
    );

    /// How far a run has come: its slice is used up.
    #[pymodule_export]
    const YIELDED: u8 = 0;
    /// How far a run has come: it waits for calls or a timer.
    #[pymodule_export]
    const WAITS: u8 = 1;
    /// How far a run has come: it has ended.
    #[pymodule_export]
    const DONE: u8 = 2;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("NotCompiled", module.py().get_type::<NotCompiled>())?;
        module.add("LIMITS", bindings::limit_names().collect::<Vec<_>>())?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }

    /// The name that is nearest to one that does not exist.
    #[pyfunction]
    fn nearest(name: &str, known: Vec<String>) -> Option<String> {
        bindings::nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn value_error(error: bindings::InputError) -> PyErr {
        PyValueError::new_err(error.0)
    }

    /// The answer to a call.
    fn answer(
        error: Option<(String, String, Option<String>, bool)>,
        result: Option<String>,
    ) -> Result<String, ToolError> {
        match error {
            Some((code, message, details, fatal)) => Err(ToolError { message, code, details, fatal }),
            None => Ok(result.unwrap_or_else(|| "null".into())),
        }
    }

    /// The tools of a run.
    #[pyclass(frozen)]
    struct Toolset(Arc<bindings::Toolset>);

    #[pymethods]
    impl Toolset {
        #[new]
        fn new(text: &str) -> PyResult<Self> {
            bindings::Toolset::from_json(text).map(|tools| Self(Arc::new(tools))).map_err(value_error)
        }

        fn declarations(&self) -> String {
            self.0.declarations()
        }

        fn similar(&self, name: &str) -> Vec<String> {
            self.0.similar(name)
        }
    }

    /// A compiled script.
    #[pyclass(frozen)]
    struct Script(bindings::Script);

    #[pymethods]
    impl Script {
        #[new]
        fn new(py: Python<'_>, source: &str, settings: Option<&str>, tools: &Toolset) -> PyResult<Self> {
            let settings = match settings {
                None => bindings::Settings::default(),
                Some(text) => bindings::Settings::from_json(text).map_err(value_error)?,
            };
            let tools = Arc::clone(&tools.0);
            let script = py.detach(|| bindings::Script::compile(source, settings, tools));
            script.map(Self).map_err(|failure| NotCompiled::new_err(failure.0))
        }

        #[pyo3(signature = (context, seed, host_time, unix_ms, slice_ms))]
        fn start(
            &self,
            context: Option<String>,
            seed: u64,
            host_time: bool,
            unix_ms: Option<f64>,
            slice_ms: Option<u64>,
        ) -> PyResult<Run> {
            let time = bindings::Time::new(host_time, unix_ms);
            let slice = slice_ms.map(Duration::from_millis);
            let start = bindings::Start { context, seed, clock: clock(), time, slice };
            let run = self.0.start(start).map_err(value_error)?;
            Ok(Run { flag: run.cancel_flag(), run: Mutex::new(run) })
        }

        fn journal(&self, id: &str, unix_ms: i64, context: Option<String>) -> PyResult<Journal> {
            self.0.journal(id, unix_ms, context, clock()).map(Journal).map_err(value_error)
        }

        fn step(
            &self,
            py: Python<'_>,
            journal: &Journal,
            context: Option<String>,
        ) -> PyResult<(Option<Journal>, String)> {
            let step = py.detach(|| self.0.step(&journal.0, context, clock())).map_err(value_error)?;
            Ok((step.journal().cloned().map(Journal), step.to_json().to_owned()))
        }
    }

    /// One execution of a script.
    #[pyclass(frozen)]
    struct Run {
        run: Mutex<bindings::Run>,
        flag: bindings::CancelFlag,
    }

    impl Run {
        fn lock(&self) -> MutexGuard<'_, bindings::Run> {
            self.run.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    fn number(progress: bindings::Progress) -> u8 {
        match progress {
            bindings::Progress::Yielded => YIELDED,
            bindings::Progress::Waits => WAITS,
            bindings::Progress::Done => DONE,
        }
    }

    #[pymethods]
    impl Run {
        /// One slice.
        fn resume(&self, py: Python<'_>) -> u8 {
            py.detach(|| number(self.lock().resume()))
        }

        /// All slices, until it waits or has ended. Signals are handled in between, where this is the main thread.
        fn resume_all(&self, py: Python<'_>) -> PyResult<u8> {
            loop {
                let progress = py.detach(|| self.lock().resume());
                if progress != bindings::Progress::Yielded {
                    return Ok(number(progress));
                }
                py.check_signals()?;
            }
        }

        /// New calls: id, kind, tool, input as JSON text, and how many milliseconds the call may take.
        fn take_calls(&self) -> Vec<(u32, &'static str, String, String, u64)> {
            let calls = self.lock().take_calls().into_iter();
            calls.map(|call| (call.id.0, bindings::kind(call.kind), call.tool, call.input, call.timeout_ms)).collect()
        }

        fn take_cancelled(&self) -> Vec<u32> {
            self.lock().take_cancelled()
        }

        fn take_messages(&self) -> Option<String> {
            self.lock().take_messages_json()
        }

        #[pyo3(signature = (id, result, error=None))]
        fn settle(&self, id: u32, result: Option<String>, error: Option<(String, String, Option<String>, bool)>) {
            self.lock().settle(id, answer(error, result));
        }

        fn reach(&self, ms: u64) {
            self.lock().reach(ms);
        }

        /// Returns at once, also while another thread evaluates the run.
        fn cancel(&self) {
            self.flag.set();
        }

        fn time_left_ms(&self) -> f64 {
            self.lock().time_left_ms()
        }

        fn next_timer_ms(&self) -> Option<u64> {
            self.lock().next_timer_ms()
        }

        fn memory_bytes(&self) -> usize {
            self.lock().memory_bytes()
        }

        fn outcome(&self) -> Option<String> {
            self.lock().outcome()
        }
    }

    /// What has happened in a stateless run so far.
    #[pyclass(frozen)]
    struct Journal(bindings::Journal);

    #[pymethods]
    impl Journal {
        #[staticmethod]
        fn from_json(text: &str) -> PyResult<Self> {
            bindings::Journal::from_json(text).map(Self).map_err(value_error)
        }

        fn to_json(&self) -> PyResult<String> {
            self.0.to_json().map_err(value_error)
        }

        #[staticmethod]
        fn from_token(token: &str, key: Option<&[u8]>) -> PyResult<Self> {
            bindings::Journal::from_token(token, key).map(Self).map_err(value_error)
        }

        fn to_token(&self, key: Option<&[u8]>) -> String {
            self.0.to_token(key)
        }

        #[pyo3(signature = (call, result, error=None))]
        fn answered(
            &self,
            call: u32,
            result: Option<String>,
            error: Option<(String, String, Option<String>, bool)>,
        ) -> PyResult<Self> {
            self.0.answered(call, answer(error, result)).map(Self).map_err(value_error)
        }
    }
}
