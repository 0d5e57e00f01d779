//! The HTML methods of ECMAScript's annex B.2.2, for old code.

use super::{Result, Row, Value, Vm, arg, native, receiver, room};

/// The methods.
pub const METHODS: &[Row] = &[
    native("anchor", 1, anchor),
    native("big", 0, big),
    native("blink", 0, blink),
    native("bold", 0, bold),
    native("fixed", 0, fixed),
    native("fontcolor", 1, fontcolor),
    native("fontsize", 1, fontsize),
    native("italics", 0, italics),
    native("link", 1, link),
    native("small", 0, small),
    native("strike", 0, strike),
    native("sub", 0, sub),
    native("sup", 0, sup),
];

macro_rules! tags {
    ($($name:ident = $tag:literal $(, $attribute:literal)?;)+) => {
        $(#[doc = concat!("`string.", stringify!($name), "()`")]
        fn $name(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
            tagged(vm, this, stringify!($name), $tag, [$($attribute)?].first().map(|&name| (name, arg(arguments, 0))))
        })+
    };
}

tags! {
    anchor = "a", "name";
    big = "big";
    blink = "blink";
    bold = "b";
    fixed = "tt";
    fontcolor = "font", "color";
    fontsize = "font", "size";
    italics = "i";
    link = "a", "href";
    small = "small";
    strike = "strike";
    sub = "sub";
    sup = "sup";
}

/// `CreateHTML` (ECMAScript B.2.2.2.1)
fn tagged(vm: &mut Vm, this: Value, method: &str, tag: &str, attribute: Option<(&str, Value)>) -> Result {
    let string = receiver(vm, this, method)?;
    let mut open = brief!("<{tag}").into_bytes();
    if let Some((name, value)) = attribute {
        let value = vm.to_string(value)?;
        // Counted first: a quote takes six bytes.
        let charge = vm.heap.charge_string(value)?;
        let bytes = vm.heap.read_bytes(value, charge);
        let quotes = bytes.iter().filter(|&&byte| byte == b'"').count() as u64;
        let length = bytes.len() as u64 + 5 * quotes;
        room(vm, length / 3, length)?;
        open.extend(brief!(" {name}=\"").bytes());
        open.reserve_exact(length as usize + 2);
        for &byte in vm.heap.read_bytes(value, charge) {
            match byte {
                b'"' => open.extend(b"&quot;"),
                _ => open.push(byte),
            }
        }
        open.push(b'"');
    }
    open.push(b'>');
    let open = vm.heap.take_string(open);
    let close = vm.heap.string(&brief!("</{tag}>"));
    let text = vm.concat(open, string)?;
    vm.concat(text, close)
}
