//! `parseText(text, {format, header})`: the data of a text, in whichever form it is.
//!
//! The parsers are in `text_form`; here their parts become values. A form is tried without making values first, so that a text
//! that nearly has it costs no memory.

use super::super::arg;
use crate::builtins::tool::{self, settle};
use crate::eval::json;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::meter::buffer::Buffer;
use crate::text::text_form::{self, Fault, Form, Part, Reading, Sink};
use crate::value::atom::{Atom, known};
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use std::borrow::Cow;

/// Bytes of a text that a parser reads in about the time of one statement.
const BYTES_A_STEP: usize = 16;
/// How much of a text that has no form is shown, in characters.
const SHOWN_CHARS: usize = 60;
/// Maximum length of a reason in the message, in bytes.
const REASON_BYTES: usize = 160;

/// `parseText(text, {format, header})`
pub fn parse_text(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let given = arg(arguments, 0);
    if !given.is_string() {
        let what = tool::what(vm, given);
        let more = if given.is(Kind::Object) || given.is(Kind::Array) { "; it is data already" } else { "" };
        return Err(vm.type_error(&brief!("parseText expects a text, not {what}{more}")));
    }
    let (chosen, header) = options(vm, arg(arguments, 1))?;
    let mut bytes = vm.heap.charged_copy(given)?;
    vm.heap.replace_surrogates(&mut bytes)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let content = text_form::content(text);
    let start = content.as_ptr() as usize - text.as_ptr() as usize;
    let reading = Reading { header, is_chosen: chosen.is_some() };
    // Parsers keep a row beside the text, which may grow to all of it.
    let _hold = vm.heap.hold(text.len().saturating_mul(2))?;
    let mut reasons = Buffer::new();
    for form in Form::ALL.into_iter().filter(|&form| chosen.is_none_or(|chosen| chosen == form)) {
        vm.work(1 + content.len() / BYTES_A_STEP)?;
        let read = match form {
            Form::Json => json(vm, given, (start, content))?,
            Form::JsonLines => json_lines(vm, given, (start, content))?,
            form => other(vm, form, content, reading)?,
        };
        match read {
            Ok((data, rest)) => return answer(vm, form, data, rest.as_deref()),
            Err(reason) => reasons.push(vm, (form, cut(reason)))?,
        }
    }
    Err(no_form(vm, content, &reasons))
}

/// The data and the text around them, or why the text has not that form.
type Read<'t> = std::result::Result<(Value, Option<Cow<'t, str>>), String>;

/// The options: the form, and whether there is a header.
fn options(vm: &mut Vm, options: Value) -> Result<(Option<Form>, Option<bool>)> {
    if options.is_nullish() {
        return Ok((None, None));
    }
    if !options.is(Kind::Object) {
        let what = tool::what(vm, options);
        return Err(vm.type_error(&brief!("The options of parseText must be an object, not {what}")));
    }
    let format = tool::option(vm, options, "format")?;
    let form = if format.is_string() { Form::of_name(&vm.short_text(format, SHOWN_CHARS)?) } else { None };
    if form.is_none() && !format.is_nullish() {
        let names = Form::ALL.map(Form::name).join("', '"); // bounded: by the number of forms
        return Err(vm.type_error(&brief!("The option format of parseText must be one of '{names}'")));
    }
    let header = tool::option(vm, options, "header")?;
    Ok((form, (!header.is_nullish()).then(|| header == Value::TRUE)))
}

/// `{format, data}`, and `rest` if there is text around a table.
fn answer(vm: &mut Vm, form: Form, data: Value, rest: Option<&str>) -> Result {
    let format = (vm.heap.intern_text("format"), vm.heap.string(form.name()));
    let object = settle::object_of(vm, &[format, (known::DATA, data)]);
    if let Some(rest) = rest {
        vm.reserve(rest.len())?;
        let rest = (vm.heap.intern_text("rest"), vm.heap.string(rest));
        vm.heap.set_own(object, rest.0, rest.1);
    }
    Ok(object)
}

#[cold]
fn no_form(vm: &mut Vm, text: &str, reasons: &[(Form, String)]) -> Thrown {
    let shown = match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => brief!("{}…", &text[..end]),
        None => text.into(),
    };
    let mut message = match reasons {
        [(form, _)] => brief!("parseText: the text is not of the form '{}'.", form.name()),
        _ => brief!("parseText: the text has none of the forms of data. It begins: {shown:?}"),
    };
    for (form, reason) in reasons {
        message.push_str(&brief!("\n  {}: {reason}", form.name()));
    }
    vm.throw(Class::SyntaxError, &message)
}

/// A reason as long as a message shows it.
fn cut(mut reason: String) -> String {
    if reason.len() > REASON_BYTES {
        reason.truncate(reason.floor_char_boundary(REASON_BYTES));
        reason.push('…');
    }
    reason
}

/// One JSON document.
fn json(vm: &mut Vm, given: Value, (start, text): (usize, &str)) -> Result<Read<'static>> {
    if !text.trim_start().starts_with(|c: char| matches!(c, '{' | '[' | '"' | '-' | '0'..='9' | 't' | 'f' | 'n')) {
        return Ok(Err("it begins like no JSON".into()));
    }
    let part = vm.heap.slice_bytes(given, start, start + text.len());
    let parsed = json::parse_string(vm, part, 0);
    Ok(syntax_error(vm, parsed)?.map(|data| (data, None)))
}

/// A JSON object or list on each line; empty lines are skipped.
fn json_lines(vm: &mut Vm, given: Value, (start, text): (usize, &str)) -> Result<Read<'static>> {
    let mut rows = Buffer::new();
    let mut at = start;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (from, to) = (at, at + line.len());
        at = to;
        if line.trim().is_empty() {
            continue;
        }
        if !line.trim_start().starts_with(['{', '[']) {
            return Ok(Err(brief!("line {} begins with neither {{ nor [", index + 1)));
        }
        let part = vm.heap.slice_bytes(given, from, to);
        let parsed = json::parse_string(vm, part, 0);
        match syntax_error(vm, parsed)? {
            Ok(data) => rows.push(vm, data)?,
            Err(reason) => return Ok(Err(brief!("line {}: {}", index + 1, cut(reason)))),
        }
    }
    if rows.is_empty() {
        return Ok(Err("it is empty".into()));
    }
    Ok(Ok((vm.heap.array_of(rows), None)))
}

/// The message of a `SyntaxError`; other failures go on.
fn syntax_error(vm: &mut Vm, parsed: Result) -> Result<std::result::Result<Value, String>> {
    let error = match parsed {
        Ok(data) => return Ok(Ok(data)),
        Err(Thrown(cause)) => match *cause {
            Cause::Value(error) => error,
            Cause::Stop(_) => return Err(Thrown(cause)),
        },
    };
    let message = vm.get(error, known::MESSAGE)?;
    Ok(Err(vm.short_text(message, REASON_BYTES)?))
}

/// A text of another form.
fn other<'t>(vm: &mut Vm, form: Form, text: &'t str, reading: Reading) -> Result<Read<'t>> {
    if let Err(reason) = text_form::check(form, text, reading) {
        return Ok(Err(reason));
    }
    let charge = vm.work(1 + text.len() / BYTES_A_STEP)?;
    let mut values = Values { vm, open: Buffer::new(), values: Buffer::new(), keys: Buffer::new(), columns: None };
    let around = match text_form::read(form, text, reading, &mut values) {
        Ok(around) => around,
        Err(Fault::Stop(thrown)) => return Err(thrown),
        Err(Fault::Form(reason)) => return Ok(Err(reason)),
    };
    let Values { vm, mut values, .. } = values;
    let data = if form == Form::Python { values.pop().unwrap_or(Value::NULL) } else { vm.heap.array_of(values) };
    let rest = match (around.before, around.after) {
        ("", "") => None,
        (one, "") | ("", one) => Some(Cow::Borrowed(one)),
        (before, after) => {
            vm.reserve(text.len())?;
            Some(Cow::Owned(charge.text(format_args!("{before}\n{after}"))))
        }
    };
    Ok(Ok((data, rest)))
}

/// A container that is open: whether it has keys, and how many values and keys there were before it.
struct Open {
    has_keys: bool,
    values: usize,
    keys: usize,
}

/// Makes values of the parts of a text. Rows of a table are the values that are left.
struct Values<'v> {
    vm: &'v mut Vm,
    open: Buffer<Open>,
    values: Buffer<Value>,
    keys: Buffer<Atom>,
    columns: Option<Buffer<Atom>>,
}

impl Sink for Values<'_> {
    type Stop = Thrown;

    fn part(&mut self, part: Part<'_>) -> Result<()> {
        self.vm.work(1)?;
        let value = match part {
            Part::List | Part::Object => {
                let has_keys = matches!(part, Part::Object);
                let open = Open { has_keys, values: self.values.len(), keys: self.keys.len() };
                return self.open.push(self.vm, open);
            }
            Part::Key(name) => {
                let atom = self.name(name)?;
                return self.keys.push(self.vm, atom);
            }
            Part::End => self.end()?,
            Part::Text(text) => self.text(text)?,
            Part::Number(number) => Value::foreign_number(number),
            Part::Boolean(is) => Value::bool(is),
            Part::Null => Value::NULL,
            Part::Columns(names) => {
                let mut columns = Buffer::with_capacity(self.vm, names.len())?;
                for name in names {
                    let atom = self.name(name)?;
                    columns.push(self.vm, atom)?;
                }
                self.columns = Some(columns);
                return Ok(());
            }
            Part::Row(cells) => self.row(cells)?,
        };
        self.values.push(self.vm, value)
    }
}

impl Values<'_> {
    fn name(&mut self, name: &str) -> Result<Atom> {
        self.vm.heap.charge_bytes(name.len())?;
        self.vm.reserve(name.len())?;
        Ok(self.vm.heap.intern_text(name))
    }

    fn text(&mut self, text: &str) -> Result {
        self.vm.heap.charge_bytes(text.len())?;
        self.vm.reserve(text.len())?;
        Ok(self.vm.heap.string(text))
    }

    fn row(&mut self, cells: &[Cow<'_, str>]) -> Result {
        let mut values = Buffer::with_capacity(self.vm, cells.len())?;
        for cell in cells {
            let value = self.text(cell)?;
            values.push(self.vm, value)?;
        }
        self.vm.work(cells.len() / 4)?;
        Ok(match &self.columns {
            Some(columns) => self.vm.heap.object_of(columns, &values),
            None => self.vm.heap.array_of(values),
        })
    }

    /// The innermost container, of the values since it began.
    fn end(&mut self) -> Result {
        let Some(open) = self.open.pop() else { return Ok(Value::NULL) };
        let count = self.values.len() - open.values;
        self.vm.work(count / 4)?;
        let mut values = Buffer::with_capacity(self.vm, count)?;
        values.extend_from_slice(self.vm, &self.values[open.values..])?;
        self.values.truncate(open.values);
        if !open.has_keys {
            return Ok(self.vm.heap.array_of(values));
        }
        let object = self.vm.heap.new_object();
        for (index, &value) in values.iter().enumerate() {
            self.vm.heap.set_own(object, self.keys[open.keys + index], value);
        }
        self.keys.truncate(open.keys);
        Ok(object)
    }
}
