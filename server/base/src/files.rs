//! Reads and writes files. All other modules use these functions.
//!
//! Only regular files are read and written: with a pipe or a device in the place of a file, reading might block or
//! never end. Written files are readable by their owner only.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Maximum size of a configuration file, in bytes.
pub const MAX_CONFIG_BYTES: u64 = 4 << 20;
/// Maximum size of a script or JSON file named on the command line, in bytes. The policy limits the size of a script
/// further.
pub const MAX_INPUT_BYTES: u64 = 64 << 20;
/// Maximum size of a recording, a journal or a fixture, in bytes.
pub const MAX_RECORDING_BYTES: u64 = 512 << 20;
/// Maximum size of a file of an embedding model, in bytes.
pub const MAX_MODEL_BYTES: u64 = 4 << 30;

/// Reads a regular file of at most `max_bytes` bytes.
///
/// # Errors
/// The file does not exist, is not a regular file, cannot be read, or is too large.
pub fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Without it, opening a pipe blocks until it has a writer.
    set_nonblocking(&mut options);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    require_regular(&metadata)?;
    if metadata.len() > max_bytes {
        return Err(too_large(max_bytes));
    }
    read_stream(file, max_bytes)
}

/// Reads a regular file as text.
///
/// # Errors
/// The errors of [`read`], and text that is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, Error> {
    into_text(read(path, max_bytes)?)
}

/// Reads a stream of at most `max_bytes` bytes to its end.
///
/// # Errors
/// The stream cannot be read or is too long.
pub fn read_stream(from: impl std::io::Read, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    from.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= max_bytes => Ok(bytes),
        Ok(_) | Err(_) => Err(too_large(max_bytes)),
    }
}

fn into_text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("not UTF-8 at byte {at}"))
    })
}

fn too_large(max_bytes: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("it has more than {max_bytes} bytes, which is the limit"))
}

/// Opens a file to append to it, and creates it if it does not exist. Only its owner can read a created file.
///
/// # Errors
/// The file cannot be opened, is not a regular file, or belongs to another user. Symbolic links are not followed.
pub fn open_append(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    set_private(&mut options);
    let file = options.open(path).map_err(|error| explain_link(path, error))?;
    require_own(&file.metadata()?)?;
    Ok(file)
}

/// Checks that a file can be written in place, and creates it if it does not exist. One that exists is not opened: closing it would
/// let go of the locks that this process has on it (POSIX), such as those of a database.
///
/// # Errors
/// The errors of [`open_append`].
pub fn ensure_writable(path: &Path) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.create_new(true).append(true);
    set_private(&mut options);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            require_own(&path.symlink_metadata()?)?;
            require_access(path)
        }
        created => created.map(drop),
    }
}

#[cfg(unix)]
fn require_access(path: &Path) -> Result<(), Error> {
    Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?)
}

#[cfg(not(unix))]
fn require_access(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// A file that is replaced as a whole or not at all. It only replaces a regular file of the same owner.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    /// The temporary file, in the same folder: `rename` is atomic only within a file system.
    temporary: PathBuf,
    /// Whether the temporary file has been renamed.
    written: bool,
}

impl AtomicFile {
    /// Checks that the file can be written and creates the temporary file. An existing file is not changed yet.
    ///
    /// # Errors
    /// The folder does not exist, or the path is something that must not be replaced.
    pub fn create(path: &Path) -> Result<Self, Error> {
        require_replaceable(path)?;
        let name = path.file_name().ok_or_else(|| refused("it is not a file"))?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| refused("the system has no source of random numbers"))?;
        let mut temporary = name.to_owned();
        temporary.push(format!(".{:016x}.part", u64::from_le_bytes(random)));
        let file = Self { path: path.to_owned(), temporary: path.with_file_name(temporary), written: false };
        file.create_temporary()?;
        Ok(file)
    }

    fn create_temporary(&self) -> Result<File, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        set_private(&mut options);
        options.open(&self.temporary)
    }

    /// Writes the content. A later call replaces it.
    ///
    /// # Errors
    /// It cannot be written; the previous content is kept.
    pub fn write(&mut self, text: &[u8]) -> Result<(), Error> {
        let mut temporary = if self.written {
            self.create_temporary()?
        } else {
            let mut options = OpenOptions::new();
            options.write(true);
            set_private(&mut options);
            options.open(&self.temporary)?
        };
        self.written = false;
        temporary.write_all(text)?;
        require_replaceable(&self.path)?;
        std::fs::rename(&self.temporary, &self.path)?;
        self.written = true;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After the rename, another process may use the name of the temporary file.
        if !self.written {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// Requires that the path does not exist or is a regular file of this user.
fn require_replaceable(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(metadata) => require_own(&metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn require_regular(metadata: &Metadata) -> Result<(), Error> {
    let kind = metadata.file_type();
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

fn require_own(metadata: &Metadata) -> Result<(), Error> {
    require_regular(metadata)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(metadata) != rustix::process::geteuid().as_raw() {
        return Err(Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    Ok(())
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, why)
}

/// Replaces the error of a link that is not followed: the system's message is about loops of links.
fn explain_link(path: &Path, error: Error) -> Error {
    match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() => require_regular(&metadata).err().unwrap_or(error),
        Ok(_) | Err(_) => error,
    }
}

/// Makes a created file accessible to its owner only, and does not follow symbolic links.
#[cfg(unix)]
fn set_private(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK));
}

#[cfg(unix)]
fn set_nonblocking(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags(flags(rustix::fs::OFlags::NONBLOCK));
}

#[cfg(unix)]
fn flags(flags: rustix::fs::OFlags) -> i32 {
    // All flags of the system fit into an `i32`.
    i32::try_from(flags.bits()).unwrap_or_default()
}

#[cfg(not(unix))]
fn set_private(_: &mut OpenOptions) {}

#[cfg(not(unix))]
fn set_nonblocking(_: &mut OpenOptions) {}

#[cfg(all(test, unix))]
mod tests;
