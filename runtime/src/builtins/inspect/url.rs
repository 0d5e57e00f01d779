//! `URL`, `URLSearchParams`, `TextEncoder`, `TextDecoder`, `Headers` and responses as Node prints them, by their own rules.

use super::Inspector;
use crate::builtins::encoding::Decoding;
use crate::builtins::inspect;
use crate::builtins::url;
use crate::builtins::url::params::{self, ParamsState};
use crate::heap::Yields;
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
                    format!("[{}]", family.name()) // bounded: a name of ours
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
        let mut lines = Vec::new(); // bounded: by the parts of a URL
        let params = params::for_url(self.vm, url)?;
        for (name, text) in url::url_parts(self.vm, url).unwrap_or_default() {
            let shown = if name == "searchParams" {
                self.params(params)?.replace('\n', "\n  ")
            } else {
                let text = self.vm.heap.string(&text);
                self.alone(text)?
            };
            self.check(shown.len())?;
            lines.push(format!("  {name}: {shown}")); // charged: above
        }
        Ok(format!("URL {{\n{}\n}}", lines.join(",\n"))) // charged: above
    }

    fn params(&mut self, params: Value) -> Result<String> {
        let mut output = Vec::new(); // charged: by check, which asks for eight times the room
        let mut bytes = 0;
        loop {
            bytes += params::pair_bytes(self.vm, params, output.len()) + 8;
            self.check(bytes)?;
            let Some((name, value)) = params::pair_at(self.vm, params, output.len()) else { break };
            output.push(self.alone(name)? + " => " + &self.alone(value)?);
        }
        let length: usize = output.iter().map(|text| text.encode_utf16().count() + 2).sum();
        Ok(match output.len() {
            0 => "URLSearchParams {}".into(),
            _ if length > self.options.columns + 2 => braced("URLSearchParams", &output, ",\n  "),
            _ => braced("URLSearchParams", &output, ", "),
        })
    }

    fn params_iterator(&mut self, iterator: Value) -> Result<String> {
        let crate::heap::Iterator { source, yields, position, .. } = self.vm.heap.iterators[iterator.index()];
        let mut items = Buffer::new();
        let mut bytes = 0;
        loop {
            bytes += params::pair_bytes(self.vm, source, position + items.len()) + 8;
            self.check(bytes)?;
            let Some((name, value)) = params::pair_at(self.vm, source, position + items.len()) else { break };
            let item = match yields {
                Yields::Keys | Yields::ForIn | Yields::Matches => name,
                Yields::Values | Yields::Script | Yields::Generator => value,
                Yields::Entries => self.vm.heap.new_array(vec![name, value]), // bounded: two
            };
            items.push(self.vm, item)?;
        }
        let mut copy = Buffer::new();
        copy.extend_from_slice(self.vm, &items)?;
        let array = self.vm.heap.array_of(copy);
        let is_long = self.alone(array)?.contains('\n');
        let mut output = Vec::new(); // charged: by check, as above
        for item in items {
            output.push(self.alone(item)?);
        }
        Ok(braced("URLSearchParams Iterator", &output, if is_long { ",\n  " } else { ", " }))
    }

    /// `Headers { … }`: as an object of the names as they were first written.
    fn headers(&mut self, headers: Value) -> Result<String> {
        let shown = crate::builtins::headers::inspected(self.vm, headers)?;
        Ok(format!("Headers {}", self.alone(shown)?)) // charged: by check
    }

    /// `Response { … }`
    fn response(&mut self, response: Value) -> Result<String> {
        let (shown, is_used) = crate::builtins::response::inspected(self.vm, response)?;
        let text = self.alone(shown)?;
        let stream = match is_used {
            None => return Ok(format!("Response {text}")), // charged: by check
            Some(false) => "{ locked: false, state: 'readable', supportsBYOB: true }",
            Some(true) => "{ locked: true, state: 'closed', supportsBYOB: true }",
        };
        self.check(2 * text.len())?;
        let text = text.replacen("\n  body: null,", &format!("\n  body: ReadableStream {stream},"), 1); // charged: above
        Ok(format!("Response {text}")) // charged: above
    }

    /// A value as it is shown by itself.
    fn alone(&mut self, value: Value) -> Result<String> {
        let text = inspect::inspect(self.vm, value, self.options)?;
        self.print(text)
    }
}

/// Parts in braces, on a line of their own each or on one: what `separator` says.
fn braced(class: &str, parts: &[String], separator: &str) -> String {
    // charged: by check, which was asked for more than this
    format!("{class} {{{}{} }}", &separator[1..], parts.join(separator))
}
