//! Texts of `Intl` (ECMA-402) with the locales and the data of CLDR that Node has. Options, which are plain structs,
//! and values become texts and parts.
//!
//! The crate knows neither values of scripts nor runs. It counts no work: each function takes time and memory in proportion
//! to its arguments, and callers charge for it before they call. Where a long text is walked, the caller holds the loop.
#![forbid(unsafe_code)]

pub mod case;
pub mod collation;
pub mod date;
pub mod display_names;
pub mod list;
pub mod locale;
pub mod number;
mod pack;
pub mod plurals;
pub mod relative_time;
pub mod segments;
pub mod supported_values;
#[cfg(feature = "time-zones")]
pub mod zone;
#[cfg(not(feature = "time-zones"))]
#[path = "without_zones.rs"]
pub mod zone;
