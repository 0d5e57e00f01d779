//! The time zones of a build without the feature `time-zones`: UTC, without names.

/// The only zone.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    /// Its canonical name.
    pub name: &'static str,
}

impl Zone {
    /// Why other zones are not found.
    pub const LIMITS: Option<&'static str> =
        Some("this build of AgentScript has UTC only: it lacks the feature `time-zones`");

    /// UTC by any of its names.
    pub fn find(name: &str) -> Option<Self> {
        const NAMES: &[&str] = &["UTC", "GMT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu"];
        NAMES.iter().any(|own| own.eq_ignore_ascii_case(name)).then(Self::utc)
    }

    /// The default zone.
    pub fn utc() -> Self {
        Self { name: "UTC" }
    }

    /// Seconds that clocks are ahead of UTC.
    pub fn offset(&self, _: f64) -> i32 {
        0
    }

    /// Formats that name the zone are refused.
    pub fn name_at(&self, _: f64, _: (u8, u8), _: &Locale) -> String {
        self.name.into()
    }
}

/// Locales name no zones.
#[derive(Clone, Copy, Debug)]
pub struct Locale;

impl Locale {
    /// Of any locale.
    pub fn new(_: &str, _: [char; 10]) -> Self {
        Self
    }
}
