//! How the parts of an object are put on lines: `reduceToSingleString` and `groupArrayElements` of
//! Node.

use super::text::width;
use super::{Inspector, Output, too_much};
use crate::meter::Charge;
use crate::text::wtf8::units;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// Levels of nested objects that may share one line (`compact`).
const COMPACT: usize = 3;
/// Arrays with more parts than this are printed in columns.
const GROUPED: usize = 6;
/// The comma and the space between two parts.
const SEPARATOR: usize = 2;

impl Inspector<'_> {
    /// The parts of an object in their braces; `array` is the object where it is an array.
    pub(super) fn joined(
        &mut self,
        output: Output,
        base: &str,
        (open, close): (&str, &str),
        array: Option<Value>,
        depth: usize,
    ) -> Result<String> {
        let Output { parts, texts: _texts } = output;
        let length: usize = parts.iter().map(|part| part.len() + self.indent + SEPARATOR + 2).sum();
        let length = length + base.len() + open.len() + 2 * self.indent;
        if length > self.options.limit {
            return Err(too_much(self.options.limit));
        }
        let charge = self.vm.work(1 + length / 64)?;
        let _hold = self.vm.heap.hold(2 * length)?;
        let mut output: Vec<String> = parts.into_vec();
        let entries = output.len();
        if let Some(array) = array
            && entries > GROUPED
        {
            output = self.grouped(charge, output, array);
        }
        let space = if base.is_empty() { "" } else { " " };
        if self.deepest - depth < COMPACT && entries == output.len() {
            let start = output.len() + self.indent + units(open.as_bytes()) + units(base.as_bytes()) + 10;
            if self.fits(&output, start, base) {
                let line = charge.joined(&output, ", ");
                if !line.contains('\n') {
                    return Ok(charge.text(format_args!("{base}{space}{open} {line} {close}")));
                }
            }
        }
        let indentation = charge.text(format_args!("\n{}", " ".repeat(self.indent)));
        let parts = charge.joined(&output, &charge.text(format_args!(",{indentation}  ")));
        Ok(charge.text(format_args!("{base}{space}{open}{indentation}  {parts}{indentation}{close}")))
    }

    fn fits(&self, output: &[String], start: usize, base: &str) -> bool {
        let mut total = output.len() + start;
        if total + output.len() > self.options.columns {
            return false;
        }
        for part in output {
            // A code unit has at most three bytes.
            if part.len() > self.options.columns * 3 {
                return false;
            }
            total += units(part.as_bytes());
            if total > self.options.columns {
                return false;
            }
        }
        !base.contains('\n')
    }

    fn grouped(&self, charge: Charge, output: Vec<String>, array: Value) -> Vec<String> {
        let shown = if output.len() > self.options.items { output.len() - 1 } else { output.len() };
        let widths = charge.list(output[..shown].iter().map(|part| width(part)));
        let total: usize = widths.iter().map(|width| width + SEPARATOR).sum();
        let longest = widths.iter().copied().max().unwrap_or(0);
        let widest = longest + SEPARATOR;
        let similar = total as f64 / widest as f64 > 5.0 || longest <= 6;
        if widest * 3 + self.indent >= self.options.columns || !similar {
            return output;
        }
        let columns = self.columns(&output, shown, total, widest);
        if columns <= 1 {
            return output;
        }
        let column_width = |column: usize| widths.iter().skip(column).step_by(columns).copied().max().unwrap_or(0);
        let column_widths = charge.list((0..columns).map(column_width));
        let is_number = |index| match array.kind() {
            Kind::Uint8Array => index < self.vm.heap.view_length(array),
            _ => self.vm.heap.at(array, index).is_some_and(|item| item.is_number() || item.is(Kind::BigInt)),
        };
        let numbers = (0..output.len()).all(is_number);
        let line = |first: usize| {
            let last = (first + columns).min(shown) - 1;
            let mut line = String::default();
            for index in first..=last {
                let padding = " ".repeat(column_widths[index - first] - widths[index]);
                match (numbers, index == last) {
                    (true, true) => line.extend([&padding, &output[index]].map(String::as_str)),
                    (true, false) => line.extend([&padding, &output[index], ", "]),
                    (false, true) => line.push_str(&output[index]),
                    (false, false) => line.extend([&output[index], ", ", &padding]),
                }
            }
            line
        };
        let mut lines = charge.list((0..shown).step_by(columns).map(line));
        lines.extend(output.into_iter().skip(shown));
        lines
    }

    /// How many columns make the parts look like a square.
    fn columns(&self, output: &[String], shown: usize, total: usize, widest: usize) -> usize {
        let bias = (widest as f64 - total as f64 / output.len() as f64).sqrt();
        let biased = (widest as f64 - 3.0 - bias).max(1.0);
        let square = ((2.5 * biased * shown as f64).sqrt() / biased + 0.5).floor() as usize;
        let fitting = (self.options.columns - self.indent) / widest;
        square.min(fitting).min(COMPACT * 4).min(15)
    }
}
