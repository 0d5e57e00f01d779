//! `URL`, `URLSearchParams`, `TextEncoder`, `TextDecoder`, `Headers` and responses as Node prints them, by their own rules.

use super::{Inspector, Output};
use crate::builtins::encoding::Decoding;
use crate::builtins::inspect;
use crate::builtins::url;
use crate::builtins::url::params::{self, ParamsState};
use crate::heap::Yields;
use crate::meter::Charge;
use crate::meter::buffer::Buffer;
use crate::value::family::Family;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

impl Inspector<'_> {
    /// The text of a value that has its own way to be shown; `None` for others, and for a URL that is
    /// too deep.
    pub(super) fn custom(&mut self, value: Value, depth: usize) -> Result<Option<String>> {
        let text = match value.kind() {
            Kind::Iterator => {
                let source = self.vm.heap.iterators[value.index()].source;
                let ended = source.is_undefined();
                if ended || !self.vm.heap.has_slots::<ParamsState>(source) {
                    return Ok(None);
                }
                if depth > self.options.depth { "[Object]".into() } else { self.params_iterator(value)? }
            }
            Kind::InternalSlots => match self.vm.family(value) {
                Family::Params if depth > self.options.depth => "[Object]".into(),
                Family::Params => self.params(value)?,
                family @ (Family::TextEncoder | Family::TextDecoder) if depth > self.options.depth => {
                    brief!("[{}]", family.name())
                }
                Family::TextEncoder => "{ encoding: 'utf-8' }".into(),
                Family::TextDecoder => {
                    self.vm.heap.slots::<Decoding>(value).map(Decoding::inspected).unwrap_or_default()
                }
                Family::Headers => self.headers(value)?,
                Family::Response => self.response(value)?,
                Family::Url if depth <= self.options.depth => self.url(value)?,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let text = self.indented(text)?;
        self.print(text).map(Some)
    }

    fn url(&mut self, url: Value) -> Result<String> {
        let (mut lines, mut separator) = (String::from("URL {"), "\n");
        let params = params::for_url(self.vm, url)?;
        for (name, text) in url::url_parts(self.vm, url).unwrap_or_default() {
            let shown = if name == "searchParams" {
                self.params(params)?.replace('\n', "\n  ")
            } else {
                let text = self.vm.heap.string(&text);
                self.alone(text)?
            };
            self.check(shown.len())?;
            lines.extend([separator, "  ", name, ": ", &shown]);
            separator = ",\n";
        }
        Ok(lines + "\n}")
    }

    fn params(&mut self, params: Value) -> Result<String> {
        let mut output = Output::default();
        let mut bytes = 0;
        let charge = loop {
            bytes += params::pair_bytes(self.vm, params, output.parts.len()) + 8;
            let charge = self.check(bytes)?;
            let Some((name, value)) = params::pair_at(self.vm, params, output.parts.len()) else { break charge };
            let text = self.alone(name)? + " => " + &self.alone(value)?;
            output.push(self.vm, text)?;
        };
        let length: usize = output.parts.iter().map(|text| text.encode_utf16().count() + 2).sum();
        Ok(match output.parts.len() {
            0 => "URLSearchParams {}".into(),
            _ if length > self.options.columns + 2 => braced(charge, "URLSearchParams", &output, ",\n  "),
            _ => braced(charge, "URLSearchParams", &output, ", "),
        })
    }

    fn params_iterator(&mut self, iterator: Value) -> Result<String> {
        let crate::heap::Iterator { source, yields, position, .. } = self.vm.heap.iterators[iterator.index()];
        let mut items = Buffer::new();
        let mut bytes = 0;
        let charge = loop {
            bytes += params::pair_bytes(self.vm, source, position + items.len()) + 8;
            let charge = self.check(bytes)?;
            let Some((name, value)) = params::pair_at(self.vm, source, position + items.len()) else { break charge };
            let item = match yields {
                Yields::Keys | Yields::ForIn | Yields::Matches => name,
                Yields::Values | Yields::Script | Yields::Generator => value,
                Yields::Entries => self.vm.heap.new_array(vec![name, value]),
            };
            items.push(self.vm, item)?;
        };
        let mut copy = Buffer::new();
        copy.extend_from_slice(self.vm, &items)?;
        let array = self.vm.heap.array_of(copy);
        let is_long = self.alone(array)?.contains('\n');
        let mut output = Output::default();
        for item in items {
            let text = self.alone(item)?;
            output.push(self.vm, text)?;
        }
        Ok(braced(charge, "URLSearchParams Iterator", &output, if is_long { ",\n  " } else { ", " }))
    }

    /// `Headers { … }`: as an object of the names as they were first written.
    fn headers(&mut self, headers: Value) -> Result<String> {
        let shown = crate::builtins::headers::inspected(self.vm, headers)?;
        Ok(String::from("Headers ") + &self.alone(shown)?)
    }

    /// `Response { … }`
    fn response(&mut self, response: Value) -> Result<String> {
        let (shown, is_used) = crate::builtins::response::inspected(self.vm, response)?;
        let text = self.alone(shown)?;
        let stream = match is_used {
            None => return Ok(String::from("Response ") + &text),
            Some(false) => "{ locked: false, state: 'readable', supportsBYOB: true }",
            Some(true) => "{ locked: true, state: 'closed', supportsBYOB: true }",
        };
        self.check(2 * text.len())?;
        let text = text.replacen("\n  body: null,", &brief!("\n  body: ReadableStream {stream},"), 1);
        Ok(String::from("Response ") + &text)
    }

    /// A value as it is shown by itself.
    fn alone(&mut self, value: Value) -> Result<String> {
        let text = inspect::inspect(self.vm, value, self.options)?;
        self.print(text)
    }
}

/// Parts in braces, on a line of their own each or on one: what `separator` says.
fn braced(charge: Charge, class: &str, output: &Output, separator: &str) -> String {
    let parts = charge.joined(&output.parts, separator);
    charge.text(format_args!("{class} {{{}{parts} }}", &separator[1..]))
}
