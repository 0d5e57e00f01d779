//! The internal slots (ECMAScript 6.1.7.2) of built-in objects that are neither functions nor collections, such as
//! dates. To add a kind, add a variant here, a [`Family`] and its file in `builtins/`.

use super::{Heap, block, slab_cost};
use crate::builtins::abort::SignalState;
use crate::builtins::encoding::Decoding;
use crate::builtins::family::Family;
use crate::builtins::headers::HeadersState;
use crate::builtins::intl::collator::Collator;
use crate::builtins::intl::date_time_format::DateTimeFormat;
use crate::builtins::intl::display_names::DisplayNames;
use crate::builtins::intl::list_format::ListFormat;
use crate::builtins::intl::number_format::NumberFormat;
use crate::builtins::intl::plural_rules::PluralRules;
use crate::builtins::intl::relative_time_format::RelativeTimeFormat;
use crate::builtins::intl::segmenter::{Segmenter, Segments};
use crate::builtins::response::ResponseState;
use crate::builtins::url::UrlState;
use crate::builtins::url::params::ParamsState;
use crate::generator::Generator;
use crate::regexp::Program;
use crate::value::{Kind, Value};
use std::sync::Arc;

/// The internal slots of a built-in object. Its named properties are in [`Heap::extras`], as those of arrays are.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "intl"), expect(dead_code, reason = "nothing makes objects of `Intl`"))]
pub enum InternalSlots {
    /// A `Date`: milliseconds since 1970-01-01 UTC, an integer within ±8.64e15, or NaN.
    Date(f64),
    /// An `Intl.Collator`.
    Collator(Box<Collator>),
    /// An `Intl.DateTimeFormat`.
    DateTimeFormat(Box<DateTimeFormat>),
    /// An `Intl.NumberFormat`.
    NumberFormat(Box<NumberFormat>),
    /// An `Intl.DisplayNames`.
    DisplayNames(Box<DisplayNames>),
    /// An `Intl.ListFormat`.
    ListFormat(Box<ListFormat>),
    /// An `Intl.PluralRules`.
    PluralRules(Box<PluralRules>),
    /// An `Intl.RelativeTimeFormat`.
    RelativeTimeFormat(Box<RelativeTimeFormat>),
    /// An `Intl.Segmenter`.
    Segmenter(Box<Segmenter>),
    /// A text that an `Intl.Segmenter` has segmented.
    Segments(Box<Segments>),
    /// A `URL`.
    Url(Box<UrlState>),
    /// A `URLSearchParams`.
    Params(Box<ParamsState>),
    /// A `TextEncoder`.
    TextEncoder,
    /// A `TextDecoder`.
    TextDecoder(Box<Decoding>),
    /// A regular expression.
    RegExp(RegExp),
    /// What `setTimeout` and `setInterval` return: the number of the timer.
    Timeout(u32),
    /// An `AbortController`: its signal.
    AbortController(Value),
    /// An `AbortSignal`.
    AbortSignal(Box<SignalState>),
    /// The event that a signal is aborted.
    AbortEvent(Value),
    /// A `Headers`.
    Headers(Box<HeadersState>),
    /// The response of `fetch`.
    Response(Box<ResponseState>),
    /// A generator object.
    Generator(Box<Generator>),
}

/// The internal slots of a regular expression.
#[derive(Clone, Debug)]
pub struct RegExp {
    /// The compiled pattern.
    pub program: Arc<Program>,
    /// The source of the pattern, a string.
    pub source: Value,
    /// Its property `lastIndex`.
    pub last_index: Value,
}

/// The cost of the tag of a locale.
const LOCALE: usize = block(64);

impl InternalSlots {
    /// The family whose methods it has.
    pub fn family(&self) -> Family {
        match self {
            Self::Date(_) => Family::Date,
            Self::Collator(_) => Family::Collator,
            Self::DateTimeFormat(_) => Family::DateTimeFormat,
            Self::NumberFormat(_) => Family::NumberFormat,
            Self::DisplayNames(_) => Family::DisplayNames,
            Self::ListFormat(_) => Family::ListFormat,
            Self::PluralRules(_) => Family::PluralRules,
            Self::RelativeTimeFormat(_) => Family::RelativeTimeFormat,
            Self::Segmenter(_) => Family::Segmenter,
            Self::Segments(_) => Family::Segments,
            Self::Url(_) => Family::Url,
            Self::Params(_) => Family::Params,
            Self::TextEncoder => Family::TextEncoder,
            Self::TextDecoder(_) => Family::TextDecoder,
            Self::RegExp(_) => Family::RegExp,
            Self::Timeout(_) => Family::Timeout,
            Self::AbortController(_) => Family::AbortController,
            Self::AbortSignal(_) => Family::AbortSignal,
            Self::AbortEvent(_) => Family::AbortEvent,
            Self::Headers(_) => Family::Headers,
            Self::Response(_) => Family::Response,
            Self::Generator(generator) if generator.is_async => Family::AsyncGenerator,
            Self::Generator(_) => Family::Generator,
        }
    }

    /// The name of its constructor, as `instanceof` and messages need it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Date(_) => "Date",
            Self::Collator(_) => "Collator",
            Self::DateTimeFormat(_) => "DateTimeFormat",
            Self::NumberFormat(_) => "NumberFormat",
            Self::DisplayNames(_) => "DisplayNames",
            Self::ListFormat(_) => "ListFormat",
            Self::PluralRules(_) => "PluralRules",
            Self::RelativeTimeFormat(_) => "RelativeTimeFormat",
            Self::Segmenter(_) => "Segmenter",
            Self::Segments(_) => "Object",
            Self::Url(_) => "URL",
            Self::Params(_) => "URLSearchParams",
            Self::TextEncoder => "TextEncoder",
            Self::TextDecoder(_) => "TextDecoder",
            Self::RegExp(_) => "RegExp",
            Self::Timeout(_) => "Timeout",
            Self::AbortController(_) => "AbortController",
            Self::AbortSignal(_) => "AbortSignal",
            Self::AbortEvent(_) => "Event",
            Self::Headers(_) => "Headers",
            Self::Response(_) => "Response",
            Self::Generator(_) => "Object",
        }
    }

    /// The tag that `Object.prototype.toString` writes after `object`.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Date(_) | Self::RegExp(_) | Self::Url(_) | Self::Params(_) => self.class(),
            Self::TextEncoder | Self::TextDecoder(_) => self.class(),
            Self::AbortController(_) | Self::AbortSignal(_) | Self::AbortEvent(_) => self.class(),
            Self::Headers(_) | Self::Response(_) => self.class(),
            Self::Timeout(_) | Self::Segments(_) => "Object",
            Self::Collator(_) => "Intl.Collator",
            Self::DateTimeFormat(_) => "Intl.DateTimeFormat",
            Self::NumberFormat(_) => "Intl.NumberFormat",
            Self::DisplayNames(_) => "Intl.DisplayNames",
            Self::ListFormat(_) => "Intl.ListFormat",
            Self::PluralRules(_) => "Intl.PluralRules",
            Self::RelativeTimeFormat(_) => "Intl.RelativeTimeFormat",
            Self::Segmenter(_) => "Intl.Segmenter",
            Self::Generator(generator) if generator.is_async => "AsyncGenerator",
            Self::Generator(_) => "Generator",
        }
    }

    /// The state that `structuredClone` gives the copy; `None` where the object cannot be cloned.
    pub fn structured_clone(&self) -> Option<Self> {
        match self {
            Self::Date(_) => Some(self.clone()),
            Self::TextEncoder | Self::TextDecoder(_) | Self::Generator(_) => None,
            Self::DateTimeFormat(_) | Self::Timeout(_) => None,
            Self::AbortController(_) | Self::AbortSignal(_) | Self::AbortEvent(_) => None,
            Self::Headers(_) | Self::Response(_) => None,
            Self::Collator(_) | Self::NumberFormat(_) | Self::Url(_) | Self::Params(_) => None,
            Self::DisplayNames(_) | Self::ListFormat(_) | Self::PluralRules(_) => None,
            Self::RelativeTimeFormat(_) | Self::Segmenter(_) | Self::Segments(_) => None,
            Self::RegExp(regexp) => Some(Self::RegExp(RegExp { last_index: Value::ZERO, ..regexp.clone() })),
        }
    }

    /// Bytes it takes.
    pub(super) fn cost(&self) -> usize {
        let beside = match self {
            Self::Date(_) | Self::TextEncoder | Self::Timeout(_) | Self::AbortController(_) | Self::AbortEvent(_) => 0,
            Self::TextDecoder(state) => block(size_of_val(&**state)),
            Self::AbortSignal(state) => block(size_of_val(&**state)) + state.cost(),
            Self::Headers(state) => block(size_of_val(&**state)) + state.cost(),
            Self::Response(state) => block(size_of_val(&**state)),
            Self::Collator(state) => block(size_of_val(&**state)) + LOCALE,
            Self::DateTimeFormat(state) => block(size_of_val(&**state)) + LOCALE + state.cost(),
            Self::NumberFormat(state) => block(size_of_val(&**state)) + NumberFormat::BESIDE,
            Self::DisplayNames(state) => block(size_of_val(&**state)) + LOCALE,
            Self::ListFormat(state) => block(size_of_val(&**state)) + LOCALE,
            Self::PluralRules(state) => block(size_of_val(&**state)) + NumberFormat::BESIDE,
            Self::RelativeTimeFormat(state) => block(size_of_val(&**state)) + NumberFormat::BESIDE,
            Self::Segmenter(state) => block(size_of_val(&**state)) + LOCALE,
            Self::Segments(segments) => segments.cost(),
            Self::Url(state) => block(size_of_val(&**state)) + state.cost(),
            Self::Params(state) => block(size_of_val(&**state)) + state.cost(),
            // Those who share a program pay a part of it each, the script or cache that owns it excepted.
            Self::RegExp(regexp) => regexp.program.bytes() / (Arc::strong_count(&regexp.program) - 1).max(1),
            Self::Generator(generator) => generator.cost(),
        };
        slab_cost::<Self>() + beside
    }

    /// Reach the values that it holds.
    pub(super) fn trace(&self, reach: &mut impl FnMut(Value)) {
        match self {
            Self::Date(_) | Self::TextEncoder | Self::TextDecoder(_) | Self::Timeout(_) => {}
            Self::AbortController(signal) | Self::AbortEvent(signal) => reach(*signal),
            Self::AbortSignal(state) => state.trace(reach),
            Self::Headers(_) => {}
            Self::Response(state) => state.trace(reach),
            Self::Collator(collator) => reach(collator.bound),
            Self::DateTimeFormat(format) => reach(format.function),
            Self::NumberFormat(format) => reach(format.bound),
            Self::DisplayNames(_)
            | Self::ListFormat(_)
            | Self::PluralRules(_)
            | Self::RelativeTimeFormat(_)
            | Self::Segmenter(_) => {}
            Self::Segments(segments) => reach(segments.string),
            Self::Url(state) => reach(state.params),
            Self::Params(state) => state.url.into_iter().for_each(reach),
            Self::RegExp(regexp) => [regexp.source, regexp.last_index].into_iter().for_each(reach),
            Self::Generator(generator) => generator.trace(reach),
        }
    }
}

impl Heap {
    /// A new built-in object.
    pub fn new_with_slots(&mut self, slots: InternalSlots) -> Value {
        self.meter.add_bytes(slots.cost());
        Value::handle(Kind::InternalSlots, self.internal_slots.add(slots))
    }

    /// Replace the internal slots of a built-in object; no effect on other values.
    pub fn set_internal_slots(&mut self, value: Value, slots: InternalSlots) {
        if value.is(Kind::InternalSlots) {
            self.internal_slots[value.index()] = slots;
        }
    }

    /// A new regular expression.
    pub fn new_regexp(&mut self, program: Arc<Program>, source: Value) -> Value {
        self.new_with_slots(InternalSlots::RegExp(RegExp { program, source, last_index: Value::ZERO }))
    }

    /// The internal slots of a regular expression.
    pub fn regexp(&self, value: Value) -> Option<&RegExp> {
        let InternalSlots::RegExp(regexp) = self.internal_slots_of(value)? else { return None };
        Some(regexp)
    }

    /// The same to be changed.
    pub fn regexp_mut(&mut self, value: Value) -> Option<&mut RegExp> {
        let InternalSlots::RegExp(regexp) = self.internal_slots_of_mut(value)? else { return None };
        Some(regexp)
    }

    /// The internal slots of a value that has them.
    pub fn internal_slots_of(&self, value: Value) -> Option<&InternalSlots> {
        value.is(Kind::InternalSlots).then(|| &self.internal_slots[value.index()])
    }

    /// The same, to change it.
    pub fn internal_slots_of_mut(&mut self, value: Value) -> Option<&mut InternalSlots> {
        value.is(Kind::InternalSlots).then(|| &mut self.internal_slots[value.index()])
    }
}
