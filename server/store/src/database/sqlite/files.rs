//! The files of an open database: whether they are still those at its path.
//!
//! A connection goes on with files that were deleted, moved or replaced, and what it commits to them is lost. SQLite looks for that
//! only where it keeps no log of its own beside the file. Windows does not let go of open files, so there is nothing to compare.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The files that SQLite keeps beside a database in WAL mode: the log, and the index of the log in shared memory.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The files of an open database.
#[derive(Debug)]
pub struct Files {
    database: (PathBuf, Option<Identity>),
    beside: [(PathBuf, Option<Identity>); BESIDE.len()],
}

/// Where the files of an open database stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// They are at their paths.
    Same,
    /// The database is there, and a file beside it is gone: nobody else has opened the database since.
    Bare,
    /// The database is gone.
    Gone,
    /// Another file is at one of the paths.
    Replaced,
}

impl Files {
    /// Notes the files of a database that was just opened.
    pub fn of(path: &Path) -> Self {
        let noted = |path: PathBuf| {
            let identity = identity(&path);
            (path, identity)
        };
        Self { database: noted(path.to_owned()), beside: BESIDE.map(|end| noted(with_end(path, end))) }
    }

    /// Returns the identity of the database.
    pub fn identity(&self) -> Option<Identity> {
        self.database.1
    }

    /// Compares the files with those at their paths.
    pub fn state(&mut self) -> FileState {
        let (path, noted) = &self.database;
        match identity(path) {
            None => return FileState::Gone,
            found if found != *noted => return FileState::Replaced,
            Some(_) => {}
        }
        let mut state = FileState::Same;
        for (path, noted) in &mut self.beside {
            match (identity(path), *noted) {
                (None, Some(_)) => state = FileState::Bare,
                (found, Some(_)) if found != *noted => return FileState::Replaced,
                (Some(_), Some(_)) => {}
                // It is made when it is needed.
                (found, None) => *noted = found,
            }
        }
        state
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().map(OsStr::to_owned).unwrap_or_default();
    name.push(end);
    path.with_file_name(name)
}

/// A file, whatever its name: its device and its number there.
#[cfg(unix)]
pub type Identity = (u64, u64);

/// Returns the identity of the file at a path; `None`: there is none.
#[cfg(unix)]
pub fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// A file.
#[cfg(not(unix))]
pub type Identity = ();

/// Returns the identity of the file at a path.
#[cfg(not(unix))]
pub fn identity(_: &Path) -> Option<Identity> {
    Some(())
}
