//! The worker process: one run after the other, between two pipes. It has a single thread, warms up where
//! nobody waits for it, gives up everything but memory and time, and only then looks at a script.
//!
//! It decides nothing: slices, cancellation, limits over all runs and tool calls are the server's.

use super::message::{Answer, Ask, Begin, Ended, Happened, Order, Told, VERSION, Went, frame, read};
use crate::executor;
use agentscript::{CompileOptions, Inputs, Policy, Preset, Progress, Run, ScriptCache, Tools, compile};
use codecall_base::sandbox::{self, Strictness};
use std::io::{Error, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How a worker is confined.
#[derive(Clone, Copy, Debug)]
pub struct Confinement {
    /// What to do where a wall is missing.
    pub strictness: Strictness,
    /// Bytes that it may have besides what it has when it begins.
    pub memory_bytes: u64,
    /// Seconds of processor time in all.
    pub cpu_seconds: u64,
    /// Whether it makes the tables of the built-ins before its first run, which otherwise makes what it needs.
    pub warm: bool,
}

/// Longest message from the server: tool results, bounded there.
const LONGEST: usize = 1024 * 1024 * 1024;

/// What a script asks for when it is the first one: tables that are made once in a process.
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

/// Serve on standard input and output to the end of the input.
///
/// # Errors
/// It cannot be confined as it has to be, or the pipes break.
pub fn serve(confinement: Confinement) -> Result<(), String> {
    die_with_parent();
    if confinement.warm {
        warm_up();
    }
    let walls = sandbox::confine_worker(confinement.memory_bytes, confinement.cpu_seconds)?;
    // A worker has no port to connect to without the system call for it: seccomp covers them.
    if confinement.strictness == Strictness::Required && !(walls.files && walls.calls && walls.limits) {
        return Err(format!("a worker can be confined here by no more than: {}", walls.describe()));
    }
    let mut pipe = Pipe::default();
    pipe.write(&Answer::Ready { version: VERSION.into(), walls })?;
    let mut worker = Worker { scripts: ScriptCache::default(), run: None };
    while let Some(order) = pipe.read()? {
        let went = catch_unwind(AssertUnwindSafe(|| worker.follow(order)));
        match went {
            Ok(answer) => pipe.write(&answer?)?,
            Err(panic) => {
                let told = panic.downcast_ref::<String>().map(String::as_str);
                let told = told.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
                // What has panicked is in no known state: the next run gets another worker.
                return pipe.write(&Answer::Crashed(told.to_owned()));
            }
        }
    }
    Ok(())
}

/// The server may be killed: then no worker may stay behind.
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
    scripts: ScriptCache,
    run: Option<Box<Run>>,
}

impl Worker {
    /// Do what the server asks for, as far as it can go alone.
    fn follow(&mut self, order: Order) -> Result<Answer, String> {
        match order {
            Order::Begin(begin) => self.begin(*begin),
            Order::Resume(events) => self.resume(events),
            Order::OpenCalls => {
                let open = self.run.iter().flat_map(|run| run.open_calls());
                Ok(Answer::OpenCalls(open.map(|call| (call.id.0, call.awaited)).collect()))
            }
            Order::Told(_) => Err("an answer that was not asked for".into()),
        }
    }

    fn begin(&mut self, begin: Begin) -> Result<Answer, String> {
        let policy = begin.policy()?;
        let (language, dialect) = (begin.language(), begin.dialect());
        let Begin { script, context, seed, stands_still, slice, events, .. } = begin;
        let inputs = Inputs { context, tools: Arc::new(Asked), clock: executor::clock(stands_still), seed, slice };
        match executor::begin(&self.scripts, &script, (language, dialect), policy, inputs) {
            Ok(run) => {
                self.run = Some(Box::new(run));
                self.resume(events)
            }
            Err(outcome) => Ok(Answer::Ended(Box::new(Ended::from(*outcome)))),
        }
    }

    fn resume(&mut self, events: Vec<Happened>) -> Result<Answer, String> {
        let Some(run) = &mut self.run else { return Err("there is no run".into()) };
        let progress = run.resume(events.into_iter().map(Into::into));
        let is_done = matches!(progress, Progress::Done(_));
        let said = run.take_messages().into_iter().map(Into::into).collect();
        let memory_bytes = u64::try_from(run.memory_bytes()).unwrap_or(u64::MAX);
        let unanswered_calls = u64::try_from(run.unanswered_calls()).unwrap_or(u64::MAX);
        let time_left = run.time_left();
        if is_done {
            self.run = None;
        }
        Ok(Answer::Went(Box::new(Went { progress: progress.into(), said, memory_bytes, unanswered_calls, time_left })))
    }
}

/// The tools, which the server knows. It is in the middle of waiting for this worker, and answers at once.
struct Asked;

impl Asked {
    fn ask(question: Ask) -> Told {
        let mut pipe = Pipe::default();
        let told = pipe.write(&Answer::Ask(question)).and_then(|()| pipe.read());
        match told {
            Ok(Some(Order::Told(told))) => told,
            // The server is gone, or no longer speaks with this run: there is no way out of the middle of it.
            Ok(Some(Order::Begin(_) | Order::Resume(_) | Order::OpenCalls) | None) | Err(_) => std::process::exit(0),
        }
    }

    fn text(question: Ask) -> Option<String> {
        match Self::ask(question) {
            Told::Text(text) => text,
            Told::Is(_) | Told::Names(_) => None,
        }
    }

    fn is(question: Ask) -> bool {
        matches!(Self::ask(question), Told::Is(true))
    }
}

impl Tools for Asked {
    fn describe(&self, name: &str) -> Option<String> {
        Self::text(Ask::Describe(name.into()))
    }

    fn is_app(&self, app: &str) -> bool {
        Self::is(Ask::IsApp(app.into()))
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        Self::text(Ask::Member(app.into(), tool.into()))
    }

    fn function(&self, name: &str) -> Option<String> {
        Self::text(Ask::Function(name.into()))
    }

    fn positional(&self, tool: &str) -> Option<String> {
        Self::text(Ask::Positional(tool.into()))
    }

    fn similar(&self, name: &str) -> Vec<String> {
        match Self::ask(Ask::Similar(name.into())) {
            Told::Names(names) => names,
            Told::Text(_) | Told::Is(_) => Vec::new(),
        }
    }

    fn is_reserved(&self, name: &str) -> bool {
        Self::is(Ask::IsReserved(name.into()))
    }
}

/// Standard input and output, without buffers that somebody else fills: a message at a time.
#[derive(Default)]
struct Pipe(Vec<u8>);

impl Pipe {
    /// The next message; absent: the server is gone.
    fn read(&mut self) -> Result<Option<Order>, String> {
        let mut length = [0; 4];
        match fill(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err("a message is too long".into());
        }
        self.0.resize(length, 0);
        fill(&mut self.0).map_err(|error| error.to_string())?;
        let order = read(&self.0);
        self.0 = Vec::new();
        order.map(Some)
    }

    fn write(&mut self, answer: &impl serde::Serialize) -> Result<(), String> {
        let frame = frame(answer)?;
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
}

fn fill(mut buffer: &mut [u8]) -> std::io::Result<()> {
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
