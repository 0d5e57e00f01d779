//! Properties that the language refuses, where only the run knows that a script reaches for one.

use crate::eval::suggest;
use crate::eval::vm::Vm;
use crate::interface::error_code::ErrorCode;
use crate::interface::outcome::Failure;
use crate::value::atom::{Atom, known};
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::refused::{self, Refused};

/// The end of the run where a script reaches for a prototype or a constructor by a computed key.
pub(super) fn refuse(vm: &Vm, name: Atom) -> Result<()> {
    match name {
        known::PROTO
        | known::CONSTRUCTOR
        | known::PROTOTYPE
        | known::DEFINE_GETTER
        | known::DEFINE_SETTER
        | known::LOOKUP_GETTER
        | known::LOOKUP_SETTER => match refused::property(known::TEXTS[name.0 as usize]) {
            Some(row) => Err(refused(vm, row)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A property that a value does not have: `undefined`, or the end of the run where it has one in Node.
pub(super) fn absent(vm: &Vm, object: Value, name: Atom) -> Result {
    let family = vm.family(object);
    let row = match object.kind() {
        Kind::Native => vm.realm.registry.refused_static(object.payload(), name),
        _ => None,
    };
    // Data has no such properties, and is asked for others most of the time.
    let row = row.or_else(|| vm.realm.registry.refused_member(family, name).filter(|_| family != Family::Object));
    row.map_or(Ok(Value::UNDEFINED), |row| Err(refused(vm, row)))
}

/// The end of the run at a property that the language refuses, with what to write instead.
#[cold]
pub(crate) fn refused(vm: &Vm, property: &Refused) -> Thrown {
    let message = format!("Property '{}' is not allowed in AgentScript", property.name);
    let mut failure = Failure::from_code(ErrorCode::ValidationError, message);
    failure.refusal = Some(property.refusal);
    failure.hint = agentscript_lang::allowed_hint(property.hint, &|name| suggest::is_off(vm, name));
    Thrown::stop(failure)
}
