//! The filters of programs, evaluated as the kernel does. `calls.txt` has the verdict on each system call, so a new call
//! cannot be allowed without a reason. `server/tests/system/isolation.rs` tries the same on the real kernel.

use super::program::{NEWEST_CALL, filters};
use crate::sandbox::Permissions;
use seccompiler::{BpfProgram, sock_filter};
use std::collections::BTreeMap;

const ARCH_X86_64: u32 = 0xc000_003e;
const ARCH_I386: u32 = 0x4000_0003;
const X32: u32 = 0x4000_0000;

/// A call: its number and arguments.
type Call = (i64, [u64; 6]);

/// Returns the action of a filter for a call. The instructions are those that filters consist of.
fn action(program: &[sock_filter], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let word = |offset: u32| -> u32 {
        let index = usize::try_from((offset - 16) / 8 % 6).expect("small");
        match offset {
            0 => number,
            4 => arch,
            16.. if offset.is_multiple_of(8) => u32::try_from(arguments[index] & 0xffff_ffff).expect("32 bits"),
            16.. => u32::try_from(arguments[index] >> 32).expect("32 bits"),
            _ => panic!("no filter reads {offset}"),
        }
    };
    let (mut at, mut value) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program[at].clone();
        at += 1;
        let jump = |is_taken: bool| usize::from(if is_taken { jt } else { jf });
        match code {
            0x20 if k < 16 => value = if k == 0 { number } else { arch },
            0x20 => value = word(k),
            0x54 => value &= k,
            0x05 => at += usize::try_from(k).expect("an offset"),
            0x15 => at += jump(value == k),
            0x25 => at += jump(value > k),
            0x35 => at += jump(value >= k),
            0x06 => return k,
            _ => panic!("no filter has the instruction {code:#x}"),
        }
    }
}

/// Returns the strictest action of filters: `allowed`, or how the call ends.
fn verdict(filters: &[BpfProgram], arch: u32, number: u32, arguments: [u64; 6]) -> &'static str {
    // The order of the kernel: the smallest action as a signed number.
    let strictest = filters
        .iter()
        .map(|program| action(program, arch, number, arguments))
        .min_by_key(|action| (i32::from_ne_bytes((action & 0xffff_0000).to_ne_bytes()), *action));
    match strictest {
        Some(0x7fff_0000) => "allowed",
        Some(0x0005_0001) => "EPERM",
        Some(0x0005_0026) => "ENOSYS",
        Some(0x0005_005f) => "EOPNOTSUPP",
        Some(0x8000_0000) => "killed",
        other => panic!("{other:?}"),
    }
}

fn of(permissions: &Permissions, (number, arguments): Call) -> &'static str {
    let filters = filters(permissions).expect("filters");
    verdict(&filters, ARCH_X86_64, u32::try_from(number).expect("a number"), arguments)
}

fn ports(ports: &[u16]) -> Permissions {
    Permissions { connect: Some(ports.to_vec()), ..Permissions::default() }
}

/// Reads `calls.txt`: the name and the verdict of each number.
fn table() -> BTreeMap<i64, (&'static str, &'static str)> {
    let mut heading = "";
    let mut table = BTreeMap::new();
    for line in include_str!("calls.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(text) = line.strip_prefix('[') {
            heading = text.split_once(':').expect("a reason").0;
            continue;
        }
        let (number, name) = line.split_once(' ').expect("a name");
        let before = table.insert(number.parse().expect("a number"), (name, heading));
        assert_eq!(before, None, "{name} has one verdict");
    }
    table
}

#[test]
fn each_call_has_its_verdict() {
    let table = table();
    assert_eq!(table.keys().next_back(), Some(&NEWEST_CALL));
    let reading = filters(&ports(&[443])).expect("filters");
    let folder = Permissions { write: vec![std::env::temp_dir()], ..ports(&[443]) };
    let writing = filters(&folder).expect("filters");
    for (number, (name, expected)) in table {
        let number = u32::try_from(number).expect("a number");
        let (expected, expected_writing) = match expected {
            "refused" => ("EPERM", "EPERM"),
            "unsupported" => ("ENOSYS", "ENOSYS"),
            "read only" => ("EPERM", "allowed"),
            "stays" => ("allowed", "allowed"),
            "depends" => continue,
            other => panic!("{other}"),
        };
        // A call without a rule for its arguments has the same verdict with any.
        for arguments in [[0; 6], [u64::MAX; 6]] {
            assert_eq!(verdict(&reading, ARCH_X86_64, number, arguments), expected, "{name}");
            assert_eq!(verdict(&writing, ARCH_X86_64, number, arguments), expected_writing, "{name}");
        }
    }
}

/// Numbers of other tables do not lead past the filters: those of x32 begin anew at 512 for some calls.
#[test]
fn other_tables_of_calls_are_closed() {
    let filters = filters(&ports(&[443])).expect("filters");
    for number in (0..1_024).map(|number| number | X32).chain([470, 511, 548, 1_000_000, u32::MAX]) {
        let verdict = verdict(&filters, ARCH_X86_64, number, [0; 6]);
        assert!(verdict == "ENOSYS" || verdict == "EPERM", "{number:#x}: {verdict}");
    }
    for number in 0..512 {
        assert_eq!(verdict(&filters, ARCH_I386, number, [0; 6]), "killed", "{number} of 32 bits");
    }
}

/// Each family, type and protocol; the flags of a type change nothing.
#[test]
fn only_sockets_that_landlock_restricts_are_allowed() {
    let allowed = |permissions: &Permissions, call: i64| {
        let filters = filters(permissions).expect("filters");
        let call = u32::try_from(call).expect("a number");
        let flags = [0, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC];
        let flags = flags.map(|flags| u64::from(flags.unsigned_abs()));
        let mut allowed = Vec::new();
        for family in 0..64_u64 {
            for kind in 0..16_u64 {
                for protocol in (0..300).chain([u64::from(u32::MAX)]) {
                    let verdicts = flags
                        .map(|flag| verdict(&filters, ARCH_X86_64, call, [family, kind | flag, protocol, 0, 0, 0]));
                    assert_eq!(verdicts[0], verdicts[1], "{family} {kind} {protocol}");
                    if verdicts[0] == "allowed" {
                        allowed.push((family, kind, protocol));
                    }
                }
            }
        }
        allowed
    };
    let netlink = [(16, 2, 0), (16, 3, 0)];
    let tcp = [(2, 1, 0), (2, 1, 6), (10, 1, 0), (10, 1, 6)];
    let udp = [(2, 2, 0), (2, 2, 17), (10, 2, 0), (10, 2, 17)];
    let sorted = |parts: &[&[(u64, u64, u64)]]| {
        let mut all = parts.concat();
        all.sort_unstable();
        all
    };
    assert_eq!(allowed(&ports(&[]), libc::SYS_socket), sorted(&[&netlink]));
    assert_eq!(allowed(&ports(&[443]), libc::SYS_socket), sorted(&[&netlink, &tcp]));
    assert_eq!(allowed(&ports(&[53, 443]), libc::SYS_socket), sorted(&[&netlink, &tcp, &udp]));
    assert_eq!(allowed(&ports(&[443]), libc::SYS_socketpair), [(1, 1, 0), (1, 5, 0)]);
    // The upper half of an argument is not looked at by the kernel.
    let odd = [2 | (1 << 32), 1, 262, 0, 0, 0];
    assert_eq!(of(&ports(&[443]), (libc::SYS_socket, odd)), "EPERM");
    let any = Permissions::default();
    assert_eq!(of(&any, (libc::SYS_socket, [1, 1, 0, 0, 0, 0])), "allowed", "the whole network");
}

#[test]
fn arguments_decide() {
    let permissions = ports(&[443]);
    let flag = u64::from(libc::MSG_FASTOPEN.unsigned_abs());
    for (call, expected) in [
        ((libc::SYS_sendto, [3, 1, 1, flag, 0, 0]), "EOPNOTSUPP"),
        ((libc::SYS_sendto, [3, 1, 1, flag | 0x4000, 0, 0]), "EOPNOTSUPP"),
        ((libc::SYS_sendto, [3, 1, 1, 0x4000, 0, 0]), "allowed"),
        ((libc::SYS_sendmsg, [3, 1, flag, 0, 0, 0]), "EOPNOTSUPP"),
        ((libc::SYS_sendmsg, [3, flag, 0, 0, 0, 0]), "allowed"),
        ((libc::SYS_sendmmsg, [3, 1, 1, flag, 0, 0]), "EOPNOTSUPP"),
        ((libc::SYS_setsockopt, [3, 6, 30, 1, 4, 0]), "EOPNOTSUPP"),
        ((libc::SYS_setsockopt, [3, 6, 31, 1, 4, 0]), "EOPNOTSUPP"),
        ((libc::SYS_setsockopt, [3, 6, 1, 1, 4, 0]), "allowed"),
        ((libc::SYS_setsockopt, [3, 1, 30, 1, 4, 0]), "allowed"),
        ((libc::SYS_ioctl, [0, 0x5412, 0, 0, 0, 0]), "EPERM"),
        ((libc::SYS_ioctl, [0, 0x541C, 0, 0, 0, 0]), "EPERM"),
        ((libc::SYS_ioctl, [0, 0x5401, 0, 0, 0, 0]), "allowed"),
        ((libc::SYS_prlimit64, [0, 7, 1 << 32, 0, 0, 0]), "allowed"),
        ((libc::SYS_prlimit64, [9, 7, 1 << 32, 0, 0, 0]), "EPERM"),
        ((libc::SYS_prlimit64, [9, 7, 0, 1 << 32, 0, 0]), "allowed"),
        ((libc::SYS_clone, [0x003d_0f00, 0, 0, 0, 0, 0]), "allowed"),
    ] {
        assert_eq!(of(&permissions, call), expected, "{call:?}");
    }
    for namespace in [17, 25, 26, 27, 28, 29, 30] {
        assert_eq!(of(&permissions, (libc::SYS_clone, [(1 << namespace) | 17, 0, 0, 0, 0, 0])), "EPERM", "{namespace}");
    }
    // With the whole network, sockets may connect as they like.
    assert_eq!(of(&Permissions::default(), (libc::SYS_sendto, [3, 1, 1, flag, 0, 0])), "allowed");
    assert_eq!(of(&Permissions::default(), (libc::SYS_listen, [3, 1, 0, 0, 0, 0])), "allowed");
}
