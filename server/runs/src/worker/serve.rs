//! The worker process: one run after the other, between two pipes. It has a single thread. It warms up while no run
//! waits for it, gives up everything but memory and time, and only then gets a script.
//!
//! It decides nothing: slices, cancellation, limits over all runs and tool calls are the server's.

use super::directories::KeptDirectories;
use super::message::{Request, Response, Resumed, Start, VERSION, decode, decode_length, encode_frame};
use crate::executor::{Evaluation, Executor as _, ThreadExecutor};
use agentscript::{CompileOptions, Event, Inputs, Policy, Preset, Progress, compile};
use codecall_base::sandbox::{self, Strictness};
use codecall_base::tool::ToolDirectory;
use std::io::{Error, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How a worker is confined.
#[derive(Clone, Copy, Debug)]
pub struct Confinement {
    /// The reaction where a protection cannot be enforced.
    pub strictness: Strictness,
    /// Memory in addition to what it has at its start, in bytes.
    pub memory_bytes: u64,
    /// Processor time in total, in seconds.
    pub cpu_seconds: u64,
    /// Whether it initialises the tables of all built-ins before its first run. Otherwise a run initialises those that
    /// it uses.
    pub warm: bool,
}

/// Maximum size of a message from the server, in bytes. The server limits the results of tools and the descriptions in a
/// directory.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024 * 1024;

/// A script that initialises the tables of the built-ins, which a process makes once.
const WARM_UP: &str = r"
    const when = new Date(1.7e12);
    const texts = [
      when.toLocaleString('de-DE', { timeZone: 'Europe/Berlin', dateStyle: 'full', timeStyle: 'long' }),
      (1234.5).toLocaleString('en-US', { style: 'currency', currency: 'EUR' }), 'ä'.localeCompare('z', 'sv'),
      'é'.normalize('NFKD'), 'Straße'.toLocaleUpperCase('de'), `${2n ** 64n}`, new URL('https://a.example/?b=c').host,
      new Intl.PluralRules('en').select(1), new Intl.ListFormat('en').format(['a', 'b']), btoa('text'),
      new Intl.RelativeTimeFormat('en').format(-1, 'day'), new Intl.DisplayNames('en', { type: 'region' }).of('DE'),
      String([...new Intl.Segmenter('en').segment('two words')].length), crypto.randomUUID(), JSON.stringify(when),
    ];
    const found = /(?<word>\p{L}+)(?=\d)/iu.exec('abc1').groups.word;
    console.log(texts, new Map([[1, new Set([2])]]));
    return [found, texts.sort().map((text) => text.replaceAll('a', 'b')).filter(Boolean), structuredClone({ when })];";

/// Serves runs on standard input and output, to the end of the input.
///
/// # Errors
/// The process cannot be confined as demanded, or a pipe is broken.
pub fn serve(confinement: Confinement) -> Result<(), String> {
    die_with_parent();
    if confinement.warm {
        warm_up();
    }
    let protections = sandbox::confine_worker(confinement.memory_bytes, confinement.cpu_seconds)?;
    // Ports need no Landlock: seccomp denies the system calls that open a socket.
    let is_confined = protections.files && protections.calls && protections.limits;
    if confinement.strictness == Strictness::Required && !is_confined {
        return Err(format!("a worker can be confined here by no more than: {}", protections.describe()));
    }
    write_response(&Response::Ready { version: VERSION.into(), protections })?;
    let mut worker = Worker::default();
    while let Some(request) = read_request()? {
        match catch_unwind(AssertUnwindSafe(|| worker.handle(request))) {
            Ok(response) => {
                if let Some(response) = response? {
                    write_response(&response)?;
                }
            }
            Err(panic) => {
                let message = panic.downcast_ref::<String>().map(String::as_str);
                let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
                // The state is unknown after a panic, so the worker exits, and the next run gets another one.
                return write_response(&Response::Panicked(message.to_owned()));
            }
        }
    }
    Ok(())
}

/// Makes the kernel kill this process with the thread that has started it, so that no worker outlives its server.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    }
}

fn warm_up() {
    let policy = Policy::preset(Preset::Experimental);
    let Ok(script) = compile(WARM_UP, &CompileOptions::for_policy(&policy)) else { return };
    let mut run = script.start(Inputs::default(), &policy);
    let _ = run.resume([]);
}

struct Worker {
    executor: ThreadExecutor,
    directories: KeptDirectories<Arc<ToolDirectory>>,
    run: Option<Box<dyn Evaluation>>,
}

impl Default for Worker {
    fn default() -> Self {
        Self { executor: ThreadExecutor::new(Arc::default()), directories: KeptDirectories::default(), run: None }
    }
}

impl Worker {
    /// Handles a request. Returns the response; `None` if there is none for this request.
    ///
    /// # Errors
    /// The request makes no sense now, or the message after it is missing.
    fn handle(&mut self, request: Request) -> Result<Option<Response>, String> {
        match request {
            Request::Directory(id) => {
                self.directories.make_room();
                let message = read_message()?.ok_or("the directory is missing")?;
                self.directories.insert(id, Arc::new(ToolDirectory::from_bytes(&message)?));
                Ok(None)
            }
            Request::Start(start) => self.start(*start).map(Some),
            Request::Resume(events) => self.resume(events).map(Some),
            Request::OpenCalls => {
                let open = self.run.as_mut().map(|run| run.open_calls()).unwrap_or_default();
                Ok(Some(Response::OpenCalls(open)))
            }
        }
    }

    fn start(&mut self, start: Start) -> Result<Response, String> {
        let directory = self.directories.use_for_run(start.directory).ok_or("a directory that was not sent")?;
        let (inputs, events) = start.into_inputs(Arc::clone(directory));
        match self.executor.start(inputs) {
            Ok(run) => {
                self.run = Some(run);
                self.resume(events)
            }
            Err(outcome) => Ok(Response::NotStarted(outcome)),
        }
    }

    fn resume(&mut self, events: Vec<Event>) -> Result<Response, String> {
        let Some(run) = &mut self.run else { return Err("there is no run".into()) };
        // The server cancels a run with an event.
        let progress = run.resume(events, &CancellationToken::new());
        let is_done = matches!(progress, Progress::Done(_));
        let resumed = Resumed {
            progress,
            messages: run.take_messages(),
            lookups: run.take_lookups(),
            memory_bytes: run.memory_bytes(),
            unanswered_calls: u64::try_from(run.unanswered_calls()).unwrap_or(u64::MAX),
            time_left: run.time_left(),
            next_timer: run.next_timer(),
            cancelled: run.take_cancelled(),
        };
        if is_done {
            self.run = None;
        }
        Ok(Response::Resumed(Box::new(resumed)))
    }
}

/// Reads a request. Returns `None` if the server is gone.
fn read_request() -> Result<Option<Request>, String> {
    read_message()?.map(|message| decode(&message)).transpose()
}

/// Reads a message from standard input, without a buffer that could read more. Returns `None` if the server is gone.
fn read_message() -> Result<Option<Vec<u8>>, String> {
    let mut length = [0; 4];
    match read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let length = decode_length(length);
    if length > MAX_MESSAGE_BYTES {
        return Err("a message is too long".into());
    }
    let mut message = vec![0; length];
    read_exact(&mut message).map_err(|error| error.to_string())?;
    Ok(Some(message))
}

fn read_exact(mut buffer: &mut [u8]) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match rustix::io::read(rustix::stdio::stdin(), &mut *buffer) {
            Ok(0) => return Err(Error::from(ErrorKind::UnexpectedEof)),
            Ok(read) => buffer = &mut buffer[read..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn write_response(response: &Response) -> Result<(), String> {
    let frame = encode_frame(response)?;
    let mut rest = frame.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}
