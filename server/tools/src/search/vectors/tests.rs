use super::file::Digest;
use super::file::tests::Folder;
use super::*;
use rusqlite::Connection;

const MODEL: Digest = [7; 32];
const LENGTH: usize = 3;

fn open(folder: &Folder) -> Vectors {
    Vectors::new(Some(VectorFile::open(&folder.path("vectors.db"), MODEL, LENGTH)))
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("tool number {at}")).collect()
}

/// As good a vector as any: other texts have others.
fn vector(text: &str) -> Arc<[f32]> {
    let sum = |from: usize| text.bytes().skip(from).step_by(LENGTH).map(f32::from).sum::<f32>() / 3.0;
    (0..LENGTH).map(sum).collect()
}

/// The vectors of `texts`, and the texts for which they were made.
fn ask(vectors: &mut Vectors, texts: Vec<String>) -> Vec<String> {
    let mut made = Vec::new();
    let given = vectors.of(texts.clone(), |texts| {
        made.extend_from_slice(texts);
        Ok(texts.iter().map(|text| vector(text)).collect())
    });
    let wanted: Vec<Arc<[f32]>> = texts.iter().map(|text| vector(text)).collect();
    assert_eq!(given.expect("vectors"), wanted);
    made
}

#[test]
fn in_memory_what_is_needed() {
    let mut vectors = Vectors::new(None);
    assert_eq!(ask(&mut vectors, texts(&["long text", "b", "a", "b"])), ["a", "b", "long text"], "each once");
    assert!(ask(&mut vectors, texts(&["b", "a"])).is_empty());
    assert_eq!(ask(&mut vectors, texts(&["long text", "a"])), ["long text"], "it was not needed any more");
}

#[test]
fn the_second_start_makes_none_and_a_change_one() {
    let folder = Folder::new();
    assert_eq!(ask(&mut open(&folder), many(200)).len(), 200);
    assert!(ask(&mut open(&folder), many(200)).is_empty());
    let mut changed = many(200);
    changed[120] = "another".into();
    let mut third = open(&folder);
    assert_eq!(ask(&mut third, changed.clone()), ["another"]);
    assert!(ask(&mut third, changed.clone()).is_empty());
    assert!(ask(&mut open(&folder), changed).is_empty());
    assert!(ask(&mut open(&folder), many(200)).is_empty(), "what is not needed now stays in the file");
}

#[test]
fn another_model_or_length_has_its_own() {
    let folder = Folder::new();
    ask(&mut open(&folder), many(5));
    let path = folder.path("vectors.db");
    let mut other = Vectors::new(Some(VectorFile::open(&path, [8; 32], LENGTH)));
    assert_eq!(ask(&mut other, many(5)).len(), 5);
    let mut shorter = Vectors::new(Some(VectorFile::open(&path, MODEL, LENGTH - 1)));
    let mut made = 0;
    let given = shorter.of(many(5), |texts| {
        made += texts.len();
        Ok(texts.iter().map(|text| vector(text)[1..].into()).collect())
    });
    assert_eq!((made, given.expect("vectors")[0].len()), (5, LENGTH - 1));
    assert_eq!(ask(&mut open(&folder), many(5)).len(), 5, "of the same model the last ones count");
}

#[test]
fn what_was_made_before_the_model_failed_is_kept() {
    let folder = Folder::new();
    let mut turns = 0;
    let failed = open(&folder).of(many(3 * TOGETHER), |texts| {
        turns += 1;
        if turns == 3 { Err("the model failed".into()) } else { Ok(texts.iter().map(|text| vector(text)).collect()) }
    });
    assert_eq!(failed, Err("the model failed".into()));
    assert_eq!(ask(&mut open(&folder), many(3 * TOGETHER)).len(), TOGETHER);
}

#[test]
fn without_a_file_that_works_vectors_are_made() {
    let folder = Folder::new();
    std::fs::write(folder.path("vectors.db"), "no database, but long enough for one: ".repeat(40)).expect("a file");
    let mut vectors = open(&folder);
    assert_eq!(ask(&mut vectors, many(5)).len(), 5);
    assert!(ask(&mut vectors, many(5)).is_empty(), "they are in memory");
    assert_eq!(ask(&mut open(&folder), many(5)).len(), 5);
}

#[test]
fn a_file_that_breaks_later_is_left_alone() {
    let folder = Folder::new();
    let mut vectors = open(&folder);
    ask(&mut vectors, many(5));
    Connection::open(folder.path("vectors.db")).and_then(|db| db.execute_batch("DROP TABLE vectors")).expect("dropped");
    assert_eq!(ask(&mut vectors, many(9)).len(), 4);
    assert!(vectors.file.is_none());
    assert_eq!(ask(&mut vectors, many(12)).len(), 3);
}

#[test]
fn a_file_that_others_have_locked_is_tried_again() {
    let folder = Folder::new();
    let mut vectors = open(&folder);
    let other = Connection::open(folder.path("vectors.db")).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    assert_eq!(ask(&mut vectors, many(5)).len(), 5, "it could not be written, and that is all");
    other.execute_batch("COMMIT").expect("free again");
    assert_eq!(ask(&mut vectors, many(8)).len(), 3);
    assert_eq!(ask(&mut open(&folder), many(8)).len(), 5, "the last three are in the file");
}
