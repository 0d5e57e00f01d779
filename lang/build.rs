//! Generates the parser from `src/grammar.lalrpop`.

use std::path::Path;
use std::{env, fs, io};

fn main() {
    lalrpop::Configuration::new()
        .use_cargo_dir_conventions()
        .emit_rerun_directives(true)
        .process()
        .expect("the grammar is LR(1)");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    keep_reductions_apart(&Path::new(&folder).join("grammar.rs")).expect("the parser has been written");
}

/// Keeps the functions of the reductions out of the one that selects among them: inlined there, all of them share one
/// frame of 30 KiB on the stack, whose pages each reduction touches.
fn keep_reductions_apart(parser: &Path) -> io::Result<()> {
    const REDUCTION: &str = "\n    fn __reduce";
    const APART: &str = "\n    #[inline(never)]\n    fn __reduce";
    let text = fs::read_to_string(parser)?;
    // A parser that was generated before is left as it is.
    if text.contains(APART) { Ok(()) } else { fs::write(parser, text.replace(REDUCTION, APART)) }
}
