//! `Map` and `Set` in results.

use super::{Form, Parts, Writer, Written, has_text};
use crate::eval::property::PropertyKey;
use crate::heap::atoms::array_index;
use crate::value::atom::known;
use crate::value::{Kind, Value};

impl Writer<'_> {
    /// The parts of a `Map` or `Set`: what `Object.fromEntries(map)`, `[...map]` or `[...set]` would have.
    pub(super) fn collection(&mut self, container: Value) -> Written<Parts> {
        let mut entries = self.vm.heap.charged_entries(container)?;
        if container.is(Kind::Set) {
            return Ok(Parts::Collection(Form::Items, entries));
        }
        if !entries.iter().all(|(key, _)| key.is_string()) {
            return Ok(Parts::Collection(Form::Pairs, entries));
        }
        // As in any object, indices come first; the sort is stable.
        let heap = &self.vm.heap;
        let rank = |key: Value| array_index(heap.first_bytes::<11>(key)).map_or(u64::MAX, u64::from);
        if entries.iter().any(|&(key, _)| rank(key) < u64::MAX) {
            entries.sort_by_key(|&(key, _)| rank(key));
        }
        Ok(Parts::Collection(Form::Object, entries))
    }

    /// Write the next part of the innermost container, which is a `Map` or `Set`, or its end.
    pub(super) fn collection_part(&mut self) -> Written<()> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let Parts::Collection(form, entries) = &open.parts else { return Ok(()) };
        let (form, at) = (*form, open.at);
        let is_second = form == Form::Pairs && at % 2 == 1;
        let entry = entries.get(if form == Form::Pairs { at / 2 } else { at }).copied();
        if form == Form::Pairs && at > 0 && !is_second {
            self.out.push(b']');
        }
        let Some((key, value)) = entry else {
            return self.end(if form == Form::Object { b'}' } else { b']' });
        };
        open.at += 1;
        match form {
            Form::Items => {
                let item = self.prepared(key, PropertyKey::Index(at as u32))?;
                self.separate()?;
                self.item(item)
            }
            Form::Pairs if is_second => {
                self.out.push(b',');
                let value = self.prepared(value, PropertyKey::Index(1))?;
                self.item(value)
            }
            Form::Pairs => {
                self.separate()?;
                self.out.push(b'[');
                let key = self.prepared(key, PropertyKey::Index(0))?;
                self.item(key)
            }
            Form::Object => {
                let name = match value.is_object() {
                    true => self.vm.to_property_key(key)?,
                    false => PropertyKey::Name(known::EMPTY),
                };
                let value = self.prepared(value, name)?;
                if !has_text(self.vm, value) {
                    return self.lost(value, " is left out");
                }
                self.separate()?;
                self.begin(key)?;
                self.out.push(b':');
                self.begin(value)
            }
        }
    }
}
