//! Texts as bytes: WTF-8, quoting, and the forms of text that `parseText` reads. Nothing here knows a value.

#[macro_use]
pub mod brief;
pub mod quote;
pub mod text_form;
pub mod wtf8;
