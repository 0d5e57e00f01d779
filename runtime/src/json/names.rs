//! The names of objects of one shape, as JSON writes them: worked out once for all objects of the shape.

use super::quote_bytes;
use crate::property::PropertyKey;
use crate::symbol::known;
use crate::vm::Vm;
use std::ops::Range;
use std::rc::Rc;

/// The names of a shape in the order of `Object.keys`.
pub(super) struct Names {
    shape: u32,
    pub list: Vec<Name>,
    /// All names, quoted and with their colons.
    pub text: Vec<u8>,
    /// Whether one of them is `toJSON`.
    pub to_json: bool,
}

/// A name.
pub(super) struct Name {
    pub key: PropertyKey,
    /// Where the value is.
    pub slot: usize,
    /// Where the name stands in the text.
    pub text: Range<usize>,
}

/// Names that were needed lately.
#[derive(Default)]
pub(super) struct Cache([Option<Rc<Names>>; PLACES]);

const PLACES: usize = 16;

impl Cache {
    /// The names of a shape.
    pub fn of(&mut self, vm: &Vm, shape: u32, colon: &[u8]) -> Rc<Names> {
        let place = &mut self.0[shape as usize % PLACES];
        match place {
            Some(names) if names.shape == shape => Rc::clone(names),
            _ => Rc::clone(place.insert(Rc::new(Names::new(vm, shape, colon)))),
        }
    }
}

impl Names {
    fn new(vm: &Vm, shape: u32, colon: &[u8]) -> Self {
        let keys = vm.heap.shape_keys(shape);
        let mut order: Vec<(PropertyKey, usize)> =
            keys.iter().enumerate().map(|(slot, &name)| (vm.symbol_key(name), slot)).collect();
        order.sort_by_key(|&(key, _)| key.rank());
        let mut text = Vec::with_capacity(keys.len() * 16);
        let list = order
            .into_iter()
            .map(|(key, slot)| {
                let start = text.len();
                quote_bytes(vm.symbols.text(keys[slot]), &mut text);
                text.extend_from_slice(colon);
                Name { key, slot, text: start..text.len() }
            })
            .collect();
        Self { shape, list, text, to_json: keys.contains(&known::TO_JSON) }
    }
}
