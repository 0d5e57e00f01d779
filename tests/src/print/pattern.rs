//! Prints patterns and property keys.

use super::{Printer, text};
use agentscript_lang::ast::{Key, Pattern, PatternKind};

impl Printer {
    pub(super) fn pattern(&mut self, pattern: &Pattern<'_>) {
        match &pattern.kind {
            PatternKind::Array(items) => {
                self.put("[");
                self.list(items, |printer, item| item.iter().for_each(|item| printer.pattern(item)));
                self.put(if matches!(items.last(), Some(None)) { ",]" } else { "]" });
            }
            PatternKind::Default(target, value) => {
                self.pattern(target);
                self.put(" = ");
                self.expr(value);
            }
            PatternKind::Member(member) => self.expr(member),
            PatternKind::Name(name) => self.put(name),
            PatternKind::Object(entries, rest) => {
                self.put("{");
                self.list(entries, |printer, (key, value)| {
                    printer.key(key);
                    printer.put(": ");
                    printer.pattern(value);
                });
                if let Some(rest) = rest {
                    self.put(if entries.is_empty() { "..." } else { ", ..." });
                    self.pattern(rest);
                }
                self.put("}");
            }
            PatternKind::Rest(target) => {
                self.put("...");
                self.pattern(target);
            }
        }
    }

    pub(super) fn key(&mut self, key: &Key<'_>) {
        match key {
            Key::Computed(key) => {
                self.put("[");
                self.expr(key);
                self.put("]");
            }
            Key::Text(name, _) => match std::str::from_utf8(name) {
                Ok(name) if text::is_word(name) => self.put(name),
                _ => self.put(&text::quoted(name)),
            },
        }
    }
}
