//! The encoder of BERT: from the tokens of texts to a vector for each token.
//!
//! Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"
//! (2018). Texts that are encoded together are the rows of one matrix, one after the other. So none is padded; only the
//! attention looks at each text alone.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayViewMut2, Axis, Slice, Zip};
use serde::Deserialize;
use std::ops::Range;

/// The encoder as `config.json` describes it.
#[derive(Deserialize)]
pub struct Config {
    /// Numbers in a vector.
    pub hidden_size: usize,
    /// The longest text, in tokens.
    pub max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    layer_norm_eps: f32,
    hidden_act: Activation,
    #[serde(default)]
    position_embedding_type: Position,
}

/// The function between the two matrices of a layer.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Activation {
    Gelu,
    Relu,
}

/// How a token knows its place; there are others.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Position {
    #[default]
    Absolute,
}

/// Where the weights come from.
pub trait Weights {
    /// A list of a number of numbers.
    ///
    /// # Errors
    /// There is none of that name and length.
    fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String>;

    /// A matrix with a number of columns.
    ///
    /// # Errors
    /// There is none of that name and width.
    fn matrix(&self, name: &str, columns: usize) -> Result<Matrix, String>;
}

/// A matrix, whose numbers may have 8 bits and a factor for each row.
pub enum Matrix {
    /// Numbers as they are.
    Float(Array2<f32>),
    /// Numbers, and the factors by which they are multiplied.
    Quantised(Array2<i8>, Array1<f32>),
}

impl Matrix {
    fn rows(&self) -> usize {
        match self {
            Self::Float(numbers) => numbers.nrows(),
            Self::Quantised(numbers, _) => numbers.nrows(),
        }
    }

    fn add_row_to(&self, row: usize, sum: &mut [f32]) {
        match self {
            Self::Float(numbers) => sum.iter_mut().zip(numbers.row(row)).for_each(|(sum, number)| *sum += number),
            Self::Quantised(numbers, factors) => {
                let factor = factors[row];
                let numbers = numbers.row(row);
                sum.iter_mut().zip(numbers).for_each(|(sum, &number)| *sum += f32::from(number) * factor);
            }
        }
    }

    fn into_floats(self) -> Array2<f32> {
        match self {
            Self::Float(numbers) => numbers,
            Self::Quantised(numbers, factors) => numbers.mapv(f32::from) * factors.insert_axis(Axis(1)),
        }
    }
}

/// The encoder.
pub struct Bert {
    tokens: Matrix,
    /// By place, those of the first segment added: a text is never a pair here.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    activation: Activation,
    heads: usize,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attention_norm: Norm,
    intermediate: Linear,
    output: Linear,
    output_norm: Norm,
}

/// A product with a matrix, and a sum.
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

/// Normalisation of each row to mean 0 and variance 1, then a factor and a sum for each column.
struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Bert {
    /// The encoder with its weights.
    ///
    /// # Errors
    /// Weights are missing or do not have the size that the configuration says.
    pub fn load(config: &Config, weights: &impl Weights) -> Result<Self, String> {
        let Position::Absolute = config.position_embedding_type;
        let (size, heads) = (config.hidden_size, config.num_attention_heads);
        if size == 0 || heads == 0 || size % heads != 0 {
            return Err(format!("{size} numbers cannot be divided into {heads} heads"));
        }
        let tokens = weights.matrix("embeddings.word_embeddings.weight", size)?;
        let mut positions = weights.matrix("embeddings.position_embeddings.weight", size)?.into_floats();
        let segments = weights.matrix("embeddings.token_type_embeddings.weight", size)?.into_floats();
        if positions.nrows() < config.max_position_embeddings || segments.is_empty() {
            return Err("the embeddings of positions or segments are too few".into());
        }
        positions += &segments.row(0);
        let norm = Norm::load(weights, "embeddings.LayerNorm", config)?;
        let layers = (0..config.num_hidden_layers).map(|number| Layer::load(weights, number, config));
        let layers = layers.collect::<Result<_, _>>()?;
        Ok(Self { tokens, positions, norm, layers, activation: config.hidden_act, heads })
    }

    /// A vector for each token of all texts, the texts one after the other.
    ///
    /// # Errors
    /// A token or the length of a text is beyond what the model knows.
    pub fn forward(&self, texts: &[&[u32]]) -> Result<Array2<f32>, String> {
        let mut spans = Vec::with_capacity(texts.len());
        let mut rows = 0;
        for text in texts {
            spans.push(rows..rows + text.len());
            rows += text.len();
        }
        let mut hidden = Array2::zeros((rows, self.positions.ncols()));
        let places = texts.iter().flat_map(|text| text.iter().enumerate());
        for (mut row, (position, &token)) in hidden.rows_mut().into_iter().zip(places) {
            let token = token as usize;
            if token >= self.tokens.rows() || position >= self.positions.nrows() {
                return Err(format!("it has no token {token} at place {position}"));
            }
            row.assign(&self.positions.row(position));
            if let Some(row) = row.as_slice_mut() {
                self.tokens.add_row_to(token, row);
            }
        }
        self.norm.apply(&mut hidden);
        for layer in &self.layers {
            let mut sum = layer.attended.apply(&self.attention(layer, &hidden, &spans));
            sum += &hidden;
            layer.attention_norm.apply(&mut sum);
            let mut inner = layer.intermediate.apply(&sum);
            self.activation.apply(&mut inner);
            hidden = layer.output.apply(&inner);
            hidden += &sum;
            layer.output_norm.apply(&mut hidden);
        }
        Ok(hidden)
    }

    /// Scaled dot-product attention of each head in each text.
    fn attention(&self, layer: &Layer, hidden: &Array2<f32>, spans: &[Range<usize>]) -> Array2<f32> {
        let (query, key, value) = (layer.query.apply(hidden), layer.key.apply(hidden), layer.value.apply(hidden));
        let mut context = Array2::zeros(hidden.raw_dim());
        let width = hidden.ncols() / self.heads;
        let scale = (width as f32).sqrt().recip();
        for span in spans {
            let rows = Slice::from(span.clone());
            let [query, key, value] = [&query, &key, &value].map(|matrix| matrix.slice_axis(Axis(0), rows));
            let mut context = context.slice_axis_mut(Axis(0), rows);
            for head in 0..self.heads {
                let columns = Slice::from(head * width..(head + 1) * width);
                let [query, key, value] = [&query, &key, &value].map(|rows| rows.slice_axis(Axis(1), columns));
                let mut scores = query.dot(&key.t());
                softmax(scores.view_mut(), scale);
                let mut context = context.slice_axis_mut(Axis(1), columns);
                general_mat_mul(1.0, &scores, &value, 0.0, &mut context);
            }
        }
        context
    }
}

/// Of each row, multiplied by a factor before.
fn softmax(mut scores: ArrayViewMut2<'_, f32>, scale: f32) {
    for mut row in scores.rows_mut() {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.mapv_inplace(|score| ((score - most) * scale).exp());
        let sum = row.sum();
        row /= sum;
    }
}

impl Layer {
    fn load(weights: &impl Weights, number: usize, config: &Config) -> Result<Self, String> {
        let size = config.hidden_size;
        let linear = |name: &str, from| Linear::load(weights, &format!("encoder.layer.{number}.{name}"), from);
        let norm = |name: &str| Norm::load(weights, &format!("encoder.layer.{number}.{name}"), config);
        let intermediate = linear("intermediate.dense", size)?;
        let layer = Self {
            query: linear("attention.self.query", size)?,
            key: linear("attention.self.key", size)?,
            value: linear("attention.self.value", size)?,
            attended: linear("attention.output.dense", size)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            output: linear("output.dense", intermediate.bias.len())?,
            intermediate,
            output_norm: norm("output.LayerNorm")?,
        };
        let squares = [&layer.query, &layer.key, &layer.value, &layer.attended, &layer.output];
        if squares.iter().any(|linear| linear.bias.len() != size) {
            return Err(format!("a matrix of layer {number} does not have {size} rows"));
        }
        Ok(layer)
    }
}

impl Linear {
    fn load(weights: &impl Weights, name: &str, columns: usize) -> Result<Self, String> {
        let weight = weights.matrix(&format!("{name}.weight"), columns)?.into_floats();
        let bias = weights.vector(&format!("{name}.bias"), weight.nrows())?;
        Ok(Self { weight, bias })
    }

    fn apply(&self, rows: &Array2<f32>) -> Array2<f32> {
        rows.dot(&self.weight.t()) + &self.bias
    }
}

impl Norm {
    fn load(weights: &impl Weights, name: &str, config: &Config) -> Result<Self, String> {
        let vector = |part: &str| weights.vector(&format!("{name}.{part}"), config.hidden_size);
        Ok(Self { weight: vector("weight")?, bias: vector("bias")?, epsilon: config.layer_norm_eps })
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.rows_mut() {
            let count = row.len() as f32;
            let mean = row.sum() / count;
            let variance = row.iter().map(|number| (number - mean).powi(2)).sum::<f32>() / count;
            let factor = (variance + self.epsilon).sqrt().recip();
            Zip::from(&mut row)
                .and(&self.weight)
                .and(&self.bias)
                .for_each(|number, weight, bias| *number = (*number - mean) * factor * weight + bias);
        }
    }
}

impl Activation {
    fn apply(self, rows: &mut Array2<f32>) {
        match self {
            Self::Gelu => rows.mapv_inplace(|x| 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))),
            Self::Relu => rows.mapv_inplace(|x| x.max(0.0)),
        }
    }
}

/// The error function by a rational approximation, as Eigen has it, without a branch: a quarter of all work is here.
/// The error is below 1e-6.
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let polynomial =
        |coefficients: &[f32]| coefficients.iter().fold(0.0, |sum, coefficient| sum * square + coefficient);
    let above = polynomial(&[
        -2.726_142_4e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_5e-5,
        -7.349_906_4e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ]);
    let below = polynomial(&[-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2]);
    x * above / below
}

#[cfg(test)]
mod tests;
