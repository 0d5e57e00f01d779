//! A test of the sources: built-in functions read data of a script, and grow memory with it, by charging.
//!
//! 1. A read charges (`charged_…`), shows a [`Charge`](crate::meter::Charge) (`read_…`), or is of a bounded part.
//! 2. Text is formatted by `brief!`, which stops at a bound, or by a `Charge`.
//! 3. Lists and texts grow in a `Buffer`, or come from a `Charge`. A list of known length is `vec![a, b]`.
//! 4. Other growth says why, on its line or the one above. `// bounded: …`: it is small whatever the script does.
//!    `// charged: …`: the place of the charge.
//! 5. A file that names no type of [`SEEING`] gets its text from a file that charges for it.

use std::path::Path;

/// Calls that no reason allows, each with the call to write instead.
const REFUSED: &[(&str, &str)] = &[
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
    ("format!(", "brief! or Charge::text"),
    (".to_owned()", "Charge::text or brief!"),
    (".into_owned()", "Heap::charged_string"),
    (".concat()", "brief! or Buffer::extend_from_slice"),
];

/// Growth that needs a reason, each with the call to write instead.
const GROWTH: &[(&str, &str)] = &[
    ("String::new()", "Buffer::new or Charge::text"),
    ("Vec::new()", "Buffer::new"),
    ("Vec::with_capacity(", "Buffer::with_capacity"),
    ("String::with_capacity(", "Buffer::with_capacity"),
    ("vec![", "Buffer, unless the length is known"),
    (".to_vec()", "Buffer::extend_from_slice"),
    (".collect(", "Buffer::extend or Charge::list"),
    (".collect::<", "Buffer::extend or Charge::list"),
    (".join(", "Buffer::extend_from_slice or Charge::joined"),
];

/// Types that a file needs to access data of a script, other than text passed to it.
const SEEING: &[&str] = &["Vm", "Value", "Heap", "heap", "Meter"];

#[test]
fn built_ins_read_and_grow_by_charging() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for folder in ["builtins", "eval/json", "eval/bigint"] {
        walk(&root, &root.join(folder), &mut |name, text| found.extend(misses(name, text)));
    }
    for name in ["eval/bigint.rs", "eval/describe.rs", "eval/regexp_literal.rs"] {
        found.extend(misses(name, &std::fs::read_to_string(root.join(name)).expect("it is text")));
    }
    assert!(found.is_empty(), "not charged:\n{}", found.join("\n"));
}

/// Lines of a file that do what is refused.
fn misses(name: &str, text: &str) -> Vec<String> {
    // Tests stand at the end.
    let lines = || text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let sees = |line: &str| {
        line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| SEEING.contains(&word))
    };
    if !lines().any(|line| !is_comment(line) && sees(line)) {
        return Vec::new();
    }
    let has_reason = |line: &str| line.contains("// bounded: ") || line.contains("// charged: ");
    let mut found = Vec::new();
    let mut above = "";
    for (number, line) in lines().enumerate() {
        if !is_comment(line) {
            let is_allowed = has_reason(line) || is_comment(above) && has_reason(above);
            let growth = GROWTH.iter().filter(|(what, _)| !is_allowed && (*what != "vec![" || repeats(line)));
            let refused = REFUSED.iter().chain(growth).filter(|(what, _)| line.contains(what));
            found.extend(refused.map(|(what, instead)| {
                format!("{name}:{}: `{what}`: use {instead} (see heap/charge/guard.rs)", number + 1)
            }));
        }
        above = line;
    }
    found
}

/// Whether a line makes a list whose length is computed.
fn repeats(line: &str) -> bool {
    line.split("vec![").skip(1).any(|list| list.split(']').next().is_some_and(|list| list.contains("; ")))
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
fn the_guard_refuses_reads_whatever_the_reason() {
    let text = "fn f(vm: &Vm) {\nlet a = vm.heap.bytes(b);\nlet c = vm.heap.bytes(d); // charged: above\n";
    let found = misses("x.rs", text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("x.rs:2: `heap.bytes(`"));
    assert_eq!(misses("x.rs", "fn f(vm: &Vm) {\nlet text = format!(\"{a}\"); // bounded: a\n").len(), 1);
}

#[test]
fn the_guard_lets_growth_pass_that_has_a_reason() {
    let text = "fn f(vm: &Vm) {\nlet a = Vec::new();\n// bounded: ten\nlet b = Vec::new();\nlet c = vec![a, b];\n";
    assert_eq!(misses("x.rs", text).len(), 1);
    let text = "fn f(vm: &Vm) {\nlet c = vec![0; n];\nlet d = vec![0; n]; // bounded: ten\nlet e = vec![a; 2];\n";
    assert_eq!(misses("x.rs", text).len(), 2);
}

#[test]
fn the_guard_searches_files_that_see_data_of_a_script() {
    assert!(misses("x.rs", "//! Dates of a Vm.\nfn text(time: f64) -> String { format!(\"{time}\") }").is_empty());
    assert_eq!(misses("x.rs", "fn text(vm: &mut Vm) -> String { format!(\"{time}\") }").len(), 1);
}
