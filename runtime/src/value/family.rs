//! The families of values: which table of methods a value has.

macro_rules! families {
    ($($(#[$doc:meta])+ $name:ident $(= $class:literal)?,)+) => {
        /// Which table of methods a value has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Family { $($(#[$doc])+ $name),+ }

        impl Family {
            /// The name of the constructor of its values, or what they are.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => families!(@name $name $($class)?),)+
                }
            }
        }

        /// How many families there are.
        pub const FAMILIES: usize = [$(Family::$name),+].len();
    };
    (@name $name:ident $class:literal) => { $class };
    (@name $name:ident) => { stringify!($name) };
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
    /// `DOMException`
    DomException = "DOMException",
    /// Maps.
    Map,
    /// Sets.
    Set,
    /// Promises.
    Promise,
    /// Iterators over arrays and bytes.
    ArrayIterator,
    /// Iterators over maps.
    MapIterator,
    /// Iterators over sets.
    SetIterator,
    /// Iterators over strings.
    StringIterator,
    /// What `matchAll` returns.
    RegExpStringIterator,
    /// Iterators over queries of URLs.
    ParamsIterator,
    /// Iterators over `Headers`.
    HeadersIterator,
    /// Iterators over segments.
    SegmentsIterator,
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
    Url = "URL",
    /// Queries of URLs.
    Params = "URLSearchParams",
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
    AbortEvent = "Event",
    /// `Headers`.
    Headers,
    /// The response of `fetch`.
    Response,
    /// Generators.
    Generator,
    /// Async generators.
    AsyncGenerator,
}

impl Family {
    /// The families whose values are iterators that are not async.
    pub const ITERATORS: &[Self] = &[
        Self::ArrayIterator,
        Self::MapIterator,
        Self::SetIterator,
        Self::StringIterator,
        Self::RegExpStringIterator,
        Self::ParamsIterator,
        Self::HeadersIterator,
        Self::SegmentsIterator,
        Self::Generator,
    ];

    /// Returns whether its values are iterators that are not async.
    pub fn is_iterator(self) -> bool {
        Self::ITERATORS.contains(&self)
    }
}
