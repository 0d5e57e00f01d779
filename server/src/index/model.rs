//! A sentence transformer from a folder: from texts to vectors, in pure Rust.
//!
//! The folder is what such models are given away as: `config.json`, `tokenizer.json` and
//! `model.safetensors`, and maybe what they say of pooling and length. Models of the BERT family with
//! mean pooling are understood, as the ones called MiniLM are.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

/// Texts that go through the model together.
const BATCH: usize = 16;
/// Tokens of a text, where the model does not say how many it reads.
const LONGEST: usize = 256;

/// A model, ready for use.
pub struct Model {
    tokenizer: Tokenizer,
    bert: BertModel,
}

impl Model {
    /// Read a folder.
    ///
    /// # Errors
    /// Which file is wrong and why, without the folder's path.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let described: Value = json(folder, "config.json")?;
        if described["model_type"] != "bert" {
            return Err(format!(
                "config.json: models of the kind {} are not known, only \"bert\"",
                described["model_type"]
            ));
        }
        let config: Config = serde_json::from_value(described).map_err(|error| format!("config.json: {error}"))?;
        if let Ok(pooling) = json::<Value>(folder, "1_Pooling/config.json")
            && pooling["pooling_mode_mean_tokens"] == false
        {
            return Err("1_Pooling/config.json: only mean pooling is known".into());
        }
        let own: Option<Value> = json(folder, "sentence_bert_config.json").ok();
        let own = own.and_then(|own| usize::try_from(own["max_seq_length"].as_u64()?).ok()).unwrap_or(LONGEST);
        let max_length = own.clamp(8, config.max_position_embeddings.max(8));
        let wrong = |error: tokenizers::Error| format!("tokenizer.json: {error}");
        let mut tokenizer = Tokenizer::from_bytes(bytes(folder, "tokenizer.json")?).map_err(wrong)?;
        tokenizer
            .with_truncation(Some(TruncationParams { max_length, ..TruncationParams::default() }))
            .map_err(wrong)?;
        tokenizer.with_padding(Some(PaddingParams::default()));
        let weights = bytes(folder, "model.safetensors")?;
        let bert = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)
            .and_then(|weights| BertModel::load(weights, &config))
            .map_err(|error| format!("model.safetensors: {error}"))?;
        Ok(Self { tokenizer, bert })
    }

    /// A vector of length 1 for each text.
    ///
    /// # Errors
    /// The model does not fit its tokenizer.
    pub fn vectors(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, String> {
        // Texts of like length go together: the shorter ones are padded.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|at| texts[*at].len());
        let mut vectors: Vec<(usize, Arc<[f32]>)> = Vec::with_capacity(texts.len());
        for batch in order.chunks(BATCH) {
            let made = self.batch(batch.iter().map(|at| texts[*at].as_str()).collect());
            let made = made.map_err(|error| format!("the model failed: {error}"))?;
            vectors.extend(batch.iter().copied().zip(made.into_iter().map(Into::into)));
        }
        vectors.sort_by_key(|(at, _)| *at);
        Ok(vectors.into_iter().map(|(_, vector)| vector).collect())
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

fn bytes(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    std::fs::read(folder.join(name)).map_err(|error| format!("{name} cannot be read: {}", error.kind()))
}

fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T, String> {
    serde_json::from_slice(&bytes(folder, name)?).map_err(|error| format!("{name}: {error}"))
}
