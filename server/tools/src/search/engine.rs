//! Search by the strategy of the configuration: by words, by meaning, or by both.

#[cfg(feature = "embeddings")]
use super::{combine, meaning::Meaning};
use crate::catalogue::Snapshot;
use crate::index::{Fit, Hit};
use codecall_base::error::Error;
use codecall_config::{SearchConfig, Strategy};
use codecall_store::Stores;
use std::sync::Arc;

/// How long a search waits for the vectors of tools that have none yet. Afterwards they are computed in the background
/// for the next search.
#[cfg(feature = "embeddings")]
const VECTORS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The search engine.
pub struct Engine {
    #[cfg(feature = "embeddings")]
    meaning: Option<(Strategy, Arc<tokio::sync::Mutex<Meaning>>)>,
    /// The least score of a tool that the configuration sets.
    threshold: Option<f64>,
}

/// The hits of each query, and a warning for the client.
#[derive(Debug, Default)]
pub struct Found {
    /// The tools that answer each query, the best first.
    pub hits: Vec<Vec<Hit>>,
    /// For each query the best score below the threshold of the configuration, if no tool reaches it.
    pub below: Vec<Option<f64>>,
    /// Whether hits fit their query.
    pub fits: Fits,
    /// Why the search was not what the configuration asks for.
    pub warning: Option<String>,
}

/// Whether the hits of each query fit it, or only share a word with it. Only words say that: after a search by meaning,
/// all hits fit.
#[derive(Debug, Default)]
pub struct Fits(Vec<Fit>);

impl Fits {
    /// Whether one of the best of `hits`, the best first, fits the query with this position among the queries of the search.
    #[must_use]
    pub fn any(&self, query: usize, hits: &[Hit]) -> bool {
        self.0.get(query).map_or(!hits.is_empty(), |fit| fit.any(hits))
    }
}

impl Engine {
    /// Opens the engine of a configuration. Vectors are stored in `stores`.
    ///
    /// # Errors
    /// The model cannot be used, or the program was built without embeddings.
    #[cfg_attr(not(feature = "embeddings"), expect(unused_variables, reason = "only embeddings have vectors"))]
    pub fn open(config: &SearchConfig, stores: &Stores) -> Result<Self, Error> {
        #[cfg(feature = "embeddings")]
        let meaning = match (config.strategy, config.model()) {
            (Strategy::Bm25, _) | (Strategy::Auto, None) => None,
            (strategy, Some(folder)) => {
                let mut meaning = Meaning::new(folder, Arc::clone(&stores.vectors));
                // Who has not asked for a model starts without waiting for one.
                if strategy != Strategy::Auto {
                    meaning.load().map_err(|problem| Error::Config(format!("search.modelDir: {problem}")))?;
                }
                Some((strategy, Arc::new(tokio::sync::Mutex::new(meaning))))
            }
            (Strategy::Embedding | Strategy::Hybrid, None) => {
                return Err(Error::Config("search.modelDir: the folder of a model is missing".into()));
            }
        };
        #[cfg(not(feature = "embeddings"))]
        if !matches!(config.strategy, Strategy::Auto | Strategy::Bm25) {
            return Err(Error::Config(
                "search.strategy: this program was built without embeddings; build it with `cargo build --release \
                 --features embeddings`, or use \"bm25\""
                    .into(),
            ));
        }
        Ok(Self {
            #[cfg(feature = "embeddings")]
            meaning,
            threshold: config.similarity_threshold,
        })
    }

    /// Searches the tools of `snapshot` for each of `queries`.
    pub async fn search(&self, snapshot: &Arc<Snapshot>, queries: &[String]) -> Found {
        let (words, fits) = by_words(snapshot, queries).await;
        #[cfg(feature = "embeddings")]
        if let Some((strategy, meaning)) = &self.meaning {
            let (meaning, snapshot, queries) = (Arc::clone(meaning), Arc::clone(snapshot), queries.to_vec());
            let work = async {
                // One search at a time: each has all processors. It continues when nobody waits any more.
                let mut meaning = meaning.lock_owned().await;
                tokio::spawn(async move { meaning.search(&snapshot, queries).await }).await
            };
            let problem = match tokio::time::timeout(VECTORS_TIMEOUT, work).await {
                Ok(Ok(Ok(meant))) => {
                    let threshold = self.threshold.unwrap_or(SearchConfig::DEFAULT_COSINE);
                    if *strategy == Strategy::Embedding {
                        return Found::at_least(meant, threshold, Fits::default());
                    }
                    let both = words.into_iter().zip(meant);
                    let hits = both.map(|(words, meant)| combine(words, meant, threshold)).collect();
                    return Found { hits, ..Found::default() };
                }
                Ok(Ok(Err(problem))) => problem,
                Ok(Err(_)) => "it crashed".into(),
                Err(_) => "the vectors of the tools are still being made; try again soon".into(),
            };
            tracing::warn!("search by meaning is not possible: {problem}");
            let warning = Some(format!("This search was by words alone: {problem}"));
            // The threshold is that of another score.
            return Found { hits: words, fits, warning, ..Found::default() };
        }
        Found::at_least(words, self.threshold.unwrap_or_default(), fits)
    }
}

impl Found {
    /// Returns the hits with at least this score. Those of each query are sorted.
    fn at_least(mut hits: Vec<Vec<Hit>>, threshold: f64, fits: Fits) -> Self {
        let below = hits.iter_mut().map(|hits| {
            let best = hits.first().map(|(_, score)| *score).filter(|score| *score < threshold);
            hits.truncate(hits.partition_point(|(_, score)| *score >= threshold));
            best
        });
        Self { below: below.collect(), hits, fits, warning: None }
    }
}

/// Searches by words. The first search of a snapshot indexes what has changed, which may take long.
async fn by_words(snapshot: &Arc<Snapshot>, queries: &[String]) -> (Vec<Vec<Hit>>, Fits) {
    if !snapshot.is_indexed() {
        let snapshot = Arc::clone(snapshot);
        // If it fails, the index is created below.
        let _ = tokio::task::spawn_blocking(move || snapshot.index().is_empty()).await;
    }
    let (hits, fits) = queries.iter().map(|query| snapshot.index().judge(query)).unzip();
    (hits, Fits(fits))
}
