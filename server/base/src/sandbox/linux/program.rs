//! The system calls that a confined program may not make.
//!
//! A program may make all calls that do not lead past Landlock, reach other processes, or change the system. They
//! fail instead of killing the process, because programs often try a call and go on without it. Sockets are the
//! exception: only the kinds that Landlock restricts are allowed, by family, type and protocol.

use super::{Filter, rule, with_any_arguments};
use crate::sandbox::Permissions;
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCondition, SeccompRule, sock_filter,
};
use std::collections::BTreeMap;

/// The newest system call that was looked at: `file_setattr` of Linux 6.17. New calls have the same number on all
/// architectures. The numbers of the x32 ABI, which has the architecture identifier of x86-64, begin far above.
pub(super) const NEWEST_CALL: i64 = 469;

// The C libraries do not know these numbers on all architectures.
const SYS_KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
const SYS_QUOTACTL_FD: i64 = 443;
const SYS_PROCESS_MRELEASE: i64 = 448;
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_FILE_SETATTR: i64 = 469;

/// Calls that fail as on a kernel without them, after which programs use others.
const UNSUPPORTED: &[i64] = &[
    // Their arguments are in memory, where a filter cannot check them: namespaces, and sockets.
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Objects of other processes of the same user, which are no files.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that are refused whatever their arguments are.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    SYS_PROCESS_MRELEASE,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Mounts, and files that are not opened by a path.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    SYS_QUOTACTL_FD,
    // Parts of the kernel with a long history of faults, which programs seldom need.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel, the machine, its names and its log.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    SYS_KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Clocks.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Calls that change modes, owners, times and attributes of any file of the user: Landlock does not restrict them.
const METADATA: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SYS_SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

#[cfg(target_arch = "x86_64")]
const METADATA_HERE: &[i64] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_HERE: &[i64] = &[];

/// The flags of `clone` that create namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests of `ioctl` that type into the terminal of the person who has started the server.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541C];

/// Options of a TCP socket: it connects when it sends, or gets another protocol.
const TCP_OPTIONS: [libc::c_int; 2] = [libc::TCP_FASTOPEN_CONNECT, libc::TCP_ULP];

/// Returns the filters of a program. If several match a call, the kernel takes the strictest.
pub(super) fn filters(permissions: &Permissions) -> Result<Vec<BpfProgram>, BackendError> {
    let refused =
        Filter { rules: refused(permissions)?, on_match: errno(libc::EPERM), otherwise: SeccompAction::Allow };
    let unsupported = Filter {
        rules: with_any_arguments(UNSUPPORTED.iter().copied()),
        on_match: errno(libc::ENOSYS),
        otherwise: SeccompAction::Allow,
    };
    let mut filters = vec![newest_calls(), unsupported.program()?, refused.program()?];
    if permissions.connect.is_some() {
        let fast_open =
            Filter { rules: fast_open()?, on_match: errno(libc::EOPNOTSUPP), otherwise: SeccompAction::Allow };
        filters.push(fast_open.program()?);
    }
    Ok(filters)
}

fn errno(number: libc::c_int) -> SeccompAction {
    SeccompAction::Errno(number.unsigned_abs())
}

/// Makes calls that nobody has looked at fail as on a kernel without them, and all calls of the x32 ABI.
fn newest_calls() -> BpfProgram {
    let load = u16::try_from(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS).unwrap_or_default();
    let jump_if_greater = u16::try_from(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K).unwrap_or_default();
    let give = u16::try_from(libc::BPF_RET | libc::BPF_K).unwrap_or_default();
    let newest = u32::try_from(NEWEST_CALL).unwrap_or_default();
    let fails = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        // The number of the call is at the start of the data.
        sock_filter { code: load, jt: 0, jf: 0, k: 0 },
        sock_filter { code: jump_if_greater, jt: 0, jf: 1, k: newest },
        sock_filter { code: give, jt: 0, jf: 0, k: fails },
        sock_filter { code: give, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

fn refused(permissions: &Permissions) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = with_any_arguments(REFUSED.iter().chain(REFUSED_HERE).copied());
    let namespaces = NAMESPACES.map(number).into_iter().map(|flag| rule([(0, MaskedEq(flag), flag)]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let requests = TERMINAL_INPUT.into_iter().map(|request| rule([(1, Eq, request)]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // Limits of another process, such as one of processor time, which ends it.
    let new_limits = SeccompCondition::new(2, SeccompCmpArgLen::Qword, Ne, 0)?;
    let other_process = SeccompCondition::new(0, SeccompCmpArgLen::Dword, Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![other_process, new_limits])?]);
    let changes_files = permissions.write.iter().any(|path| path.is_dir() || path.is_file());
    if !changes_files {
        rules.extend(with_any_arguments(METADATA.iter().chain(METADATA_HERE).copied()));
    }
    if let Some(ports) = &permissions.connect {
        rules.insert(libc::SYS_socket, all_but(&sockets(ports))?);
        // Datagram sockets of a pair can be connected again, to a socket of somebody else.
        rules.insert(libc::SYS_socketpair, all_but(&PAIRS)?);
        // A socket that listens without `bind` gets a port of its own, which Landlock does not see.
        rules.extend(with_any_arguments([libc::SYS_listen]));
    }
    Ok(rules)
}

/// A kind of socket: its family, its type, and its protocols, of which 0 is the usual one.
type Kind = (libc::c_int, libc::c_int, &'static [libc::c_int]);

const PAIRS: [Kind; 2] = [(libc::AF_UNIX, libc::SOCK_STREAM, &[0]), (libc::AF_UNIX, libc::SOCK_SEQPACKET, &[0])];

/// Returns the sockets that are allowed: TCP with any port, and UDP if DNS (port 53) is among them. Unix sockets, such
/// as that of a container engine, are not: Landlock does not restrict them.
fn sockets(ports: &[u16]) -> Vec<Kind> {
    // Resolvers list the interfaces of the network.
    let routes: &[libc::c_int] = &[libc::NETLINK_ROUTE];
    let mut sockets = vec![(libc::AF_NETLINK, libc::SOCK_RAW, routes), (libc::AF_NETLINK, libc::SOCK_DGRAM, routes)];
    for family in [libc::AF_INET, libc::AF_INET6] {
        if !ports.is_empty() {
            sockets.push((family, libc::SOCK_STREAM, &[0, libc::IPPROTO_TCP]));
        }
        if ports.contains(&53) {
            sockets.push((family, libc::SOCK_DGRAM, &[0, libc::IPPROTO_UDP]));
        }
    }
    sockets
}

/// Returns rules that match all sockets but these. A rule can only say which are meant, so there is one for each other
/// type of an allowed family, and one for the other protocols of each allowed type.
fn all_but(allowed: &[Kind]) -> Result<Vec<SeccompRule>, BackendError> {
    /// The bits of a type; the higher ones are flags.
    const TYPE: u64 = 0xf;
    let mut families: Vec<libc::c_int> = allowed.iter().map(|(family, ..)| *family).collect();
    families.dedup();
    let condition =
        |argument, operator, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, number(value));
    let others = families.iter().map(|family| condition(0, Ne, *family)).collect::<Result<Vec<_>, _>>()?;
    let mut rules = vec![SeccompRule::new(others)?];
    for family in families {
        for kind in 0..=TYPE {
            let same = allowed.iter().find(|(of, type_of, _)| *of == family && number(*type_of) == kind);
            let protocols = same.map_or(&[][..], |(.., protocols)| protocols);
            let mut conditions = vec![
                condition(0, Eq, family)?,
                SeccompCondition::new(1, SeccompCmpArgLen::Dword, MaskedEq(TYPE), kind)?,
            ];
            for protocol in protocols {
                conditions.push(condition(2, Ne, *protocol)?);
            }
            rules.push(SeccompRule::new(conditions)?);
        }
    }
    Ok(rules)
}

/// Returns rules for what connects a TCP socket without `connect`, which Landlock would see. They fail as where the
/// system has switched fast open off.
fn fast_open() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let flag = number(libc::MSG_FASTOPEN);
    let mut rules = BTreeMap::new();
    for (call, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        rules.insert(call, vec![rule([(argument, MaskedEq(flag), flag)])?]);
    }
    let level = number(libc::IPPROTO_TCP);
    let options = TCP_OPTIONS.map(number).into_iter().map(|option| rule([(1, Eq, level), (2, Eq, option)]));
    rules.insert(libc::SYS_setsockopt, options.collect::<Result<_, _>>()?);
    Ok(rules)
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}
