//! Programs of regular expressions: those of literals are shared between runs (ECMAScript 13.2.7.3).

use crate::eval::node::Regex;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::meter::Charge;
use crate::regexp::{Program, compile};
use crate::text::wtf8::{lossy, to_utf16};
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_lang::regexp::{Flags, message};
use hashbrown::HashMap;
use std::sync::Arc;

/// Programs of a run by pattern and flags.
pub type Cache = HashMap<(Box<[u8]>, Flags), Arc<Program>>;

/// Most bytes per byte of a pattern while it is parsed and compiled, classes excluded.
const BYTES_MADE: usize = 256;

/// Returns the program of a pattern, which has been charged for.
pub fn program_of(vm: &mut Vm, source: Value, flags: Flags, charge: Charge) -> Result<Arc<Program>> {
    let length = vm.heap.str(source).bytes as usize;
    let room = vm.heap.hold(length.saturating_mul(BYTES_MADE))?;
    let error = match compile(&to_utf16(vm.heap.read_bytes(source, charge)), flags) {
        Ok(program) => {
            drop(room);
            let program = Arc::new(program);
            vm.reserve(program.bytes())?;
            vm.work(program.bytes() / 64)?;
            return Ok(program);
        }
        Err(error) => error,
    };
    let text = message(&lossy(vm.heap.read_bytes(source, charge)), flags, error);
    Err(vm.throw(Class::SyntaxError, &text))
}

/// Most literals of a script that share their programs between runs, and the largest shared program. Others are
/// compiled by each run, so that cached scripts stay small.
const SHARED: u32 = 64;
const SHARED_BYTES: usize = 16 << 10;

/// The program of a literal that this run has not evaluated yet. A run is charged whether it is compiled already or
/// not, so that steps are deterministic.
pub fn literal(vm: &mut Vm, literal: &Regex, source: Value) -> Result<Arc<Program>> {
    let length = vm.heap.str(source).bytes as usize;
    let charge = vm.heap.meter.charge_piece(4 + length, 200)?;
    let program = match literal.shared.get() {
        Some(program) => {
            vm.work(program.bytes() / 64)?;
            Arc::clone(program)
        }
        None => program_of(vm, source, literal.flags, charge)?,
    };
    if literal.number < SHARED && program.bytes() <= SHARED_BYTES {
        let _ = literal.shared.set(Arc::clone(&program));
    }
    let number = literal.number as usize;
    if literal.number != u32::MAX {
        let more = (number + 1).saturating_sub(vm.realm.regexp_literals.len());
        vm.reserve(program.bytes() + more * 16)?;
        vm.heap.meter.keep_bytes(program.bytes() + more * 8);
        vm.realm.regexp_literals.resize(vm.realm.regexp_literals.len() + more, None);
        vm.realm.regexp_literals[number] = Some(Arc::clone(&program));
    }
    Ok(program)
}
