//! Making rare paths frequent, for tests: what the `--stress-*` flags of V8 and `gczeal` of SpiderMonkey are there.

/// How a run is put under stress. None of it may change what a script does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stress {
    /// Steps between two looks at the clock; absent: as many as usual.
    pub interval: Option<u32>,
    /// End the slice at every look at the clock.
    pub pause: bool,
    /// Collect garbage at every look at the clock.
    pub collect: bool,
    /// Leave all JSON of the host unread that can be, however short it is.
    pub lazy_json: bool,
    /// Give errors no frames of the script, as `Error.stackTraceLimit = 0` does: for comparisons.
    pub hide_frames: bool,
}

impl Stress {
    /// End the slice every so many steps.
    #[must_use]
    pub fn pauses(interval: u32) -> Self {
        Self { interval: Some(interval), pause: true, ..Self::default() }
    }

    /// Collect garbage every so many steps.
    #[must_use]
    pub fn collections(interval: u32) -> Self {
        Self { interval: Some(interval), collect: true, ..Self::default() }
    }
}
