//! A test of the sources: no built-in function reads data of a script, or grows memory with it, without a charge.
//!
//! A line with a reason to do so ends with `// bounded: …` (it is small whatever the script does) or `// charged: …`
//! (the place of the charge). Or the line above is such a comment. The head of a file may say so for all of it, `//!
//! bounded: …`. The file must not be able to ask for data of a script: it names no [`SEEING`] type.

use std::path::Path;

/// Reads without a charge, which no reason allows, each with the call to write instead.
const READS: &[(&str, &str)] = &[
    ("heap.bytes(", "Heap::charged_bytes or read_bytes"),
    ("heap.text(", "Heap::charged_text or read_text"),
    ("heap.known_utf16(", "Heap::charged_utf16 or read_utf16"),
    ("heap.items(", "Heap::charged_items or read_items"),
    ("heap.sparse_items(", "Heap::charged_sparse_items"),
    ("heap.view_bytes(", "Heap::charged_view or read_view"),
    ("heap.view_bytes_mut(", "Heap::write_view"),
    ("heap.bigints[", "Heap::charged_bigint or read_bigint"),
    (".entries().collect", "Heap::charged_entries"),
    (".own_entries(", "Heap::charged_own_entries"),
    (".push_own_keys(", "Vm::charged_keys"),
];

/// Calls that grow memory, each with the call to write instead.
const REFUSED: &[(&str, &str)] = &[
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

/// Beginnings of lines that format a message of an error or a failure. Everything that prints a value there cuts it:
/// `Vm::describe`, `Vm::to_text_lossy`, `Vm::short_text`, `Vm::key_text`, `Heap::atom_text`, `Vm::callable_name`.
/// Nothing else gives text without a charge.
const MESSAGES: &[&str] = &["_error(&format!(", "let message = format!("];

/// Types that a file needs to access data of a script, other than text passed to it.
const SEEING: &[&str] = &["Vm", "Value", "Heap", "heap"];

#[test]
fn built_ins_read_and_grow_through_the_account() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for folder in ["builtins", "eval/json", "eval/bigint"] {
        walk(&root, &root.join(folder), &mut |name, text| found.extend(misses(name, text)));
    }
    for name in ["eval/bigint.rs", "eval/regexp_literal.rs", "eval/describe.rs"] {
        found.extend(misses(name, &std::fs::read_to_string(root.join(name)).expect("it is text")));
    }
    assert!(found.is_empty(), "not charged:\n{}", found.join("\n"));
}

/// Lines of a file that do what is refused.
fn misses(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Tests stand at the end.
    let lines = || text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let has_reason =
        |line: &str, mark: &str| ["bounded", "charged"].iter().any(|why| line.contains(&format!("{mark} {why}: ")));
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    if lines().any(|line| line.starts_with("//!") && has_reason(line, "//!")) {
        for (number, line) in lines().enumerate().filter(|(_, line)| !is_comment(line)) {
            let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            if words.any(|word| SEEING.contains(&word)) {
                found.push(format!("{name}:{}: a file that sees data of a script says why on each line", number + 1));
            }
        }
        return found;
    }
    let mut above = "";
    for (number, line) in lines().enumerate() {
        let refused = READS.iter().filter(|(what, _)| !is_comment(line) && line.contains(what));
        found.extend(refused.map(|(what, instead)| format!("{name}:{}: `{what}`: use {instead}", number + 1)));
        if !(is_comment(line) || has_reason(line, "//") || is_comment(above) && has_reason(above, "//")) {
            let is_message = MESSAGES.iter().any(|message| line.contains(message));
            let refused =
                REFUSED.iter().filter(|(what, _)| line.contains(what) && !(is_message && *what == "format!("));
            found.extend(refused.map(|(what, instead)| {
                format!("{name}:{}: `{what}`: use {instead}, or say why not (see heap/charge/guard.rs)", number + 1)
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
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("x.rs:1: `heap.bytes(`"));
}

#[test]
fn the_guard_believes_no_file_that_sees_data_of_a_script() {
    let blind = "//! Dates.\n//! bounded: by a date\nfn text(time: f64) -> String { format!(\"{time}\") }";
    assert!(misses("x.rs", blind).is_empty());
    let seeing = "//! Dates.\n//! bounded: by a date\nfn text(vm: &mut Vm) -> String { format!(\"{time}\") }";
    assert_eq!(misses("x.rs", seeing).len(), 1);
}

#[test]
fn the_guard_lets_messages_of_cut_parts_pass() {
    let text = "return Err(vm.type_error(&format!(\"{what} is not a function\")));\nlet text = format!(\"{what}\");";
    assert_eq!(misses("x.rs", text).len(), 1);
    let text = "let message = format!(\"{}\", vm.heap.text(name));";
    assert_eq!(misses("x.rs", text).len(), 1, "what reads is refused in a message too");
}
