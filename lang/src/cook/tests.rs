//! Values of literals.

use super::{bigint, number, number_key, string};
use crate::ast::Arena;

#[test]
fn numbers() {
    for (text, value) in [
        ("1_000.5", 1000.5),
        (".5e1", 5.0),
        ("5.", 5.0),
        ("0xFF", 255.0),
        ("0b101", 5.0),
        ("0o17", 15.0),
        ("0x20000000000001", 9_007_199_254_740_992.0),
        ("0x20000000000003", 9_007_199_254_740_996.0),
        // A tie but for the last bit.
        ("0x20000000000001000000000001", 2.535_301_200_456_459_4e30),
        ("0x20000000000001000000000000", 2.535_301_200_456_459e30),
        ("1e400", f64::INFINITY),
    ] {
        assert_eq!(number(text), value, "{text}");
    }
    let huge = format!("0x1{}", "0".repeat(256));
    assert_eq!(number(&huge), f64::INFINITY);
}

#[test]
fn keys() {
    for (text, key) in [
        ("1", "1"),
        ("1.50", "1.5"),
        ("0x10", "16"),
        ("1e21", "1e+21"),
        ("123456789012345680000", "123456789012345680000"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("1.25e-9", "1.25e-9"),
        ("1.5e300", "1.5e+300"),
        ("0.1", "0.1"),
        ("00", "0"),
    ] {
        assert_eq!(number_key(&Arena::new(), text), key.as_bytes(), "{text}");
    }
}

#[test]
fn bigints() {
    for (text, digits) in
        [("1_0n", "10"), ("0xFFn", "255"), ("0xFFFFFFFFFFFFFFFFFFFFn", "1208925819614629174706175"), ("0b0n", "0")]
    {
        assert_eq!(bigint(&Arena::new(), text, 0), Ok(digits));
    }
}

#[test]
fn strings() {
    for (text, value) in [
        (r"'a\n\x41\u0041\u{41}'", b"a\nAAA".as_slice()),
        (r"'\uD83D\uDE00'", "😀".as_bytes()),
        (r"'\uD83D'", b"\xED\xA0\xBD"),
        (r"'\uDE00\uD83D'", b"\xED\xB8\x80\xED\xA0\xBD"),
        (r"'\u{D83D}\u{DE00}'", "😀".as_bytes()),
        ("'a\\\r\nb'", b"ab"),
        (r"'\q\'\0'", b"q'\0"),
    ] {
        assert_eq!(string(&Arena::new(), text, 0), Ok(value), "{text}");
    }
}
