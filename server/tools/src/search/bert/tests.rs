//! A small encoder whose weights follow a formula. The expected values were computed with NumPy, from the paper's formulas
//! and with the exact error function.

use super::*;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::json;
use std::collections::BTreeMap;

const HIDDEN: usize = 8;
const INNER: usize = 16;
const LAYERS: usize = 2;

/// By name: the size, and the numbers.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn config() -> Config {
    serde_json::from_value(json!({
        "hidden_size": HIDDEN,
        "max_position_embeddings": 6,
        "num_attention_heads": 2,
        "num_hidden_layers": LAYERS,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
    }))
    .expect("a configuration")
}

fn tensors() -> Tensors {
    let mut sizes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![10, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![6, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
    ];
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..LAYERS {
        let squares = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"];
        let squares = squares.map(|name| (name, HIDDEN, HIDDEN)).into_iter();
        for (name, rows, columns) in
            squares.chain([("intermediate.dense", INNER, HIDDEN), ("output.dense", HIDDEN, INNER)])
        {
            sizes.push((format!("encoder.layer.{layer}.{name}.weight"), vec![rows, columns]));
            sizes.push((format!("encoder.layer.{layer}.{name}.bias"), vec![rows]));
        }
        let both = ["attention.output.LayerNorm", "output.LayerNorm"];
        norms.extend(both.map(|name| format!("encoder.layer.{layer}.{name}")));
    }
    for norm in norms {
        sizes.push((format!("{norm}.weight"), vec![HIDDEN]));
        sizes.push((format!("{norm}.bias"), vec![HIDDEN]));
    }
    sizes.sort();
    let numbered = sizes.into_iter().enumerate().map(|(number, (name, size))| {
        let more = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
        let count: usize = size.iter().product();
        let numbers = (0..count).map(|at| ((at * at * 7 + at * 37 + number * 11) % 101) as f32);
        let numbers = numbers.map(|number| (number - 50.0) / 100.0 + more).collect();
        (name, (size, numbers))
    });
    numbered.collect()
}

/// The encoder of a file with these tensors; matrices of 8 bits if `quantised`.
fn load(tensors: &Tensors, quantised: bool) -> Result<Bert, String> {
    let mut stored: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = BTreeMap::new();
    for (name, (size, numbers)) in tensors {
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        if quantised && size.len() == 2 {
            // All numbers are hundredths, so nothing is lost.
            let small = numbers.iter().map(|number| ((number * 100.0).round() as i8).cast_unsigned()).collect();
            stored.insert(name.clone(), (Dtype::I8, size.clone(), small));
            stored.insert(format!("{name}.scale"), (Dtype::F32, vec![size[0]], bytes(&vec![0.01; size[0]])));
        } else {
            stored.insert(name.clone(), (Dtype::F32, size.clone(), bytes(numbers)));
        }
    }
    let views = stored.iter().map(|(name, (kind, size, bytes))| {
        (name.as_str(), TensorView::new(*kind, size.clone(), bytes).expect("a tensor"))
    });
    let file = safetensors::serialize(views, None).expect("a file");
    Bert::load(&config(), &SafeTensors::deserialize(&file).expect("what was written"))
}

fn assert_near(found: &Array2<f32>, wanted: &[[f32; HIDDEN]]) {
    assert_eq!(found.nrows(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted.iter().flatten()) {
        assert!((found - wanted).abs() < 2e-5, "{found} is not {wanted}");
    }
}

#[test]
fn vectors_are_those_of_the_formulas() {
    const FIRST: [[f32; HIDDEN]; 4] = [
        [-0.52756, 0.35175, -0.45697, -0.7984, -0.843, -0.74016, 1.68, -0.59318],
        [-0.49105, -0.17259, -0.27451, -1.21434, -0.4963, -0.32692, 1.92653, -0.79008],
        [-0.39397, 0.08698, -0.15807, -1.41647, -0.82122, -0.27301, 1.71873, -0.54025],
        [0.15283, -0.30319, -0.60567, -0.98945, 0.36149, -1.3482, 1.61713, -0.47191],
    ];
    const SECOND: [[f32; HIDDEN]; 2] = [
        [-0.84099, -0.11375, -0.6381, -0.76842, -1.02552, -0.33331, 1.90334, 0.06211],
        [-0.42982, 0.2447, 0.51008, -1.62948, -0.71124, -0.55592, 1.45588, -0.56009],
    ];
    for quantised in [false, true] {
        let bert = load(&tensors(), quantised).expect("an encoder");
        assert_near(&bert.forward(&[&[3, 1, 4, 1]]).expect("vectors"), &FIRST);
        // Texts that are encoded together do not see each other.
        let both = bert.forward(&[&[9, 0], &[3, 1, 4, 1]]).expect("vectors");
        assert_near(&both, &[SECOND.as_slice(), FIRST.as_slice()].concat());
    }
}

#[test]
fn tokens_and_places_beyond_the_model_are_errors() {
    let bert = load(&tensors(), false).expect("an encoder");
    assert_eq!(bert.forward(&[&[1, 10]]).expect_err("an error"), "it has no token 10 at place 1");
    assert_eq!(bert.forward(&[&[1; 7]]).expect_err("an error"), "it has no token 1 at place 6");
    assert_eq!(bert.forward(&[]).expect("nothing").nrows(), 0);
    assert_eq!(bert.forward(&[&[]]).expect("nothing").nrows(), 0);
}

#[test]
fn what_is_wrong_with_weights_is_said() {
    let changed = |change: fn(&mut Tensors)| {
        let mut tensors = tensors();
        change(&mut tensors);
        load(&tensors, false).err().expect("an error")
    };
    let name = "encoder.layer.1.output.dense.weight";
    let missing = changed(|tensors| drop(tensors.remove("encoder.layer.1.output.dense.weight")));
    assert_eq!(missing, format!("there is no {name}"));
    let transposed = changed(|tensors| {
        tensors.entry("encoder.layer.1.output.dense.weight".into()).and_modify(|(size, _)| size.reverse());
    });
    assert_eq!(transposed, format!("{name} has 8 columns, not 16"));
    let flat = changed(|tensors| {
        tensors.entry("encoder.layer.1.output.dense.weight".into()).and_modify(|(size, _)| *size = vec![128]);
    });
    assert_eq!(flat, format!("{name} is not a matrix"));
    let short = changed(|tensors| {
        tensors.entry("embeddings.LayerNorm.bias".into()).and_modify(|(size, numbers)| {
            *size = vec![7];
            numbers.truncate(7);
        });
    });
    assert_eq!(short, "embeddings.LayerNorm.bias does not have 8 numbers");
    let few = changed(|tensors| {
        tensors.entry("embeddings.position_embeddings.weight".into()).and_modify(|(size, numbers)| {
            *size = vec![5, HIDDEN];
            numbers.truncate(5 * HIDDEN);
        });
    });
    assert_eq!(few, "the embeddings of positions or segments are too few");
}

#[test]
fn configurations_of_other_models_are_refused() {
    for (key, value) in [("hidden_act", "swish"), ("position_embedding_type", "relative_key")] {
        let mut config = json!({
            "hidden_size": 8, "max_position_embeddings": 6, "num_attention_heads": 2, "num_hidden_layers": 1,
            "layer_norm_eps": 1e-12, "hidden_act": "gelu",
        });
        config[key] = value.into();
        let error = serde_json::from_value::<Config>(config).err().expect("an error").to_string();
        assert!(error.contains(value), "{error}");
    }
    let mut odd = config();
    odd.num_attention_heads = 3;
    let file = safetensors::serialize(Vec::<(&str, TensorView<'_>)>::new(), None).expect("a file");
    let file = SafeTensors::deserialize(&file).expect("what was written");
    assert_eq!(Bert::load(&odd, &file).err().expect("an error"), "8 numbers cannot be divided into 3 heads");
}

#[test]
fn the_error_function_is_near_its_values() {
    // NIST Digital Library of Mathematical Functions, 7.2.
    let known =
        [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (1.5, 0.966_105_1), (2.0, 0.995_322_3), (9.0, 1.0)];
    for (x, value) in known {
        assert!((erf(x) - value).abs() < 1e-6, "erf({x}) is {}", erf(x));
        assert!((erf(-x) + value).abs() < 1e-6, "erf(-{x}) is {}", erf(-x));
    }
}
