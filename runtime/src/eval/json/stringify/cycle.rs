//! V8's description of a cycle.

use super::Writer;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

impl Writer<'_> {
    /// V8's description of a cycle that ends at `value`.
    pub(super) fn cycle(&mut self, value: Value) -> Result<String> {
        let edges = self.open.iter().map(|open| (open.container, open.key(&self.records)));
        let mut path = Buffer::new();
        path.extend(self.vm, edges.skip_while(|&(container, _)| container != value))?;
        Ok(cycle_text(self.vm, &path))
    }
}

/// V8's description of a cycle: its containers, each with the key that leads on. The first three and the last one
/// are shown, and keys are cut, so it is no long text.
pub fn cycle_text(vm: &mut Vm, path: &[(Value, Option<PropertyKey>)]) -> String {
    let mut text = String::from("Converting circular structure to JSON");
    for (index, &(container, _)) in path.iter().enumerate() {
        let class = class_name(vm, container);
        let from = index.checked_sub(1).and_then(|before| path.get(before)).copied();
        match from {
            None => text.extend(["\n    --> starting at object with constructor '", class, "'"]),
            Some(from) if index <= 2 || index + 1 == path.len() => {
                let key = edge_text(vm, from);
                text.extend(["\n    |     ", &key, " -> object with constructor '", class, "'"]);
            }
            Some(_) if index == 3 => text.push_str("\n    |     ..."),
            Some(_) => {}
        }
    }
    let key = path.last().map_or_else(String::default, |&last| edge_text(vm, last));
    text.extend(["\n    --- ", &key, " closes the circle"]);
    text
}

fn edge_text(vm: &mut Vm, (container, key): (Value, Option<PropertyKey>)) -> String {
    match key {
        Some(PropertyKey::Index(index)) if container.is(Kind::Array) => brief!("index {index}"),
        Some(PropertyKey::Name(known::EMPTY)) | None => "<anonymous>".into(),
        Some(key) => brief!("property '{}'", vm.key_text(key)),
    }
}

/// The name of the constructor of an object.
pub fn class_name(vm: &Vm, object: Value) -> &'static str {
    match object.kind() {
        Kind::Array => "Array",
        Kind::Object => vm.heap.class(object).name(),
        Kind::Map => "Map",
        Kind::Set => "Set",
        Kind::Promise => "Promise",
        Kind::InternalSlots => vm.heap.slots_class(object),
        Kind::ArrayBuffer => "ArrayBuffer",
        Kind::Uint8Array => "Uint8Array",
        Kind::Function | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => "Function",
        _ => "Object",
    }
}
