//! Settings of glibc's allocator, so that it returns freed memory to the system.
//!
//! By default glibc keeps free memory in the middle of an arena. At its end it keeps up to twice the size of the
//! largest freed block, at most 64 MB. With an arena for each thread, that adds up to a gigabyte after some large
//! scripts.
//! Other allocators (mimalloc, jemalloc) copy a large block when it grows or shrinks, so a run would need twice its
//! limit for a moment. Here glibc lets the kernel move its pages.
//!
//! This file has the only `unsafe` of the repository: two functions of glibc that any thread may call at any time.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use glibc::{spawn_trimmer, tune};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no crate has mallopt and malloc_trim as safe functions")]
mod glibc {
    use std::fs;
    use std::time::Duration;

    /// Size in bytes from which a block has a mapping of its own, which is unmapped when the block is freed.
    const MMAP_THRESHOLD: libc::c_int = 256 << 10;
    /// Maximum free memory at the end of an arena, in bytes.
    const TRIM_THRESHOLD: libc::c_int = 1 << 20;
    /// Maximum number of arenas: about one for each thread. Threads that share an arena wait for its lock, which a
    /// thread with a low priority may hold for tens of milliseconds.
    const MAX_ARENAS: libc::c_int = 64;
    /// How often the size of the process is measured.
    const INTERVAL: Duration = Duration::from_secs(2);
    /// Growth after which free memory is trimmed, in pages of 4 KiB: 16 MB.
    const GROWTH_PAGES: u64 = 4096;
    /// Trimmed memory after which it is trimmed again soon, in pages: 1 MB.
    const TRIMMED_PAGES: u64 = 256;
    /// Maximum time between two trims.
    const MAX_WAIT: Duration = Duration::from_secs(300);

    /// Applies the settings. Every process of the program calls it first.
    pub fn tune() {
        // Settings of the environment have precedence.
        if std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"MALLOC_")) {
            return;
        }
        for (parameter, value) in [
            (libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD),
            (libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD),
            (libc::M_ARENA_MAX, MAX_ARENAS),
        ] {
            // SAFETY: it takes numbers, and refuses parameters that it does not know.
            unsafe { libc::mallopt(parameter, value) };
        }
    }

    /// Starts a thread that also trims free memory in the middle of arenas. It does so when the process has grown, and
    /// then again
    /// as long as a trim returns memory. The thread runs until the process ends.
    pub fn spawn_trimmer() {
        let body = || {
            let (mut least, mut waited, mut wait) = (resident_pages(), Duration::ZERO, MAX_WAIT);
            loop {
                std::thread::sleep(INTERVAL);
                waited += INTERVAL;
                let now = resident_pages();
                let has_grown = now > least.saturating_add(GROWTH_PAGES);
                if !has_grown && waited < wait {
                    least = least.min(now);
                    continue;
                }
                // SAFETY: it takes a number, and locks the arenas itself.
                unsafe { libc::malloc_trim(0) };
                least = resident_pages();
                let has_trimmed = now > least.saturating_add(TRIMMED_PAGES);
                wait = if has_grown || has_trimmed { INTERVAL * 2 } else { (wait * 2).min(MAX_WAIT) };
                waited = Duration::ZERO;
            }
        };
        // If the thread cannot be started, the process only uses more memory.
        drop(std::thread::Builder::new().name("trimmer".into()).stack_size(64 << 10).spawn(body));
    }

    /// Returns the number of pages in memory.
    fn resident_pages() -> u64 {
        let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
    }
}

/// Does nothing: this allocator has no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn tune() {}

/// Does nothing: this allocator returns memory by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn spawn_trimmer() {}
