//! Operators, of the syntax tree and of the resolved program.

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `~`
    BitNot,
    /// `delete`
    Delete,
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `+`
    Plus,
    /// `typeof`
    Typeof,
    /// `void`
    Void,
}

/// The operators with two operands that are both evaluated, as they are written.
macro_rules! binary {
    ($($name:ident $sign:literal,)+) => {
        /// Operators with two operands that are both evaluated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Binary {
            $(#[doc = concat!("`", $sign, "`")] $name,)+
        }

        impl Binary {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the operator as it is written.
            #[must_use]
            pub fn sign(self) -> &'static str {
                match self {
                    $(Self::$name => $sign,)+
                }
            }
        }
    };
}

binary! {
    Add "+",
    Subtract "-",
    Multiply "*",
    Divide "/",
    Remainder "%",
    Power "**",
    BitAnd "&",
    BitOr "|",
    BitXor "^",
    ShiftLeft "<<",
    ShiftRight ">>",
    ShiftRightUnsigned ">>>",
    Equal "==",
    NotEqual "!=",
    StrictEqual "===",
    StrictNotEqual "!==",
    Less "<",
    LessEqual "<=",
    Greater ">",
    GreaterEqual ">=",
    In "in",
    Instanceof "instanceof",
}

/// Operators that may leave their right operand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logical {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `??`
    Coalesce,
}

impl Unary {
    /// Returns the operator as it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::BitNot => "~",
            Self::Delete => "delete",
            Self::Minus => "-",
            Self::Not => "!",
            Self::Plus => "+",
            Self::Typeof => "typeof",
            Self::Void => "void",
        }
    }
}

impl Logical {
    /// Returns the operator as it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::And => "&&",
            Self::Or => "||",
            Self::Coalesce => "??",
        }
    }
}
