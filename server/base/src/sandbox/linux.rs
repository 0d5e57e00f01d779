//! Landlock and seccomp.
//!
//! A worker may only make the few system calls listed here; any other one kills it. A confined program may make all
//! system calls except for those of [`program`].

mod program;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use super::{Permissions, Protections};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use seccompiler::SeccompCmpOp::{self, Eq, MaskedEq};
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
    let calls = program::filters(permissions).is_ok();
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
    protections.calls = program::filters(permissions)
        .is_ok_and(|filters| filters.iter().all(|filter| seccompiler::apply_filter(filter).is_ok()));
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

/// Creates rules that match calls with any arguments.
fn with_any_arguments(calls: impl IntoIterator<Item = i64>) -> BTreeMap<i64, Vec<SeccompRule>> {
    calls.into_iter().map(|call| (call, Vec::new())).collect()
}
