//! The folder of what must last: unlike a cache, what is in it cannot be made again.

use codecall_config::Config;
use etcetera::BaseStrategy as _;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder of a configuration; `None` if it names none, and the user has no folder for the state of programs.
#[must_use]
pub fn folder(config: &Config) -> Option<PathBuf> {
    if let Some(folder) = &config.state_dir {
        return Some(folder.clone());
    }
    let user = etcetera::choose_base_strategy().ok()?;
    Some(user.state_dir().unwrap_or_else(|| user.data_dir()).join("codecall"))
}

/// Creates a folder that only its owner can read.
///
/// # Errors
/// It cannot be created.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns the bytes of hexadecimal digits; `None`: they are none.
#[must_use]
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

/// Returns a digest as it is written in names of files.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
