use super::*;
use codecall_store::{BoxFuture, MemoryVectors};
use std::future::ready;
use std::num::NonZeroUsize;
use std::sync::Mutex;

const MODEL: VectorModel = VectorModel { digest: [7; 32], dimensions: 3 };

/// A store that does not work, and counts what it was asked for.
#[derive(Default)]
struct Broken(Mutex<usize>);

impl Broken {
    fn fail<T: Send + 'static>(&self) -> BoxFuture<'_, Result<T, StoreError>> {
        *self.0.lock().expect("not poisoned") += 1;
        Box::pin(ready(Err(StoreError("it is broken".into()))))
    }
}

impl VectorStore for Broken {
    fn get_many<'a>(
        &'a self,
        _model: &'a VectorModel,
        _texts: &'a [Digest],
    ) -> BoxFuture<'a, Result<Vec<Option<Vector>>, StoreError>> {
        self.fail()
    }

    fn put_many<'a>(
        &'a self,
        _model: &'a VectorModel,
        _vectors: &'a [(Digest, Vector)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.fail()
    }

    fn note_use<'a>(&'a self, _model: &'a VectorModel, _texts: &'a [Digest]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.fail()
    }
}

fn store(max_vectors: usize) -> Arc<dyn VectorStore> {
    Arc::new(MemoryVectors::new(NonZeroUsize::new(max_vectors).expect("not zero")))
}

/// As a process that has just started.
fn open(store: &Arc<dyn VectorStore>) -> Vectors {
    Vectors::new(Arc::clone(store), MODEL)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("tool number {at}")).collect()
}

/// Returns a vector that differs from those of other texts.
fn vector(text: &str, dimensions: usize) -> Vector {
    let sum = |from: usize| text.bytes().skip(from).step_by(dimensions).map(f32::from).sum::<f32>() / 3.0;
    (0..dimensions).map(sum).collect()
}

/// Requests the vectors of `texts`. Returns the texts for which they were computed.
async fn ask(vectors: &mut Vectors, texts: Vec<String>) -> Vec<String> {
    let dimensions = vectors.model.dimensions;
    let made = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&made);
    let encode: Arc<Encode> = Arc::new(move |texts: &[String]| {
        log.lock().expect("not poisoned").extend_from_slice(texts);
        Ok(texts.iter().map(|text| vector(text, dimensions)).collect())
    });
    let wanted: Vec<Vector> = texts.iter().map(|text| vector(text, dimensions)).collect();
    assert_eq!(vectors.get(texts, &encode).await, Ok(wanted));
    std::mem::take(&mut made.lock().expect("not poisoned"))
}

#[tokio::test]
async fn in_memory_what_is_needed() {
    let mut vectors = Vectors::new(Arc::new(Broken::default()), MODEL);
    assert_eq!(ask(&mut vectors, texts(&["long text", "b", "a", "b"])).await, ["a", "b", "long text"], "each once");
    assert!(ask(&mut vectors, texts(&["b", "a"])).await.is_empty());
    assert_eq!(ask(&mut vectors, texts(&["long text", "a"])).await, ["long text"], "it was not needed any more");
}

#[tokio::test]
async fn the_second_start_makes_none_and_a_change_one() {
    let store = store(1_000);
    assert_eq!(ask(&mut open(&store), many(200)).await.len(), 200);
    assert!(ask(&mut open(&store), many(200)).await.is_empty());
    let mut changed = many(200);
    changed[120] = "another".into();
    let mut third = open(&store);
    assert_eq!(ask(&mut third, changed.clone()).await, ["another"]);
    assert!(ask(&mut third, changed.clone()).await.is_empty());
    assert!(ask(&mut open(&store), changed).await.is_empty());
    assert!(ask(&mut third, many(200)).await.is_empty(), "what is not needed now stays in the store");
}

#[tokio::test]
async fn another_model_or_length_has_its_own() {
    let store = store(1_000);
    ask(&mut open(&store), many(5)).await;
    for model in [VectorModel { digest: [8; 32], ..MODEL }, VectorModel { dimensions: 2, ..MODEL }] {
        assert_eq!(ask(&mut Vectors::new(Arc::clone(&store), model), many(5)).await.len(), 5);
    }
}

#[tokio::test]
async fn vectors_that_are_used_stay_in_the_store() {
    let store = store(5);
    ask(&mut open(&store), many(5)).await;
    ask(&mut open(&store), texts(&["tool number 0", "new"])).await;
    assert!(ask(&mut open(&store), texts(&["tool number 0"])).await.is_empty());
    assert_eq!(ask(&mut open(&store), many(2)).await, ["tool number 1"], "it was not used for the longest time");
}

#[tokio::test]
async fn what_was_made_before_the_model_failed_is_kept() {
    let store = store(1_000);
    let batches = Mutex::new(0);
    let encode: Arc<Encode> = Arc::new(move |texts: &[String]| {
        let mut batches = batches.lock().expect("not poisoned");
        *batches += 1;
        if *batches == 3 {
            return Err("the model failed".into());
        }
        Ok(texts.iter().map(|text| vector(text, MODEL.dimensions)).collect())
    });
    let failed = open(&store).get(many(3 * BATCH), &encode).await;
    assert_eq!(failed, Err("the model failed".into()));
    assert_eq!(ask(&mut open(&store), many(3 * BATCH)).await.len(), BATCH);
}

#[tokio::test]
async fn a_model_that_panics_is_an_error() {
    let encode: Arc<Encode> = Arc::new(|_: &[String]| panic!("as the test asks"));
    assert_eq!(open(&store(10)).get(many(1), &encode).await, Err("it crashed".into()));
}

#[tokio::test]
async fn without_a_store_that_works_vectors_are_made() {
    let store = Arc::new(Broken::default());
    let mut vectors = Vectors::new(Arc::clone(&store) as _, MODEL);
    assert_eq!(ask(&mut vectors, many(5)).await.len(), 5);
    assert!(ask(&mut vectors, many(5)).await.is_empty(), "they are in memory");
    assert_eq!(ask(&mut vectors, many(9)).await.len(), 4);
    assert_eq!(*store.0.lock().expect("not poisoned"), 4, "it is tried each time: get and put, twice");
}
