//! A sentence transformer from a folder: from texts to vectors, in pure Rust.
//!
//! The folder has the files in which such models are distributed: `config.json`, `tokenizer.json` and
//! `model.safetensors`, and optionally those for pooling and length. Models of the BERT family with mean pooling are
//! supported, such as MiniLM.
//!
//! A matrix may be quantised to 8 bits: `NAME` has type I8, and `NAME.scale` a factor of type F32 for each row.

use candle_core::safetensors::Load as _;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

/// Number of texts that are encoded together.
const BATCH: usize = 16;
/// Maximum number of tokens of a text if the model does not say it.
const DEFAULT_MAX_TOKENS: usize = 256;

/// Version of this module. It is increased when the same files give other vectors.
const VERSION: u64 = 1;

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
    /// Which file is wrong and why, without the folder's path.
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
    /// Which file is wrong and why.
    pub fn model(self) -> Result<Model, String> {
        let wrong = |error: tokenizers::Error| format!("tokenizer.json: {error}");
        let mut tokenizer = Tokenizer::from_bytes(self.tokenizer).map_err(wrong)?;
        let max_length = self.max_length;
        tokenizer
            .with_truncation(Some(TruncationParams { max_length, ..TruncationParams::default() }))
            .map_err(wrong)?;
        tokenizer.with_padding(Some(PaddingParams::default()));
        let bert = tensors(&self.weights)
            .and_then(|tensors| {
                let weights = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
                Ok(BertModel::load(weights, &self.config)?)
            })
            .map_err(|error| format!("model.safetensors: {error}"))?;
        Ok(Model { tokenizer, bert })
    }
}

/// A model, ready for use.
pub struct Model {
    tokenizer: Tokenizer,
    bert: BertModel,
}

impl Model {
    /// A vector of length 1 for each text. Texts of like length should stand together: in a batch the
    /// shorter ones are padded.
    ///
    /// # Errors
    /// The model does not fit its tokenizer.
    pub fn vectors(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, String> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let made = self.batch(batch.iter().map(String::as_str).collect());
            let made = made.map_err(|error| format!("the model failed: {error}"))?;
            vectors.extend(made.into_iter().map(Arc::from));
        }
        Ok(vectors)
    }

    fn batch(&self, texts: Vec<&str>) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error + Send + Sync>> {
        let encoded = self.tokenizer.encode_batch(texts, true)?;
        let tensor = |of: fn(&tokenizers::Encoding) -> &[u32]| {
            let rows: Vec<Vec<u32>> = encoded.iter().map(|text| of(text).to_vec()).collect();
            Tensor::new(rows, &Device::Cpu)
        };
        let (tokens, types) = (tensor(tokenizers::Encoding::get_ids)?, tensor(tokenizers::Encoding::get_type_ids)?);
        let mask = tensor(tokenizers::Encoding::get_attention_mask)?;
        let hidden = self.bert.forward(&tokens, &types, Some(&mask))?;
        // The mean over the tokens of a text, without padding; then to length 1.
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sum = hidden.broadcast_mul(&mask)?.sum(1)?;
        let mean = sum.broadcast_div(&mask.sum(1)?)?;
        let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?;
        Ok(mean.broadcast_div(&length)?.to_vec2()?)
    }
}

/// Returns the tensors of a file, those of 8 bits multiplied by their factors.
fn tensors(file: &[u8]) -> Result<HashMap<String, Tensor>, Box<dyn std::error::Error + Send + Sync>> {
    let file = SafeTensors::deserialize(file)?;
    let mut tensors = HashMap::new();
    for (name, view) in file.iter() {
        let tensor = match view.dtype() {
            Dtype::I8 => {
                let scale = file.tensor(&format!("{name}.scale"))?.load(&Device::Cpu)?;
                let numbers: Vec<f32> = view.data().iter().map(|byte| f32::from(byte.cast_signed())).collect();
                let rows = Tensor::from_vec(numbers, view.shape(), &Device::Cpu)?;
                rows.broadcast_mul(&scale.to_dtype(DType::F32)?.reshape((scale.elem_count(), 1))?)?
            }
            _ if name.strip_suffix(".scale").is_some_and(|name| file.tensor(name).is_ok()) => continue,
            _ => view.load(&Device::Cpu)?,
        };
        tensors.insert(name.to_owned(), tensor);
    }
    Ok(tensors)
}

fn bytes(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    codecall_base::files::read(&folder.join(name), codecall_base::files::MAX_MODEL_BYTES)
        .map_err(|error| format!("{name} cannot be read: {}", error.kind()))
}

fn json(folder: &Path, name: &str) -> Result<Value, String> {
    serde_json::from_slice(&bytes(folder, name)?).map_err(|error| format!("{name}: {error}"))
}
