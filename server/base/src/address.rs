//! The public addresses of the network. Requests that others decide on do not reach the private ones behind the server:
//! the machine itself, its local network, metadata services of clouds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of hosts behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anyone on the internet.
    Public,
    /// This machine and its networks: loopback, private and shared addresses.
    Private,
    /// Addresses of a special purpose: link-local (metadata services of clouds are there), multicast, documentation,
    /// reserved ones.
    Special,
}

/// Returns who can be behind an address. One of IPv4 within one of IPv6 counts as itself, but is never private: nothing
/// private has to be written so.
#[must_use]
pub fn reach(address: IpAddr) -> Reach {
    if is_public(address) {
        return Reach::Public;
    }
    let is_private = match address {
        IpAddr::V4(address) => {
            let [a, b, _, d] = address.octets();
            // A metadata service has an address among the shared ones.
            let is_metadata = address == Ipv4Addr::new(100, 100, 100, 200);
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_broadcast = a == 127 && d == 255;
            (address.is_private() || address.is_loopback() || is_shared) && !is_metadata && !is_broadcast
        }
        IpAddr::V6(address) => {
            // The metadata service of EC2 is among the unique local ones.
            let is_metadata = address.segments()[..2] == [0xfd00, 0x0ec2];
            (address.is_loopback() || address.is_unique_local()) && !is_metadata
        }
    };
    if is_private { Reach::Private } else { Reach::Special }
}

/// Whether an address is one of the public internet: neither private, loopback, link-local, multicast nor reserved, also
/// not one of these within an address of IPv6.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_protocol = (a, b, c) == (192, 0, 0);
    let is_relay = (a, b, c) == (192, 88, 99);
    let is_benchmark = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 240
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || is_shared
        || is_protocol
        || is_relay
        || is_benchmark)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let last_v4 = || {
        let [.., a, b, c, d] = address.octets();
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // IPv4 in IPv6: mapped, translated (NAT64), and 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(last_v4()),
        [0x2002, high, low, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Teredo, benchmarks, ORCHID; documentation.
        [0x2001, 0..0x200, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // Global unicast. All else is unassigned, local or multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_told_from_special_ones() {
        for (address, expected) in [
            ("8.8.8.8", Reach::Public),
            ("127.0.0.1", Reach::Private),
            ("10.1.2.3", Reach::Private),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("::1", Reach::Private),
            ("fd12:3456::1", Reach::Private),
            ("169.254.169.254", Reach::Special),
            ("100.100.100.200", Reach::Special),
            ("fd00:ec2::254", Reach::Special),
            ("fe80::1", Reach::Special),
            ("0.0.0.0", Reach::Special),
            ("224.0.0.1", Reach::Special),
            ("::ffff:127.0.0.1", Reach::Special),
            ("64:ff9b::7f00:1", Reach::Special),
            ("192.0.2.1", Reach::Special),
        ] {
            assert_eq!(reach(address.parse().expect("an address")), expected, "{address}");
        }
    }

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for (address, expected) in [
            ("8.8.8.8", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("2606:4700::1111", true),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::808:808", true),
            ("2002:808:808::1", true),
            ("127.0.0.1", false),
            ("127.255.0.9", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("198.18.0.1", false),
            ("192.0.0.170", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::", false),
            ("2001:0:1::", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().expect("an address")), expected, "{address}");
        }
    }
}
