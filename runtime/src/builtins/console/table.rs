//! `console.table`: rows and columns in a frame.

use crate::atoms::array_index;
use crate::builtins::inspect::{Options, width};
use crate::charge::{Buffer, Hold};
use crate::heap::block;
use crate::property::PropertyKey;
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use indexmap::IndexMap;

/// Column of values that are no objects.
const VALUES: &str = "Values";
/// Rows and columns that are printed.
const MAX_ROWS: usize = 1000;
const MAX_COLUMNS: usize = 100;

/// A row: its name, the key of a `Map`, the value.
type Entry = (String, Option<Value>, Value);

impl Vm {
    /// `console.table(data, columns)` as text; `None` where `data` is no object.
    pub(super) fn table(&mut self, data: Value, only: Value) -> Result<Option<String>> {
        if !data.is_object() {
            return Ok(None);
        }
        let mut columns: IndexMap<String, Vec<(usize, String)>> = IndexMap::new();
        let mut texts = Texts::default();
        if only.is(Kind::Array) {
            let mut bytes = 0;
            for name in self.charged_items_copy(only)? {
                let name = self.to_string(name)?;
                bytes += self.heap.str(name).bytes as usize + size_of::<(String, Vec<(usize, String)>)>();
                self.check_line(bytes)?;
                columns.insert(self.line_text(name)?, Vec::new()); // charged: above
            }
            texts.add(self, bytes)?;
        }
        let (heading, rows) = self.rows(data)?;
        let fixed = only.is(Kind::Array);
        // bounded: by MAX_ROWS
        let (mut keys, mut names, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for (row, (name, key, value)) in rows.into_iter().enumerate() {
            texts.add(self, name.len())?;
            names.push((row, name));
            if let Some(key) = key {
                keys.push((row, self.cell(key, &mut texts)?));
            }
            if !value.is_object() || value.is_callable() {
                plain.push((row, self.cell(value, &mut texts)?));
                continue;
            }
            for (key, value) in self.cells(value)? {
                self.work(1)?;
                let column = self.key_text(key);
                let known = columns.contains_key(&column);
                if known || !fixed && columns.len() < MAX_COLUMNS {
                    let text = self.cell(value, &mut texts)?;
                    columns.entry(column).or_default().push((row, text));
                }
            }
        }
        let mut all = vec![(heading.into(), names)]; // bounded: by MAX_COLUMNS and those that are given
        if heading == ITERATION {
            all.push(("Key".into(), keys));
            all.retain(|(name, cells)| name != "Key" || !cells.is_empty());
        }
        // The columns are the keys of an object: array indices come first.
        if !fixed {
            let index = |name: &str| array_index(name.as_bytes()).map_or(u64::MAX, u64::from);
            columns.sort_by_key(|name, _| index(name));
        }
        all.extend(columns);
        if !plain.is_empty() {
            all.push((VALUES.into(), plain));
        }
        let lines = 4 + all.first().map_or(0, |(_, cells)| cells.len());
        let across: usize = widths(&all).iter().map(|width| width + 1).sum();
        // Lines are drawn in characters of three bytes.
        let limit = self.console_options().limit;
        if lines.saturating_mul(across) > limit {
            return Err(crate::builtins::inspect::too_much(limit));
        }
        self.work(lines * across / 16)?;
        let _hold = self.hold(3 * lines * across)?;
        Ok(Some(render(&all)))
    }

    /// The heading of the names, and the rows of a table.
    fn rows(&mut self, data: Value) -> Result<(&'static str, Vec<Entry>)> {
        Ok(match data.kind() {
            Kind::Map | Kind::Set => {
                self.work(self.heap.maps[data.index()].entry_count() / 8)?;
                let entries = self.heap.maps[data.index()].entries().take(MAX_ROWS);
                let is_map = data.is(Kind::Map);
                let row = |(index, (key, value)): (usize, (Value, Value))| {
                    (index.to_string(), is_map.then_some(key), if is_map { value } else { key })
                };
                (ITERATION, entries.enumerate().map(row).collect()) // bounded: by MAX_ROWS
            }
            _ => {
                let cells = self.cells(data)?.into_iter().take(MAX_ROWS);
                ("(index)", cells.map(|(key, value)| (self.key_text(key), None, value)).collect()) // bounded: by MAX_ROWS
            }
        })
    }

    fn cells(&mut self, object: Value) -> Result<Buffer<(PropertyKey, Value)>> {
        if object.is(Kind::Array) {
            let mut cells = Buffer::new();
            let length = self.heap.length(object).min(MAX_ROWS);
            let items = (0..length).map(|at| (at, self.heap.at(object, at).unwrap_or(Value::HOLE)));
            let items = items.filter(|&(_, item)| item != Value::HOLE);
            cells.extend(self, items.map(|(at, item)| (PropertyKey::Index(at as u32), item)))?;
            return Ok(cells);
        }
        let cells = self.enumerable_entries(object)?;
        self.work(cells.len())?;
        Ok(cells)
    }

    fn cell(&mut self, value: Value, texts: &mut Texts) -> Result<String> {
        let text = if value.is(Kind::Object) && self.heap.own_len(value) > 2 {
            "[Object]".into()
        } else {
            self.inspect(value, Options { depth: 0, items: 3, columns: usize::MAX / 8, ..self.console_options() })?
        };
        texts.add(self, text.len())?;
        Ok(text)
    }
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
        let limit = vm.console_options().limit;
        if self.bytes > limit {
            return Err(crate::builtins::inspect::too_much(limit));
        }
        self.hold.grow(vm, block(bytes) + size_of::<(usize, String)>())
    }
}

const ITERATION: &str = "(iteration index)";

/// How wide columns are.
fn widths(columns: &[(String, Vec<(usize, String)>)]) -> Vec<usize> {
    let widest = |(name, cells): &(String, Vec<(usize, String)>)| {
        cells.iter().map(|(_, text)| width(text)).chain([width(name)]).max().unwrap_or(0) + 2
    };
    columns.iter().map(widest).collect() // bounded: by the columns
}

/// Columns with their headings, each cell with its row. The caller has charged for the text, and counted it.
fn render(columns: &[(String, Vec<(usize, String)>)]) -> String {
    let widths = widths(columns);
    let line = |[left, middle, right]: [&str; 3]| {
        let parts: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect(); // charged: by the caller
        format!("{left}{}{right}", parts.join(middle)) // charged: by the caller
    };
    let row = |cells: &[&str]| {
        let cells = cells
            .iter()
            .zip(&widths)
            .map(|(cell, columns)| format!(" {cell}{}", " ".repeat(columns - width(cell) - 1))); // charged: by the caller
        format!("│{}│", cells.collect::<Vec<_>>().join("│")) // charged: by the caller
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect(); // charged: by the caller
    let mut out = vec![line(["┌", "┬", "┐"]), row(&names), line(["├", "┼", "┤"])]; // charged: by the caller
    let mut next = vec![0; columns.len()]; // charged: by the caller
    for index in 0..columns.first().map_or(0, |(_, cells)| cells.len()) {
        let cells: Vec<&str> = columns
            .iter()
            .zip(&mut next)
            .map(|((_, cells), next)| match cells.get(*next) {
                Some((row, text)) if *row == index => {
                    *next += 1;
                    text.as_str()
                }
                Some(_) | None => "",
            })
            .collect(); // charged: by the caller
        out.push(row(&cells));
    }
    out.push(line(["└", "┴", "┘"]));
    out.join("\n") // charged: by the caller
}
