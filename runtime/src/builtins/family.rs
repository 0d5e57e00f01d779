//! The families of values: which table of methods a value has.

macro_rules! families {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Which table of methods a value has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Family { $($(#[$doc])+ $name),+ }

        /// How many families there are.
        pub const FAMILIES: usize = [$(Family::$name),+].len();
    };
}

families! {
    /// Plain objects; every other family falls back to it.
    Object,
    /// Arrays.
    Array,
    /// Functions of any kind.
    Function,
    /// Strings.
    String,
    /// Numbers.
    Number,
    /// Booleans.
    Boolean,
    /// BigInts.
    BigInt,
    /// Errors.
    Error,
    /// Maps.
    Map,
    /// Sets.
    Set,
    /// Promises.
    Promise,
    /// Iterators.
    Iterator,
    /// `ArrayBuffer`
    ArrayBuffer,
    /// `Uint8Array`
    Uint8Array,
    /// `TextEncoder`
    TextEncoder,
    /// `TextDecoder`
    TextDecoder,
    /// Dates.
    Date,
    /// Regular expressions.
    RegExp,
    /// URLs.
    Url,
    /// Queries of URLs.
    Params,
    /// `Intl.Collator`.
    Collator,
    /// `Intl.DateTimeFormat`.
    DateTimeFormat,
    /// `Intl.NumberFormat`.
    NumberFormat,
    /// `Intl.DisplayNames`.
    DisplayNames,
    /// `Intl.ListFormat`.
    ListFormat,
    /// `Intl.PluralRules`.
    PluralRules,
    /// `Intl.RelativeTimeFormat`.
    RelativeTimeFormat,
    /// `Intl.Segmenter`.
    Segmenter,
    /// Texts that an `Intl.Segmenter` has segmented.
    Segments,
    /// What `setTimeout` returns.
    Timeout,
    /// `AbortController`.
    AbortController,
    /// `AbortSignal`.
    AbortSignal,
    /// The event of a signal.
    AbortEvent,
    /// `Headers`.
    Headers,
    /// The response of `fetch`.
    Response,
    /// Generators.
    Generator,
    /// Async generators.
    AsyncGenerator,
}
