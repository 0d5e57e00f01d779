//! The mistakes of a pattern, in V8's words.

/// A pattern that is no regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The fault.
    pub wrong: Wrong,
    /// Where, in characters of the pattern.
    pub at: usize,
}

macro_rules! wrongs {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)+) => {
        /// Faults of a pattern.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Wrong {
            $(#[doc = $text] $name,)+
        }

        impl Wrong {
            /// Returns the words of V8.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

wrongs! {
    TooLarge => "Regular expression too large",
    TooManyCaptures => "Too many captures",
    UnterminatedGroup => "Unterminated group",
    UnmatchedParen => "Unmatched ')'",
    EscapeAtEnd => "\\ at end of pattern",
    PropertyName => "Invalid property name",
    Escape => "Invalid escape",
    DecimalEscape => "Invalid decimal escape",
    UnicodeEscape => "Invalid Unicode escape",
    NothingToRepeat => "Nothing to repeat",
    LoneBracket => "Lone quantifier brackets",
    NumbersOutOfOrder => "numbers out of order in {} quantifier",
    IncompleteQuantifier => "Incomplete quantifier",
    Quantifier => "Invalid quantifier",
    Group => "Invalid group",
    GroupName => "Invalid capture group name",
    DuplicateName => "Duplicate capture group name",
    NamedReference => "Invalid named reference",
    NamedCapture => "Invalid named capture referenced",
    ClassEscape => "Invalid class escape",
    ClassPropertyName => "Invalid property name in character class",
    Class => "Invalid character class",
    UnterminatedClass => "Unterminated character class",
    RangeOutOfOrder => "Range out of order in character class",
    SetOperation => "Invalid set operation in character class",
    ClassCharacter => "Invalid character in character class",
    NegatedStrings => "Negated character class may contain strings",
}
