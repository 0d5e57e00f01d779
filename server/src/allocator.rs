//! The allocator gives back what is freed: a server is as large as what it does, not as what it has done.
//!
//! That of glibc keeps free memory by default: whatever is freed in the middle of an arena, and as much at the end of
//! each as twice the largest block that was ever freed, up to 64 MB; with an arena for each thread that makes a
//! gigabyte after some large scripts. Others (mimalloc, jemalloc) copy a large block that grows or shrinks, which
//! takes twice its memory meanwhile, where glibc has the kernel move its pages: a run would take twice its limit.
//!
//! Here is the only `unsafe` of the repository: two functions of glibc that any thread may call at any time.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use glibc::{give_back, tune};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no crate has mallopt and malloc_trim as safe functions")]
mod glibc {
    use std::fs;
    use std::time::Duration;

    /// A block of so many bytes is a mapping of its own, which goes when it is freed and moves when it grows.
    const MAPPED: libc::c_int = 256 << 10;
    /// So much may be free at the end of an arena.
    const FREE: libc::c_int = 1 << 20;
    /// At least so many arenas: they spare threads a lock, and each has free memory of its own.
    const ARENAS: usize = 4;
    /// How often the size of the process is looked at.
    const LOOK: Duration = Duration::from_secs(2);
    /// Growth, in pages of 4 KiB, that is worth looking for free memory: 16 MB.
    const GROWN: u64 = 4096;

    /// Keep little; before anything else, in every process of the program.
    pub fn tune() {
        // Where somebody has said how it should be, it is so.
        if std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"MALLOC_")) {
            return;
        }
        // One for each processor, not eight.
        let arenas = std::thread::available_parallelism().map_or(ARENAS, |processors| processors.get().max(ARENAS));
        let arenas = libc::c_int::try_from(arenas).unwrap_or(libc::c_int::MAX);
        for (parameter, value) in
            [(libc::M_MMAP_THRESHOLD, MAPPED), (libc::M_TRIM_THRESHOLD, FREE), (libc::M_ARENA_MAX, arenas)]
        {
            // SAFETY: it takes numbers, and refuses those that it does not know.
            unsafe { libc::mallopt(parameter, value) };
        }
    }

    /// Give back what is free in the middle of arenas too, whenever the process has grown. It runs as long as it does.
    pub fn give_back() {
        let body = || {
            let mut least = pages();
            loop {
                std::thread::sleep(LOOK);
                let now = pages();
                if now > least.saturating_add(GROWN) {
                    // SAFETY: it takes a number, and the locks of the arenas.
                    unsafe { libc::malloc_trim(0) };
                    least = pages();
                } else {
                    least = least.min(now);
                }
            }
        };
        // Without this thread there is only more memory in use.
        drop(std::thread::Builder::new().name("give-back".into()).stack_size(64 << 10).spawn(body));
    }

    /// Pages that are in memory.
    fn pages() -> u64 {
        let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
    }
}

/// Nothing: this allocator has no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn tune() {}

/// Nothing: this allocator does it by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn give_back() {}
