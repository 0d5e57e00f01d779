//! A sentence transformer from a folder: from texts to vectors.
//!
//! The folder has the files in which such models are distributed: `config.json`, `tokenizer.json` and
//! `model.safetensors`, and optionally those for pooling and length. Models of the BERT family with mean pooling are
//! supported, such as MiniLM.
//!
//! A matrix may be quantised to 8 bits: `NAME` has type I8, and `NAME.scale` a factor of type F32 for each row.

use super::bert::{Bert, Config, Matrix, Weights};
use half::{bf16, f16};
use ndarray::{Array1, Array2, Axis, Slice};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use tokenizers::{Tokenizer, TruncationParams};

/// Maximum number of texts that are encoded together, on one thread. Fewer take longer for each: every matrix of the model is
/// brought into another order for every batch.
const BATCH: usize = 32;
/// Maximum number of tokens of a text if the model does not say it.
const DEFAULT_MAX_TOKENS: usize = 256;

/// Version of this module. It is increased when the same files give other vectors.
const VERSION: u64 = 2;

/// The files of a model, read.
pub struct Files {
    /// `config.json` as it is.
    described: Vec<u8>,
    config: Config,
    /// Tokens of a text.
    max_length: usize,
    tokenizer: Vec<u8>,
    weights: Vec<u8>,
}

impl Files {
    /// Read a folder.
    ///
    /// # Errors
    /// The file that is wrong and why, without the folder's path.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let described = bytes(folder, "config.json")?;
        let wrong = |error: serde_json::Error| format!("config.json: {error}");
        let value: Value = serde_json::from_slice(&described).map_err(wrong)?;
        if value["model_type"] != "bert" {
            return Err(format!(
                "config.json: models of the kind {} are not known, only \"bert\"",
                value["model_type"]
            ));
        }
        let config: Config = serde_json::from_value(value).map_err(wrong)?;
        if let Ok(pooling) = json(folder, "1_Pooling/config.json")
            && pooling["pooling_mode_mean_tokens"] == false
        {
            return Err("1_Pooling/config.json: only mean pooling is known".into());
        }
        let own = json(folder, "sentence_bert_config.json").ok();
        let own =
            own.and_then(|own| usize::try_from(own["max_seq_length"].as_u64()?).ok()).unwrap_or(DEFAULT_MAX_TOKENS);
        let max_length = own.clamp(8, config.max_position_embeddings.max(8));
        let tokenizer = bytes(folder, "tokenizer.json")?;
        let weights = bytes(folder, "model.safetensors")?;
        Ok(Self { described, config, max_length, tokenizer, weights })
    }

    /// Numbers in a vector.
    pub fn length(&self) -> usize {
        self.config.hidden_size
    }

    /// A SHA-256 of all that vectors depend on beside their texts.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new_with_prefix(VERSION.to_le_bytes());
        digest.update((self.max_length as u64).to_le_bytes());
        for file in [&self.described, &self.tokenizer, &self.weights] {
            digest.update((file.len() as u64).to_le_bytes());
            digest.update(file);
        }
        digest.finalize().into()
    }

    /// The model.
    ///
    /// # Errors
    /// The file that is wrong and why.
    pub fn model(self) -> Result<Model, String> {
        let wrong = |error: tokenizers::Error| format!("tokenizer.json: {error}");
        let mut tokenizer = Tokenizer::from_bytes(self.tokenizer).map_err(wrong)?;
        let max_length = self.max_length;
        tokenizer
            .with_truncation(Some(TruncationParams { max_length, ..TruncationParams::default() }))
            .map_err(wrong)?;
        tokenizer.with_padding(None);
        let bert = SafeTensors::deserialize(&self.weights)
            .map_err(|error| error.to_string())
            .and_then(|file| Bert::load(&self.config, &file))
            .map_err(|error| format!("model.safetensors: {error}"))?;
        Ok(Model { tokenizer, bert })
    }
}

/// A model, ready for use.
pub struct Model {
    tokenizer: Tokenizer,
    bert: Bert,
}

impl Model {
    /// A vector of length 1 for each text, on as many threads as there are processors.
    ///
    /// # Errors
    /// The model does not fit its tokenizer.
    pub fn vectors(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, String> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut shares = texts.chunks(texts.len().div_ceil(threads).max(1));
        let Some(first) = shares.next() else { return Ok(Vec::new()) };
        thread::scope(|scope| {
            let others: Vec<_> = shares.map(|share| scope.spawn(|| self.share(share))).collect();
            let mut vectors = self.share(first);
            for other in others {
                let more = other.join().unwrap_or_else(|_| Err("the model crashed".into()));
                vectors = vectors.and_then(|vectors| Ok([vectors, more?].concat()));
            }
            vectors.map_err(|error| format!("the model failed: {error}"))
        })
    }

    fn share(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, String> {
        texts
            .chunks(BATCH)
            .map(|batch| self.batch(batch))
            .collect::<Result<Vec<_>, _>>()
            .map(|batches| batches.concat())
    }

    fn batch(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, String> {
        let encode = |text: &String| self.tokenizer.encode(text.as_str(), true).map_err(|error| error.to_string());
        let encoded = texts.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        let tokens: Vec<&[u32]> = encoded.iter().map(tokenizers::Encoding::get_ids).collect();
        let hidden = self.bert.forward(&tokens)?;
        let mut start = 0;
        let vectors = tokens.iter().map(|tokens| {
            let span = start..start + tokens.len();
            start = span.end;
            // The mean over the tokens of a text; then to length 1.
            let sum = hidden.slice_axis(Axis(0), Slice::from(span)).sum_axis(Axis(0));
            let length = sum.dot(&sum).sqrt();
            (sum / length.max(f32::MIN_POSITIVE)).iter().copied().collect()
        });
        Ok(vectors.collect())
    }
}

impl Weights for SafeTensors<'_> {
    fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        let numbers = floats(name, &found(self, name)?)?;
        if numbers.len() == length { Ok(numbers.into()) } else { Err(format!("{name} does not have {length} numbers")) }
    }

    fn matrix(&self, name: &str, columns: usize) -> Result<Matrix, String> {
        let tensor = found(self, name)?;
        let &[rows, width] = tensor.shape() else { return Err(format!("{name} is not a matrix")) };
        if width != columns {
            return Err(format!("{name} has {width} columns, not {columns}"));
        }
        let wrong = |error| format!("{name}: {error}");
        if tensor.dtype() == Dtype::I8 {
            let numbers = tensor.data().iter().map(|byte| byte.cast_signed()).collect();
            let numbers = Array2::from_shape_vec((rows, width), numbers).map_err(wrong)?;
            return Ok(Matrix::Quantised(numbers, self.vector(&format!("{name}.scale"), rows)?));
        }
        let numbers = floats(name, &tensor)?;
        Ok(Matrix::Float(Array2::from_shape_vec((rows, width), numbers).map_err(wrong)?))
    }
}

/// A tensor by its name; some files have all below the name `bert`.
fn found<'a>(file: &'a SafeTensors<'_>, name: &str) -> Result<TensorView<'a>, String> {
    let found = file.tensor(name).or_else(|_| file.tensor(&format!("bert.{name}")));
    found.map_err(|_| format!("there is no {name}"))
}

fn floats(name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, String> {
    let data = tensor.data();
    Ok(match tensor.dtype() {
        Dtype::F32 => data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        Dtype::F16 => data.as_chunks().0.iter().map(|&bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
        Dtype::BF16 => data.as_chunks().0.iter().map(|&bytes| bf16::from_le_bytes(bytes).to_f32()).collect(),
        kind => return Err(format!("{name} has numbers of type {kind:?}, not F32, F16, BF16, or I8 with factors")),
    })
}

fn bytes(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    codecall_base::files::read(&folder.join(name), codecall_base::files::MAX_MODEL_BYTES)
        .map_err(|error| format!("{name} cannot be read: {}", error.kind()))
}

fn json(folder: &Path, name: &str) -> Result<Value, String> {
    serde_json::from_slice(&bytes(folder, name)?).map_err(|error| format!("{name}: {error}"))
}
