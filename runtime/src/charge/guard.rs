//! No built-in function looks at data of a script, or grows memory with it, without a charge: the sources are read
//! for what does neither by itself.
//!
//! A line that may do so for a reason ends with `// bounded: …` (it is small whatever the script does) or
//! `// charged: …` (where that is done), or the line above is such a comment.

use std::path::Path;

/// What is refused, and what to write instead.
const REFUSED: &[(&str, &str)] = &[
    ("heap.bytes(", "Vm::charged_bytes"),
    ("heap.text(", "Vm::charged_text"),
    ("heap.items(", "Vm::charged_items"),
    ("heap.bigints[", "Vm::charged_bigint"),
    ("heap.utf16(", "a charge by Vm::charge_bytes before"),
    (".entries().collect", "Vm::charged_entries"),
    (".own_entries(", "Vm::charged_keys, or a charge before"),
    (".own_keys(", "Vm::charged_keys"),
    (".to_vec()", "Buffer"),
    (".to_owned()", "Buffer"),
    (".into_owned()", "Buffer"),
    ("Vec::new()", "Buffer::new"),
    ("Vec::with_capacity(", "Buffer::with_capacity"),
    ("String::with_capacity(", "Buffer::with_capacity"),
    ("vec![", "Buffer, unless the length is known"),
    (".collect(", "Buffer::extend"),
    (".collect::<", "Buffer::extend"),
    (".concat()", "Buffer::extend_from_slice"),
    (".join(", "Buffer::extend_from_slice"),
    ("String::new()", "Buffer::new"),
    ("format!(", "text of bounded parts"),
];

/// Files that are not converted yet. None is added; whoever converts one takes it out.
const OPEN: &[&str] = &[
    "builtins/array.rs",
    "builtins/array/flat.rs",
    "builtins/array/generic.rs",
    "builtins/array/sort.rs",
    "builtins/array/walk.rs",
    "builtins/collections.rs",
    "builtins/console/table.rs",
    "builtins/date/text.rs",
    "builtins/function.rs",
    "builtins/global.rs",
    "builtins/inspect.rs",
    "builtins/inspect/error.rs",
    "builtins/inspect/layout.rs",
    "builtins/inspect/text.rs",
    "builtins/inspect/url.rs",
    "builtins/intl/date_time_format.rs",
    "builtins/intl/date_time_format/options.rs",
    "builtins/intl/date_time_format/pattern.rs",
    "builtins/intl/date_time_format/range.rs",
    "builtins/intl/date_time_format/write.rs",
    "builtins/intl/number_format.rs",
    "builtins/intl/number_format/decimal.rs",
    "builtins/intl/number_format/pattern.rs",
    "builtins/intl/number_format/range.rs",
    "builtins/intl/zone.rs",
    "builtins/iterator.rs",
    "builtins/json.rs",
    "builtins/listing.rs",
    "builtins/number/format.rs",
    "builtins/object.rs",
    "builtins/promise.rs",
    "builtins/registry.rs",
    "builtins/tool.rs",
    "builtins/tool/settle.rs",
    "builtins/tool/waiting.rs",
    "json/parse.rs",
    "json/promises.rs",
    "json/read.rs",
    "json/record.rs",
    "json/stringify.rs",
    "json/unread.rs",
];

#[test]
fn built_ins_read_and_grow_through_the_account() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut converted = Vec::new();
    for folder in ["builtins", "json"] {
        walk(&root, &root.join(folder), &mut |name, text| {
            let misses = misses(name, text);
            match (OPEN.contains(&name), misses.is_empty()) {
                (false, _) => found.extend(misses),
                (true, true) => converted.push(name.to_owned()),
                (true, false) => {}
            }
        });
    }
    assert!(found.is_empty(), "not charged:\n{}", found.join("\n"));
    assert!(converted.is_empty(), "take these out of the list of files that are not converted: {converted:#?}");
}

/// Lines of a file that do what is refused.
fn misses(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut above = "";
    // Tests stand at the end.
    for (number, line) in text.lines().take_while(|line| line.trim() != "#[cfg(test)]").enumerate() {
        let said = |line: &str| line.contains("// bounded: ") || line.contains("// charged: ");
        let is_comment = line.trim_start().starts_with("//");
        if !(is_comment || said(line) || said(above) && above.trim_start().starts_with("//")) {
            let refused = REFUSED.iter().filter(|(what, _)| line.contains(what));
            found.extend(refused.map(|(what, instead)| {
                format!("{name}:{}: `{what}`: use {instead}, or say why not (see charge/guard.rs)", number + 1)
            }));
        }
        above = line;
    }
    found
}

fn walk(root: &Path, folder: &Path, visit: &mut impl FnMut(&str, &str)) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            walk(root, &path, visit);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("it is below").to_string_lossy().replace('\\', "/");
            visit(&name, &std::fs::read_to_string(&path).expect("it is text"));
        }
    }
}

#[test]
fn the_guard_finds_what_is_not_charged() {
    let text =
        "let a = vm.heap.bytes(b);\nlet c = vm.heap.bytes(d); // charged: above\n// bounded: ten\nlet e = Vec::new();";
    let found = misses("x.rs", text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("x.rs:1: `heap.bytes(`"));
}
