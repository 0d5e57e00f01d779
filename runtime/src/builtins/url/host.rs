//! The host parser of the standard: <https://url.spec.whatwg.org/#host-parsing>.
//!
//! Bounded by the length of a URL, which the caller limits and charges.

use super::domain::domain_to_ascii;
use super::escape::{C0_CONTROL, escaped};
use super::record::Url;
use percent_encoding::percent_decode_str;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

impl Url {
    /// Parse a host and set it; `None` where it is invalid.
    pub(super) fn set_host_to(&mut self, host: &str) -> Option<()> {
        self.host = Some(parse_host(host, self.is_special())?);
        Some(())
    }

    /// The same for the scheme `file`.
    pub(super) fn set_file_host(&mut self, host: &str) -> Option<()> {
        let host = if host.is_empty() { String::new() } else { parse_host(host, true)? };
        self.host = Some(if host == "localhost" { String::new() } else { host });
        Some(())
    }
}

/// The host parser, and the serializer of what it gives.
fn parse_host(host: &str, is_special: bool) -> Option<String> {
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']')?.parse().ok().map(ipv6);
    }
    if host.is_empty() {
        return None;
    }
    if !is_special {
        return (!host.bytes().any(is_forbidden_in_host)).then(|| escaped(host, C0_CONTROL));
    }
    let domain = percent_decode_str(host).decode_utf8().ok()?;
    let domain = domain_to_ascii(&domain)?;
    if domain.is_empty() || domain.bytes().any(is_forbidden_in_domain) {
        return None;
    }
    if ends_in_number(&domain) { parse_ipv4(&domain).map(|address| address.to_string()) } else { Some(domain) }
}

/// Forbidden host code points.
fn is_forbidden_in_host(byte: u8) -> bool {
    b"\0\t\n\r #/:<>?@[\\]^|".contains(&byte)
}

/// Forbidden domain code points.
fn is_forbidden_in_domain(byte: u8) -> bool {
    is_forbidden_in_host(byte) || byte <= 0x1F || byte == b'%' || byte == 0x7F
}

/// The ends-in-a-number checker.
fn ends_in_number(domain: &str) -> bool {
    let last = domain.strip_suffix('.').unwrap_or(domain).rsplit('.').next().unwrap_or_default();
    !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) || parse_number(last).is_some()
}

/// The IPv4 parser.
fn parse_ipv4(domain: &str) -> Option<Ipv4Addr> {
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let mut address = 0;
    let mut parts = domain.split('.').enumerate().peekable();
    while let Some((index, part)) = parts.next() {
        let number = parse_number(part)?;
        let shift = 24_u32.checked_sub(8 * index as u32)?;
        if parts.peek().is_none() {
            // The last one fills what is left.
            return (number < 1 << (shift + 8)).then(|| Ipv4Addr::from_bits((address | number) as u32));
        }
        if number > 0xFF {
            return None;
        }
        address |= number << shift;
    }
    None
}

/// The IPv4 number parser; a number that is too large for an address is only known to be so.
fn parse_number(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let mut number = 0_u64;
    for digit in digits.chars() {
        number = (number * u64::from(radix) + u64::from(digit.to_digit(radix)?)).min(1 << 32);
    }
    Some(number)
}

/// The IPv6 serializer: the first longest run of zeros is left out.
fn ipv6(address: Ipv6Addr) -> String {
    let pieces = address.segments();
    let (mut from, mut length) = (0, 1);
    for start in 0..pieces.len() {
        let zeros = pieces[start..].iter().take_while(|&&piece| piece == 0).count();
        if zeros > length {
            (from, length) = (start, zeros);
        }
    }
    let mut text = String::from("[");
    let mut index = 0;
    while index < pieces.len() {
        if index == from && length > 1 {
            text.push_str(if index == 0 { "::" } else { ":" });
            index += length;
            continue;
        }
        write!(text, "{:x}", pieces[index]).unwrap_or_default();
        index += 1;
        if index < pieces.len() {
            text.push(':');
        }
    }
    text.push(']');
    text
}
