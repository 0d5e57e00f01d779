//! Landlock and seccomp.
//!
//! A worker may only make the few system calls listed here; any other one kills it. A confined program may make all
//! system calls except for those that would bypass the confinement.

use super::{Permissions, Protections};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use seccompiler::SeccompCmpOp::{self, Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::path::Path;

/// The newest version of Landlock that is requested; older kernels enforce what they support.
const NEWEST: ABI = ABI::V6;
/// The oldest version that protects files: earlier ones do not restrict truncation.
const FILES: ABI = ABI::V3;
/// The oldest version that restricts TCP ports.
const PORTS: ABI = ABI::V4;

pub fn probe(permissions: &Permissions) -> Protections {
    let has = |abi| supports(abi).is_ok();
    let calls = program_filter(permissions).and_then(|filter| filter.program()).is_ok();
    Protections { files: has(FILES), ports: has(PORTS), calls, limits: true }
}

/// Checks that the kernel supports all of this version of Landlock. The check restricts nothing.
fn supports(abi: ABI) -> Result<(), landlock::RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    if abi >= PORTS {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    ruleset.create().map(drop)
}

pub fn confine_program(permissions: &Permissions) -> Result<Protections, String> {
    let mut protections = restrict_with_landlock(permissions)?;
    let filters =
        program_filter(permissions).and_then(|filter| Ok([unsupported_calls_filter()?.program()?, filter.program()?]));
    protections.calls =
        filters.is_ok_and(|filters| filters.iter().all(|filter| seccompiler::apply_filter(filter).is_ok()));
    Ok(protections)
}

/// Denies access to all files and ports.
pub fn deny_files_and_ports() -> Result<Protections, String> {
    restrict_with_landlock(&Permissions { connect: Some(Vec::new()), ..Permissions::default() })
}

/// Restricts the process to the system calls that the interpreter needs. Returns whether that is enforced.
pub fn restrict_worker_calls() -> bool {
    let program = worker_filter().and_then(|filter| filter.program());
    program.is_ok_and(|program| seccompiler::apply_filter(&program).is_ok())
}

fn restrict_with_landlock(permissions: &Permissions) -> Result<Protections, String> {
    let message = |error: landlock::RulesetError| format!("Landlock: {error}");
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    rules = rules.handle_access(AccessFs::from_all(NEWEST)).map_err(message)?;
    if permissions.connect.is_some() {
        rules = rules.handle_access(AccessNet::from_all(NEWEST)).map_err(message)?;
    }
    rules = rules.scope(Scope::from_all(NEWEST)).map_err(message)?;
    let mut rules = rules.create().map_err(message)?;
    for (paths, access) in [
        (&permissions.read, AccessFs::from_read(NEWEST)),
        (&permissions.write, AccessFs::from_read(NEWEST) | AccessFs::from_write(NEWEST)),
    ] {
        for path in paths {
            rules = rules.add_rule(beneath(path, access)?).map_err(message)?;
        }
    }
    for port in permissions.connect.iter().flatten() {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(message)?;
    }
    let status = rules.restrict_self().map_err(message)?;
    let enforced = status.ruleset != RulesetStatus::NotEnforced;
    let has = |abi| enforced && supports(abi).is_ok();
    Ok(Protections { files: has(FILES), ports: has(PORTS), ..Protections::default() })
}

/// Creates a rule for a path. Access rights that only apply to folders are removed for a file.
fn beneath(path: &Path, access: landlock::BitFlags<AccessFs>) -> Result<PathBeneath<PathFd>, String> {
    let message = |problem: &dyn std::fmt::Display| format!("'{}' cannot be allowed: {problem}", path.display());
    let is_folder = path.metadata().map_err(|error| message(&error))?.is_dir();
    let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    Ok(PathBeneath::new(PathFd::new(path).map_err(|error| message(&error))?, access))
}

/// A seccomp filter: its rules by system call, and the actions for calls that match a rule and for other calls.
struct Filter {
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    on_match: SeccompAction,
    otherwise: SeccompAction,
}

impl Filter {
    fn program(self) -> Result<BpfProgram, BackendError> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(self.rules, self.otherwise, self.on_match, arch)?.try_into()
    }
}

/// Creates a rule with conditions on the arguments, by number.
fn rule<const N: usize>(conditions: [(u8, SeccompCmpOp, u64); N]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions
        .into_iter()
        .map(|(argument, operator, value)| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value));
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Allows what the interpreter needs: memory, time, and its three standard streams. Any other call kills the process.
fn worker_filter() -> Result<Filter, BackendError> {
    let mut rules = with_any_arguments([
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sigaltstack,
        libc::SYS_clock_gettime,
        libc::SYS_getrandom,
        libc::SYS_sched_yield,
        libc::SYS_restart_syscall,
    ]);
    let stream = |number: u64| rule([(0, Eq, number)]);
    rules.insert(libc::SYS_read, vec![stream(0)?]);
    rules.insert(libc::SYS_write, vec![stream(1)?, stream(2)?]);
    // No executable memory, so no injected code.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule([(2, MaskedEq(PROT_EXEC), 0)])?]);
    }
    Ok(Filter { rules, on_match: SeccompAction::Allow, otherwise: SeccompAction::KillProcess })
}

const PROT_EXEC: u64 = libc::PROT_EXEC.unsigned_abs() as u64;
const EPERM: u32 = libc::EPERM.unsigned_abs();
const ENOSYS: u32 = libc::ENOSYS.unsigned_abs();

/// Creates rules that match calls with any arguments.
fn with_any_arguments<const N: usize>(calls: [i64; N]) -> BTreeMap<i64, Vec<SeccompRule>> {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// Makes calls fail as on a kernel without them: a filter cannot check their arguments, which are in memory, and
/// programs have a fallback. `clone3` could create namespaces, and `io_uring` sockets.
fn unsupported_calls_filter() -> Result<Filter, BackendError> {
    let rules = with_any_arguments([libc::SYS_clone3, libc::SYS_io_uring_setup]);
    Ok(Filter {
        rules: with_x32_numbers(rules),
        on_match: SeccompAction::Errno(ENOSYS),
        otherwise: SeccompAction::Allow,
    })
}

/// Refuses what a confined program may not do: calls that bypass Landlock, and sockets that it does not restrict. The
/// calls fail instead of killing the process, because programs often try a call and continue without it.
fn program_filter(permissions: &Permissions) -> Result<Filter, BackendError> {
    let mut rules = with_any_arguments([
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_fsopen,
        libc::SYS_open_by_handle_at,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_reboot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
    ]);
    let flags = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID];
    let flags = flags.map(|flag| u64::from(flag.unsigned_abs()));
    let namespaces = flags.into_iter().map(|flag| rule([(0, MaskedEq(flag), flag)]));
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    if let Some(ports) = &permissions.connect {
        rules.insert(libc::SYS_socket, refused_sockets(ports)?);
    }
    Ok(Filter {
        rules: with_x32_numbers(rules),
        on_match: SeccompAction::Errno(EPERM),
        otherwise: SeccompAction::Allow,
    })
}

/// Adds the same rules for the call numbers of the x32 ABI, which has the same architecture identifier.
fn with_x32_numbers(mut rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    if cfg!(target_arch = "x86_64") {
        let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone())).collect();
        rules.extend(x32);
    }
    rules
}

/// Returns rules for the sockets that are refused. With ports, TCP is allowed, and UDP if DNS (port 53) is among them;
/// without ports, neither. Unix sockets, such as that of a container engine, are always refused: Landlock does not
/// restrict them.
fn refused_sockets(ports: &[u16]) -> Result<Vec<SeccompRule>, BackendError> {
    let [inet, inet6, netlink] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(number);
    // Netlink stays allowed: resolvers use it to list network interfaces.
    let mut refused = vec![rule([(0, Ne, inet), (0, Ne, inet6), (0, Ne, netlink)])?];
    for family in [inet, inet6] {
        if ports.is_empty() {
            refused.push(rule([(0, Eq, family)])?);
            continue;
        }
        let dns = ports.contains(&53);
        let kinds = [(libc::SOCK_RAW, true), (libc::SOCK_DGRAM, !dns)];
        for (kind, _) in kinds.into_iter().filter(|(_, is_refused)| *is_refused) {
            // The higher bits are flags.
            refused.push(rule([(0, Eq, family), (1, MaskedEq(0xf), number(kind))])?);
        }
    }
    Ok(refused)
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}
