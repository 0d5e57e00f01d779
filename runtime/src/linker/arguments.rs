//! Arguments of host functions: from the JSON text of an array to types of Rust.

use serde::de::DeserializeOwned;

/// What a host function takes: a tuple of up to eight parts, or a `Vec` of any number of arguments.
pub trait Arguments: Sized {
    /// How many arguments are looked at; absent: all.
    const COUNT: Option<u8>;

    /// The arguments of the JSON text of an array, which has [`Arguments::COUNT`] items where that is known.
    ///
    /// # Errors
    /// An argument is not of its type.
    fn from_json(text: &str) -> Result<Self, serde_json::Error>;
}

impl Arguments for () {
    const COUNT: Option<u8> = Some(0);

    fn from_json(_text: &str) -> Result<Self, serde_json::Error> {
        Ok(())
    }
}

impl<T: DeserializeOwned> Arguments for Vec<T> {
    const COUNT: Option<u8> = None;

    fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

macro_rules! tuples {
    ($($count:literal: $($part:ident)+;)+) => {
        $(impl<$($part: DeserializeOwned),+> Arguments for ($($part,)+) {
            const COUNT: Option<u8> = Some($count);

            fn from_json(text: &str) -> Result<Self, serde_json::Error> {
                serde_json::from_str(text)
            }
        })+
    };
}

tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
    7: A B C D E F G;
    8: A B C D E F G H;
}
