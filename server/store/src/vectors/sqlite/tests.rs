use super::*;
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

const MODEL: VectorModel = VectorModel { digest: [7; 32], dimensions: 2 };

/// A temporary folder, which is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = Self(std::env::temp_dir().join(format!("codecall-vectors-{}-{count}", std::process::id())));
        std::fs::create_dir_all(&folder.0).expect("a folder");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Folder) -> Result<VectorFile, Problem> {
    VectorFile::open(&folder.path("vectors.db"))
}

fn sql(folder: &Folder, text: &str) {
    Connection::open(folder.path("vectors.db")).and_then(|db| db.execute_batch(text)).expect(text);
}

fn number(folder: &Folder, query: &str) -> i64 {
    let db = Connection::open(folder.path("vectors.db")).expect("opens");
    db.query_row(query, [], |row| row.get(0)).expect(query)
}

fn texts(names: std::ops::Range<u16>) -> Vec<String> {
    names.map(|name| format!("text {name}")).collect()
}

fn digest(text: &str) -> Digest {
    Sha256::digest(text).into()
}

fn digests(names: std::ops::Range<u16>) -> Vec<Digest> {
    texts(names).iter().map(|text| digest(text)).collect()
}

fn vector(name: u16) -> Vector {
    [f32::from(name), -0.25].into()
}

fn vectors(names: std::ops::Range<u16>) -> Vec<(Digest, Vector)> {
    digests(names.clone()).into_iter().zip(names.map(vector)).collect()
}

fn write(file: &mut VectorFile, names: std::ops::Range<u16>) -> Result<(), Problem> {
    file.write(&MODEL, &vectors(names))
}

/// Until it is done: on a busy machine others may take longer than is waited for them.
fn patiently<T>(mut work: impl FnMut() -> Result<T, Problem>) -> T {
    loop {
        match work() {
            Err(Problem::Busy) => {}
            done => return done.expect("only others are in the way"),
        }
    }
}

/// Those of `names` that are in the file, each with its own vector.
fn read(file: &mut VectorFile, names: std::ops::Range<u16>) -> Vec<u16> {
    let found = file.read(&MODEL, &digests(names.clone())).expect("it is read");
    let mut there = Vec::new();
    for (name, found) in names.zip(found) {
        if let Some(found) = found {
            assert_eq!(found, vector(name));
            there.push(name);
        }
    }
    there
}

#[test]
fn what_is_written_is_read_as_it_was() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    assert!(read(&mut file, 0..5).is_empty());
    write(&mut file, 0..3).expect("written");
    write(&mut file, 2..4).expect("written again");
    assert_eq!(read(&mut file, 0..5), [0, 1, 2, 3]);
    drop(file);
    assert_eq!(read(&mut open(&folder).expect("opens"), 2..9), [2, 3]);
    let db = Connection::open(folder.path("vectors.db")).expect("opens");
    let row = db.query_row("SELECT model, vector FROM vectors WHERE text = ?1", [digest("text 3")], |row| {
        Ok((row.get::<_, Digest>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    assert_eq!(row.expect("a row"), (MODEL.digest, vec![0, 0, 0x40, 0x40, 0, 0, 0x80, 0xbe]), "the format of the file");
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "wal");
}

#[test]
fn no_text_is_in_the_files() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    write(&mut file, 0..50).expect("written");
    let mut bytes = 0;
    for entry in std::fs::read_dir(&folder.0).expect("a folder") {
        let content = std::fs::read(entry.expect("an entry").path()).expect("a file");
        for text in texts(0..50) {
            assert!(!content.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
        }
        bytes += content.len();
    }
    assert!(bytes > 5_000, "{bytes}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    write(&mut file, 0..5).expect("written");
    let entries: Vec<_> = std::fs::read_dir(&folder.0).expect("a folder").map(|entry| entry.expect("one")).collect();
    assert!(entries.len() > 1, "SQLite puts files beside it: {entries:?}");
    for entry in entries {
        assert_eq!(entry.metadata().expect("there").permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[test]
fn rows_that_hold_no_vector_are_not_used() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    for damage in ["x''", "x'0000803f'", "x'0000803f0000803f00'", "x'0000803f0000c07f'", "x'0000803f0000807f'"] {
        write(&mut file, 0..2).expect("written");
        sql(&folder, &format!("UPDATE vectors SET vector = {damage} WHERE rowid = 1"));
        assert_eq!(read(&mut file, 0..2), [1], "{damage}");
    }
    write(&mut file, 0..1).expect("written");
    assert_eq!(read(&mut file, 0..2), [0, 1], "made anew");
}

/// None of them is written to, and the words say what to do and not where the file is.
#[test]
fn what_is_no_file_of_vectors_is_refused() {
    let garbage = |bytes: &[u8]| {
        let folder = Folder::new();
        std::fs::write(folder.path("vectors.db"), bytes).expect("a file");
        folder
    };
    let made = |more: &str| {
        let folder = Folder::new();
        write(&mut open(&folder).expect("opens"), 0..5).expect("written");
        sql(&folder, more);
        folder
    };
    let foreign = Folder::new();
    sql(&foreign, "CREATE TABLE notes (text)");
    let of_its_own = Folder::new();
    sql(&of_its_own, "PRAGMA application_id = 77");
    for (folder, expected, to_do) in [
        (garbage(b"no"), Problem::Damaged, "delete it"),
        (garbage(&[0xa5; 20_000]), Problem::Damaged, "delete it"),
        (garbage(b"SQLite format 3\0 and then nothing of the kind"), Problem::Damaged, "delete it"),
        (foreign, Problem::Foreign, "name another file"),
        (of_its_own, Problem::Foreign, "name another file"),
        (made("PRAGMA user_version = 2"), Problem::Newer(2), "its format is 2, known is 1"),
    ] {
        let before = std::fs::read(folder.path("vectors.db")).expect("a file");
        let problem = open(&folder).err().expect("refused");
        assert_eq!(problem, expected);
        let told = problem.to_string();
        assert!(told.contains(to_do) && !told.contains("codecall-vectors"), "{told}");
        assert_eq!(std::fs::read(folder.path("vectors.db")).expect("a file"), before, "{expected:?}");
    }
}

#[test]
fn paths_that_lead_nowhere_are_refused() {
    let folder = Folder::new();
    let open = |path: &Path| VectorFile::open(path).err().expect("refused");
    assert_eq!(open(&folder.path("none/vectors.db")), Problem::NoFolder);
    assert_eq!(open(&folder.0), Problem::NoFile);
    assert_eq!(open(Path::new("")), Problem::Refused(io::ErrorKind::InvalidInput));
    #[cfg(unix)]
    assert_eq!(open(Path::new("/dev/null")), Problem::NoFile);
    assert_eq!(std::fs::read_dir(&folder.0).expect("a folder").count(), 0, "nothing was made");
}

#[test]
fn a_table_that_is_damaged_is_told() {
    let folder = Folder::new();
    write(&mut open(&folder).expect("opens"), 0..2_000).expect("written");
    let mut bytes = std::fs::read(folder.path("vectors.db")).expect("a file");
    assert!(bytes.len() > 100_000);
    bytes[4_096..].fill(0xa5);
    std::fs::write(folder.path("vectors.db"), bytes).expect("a file");
    let mut file = open(&folder).expect("its first page is whole");
    assert_eq!(file.read(&MODEL, &digests(0..3)), Err(Problem::Damaged));
    assert_eq!(write(&mut file, 0..3), Err(Problem::Damaged));
}

#[test]
fn several_make_read_and_write_one_file_at_once() {
    for _ in 0..10 {
        let folder = Folder::new();
        std::thread::scope(|scope| {
            for first in 0..4 {
                let folder = &folder;
                scope.spawn(move || {
                    let mut file = patiently(|| open(folder));
                    for turn in 0..10 {
                        let name = first + turn;
                        patiently(|| write(&mut file, name..name + 2));
                        assert_eq!(read(&mut file, name..name + 2), [name, name + 1]);
                    }
                });
            }
        });
        assert_eq!(number(&folder, "SELECT count(*) FROM vectors"), 14, "0 to 13");
    }
}

#[test]
fn two_handles_see_what_the_other_wrote() {
    let folder = Folder::new();
    let (mut one, mut two) = (open(&folder).expect("opens"), open(&folder).expect("opens"));
    write(&mut one, 0..3).expect("written");
    assert_eq!(read(&mut two, 0..5), [0, 1, 2]);
    write(&mut two, 2..5).expect("written");
    assert_eq!(read(&mut one, 0..5), [0, 1, 2, 3, 4]);
}

#[test]
fn what_was_not_used_for_the_longest_time_goes_first() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    assert_eq!(file.max_vectors, 100_000);
    file.max_vectors = 5;
    write(&mut file, 0..5).expect("written");
    // Days since their use: 8, 7, 6, 5, 4.
    sql(&folder, "UPDATE vectors SET used = used - (9 - rowid) * 86400");
    assert_eq!(read(&mut file, 0..2), [0, 1]);
    file.note_use(&MODEL, &digests(0..2)).expect("noted");
    let stale = "SELECT count(*) FROM vectors WHERE used < unixepoch() - 86400";
    assert_eq!(number(&folder, stale), 3);
    write(&mut file, 5..7).expect("written");
    assert_eq!(read(&mut file, 0..7), [0, 1, 4, 5, 6]);
    write(&mut file, 7..20).expect("written");
    assert_eq!(read(&mut file, 0..20), [15, 16, 17, 18, 19], "the last ones where all are new");
}

#[test]
fn what_nobody_uses_for_months_goes() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    write(&mut file, 0..3).expect("written");
    sql(&folder, "UPDATE vectors SET used = used - 89 * 86400 WHERE rowid = 1");
    sql(&folder, "UPDATE vectors SET used = used - 91 * 86400 WHERE rowid = 2");
    write(&mut file, 3..4).expect("written");
    assert_eq!(read(&mut file, 0..4), [0, 2, 3]);
}

/// Most starts write nothing.
#[test]
fn use_is_noted_once_a_day() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    write(&mut file, 0..2).expect("written");
    assert_eq!(read(&mut file, 0..2), [0, 1]);
    assert!(file.stale.is_empty());
    // Two days ago, and by a clock that was wrong.
    sql(&folder, "UPDATE vectors SET used = used + (2 * rowid - 3) * 2 * 86400");
    assert_eq!(read(&mut file, 0..2), [0, 1]);
    assert_eq!(file.stale.len(), 2);
    file.note_use(&MODEL, &digests(0..2)).expect("noted");
    assert!(file.stale.is_empty());
    assert_eq!(number(&folder, "SELECT count(*) FROM vectors WHERE abs(used - unixepoch()) < 1000"), 2);
}

#[test]
fn another_model_or_length_has_its_own_vectors() {
    let folder = Folder::new();
    let mut file = open(&folder).expect("opens");
    write(&mut file, 0..3).expect("written");
    let (other, longer) = (VectorModel { digest: [8; 32], ..MODEL }, VectorModel { dimensions: 3, ..MODEL });
    for model in [other, longer] {
        assert_eq!(file.read(&model, &digests(0..3)), Ok(vec![None; 3]), "{model:?}");
    }
    file.write(&other, &[(digest("text 0"), vector(9))]).expect("written");
    assert_eq!(file.read(&other, &digests(0..1)), Ok(vec![Some(vector(9))]));
    assert_eq!(read(&mut file, 0..3), [0, 1, 2]);
}

async fn stored(store: &SqliteVectors, names: std::ops::Range<u16>) -> Result<usize, StoreError> {
    let vectors = store.get_many(&MODEL, &digests(names.clone())).await?;
    assert_eq!(vectors.len(), names.len());
    Ok(vectors.iter().flatten().count())
}

fn open_store(folder: &Folder) -> SqliteVectors {
    SqliteVectors::open(&folder.path("vectors.db")).expect("opens")
}

#[tokio::test]
async fn vectors_outlive_the_store() {
    let folder = Folder::new();
    open_store(&folder).put_many(&MODEL, &vectors(0..5)).await.expect("written");
    let store = open_store(&folder);
    assert_eq!(stored(&store, 3..9).await, Ok(2));
    sql(&folder, "UPDATE vectors SET used = used - 2 * 86400");
    assert_eq!(stored(&store, 0..2).await, Ok(2));
    store.note_use(&MODEL, &digests(0..9)).await.expect("noted");
    assert_eq!(number(&folder, "SELECT count(*) FROM vectors WHERE abs(used - unixepoch()) < 1000"), 2);
}

#[tokio::test]
async fn a_file_that_breaks_later_is_not_used_any_more() {
    let folder = Folder::new();
    let store = open_store(&folder);
    store.put_many(&MODEL, &vectors(0..5)).await.expect("written");
    sql(&folder, "DROP TABLE vectors");
    let error = stored(&store, 0..5).await.expect_err("there is no table");
    assert!(error.0.starts_with("search.vectorCache: the file is damaged"), "{error}");
    assert_eq!(stored(&store, 0..5).await, Ok(0), "it is reported once");
    store.put_many(&MODEL, &vectors(0..5)).await.expect("ignored");
    store.note_use(&MODEL, &digests(0..5)).await.expect("ignored");
}

#[tokio::test]
async fn a_file_that_others_have_locked_is_tried_again() {
    let folder = Folder::new();
    let store = open_store(&folder);
    let other = Connection::open(folder.path("vectors.db")).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let error = store.put_many(&MODEL, &vectors(0..5)).await.expect_err("locked");
    assert!(error.0.contains("kept the file locked"), "{error}");
    other.execute_batch("COMMIT").expect("free again");
    store.put_many(&MODEL, &vectors(5..8)).await.expect("written");
    assert_eq!(stored(&store, 0..9).await, Ok(3));
}

#[test]
fn a_file_that_cannot_be_used_is_refused_with_its_key() {
    let folder = Folder::new();
    std::fs::write(folder.path("vectors.db"), "no database, but long enough for one: ".repeat(40)).expect("a file");
    let error = SqliteVectors::open(&folder.path("vectors.db")).err().expect("refused");
    assert!(error.0.starts_with("search.vectorCache: the file is damaged"), "{error}");
}
