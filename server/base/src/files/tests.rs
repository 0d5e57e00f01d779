use super::*;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::time::{Duration, Instant};

/// A temporary folder, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("codecall-files-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn only_regular_files_up_to_a_limit_are_read() {
    let folder = Folder::new("read");
    let began = Instant::now();
    let file = folder.path("file");
    std::fs::write(&file, "12345").expect("written");
    symlink(&file, folder.path("link")).expect("a link");
    assert_eq!(read(&file, 5).expect("read"), b"12345");
    assert_eq!(read_text(&folder.path("link"), 5).expect("links in a path that is read are followed"), "12345");
    let why = |path: &Path, most| read(path, most).expect_err("refused").to_string();
    assert_eq!(why(&file, 4), "it has more than 4 bytes, which is the limit");
    assert_eq!(why(&folder.pipe("pipe"), 4), "it is a pipe or a device, not a file");
    assert_eq!(why(Path::new("/dev/zero"), 4), "it is a pipe or a device, not a file");
    assert_eq!(why(&folder.0, 4), "it is a folder, not a file");
    // A system file whose reported size is zero.
    assert!(why(Path::new("/proc/self/maps"), 40).contains("more than 40 bytes"));
    let huge = File::create(folder.path("huge")).expect("made");
    huge.set_len(10 << 30).expect("sparse");
    assert!(why(&folder.path("huge"), 4).contains("more than 4 bytes"));
    std::fs::write(&file, b"a\xff").expect("written");
    assert_eq!(read_text(&file, 9).expect_err("refused").to_string(), "not UTF-8 at byte 1");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn only_regular_files_of_the_same_owner_are_written() {
    let folder = Folder::new("write");
    let (file, target) = (folder.path("file"), folder.path("target"));
    let mode = |path: &Path| path.metadata().expect("there").mode() & 0o7777;
    for text in ["one", "two"] {
        let mut atomic = AtomicFile::create(&file).expect("begun");
        atomic.write(text.as_bytes()).expect("written");
        atomic.write(format!("{text}!").as_bytes()).expect("written again");
    }
    assert_eq!((std::fs::read_to_string(&file).expect("text").as_str(), mode(&file)), ("two!", 0o600));
    drop(AtomicFile::create(&file).expect("begun"));
    assert_eq!(std::fs::read_to_string(&file).expect("text"), "two!", "a file that is not written stays as it was");

    std::fs::write(&target, "target").expect("written");
    symlink(&target, folder.path("link")).expect("a link");
    symlink("/nowhere", folder.path("dangling")).expect("a link");
    folder.pipe("pipe");
    for (path, why) in [
        (folder.path("link"), "it is a link, which is not followed"),
        (folder.path("dangling"), "it is a link, which is not followed"),
        (folder.path("pipe"), "it is a pipe or a device, not a file"),
        (PathBuf::from("/dev/null"), "it is a pipe or a device, not a file"),
        (folder.0.clone(), "it is a folder, not a file"),
    ] {
        assert_eq!(AtomicFile::create(&path).expect_err("refused").to_string(), why, "{path:?}");
        assert_eq!(open_append(&path).map(drop).expect_err("refused").to_string(), why, "{path:?}");
    }
    // A link that is created after the check is not replaced either.
    let between = folder.path("between");
    let mut atomic = AtomicFile::create(&between).expect("begun");
    symlink(&target, &between).expect("a link");
    assert!(atomic.write(b"x").is_err());
    drop(atomic);
    assert_eq!(std::fs::read_to_string(&target).expect("text"), "target");

    let log = folder.path("log");
    for line in ["a", "b"] {
        open_append(&log).expect("opened").write_all(line.as_bytes()).expect("written");
    }
    assert_eq!((std::fs::read_to_string(&log).expect("text").as_str(), mode(&log)), ("ab", 0o600));
    let left: Vec<_> =
        std::fs::read_dir(&folder.0).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&log, Some(12_345), None).expect("changed");
        assert_eq!(open_append(&log).map(drop).expect_err("refused").to_string(), "it belongs to another user");
        assert_eq!(AtomicFile::create(&log).map(drop).expect_err("refused").to_string(), "it belongs to another user");
    }
}
