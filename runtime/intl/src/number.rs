//! Numbers as text (ECMA-402 16).
//!
//! Numbers are exact decimals: the digits that identify a double, all digits of a BigInt or a text. [`pattern`] makes
//! parts of them.
//!
//! charged: by the callers, by [`Decimal::width`] and [`Quantity::cost`]

mod decimal;
mod options;
mod pattern;
mod symbols;
mod units;

pub use decimal::{Decimal, MODES, Mode, Quantity};
pub use options::*;
pub use pattern::{Part, Sourced};
pub use symbols::fraction_digits;
pub use units::is_unit;

use crate::locale::{self, Resolved};
use std::sync::Arc;
use symbols::Data;

/// A number format: options, and what CLDR has for them.
#[derive(Clone, Debug)]
pub struct NumberFormat {
    /// The options.
    pub options: Options,
    /// Whether it formats a range.
    is_range: bool,
    data: Arc<Data>,
}

impl NumberFormat {
    /// About how many bytes its texts and data take beside it.
    pub const BESIDE: usize = size_of::<Data>() + 512;

    /// A format; `data` is the name of the locale in the packs.
    pub fn new(options: Options, data: &'static str) -> Self {
        let mut format = Self { options, is_range: false, data: Arc::default() };
        format.data = Arc::new(symbols::data(&format, data));
        format
    }

    /// The format of a range, where ICU and V8 differ from themselves: units of percent have their denominator, and digits
    /// are those of the locale where an option asks for Latin ones.
    fn for_range(&self) -> Self {
        let mut format = self.clone();
        let options = &mut format.options;
        let is_percent = options.unit.starts_with("percent-per-");
        let default = locale::available(&options.locale).map_or("latn", |locale| locale.numbering);
        let is_latin = options.numbering == "latn" && default != "latn" && !options.locale.contains("-nu-");
        if is_percent || is_latin {
            format.is_range = true;
            if is_latin {
                options.numbering = default.into();
            }
            format.data = Arc::new(symbols::data(&format, self.data.locale));
        }
        format
    }

    /// The name of the locale in the packs.
    pub fn data_locale(&self) -> &'static str {
        self.data.locale
    }

    /// The letter of the plural category of a quantity.
    pub fn plural_of(&self, quantity: &Quantity, is_ordinal: bool) -> char {
        let Quantity::Finite(decimal) = quantity else { return crate::plurals::OTHER };
        let mut decimal = decimal.clone();
        let fraction = self.round(&mut decimal);
        self.plural(&decimal, fraction, 0, is_ordinal)
    }

    /// The parts of a range, each with the number that it is from.
    pub fn range(&self, start: &Quantity, end: &Quantity) -> Vec<Sourced> {
        pattern::range(&self.for_range(), start, end)
    }

    /// Whether the unit is written as a percent sign: short, and not compact.
    fn is_percent_sign(&self) -> bool {
        let Options { unit, unit_display, notation, .. } = &self.options;
        let is_percent = unit == "percent" || unit.starts_with("percent-per-") && !self.is_range;
        is_percent && *unit_display < 2 && *notation != Notation::Compact
    }
}

impl Quantity {
    /// Bytes of its parts: for three digits two of them, with a text each.
    pub fn cost(&self) -> usize {
        const DIGIT: usize = (2 * size_of::<Part>() + 32) / 3 + 16;
        match self {
            Self::NaN | Self::Infinite(_) => 0,
            Self::Finite(decimal) => decimal.width().saturating_mul(DIGIT),
        }
    }
}

/// The resolved tag and numbering system: that of the option, of the requested tag, or of the locale.
pub fn numbering(requested: &Resolved, asked: Option<&str>) -> (String, String) {
    let tag = requested
        .tag(|key, value| key == "nu" && symbols::is_numbering(value) && asked.is_none_or(|asked| asked == value));
    // An option replaces what is in the tag, also one that is unknown, as is any in capitals.
    let wanted = asked.or_else(|| requested.keyword("nu")).filter(|name| symbols::is_numbering(name));
    (tag, wanted.unwrap_or(requested.locale.numbering).to_owned())
}
