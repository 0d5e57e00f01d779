//! `console.table`: rows and columns in a frame.

use crate::builtins::console;
use crate::builtins::inspect::{self, Options, too_much, width};
use crate::builtins::url::coded;
use crate::builtins::url::params;
use crate::eval::json;
use crate::eval::vm::Vm;
use crate::heap::atoms::array_index;
use crate::heap::block;
use crate::meter::Charge;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use indexmap::IndexMap;

/// Column of values that are no objects.
const VALUES: &str = "Values";
/// Bytes of the shortest row.
const LEAST_ROW: usize = 12;

/// A row: its name, the key of a `Map`, the value.
type Entry = (String, Option<Value>, Value);
/// A column: its name, and its cells with their rows.
type Column = (String, Vec<(usize, String)>);

/// `console.table(data, columns)` as text; `None` where `data` is no object.
pub(super) fn table(vm: &mut Vm, data: Value, only: Value) -> Result<Option<String>> {
    let only = given_columns(vm, only)?;
    if !data.is_object() || data.is_callable() {
        return Ok(None);
    }
    let mut texts = Texts::default();
    let is_collection = matches!(data.kind(), Kind::Map | Kind::Set);
    let rows = rows(vm, data, is_collection)?;
    // charged: by `rows`, to the end
    let (mut names, mut keys, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let mut columns: IndexMap<String, Vec<(usize, String)>> = IndexMap::new();
    for (row, (name, key, value)) in rows.into_iter().enumerate() {
        texts.add(vm, name.len())?;
        names.push((row, name));
        if let Some(key) = key {
            keys.push((row, cell(vm, key, &mut texts)?));
        }
        if is_collection || only.is_none() && !value.is_object() {
            plain.push((row, cell(vm, value, &mut texts)?));
            continue;
        }
        for (column, value) in cells(vm, value, only.as_deref(), &mut texts)? {
            let cells = columns.entry(column).or_default();
            // A column may be asked for twice.
            let is_there = cells.last().is_some_and(|&(last, _)| last == row);
            if let Some(value) = value.filter(|_| !is_there) {
                let text = cell(vm, value, &mut texts)?;
                cells.push((row, text));
            }
        }
    }
    let heading = if is_collection { "(iteration index)" } else { "(index)" };
    let mut all = vec![(heading.into(), names)];
    if data.is(Kind::Map) {
        all.push(("Key".into(), keys));
    }
    // The columns are the keys of an object: array indices come first.
    columns.sort_by_key(|name, _| array_index(name.as_bytes()).map_or(u64::MAX, u64::from));
    all.extend(columns);
    if is_collection || !plain.is_empty() {
        all.push((VALUES.into(), plain));
    }
    drawn(vm, &all).map(Some)
}

/// The columns that a script asks for.
fn given_columns(vm: &mut Vm, only: Value) -> Result<Option<Buffer<Value>>> {
    if only.is_undefined() {
        return Ok(None);
    }
    if !only.is(Kind::Array) {
        let received = params::received(vm, only)?;
        let message = brief!("The \"properties\" argument must be an instance of Array. Received {received}");
        return Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message));
    }
    vm.heap.charged_items_copy(only).map(Some)
}

/// The text of a table.
fn drawn(vm: &mut Vm, columns: &[Column]) -> Result<String> {
    let lines = 4 + columns.first().map_or(0, |(_, cells)| cells.len());
    let charge = vm.work(columns.len())?;
    let across: usize = widths(charge, columns).iter().map(|width| width + 1).sum();
    // Lines are drawn in characters of three bytes.
    let limit = console::console_options(vm).limit;
    if lines.saturating_mul(across) > limit {
        return Err(too_much(limit));
    }
    let charge = vm.work(lines * across / 16)?;
    let _hold = vm.heap.hold(3 * lines * across)?;
    Ok(render(charge, columns))
}

/// The rows of a table.
fn rows(vm: &mut Vm, data: Value, is_collection: bool) -> Result<Vec<Entry>> {
    if !is_collection {
        let pairs = json::enumerable_entries(vm, data)?;
        let charge = console::check_line(vm, pairs.len().saturating_mul(LEAST_ROW))?;
        let rows = pairs.into_iter().map(|(key, value)| (vm.key_text(key), None, value));
        return Ok(charge.list(rows));
    }
    let bytes = vm.heap.maps[data.index()].len().saturating_mul(LEAST_ROW);
    console::check_line(vm, bytes)?;
    let charge = vm.work(vm.heap.maps[data.index()].entry_count() / 8)?;
    let is_map = data.is(Kind::Map);
    let rows = vm.heap.maps[data.index()].entries().enumerate();
    let rows =
        rows.map(|(index, (key, value))| (index.to_string(), is_map.then_some(key), if is_map { value } else { key }));
    Ok(charge.list(rows))
}

/// The cells of a row: its own properties, or those of the given names, and `None` where it has none.
fn cells(
    vm: &mut Vm,
    row: Value,
    only: Option<&[Value]>,
    texts: &mut Texts,
) -> Result<Buffer<(String, Option<Value>)>> {
    let mut cells = Buffer::new();
    let Some(only) = only else {
        for (key, value) in json::enumerable_entries(vm, row)? {
            vm.work(1)?;
            let column = vm.key_text(key);
            texts.add(vm, column.len() + size_of::<(String, Option<Value>)>())?;
            cells.push(vm, (column, Some(value)))?;
        }
        return Ok(cells);
    };
    for &name in only {
        vm.work(1)?;
        let name = vm.to_string(name)?;
        let key = vm.to_property_key(name)?;
        let value = if row.is_object() { vm.own_property(row, key)? } else { None };
        let column = console::line_text(vm, name)?;
        texts.add(vm, column.len() + size_of::<(String, Option<Value>)>())?;
        cells.push(vm, (column, value))?;
    }
    Ok(cells)
}

fn cell(vm: &mut Vm, value: Value, texts: &mut Texts) -> Result<String> {
    let text = if value.is(Kind::Object) && vm.heap.own_len(value) > 2 {
        "[Object]".into()
    } else {
        let options = Options { depth: 0, items: 3, columns: usize::MAX / 8, ..console::console_options(vm) };
        inspect::inspect(vm, value, options)?
    };
    texts.add(vm, text.len())?;
    Ok(text)
}

/// The texts of all cells: no more than may be logged, and counted.
#[derive(Default)]
struct Texts {
    bytes: usize,
    hold: Hold,
}

impl Texts {
    fn add(&mut self, vm: &mut Vm, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        let limit = console::console_options(vm).limit;
        if self.bytes > limit {
            return Err(too_much(limit));
        }
        self.hold.grow(vm, block(bytes) + size_of::<(usize, String)>())
    }
}

/// How wide columns are.
fn widths(charge: Charge, columns: &[Column]) -> Vec<usize> {
    let widest =
        |(name, cells): &Column| cells.iter().map(|(_, text)| width(text)).chain([width(name)]).max().unwrap_or(0) + 2;
    charge.list(columns.iter().map(widest))
}

/// Columns with their headings, each cell with its row. The caller has charged for the text, and counted it.
fn render(charge: Charge, columns: &[Column]) -> String {
    let widths = widths(charge, columns);
    let line = |[left, middle, right]: [&str; 3]| {
        let parts = charge.list(widths.iter().map(|&width| "─".repeat(width)));
        charge.text(format_args!("{left}{}{right}", charge.joined(&parts, middle)))
    };
    let row = |cells: &[&str]| {
        let padded = |(cell, columns): (&&str, &usize)| {
            charge.text(format_args!(" {cell}{}", " ".repeat(columns - width(cell) - 1)))
        };
        let cells = charge.list(cells.iter().zip(&widths).map(padded));
        charge.text(format_args!("│{}│", charge.joined(&cells, "│")))
    };
    let names = charge.list(columns.iter().map(|(name, _)| name.as_str()));
    let mut out = vec![line(["┌", "┬", "┐"]), row(&names), line(["├", "┼", "┤"])];
    let mut next = charge.list(std::iter::repeat_n(0, columns.len()));
    for index in 0..columns.first().map_or(0, |(_, cells)| cells.len()) {
        let cells = columns.iter().zip(&mut next).map(|((_, cells), next)| match cells.get(*next) {
            Some((row, text)) if *row == index => {
                *next += 1;
                text.as_str()
            }
            Some(_) | None => "",
        });
        out.push(row(&charge.list(cells)));
    }
    out.push(line(["└", "┴", "┘"]));
    charge.joined(&out, "\n")
}
