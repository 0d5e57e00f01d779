//! Writes the figures into the documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// The page with all figures.
pub const PERFORMANCE: &str = "docs/reports/performance.md";
/// The page with a few of them.
pub const README: &str = "README.md";

/// Returns the folder of the plots.
#[must_use]
pub fn plots() -> PathBuf {
    root().join(PERFORMANCE).with_extension("")
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Replaces parts of a page. A part is between `<!-- NAME -->` and `<!-- /NAME -->`.
///
/// # Errors
/// The page cannot be read or written, or does not have the marks of a part.
pub fn write(page: &str, parts: &[(&str, String)]) -> Result<(), String> {
    let path = root().join(page);
    let with_path = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut text = fs::read_to_string(&path).map_err(with_path)?;
    for (name, part) in parts {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let from = text.find(&begin).map(|place| place + begin.len());
        let place = from.and_then(|from| Some(from..from + text[from..].find(&end)?));
        let place = place.ok_or_else(|| format!("{}: no place for `{name}`", path.display()))?;
        text.replace_range(place, part);
    }
    fs::write(&path, text).map_err(with_path)
}
