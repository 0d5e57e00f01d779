//! Landlock and seccomp.
//!
//! A worker may make the few system calls that are named here, any other one kills it. A program that is
//! confined may make all but those that would lead out.

use super::{Allowed, Walls};
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

/// The newest part of Landlock that is asked for; older kernels enforce what they know.
const NEWEST: ABI = ABI::V6;
/// The oldest one that covers files: before it, any file could be cut to nothing.
const FILES: ABI = ABI::V3;
/// The oldest one that covers TCP ports.
const PORTS: ABI = ABI::V4;

pub fn probe(allowed: &Allowed) -> Walls {
    let has = |abi| supports(abi).is_ok();
    let calls = guarded(allowed).and_then(|filter| filter.program()).is_ok();
    Walls { files: has(FILES), ports: has(PORTS), calls, limits: true }
}

/// Whether the kernel enforces all of this part of Landlock. Nothing is restricted by asking.
fn supports(abi: ABI) -> Result<(), landlock::RulesetError> {
    let mut asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    asked = asked.handle_access(AccessFs::from_all(abi))?;
    if abi >= PORTS {
        asked = asked.handle_access(AccessNet::from_all(abi))?;
    }
    asked.create().map(drop)
}

pub fn confine(allowed: &Allowed) -> Result<Walls, String> {
    let mut walls = landlock(allowed)?;
    let filters = guarded(allowed).and_then(|filter| Ok([missing()?.program()?, filter.program()?]));
    walls.calls = filters.is_ok_and(|filters| filters.iter().all(|filter| seccompiler::apply_filter(filter).is_ok()));
    Ok(walls)
}

/// No file and no port.
pub fn close_files() -> Result<Walls, String> {
    landlock(&Allowed { connect: Some(Vec::new()), ..Allowed::default() })
}

/// The system calls that the interpreter needs.
pub fn keep_calls() -> bool {
    let program = interpreter().and_then(|filter| filter.program());
    program.is_ok_and(|program| seccompiler::apply_filter(&program).is_ok())
}

fn landlock(allowed: &Allowed) -> Result<Walls, String> {
    let told = |error: landlock::RulesetError| format!("Landlock: {error}");
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    rules = rules.handle_access(AccessFs::from_all(NEWEST)).map_err(told)?;
    if allowed.connect.is_some() {
        rules = rules.handle_access(AccessNet::from_all(NEWEST)).map_err(told)?;
    }
    rules = rules.scope(Scope::from_all(NEWEST)).map_err(told)?;
    let mut rules = rules.create().map_err(told)?;
    for (paths, access) in [
        (&allowed.read, AccessFs::from_read(NEWEST)),
        (&allowed.write, AccessFs::from_read(NEWEST) | AccessFs::from_write(NEWEST)),
    ] {
        for path in paths {
            rules = rules.add_rule(beneath(path, access)?).map_err(told)?;
        }
    }
    for port in allowed.connect.iter().flatten() {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(told)?;
    }
    let status = rules.restrict_self().map_err(told)?;
    let enforced = status.ruleset != RulesetStatus::NotEnforced;
    let has = |abi| enforced && supports(abi).is_ok();
    Ok(Walls { files: has(FILES), ports: has(PORTS), ..Walls::default() })
}

/// Rights that only folders have are not asked for where there is a file.
fn beneath(path: &Path, access: landlock::BitFlags<AccessFs>) -> Result<PathBeneath<PathFd>, String> {
    let told = |problem: &dyn std::fmt::Display| format!("'{}' cannot be allowed: {problem}", path.display());
    let is_folder = path.metadata().map_err(|error| told(&error))?.is_dir();
    let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    Ok(PathBeneath::new(PathFd::new(path).map_err(|error| told(&error))?, access))
}

/// The rules of a filter, what happens to a call that fits one, and what to any other.
struct Filter {
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    fits: SeccompAction,
    else_: SeccompAction,
}

impl Filter {
    fn program(self) -> Result<BpfProgram, BackendError> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(self.rules, self.else_, self.fits, arch)?.try_into()
    }
}

/// A rule for calls whose arguments, by number, are so.
fn rule<const N: usize>(conditions: [(u8, SeccompCmpOp, u64); N]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions
        .into_iter()
        .map(|(argument, operator, value)| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value));
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// What the interpreter needs: memory, time, and its three streams. Everything else kills.
fn interpreter() -> Result<Filter, BackendError> {
    let mut rules = whole([
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
    // No memory that can be executed, so no code but ours.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule([(2, MaskedEq(PROT_EXEC), 0)])?]);
    }
    Ok(Filter { rules, fits: SeccompAction::Allow, else_: SeccompAction::KillProcess })
}

const PROT_EXEC: u64 = libc::PROT_EXEC.unsigned_abs() as u64;
const EPERM: u32 = libc::EPERM.unsigned_abs();
const ENOSYS: u32 = libc::ENOSYS.unsigned_abs();

/// Rules for calls whatever their arguments.
fn whole<const N: usize>(calls: [i64; N]) -> BTreeMap<i64, Vec<SeccompRule>> {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}

/// Calls that programs do without where the kernel has none of them, and whose arguments no filter sees:
/// the other `clone`, and what makes sockets by itself.
fn missing() -> Result<Filter, BackendError> {
    let rules = whole([libc::SYS_clone3, libc::SYS_io_uring_setup]);
    Ok(Filter { rules: doubled(rules), fits: SeccompAction::Errno(ENOSYS), else_: SeccompAction::Allow })
}

/// What a confined program may not do: whatever leads out of what Landlock covers, and sockets that it
/// does not cover. Calls are refused, not killed: programs try much and go on without it.
fn guarded(allowed: &Allowed) -> Result<Filter, BackendError> {
    let mut rules = whole([
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
    let spaces = flags.into_iter().map(|flag| rule([(0, MaskedEq(flag), flag)]));
    rules.insert(libc::SYS_clone, spaces.collect::<Result<_, _>>()?);
    if let Some(ports) = &allowed.connect {
        rules.insert(libc::SYS_socket, sockets(ports)?);
    }
    Ok(Filter { rules: doubled(rules), fits: SeccompAction::Errno(EPERM), else_: SeccompAction::Allow })
}

/// The same calls by the numbers of the x32 interface too, which is of the same architecture.
fn doubled(mut rules: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    if cfg!(target_arch = "x86_64") {
        let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone())).collect();
        rules.extend(x32);
    }
    rules
}

/// Sockets that are refused: all but TCP where ports are named, UDP too with the port of DNS; all where
/// none is. Landlock knows nothing of sockets with a path, such as that of a container engine.
fn sockets(ports: &[u16]) -> Result<Vec<SeccompRule>, BackendError> {
    let [inet, inet6, netlink] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(number);
    // The kernel's own news of interfaces, which resolvers ask for, are left.
    let mut refused = vec![rule([(0, Ne, inet), (0, Ne, inet6), (0, Ne, netlink)])?];
    for family in [inet, inet6] {
        if ports.is_empty() {
            refused.push(rule([(0, Eq, family)])?);
            continue;
        }
        let dns = ports.contains(&53);
        let kinds = [(libc::SOCK_RAW, true), (libc::SOCK_DGRAM, !dns)];
        for (kind, _) in kinds.into_iter().filter(|(_, is_refused)| *is_refused) {
            // The other bits are flags.
            refused.push(rule([(0, Eq, family), (1, MaskedEq(0xf), number(kind))])?);
        }
    }
    Ok(refused)
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}
