//! A cache of compiled scripts.
//!
//! A script is found by its whole text and all options it was compiled with. The table is searched by a seeded hash of
//! both. A hit is compared in full, so two scripts with one hash only displace each other. Scripts that
//! do not compile are not cached.

use crate::script::{CompileError, CompileOptions, Script, compile};
use hashbrown::DefaultHashBuilder;
use lru::LruCache;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An LRU cache of compiled scripts, bounded by bytes and by number. Shared between threads.
///
/// ```
/// use agentscript::{CompileOptions, ScriptCache};
/// use std::sync::Arc;
///
/// let cache = ScriptCache::new(1 << 20, 100);
/// let options = CompileOptions::default();
/// let first = cache.compile("return 1 + 1", &options).expect("the script is valid");
/// let again = cache.compile("return 1 + 1", &options).expect("the script is valid");
/// assert!(Arc::ptr_eq(&first, &again));
/// ```
pub struct ScriptCache {
    max_bytes: usize,
    max_scripts: usize,
    hasher: DefaultHashBuilder,
    entries: Mutex<Entries>,
}

struct Entries {
    scripts: LruCache<u64, Entry>,
    bytes: usize,
}

struct Entry {
    script: Arc<Script>,
    options: CompileOptions,
    bytes: usize,
}

impl Default for ScriptCache {
    /// 32 MiB and 1,000 scripts.
    fn default() -> Self {
        Self::new(32 << 20, 1000)
    }
}

impl ScriptCache {
    /// A cache that holds scripts of so many bytes together, source and code, and so many scripts. With zero of either
    /// it caches nothing.
    #[must_use]
    pub fn new(max_bytes: usize, max_scripts: usize) -> Self {
        let entries = Mutex::new(Entries { scripts: LruCache::unbounded(), bytes: 0 });
        Self { max_bytes, max_scripts, hasher: DefaultHashBuilder::default(), entries }
    }

    /// The script of a text: the cached one, or a new one, which is cached.
    ///
    /// No lock is held while a script is compiled. If two threads compile one text at the same time, both get the
    /// script that was ready first.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn compile(&self, source: &str, options: &CompileOptions) -> Result<Arc<Script>, CompileError> {
        let hash = self.hasher.hash_one((source, options));
        if let Some(script) = self.lock().find(hash, source, options) {
            return Ok(script);
        }
        let script = compile(source, options)?;
        Ok(self.insert(hash, script, options))
    }

    fn insert(&self, hash: u64, script: Arc<Script>, options: &CompileOptions) -> Arc<Script> {
        let bytes = script.bytes()
            + size_of::<Entry>()
            + options
                .disabled_builtins
                .iter()
                .chain(&options.disabled_globals)
                .chain(&options.apps)
                .chain(&options.reserved_apps)
                .map(String::capacity)
                .sum::<usize>();
        if bytes > self.max_bytes || self.max_scripts == 0 {
            return script;
        }
        let mut entries = self.lock();
        if let Some(other) = entries.find(hash, script.source(), options) {
            return other;
        }
        let entry = Entry { script: Arc::clone(&script), options: options.clone(), bytes };
        entries.bytes += bytes;
        if let Some(displaced) = entries.scripts.put(hash, entry) {
            entries.bytes -= displaced.bytes;
        }
        while entries.bytes > self.max_bytes || entries.scripts.len() > self.max_scripts {
            let Some((_, oldest)) = entries.scripts.pop_lru() else { break };
            entries.bytes -= oldest.bytes;
        }
        script
    }

    /// How many scripts it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().scripts.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the scripts that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Forgets all scripts. Runs keep theirs.
    pub fn clear(&self) {
        let mut entries = self.lock();
        entries.scripts.clear();
        entries.bytes = 0;
    }

    /// A panic of another thread leaves the table consistent.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn find(&mut self, hash: u64, source: &str, options: &CompileOptions) -> Option<Arc<Script>> {
        let entry = self.scripts.get(&hash)?;
        let is_same = entry.script.source() == source && entry.options == *options;
        is_same.then(|| Arc::clone(&entry.script))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentscript_lang::Loops;

    fn options() -> CompileOptions {
        CompileOptions::default()
    }

    /// Whether a script is kept, without asking for it.
    fn has(cache: &ScriptCache, source: &str) -> bool {
        cache.lock().scripts.iter().any(|(_, entry)| entry.script.source() == source)
    }

    #[test]
    fn scripts_are_shared_between_threads() {
        fn is_shared<T: Send + Sync>() {}
        is_shared::<Script>();
        is_shared::<Arc<Script>>();
        is_shared::<ScriptCache>();
    }

    #[test]
    fn the_same_text_is_the_same_script() {
        let cache = ScriptCache::default();
        let first = cache.compile("return 1", &options()).expect("compiles");
        assert!(Arc::ptr_eq(&first, &cache.compile("return 1", &options()).expect("compiles")));
        assert!(!Arc::ptr_eq(&first, &cache.compile("return 1 ", &options()).expect("compiles")));
        assert_eq!(cache.len(), 2);
        assert!(cache.bytes() > first.bytes());
        cache.clear();
        assert!(cache.is_empty() && cache.bytes() == 0);
        assert_eq!(first.source(), "return 1");
    }

    #[test]
    fn options_matter() {
        let cache = ScriptCache::default();
        let source = "for (const a of [1]) { console.log(a) } return 1";
        let all = CompileOptions { loops: Loops::All, allow_console: true, ..options() };
        assert!(cache.compile(source, &all).is_ok());
        for (code, other) in [
            ("LOOP_NOT_ALLOWED", CompileOptions { loops: Loops::None, ..all.clone() }),
            ("VALIDATION_ERROR", CompileOptions { allow_console: false, ..all.clone() }),
            ("SCRIPT_TOO_LARGE", CompileOptions { max_bytes: 10, ..all.clone() }),
            ("VALIDATION_ERROR", CompileOptions { disabled_globals: vec!["console".into()], ..all.clone() }),
        ] {
            let error = cache.compile(source, &other).err().map(|error| error.diagnostics[0].code.as_str());
            assert_eq!(error, Some(code));
        }
        assert_eq!(cache.len(), 1);
        assert!(cache.compile(source, &all).is_ok());
    }

    #[test]
    fn failures_are_not_kept() {
        let cache = ScriptCache::default();
        assert!(cache.compile("return (", &options()).is_err());
        assert!(cache.is_empty() && cache.bytes() == 0);
    }

    #[test]
    fn what_is_used_stays() {
        let cache = ScriptCache::new(1 << 20, 2);
        for source in ["return 1", "return 2", "return 1", "return 3"] {
            assert!(cache.compile(source, &options()).is_ok());
        }
        assert!(has(&cache, "return 1") && has(&cache, "return 3") && !has(&cache, "return 2"));
    }

    #[test]
    fn bytes_are_bounded() {
        let cache = ScriptCache::new(10_000, 1000);
        let last = "return 99";
        for number in 0..100 {
            assert!(cache.compile(&format!("return {number}"), &options()).is_ok());
            assert!(cache.bytes() <= 10_000);
        }
        assert!(cache.len() > 5 && cache.len() < 100 && has(&cache, last));
        // Larger than the cache: compiled, and nothing else has to go.
        let before = cache.len();
        let large = format!("return '{}'", "a".repeat(10_000));
        assert!(cache.compile(&large, &options()).is_ok());
        assert_eq!((cache.len(), has(&cache, &large)), (before, false));
    }

    #[test]
    fn nothing_is_kept_where_there_is_no_room() {
        for cache in [ScriptCache::new(0, 10), ScriptCache::new(1 << 20, 0)] {
            assert!(cache.compile("return 1", &options()).is_ok());
            assert!(cache.is_empty());
        }
    }

    #[test]
    fn threads_get_one_script() {
        let cache = ScriptCache::default();
        let compile = || cache.compile("return [1, 2].map((a) => a + 1)", &options()).expect("compiles");
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(compile)).collect();
            for thread in threads {
                assert!(Arc::ptr_eq(&compile(), &thread.join().expect("no panic")));
            }
        });
        assert_eq!(cache.len(), 1);
    }
}
