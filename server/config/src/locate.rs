//! Where the configuration is, if the command line names none.

use super::environment::FILE;
use codecall_base::error::Error;
use etcetera::BaseStrategy as _;
use std::path::{Path, PathBuf};

/// The name of the file, in the current folder and in that of the user.
const NAME: &str = "codecall.toml";

/// Returns the file of the configuration: the one that `CODECALL_CONFIG` names, else `codecall.toml` in the current
/// folder, else in the user's folder. `None`: there is none, or `CODECALL_CONFIG` is empty.
///
/// # Errors
/// `CODECALL_CONFIG` names a file that does not exist.
pub fn locate() -> Result<Option<PathBuf>, Error> {
    if let Some(named) = std::env::var_os(FILE) {
        if named.is_empty() {
            return Ok(None);
        }
        let path = PathBuf::from(named);
        if !path.exists() {
            return Err(Error::Config(format!("{FILE} names {}, which does not exist", path.display())));
        }
        return Ok(Some(path));
    }
    let here = Path::new(NAME).to_path_buf();
    Ok([Some(here), of_user()].into_iter().flatten().find(|path| path.is_file()))
}

/// Returns the path of the user's configuration: `~/.config/codecall/codecall.toml`, on Windows
/// `%APPDATA%\codecall\codecall.toml`. `None`: the user has no home.
#[must_use]
pub fn of_user() -> Option<PathBuf> {
    let folders = etcetera::choose_base_strategy().ok()?;
    Some(folders.config_dir().join("codecall").join(NAME))
}
