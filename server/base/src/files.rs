//! Files from outside and of our own: the one way in which the program reads and writes them.
//!
//! Nothing is read or written but regular files: a pipe, a device or a folder that stands where a file is
//! named would wait for ever, never end, or be replaced. What is written is for its owner alone.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Longest configuration, in bytes.
pub const CONFIGURATION: u64 = 4 << 20;
/// Longest script and longest JSON that is named on the command line, in bytes. The limit of a script itself
/// is that of its policy.
pub const INPUT: u64 = 64 << 20;
/// Longest recording, journal and fixture, in bytes.
pub const RECORDING: u64 = 512 << 20;
/// Longest file of a model, in bytes.
pub const MODEL: u64 = 4 << 30;

/// A regular file of at most `most` bytes.
///
/// # Errors
/// It is not there, is something else, cannot be read or is longer.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Opening a pipe waits for its writer.
    without_waiting(&mut options);
    let file = options.open(path)?;
    let found = file.metadata()?;
    regular(&found)?;
    if found.len() > most {
        return Err(too_long(most));
    }
    bounded(file, most)
}

/// The same as text.
///
/// # Errors
/// Those of [`read`], and that it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    text(read(path, most)?)
}

/// A stream of at most `most` bytes, to its end.
///
/// # Errors
/// It cannot be read or is longer.
pub fn bounded(from: impl std::io::Read, most: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(bytes),
        Ok(_) | Err(_) => Err(too_long(most)),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("not UTF-8 at byte {at}"))
    })
}

fn too_long(most: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes, which is the most that is read"))
}

/// Open a file to write at its end, or make it. Only its owner can read a file that is made.
///
/// # Errors
/// It cannot be opened, is a link or something else than a file, or belongs to somebody else.
pub fn append(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    private(&mut options);
    let file = options.open(path).map_err(|error| explained(path, error))?;
    ours(&file.metadata()?)?;
    Ok(file)
}

/// See that a file of our own can be opened to be written in place, and make it where it is not there.
///
/// # Errors
/// Those of [`append`].
pub fn claim(path: &Path) -> Result<(), Error> {
    append(path).map(drop)
}

/// A file that is there as a whole or not at all. It takes the place of a regular file of the same owner,
/// and of nothing else.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    /// What becomes the file; beside it, as only within a folder it can take its place.
    draft: PathBuf,
    written: bool,
}

impl AtomicFile {
    /// See that the file can be written, and leave the one that may be there as it is.
    ///
    /// # Errors
    /// It cannot: there is no such folder, or something stands there that must not be replaced.
    pub fn begin(path: &Path) -> Result<Self, Error> {
        replaceable(path)?;
        let name = path.file_name().ok_or_else(|| refused("it is not a file"))?;
        let mut unguessable = [0; 8];
        getrandom::fill(&mut unguessable).map_err(|_| refused("there are no random numbers"))?;
        let mut draft = name.to_owned();
        draft.push(format!(".{:016x}.part", u64::from_le_bytes(unguessable)));
        let file = Self { path: path.to_owned(), draft: path.with_file_name(draft), written: false };
        file.create()?;
        Ok(file)
    }

    fn create(&self) -> Result<File, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        private(&mut options);
        options.open(&self.draft)
    }

    /// Write it. A later text replaces it.
    ///
    /// # Errors
    /// It cannot be written; then what was there before still is.
    pub fn write(&mut self, text: &[u8]) -> Result<(), Error> {
        let mut draft = if self.written {
            self.create()?
        } else {
            let mut options = OpenOptions::new();
            options.write(true);
            private(&mut options);
            options.open(&self.draft)?
        };
        self.written = false;
        draft.write_all(text)?;
        replaceable(&self.path)?;
        std::fs::rename(&self.draft, &self.path)?;
        self.written = true;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // Where it has become the file, its name is free, and may be somebody else's by now.
        if !self.written {
            let _ = std::fs::remove_file(&self.draft);
        }
    }
}

/// That nothing stands there, or a file of our own.
fn replaceable(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(found) => ours(&found),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn regular(found: &Metadata) -> Result<(), Error> {
    let kind = found.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(Error::new(ErrorKind::IsADirectory, "it is a folder, not a file"))
    } else if kind.is_symlink() {
        Err(refused("it is a link, which is not followed"))
    } else {
        Err(refused("it is a pipe or a device, not a file"))
    }
}

fn ours(found: &Metadata) -> Result<(), Error> {
    regular(found)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(found) != rustix::process::geteuid().as_raw() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    Ok(())
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
}

/// What the system says of a link that is not followed is about loops of links.
fn explained(path: &Path, error: Error) -> Error {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => regular(&found).err().unwrap_or(error),
        Ok(_) | Err(_) => error,
    }
}

/// For its owner alone, without following a link.
#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK));
}

#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags(flags(rustix::fs::OFlags::NONBLOCK));
}

#[cfg(unix)]
fn flags(flags: rustix::fs::OFlags) -> i32 {
    // The system's flags are few enough bits.
    i32::try_from(flags.bits()).unwrap_or_default()
}

#[cfg(not(unix))]
fn private(_: &mut OpenOptions) {}

#[cfg(not(unix))]
fn without_waiting(_: &mut OpenOptions) {}

#[cfg(all(test, unix))]
mod tests;
