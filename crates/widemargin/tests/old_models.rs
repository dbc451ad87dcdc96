//! Model files of earlier builds still load, and predict what the build that wrote them predicted, to the
//! last bit (`fixtures/models`, written by `make.sh` there).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use widemargin::data::read::{ReadOptions, read};
use widemargin::data::{Dense, Layout, Matrix};
use widemargin::machine::Model;
use widemargin::{Context, InstructionSet};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models")
}

/// Rows that suit every kernel: non-negative, some of the values 0.
fn queries(features: usize) -> Matrix {
    let value = |i: usize, j: usize| ((i * 37 + j * 17) % 23) as f64 / 4.0;
    let values = (0..6).flat_map(|i| (0..features).map(move |j| value(i, j))).collect();
    Matrix::DenseF64(Dense::new(6, features, values).unwrap())
}

fn bits(text: &mut String, what: &str, table: &Dense<f64>) {
    for i in 0..table.rows() {
        write!(text, "{what}").unwrap();
        for value in table.row(i) {
            write!(text, " {:016x}", value.to_bits()).unwrap();
        }
        text.push('\n');
    }
}

/// Everything that a model answers, numbers as their bits.
fn predictions(name: &str, model: &Model) -> String {
    let context = Context::new().with_instruction_set(InstructionSet::Portable).unwrap();
    let predictor = model.predictor(&context).unwrap();
    let dense = if name.starts_with("words") {
        let options = model.preparation.read_options(ReadOptions::default());
        read(folder().join("words.csv"), &options).unwrap().dataset.features().clone()
    } else {
        queries(model.features())
    };
    let mut text = String::new();
    for rows in [dense.clone(), dense.into_layout(Layout::Sparse)] {
        let values = predictor.decision_values(&rows).unwrap();
        bits(&mut text, "values", &values);
        let labels = predictor.predict(&rows).unwrap();
        for i in 0..rows.rows() {
            writeln!(text, "label {}", labels.get(i).unwrap()).unwrap();
        }
        if let Ok(probabilities) = predictor.probabilities(&rows) {
            bits(&mut text, "probabilities", &probabilities);
        }
        if let Ok(densities) = predictor.log_densities(&rows) {
            bits(&mut text, "log-density", &Dense::new(rows.rows(), 1, densities).unwrap());
        }
        if let Ok(nearest) = predictor.nearest(&rows, 2) {
            for found in nearest {
                writeln!(text, "nearest {found:?}").unwrap();
            }
        }
        if let Some(projection) = model.projection() {
            let projected = projection.predictor(&context).unwrap().decision_values(&rows).unwrap();
            bits(&mut text, "projection", &projected);
        }
    }
    text
}

/// Name and content of all model files.
fn models() -> BTreeMap<String, Vec<u8>> {
    let is_model = |path: &Path| {
        let extension = path.extension().and_then(|e| e.to_str());
        extension.is_some_and(|e| ["wm", "libsvm", "liblinear"].contains(&e))
    };
    let paths = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.filter(|path| is_model(path)).map(|path| (name(&path), fs::read(path).unwrap())).collect()
}

/// The recorded predictions: a line `# file` before those of every file.
fn recorded() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().join("predictions.txt")).unwrap();
    let sections = text.split("# ").filter(|section| !section.is_empty());
    let parts = sections.map(|section| section.split_once('\n').unwrap());
    parts.map(|(name, lines)| (name.to_owned(), lines.to_owned())).collect()
}

#[test]
fn models_of_earlier_builds_predict_the_same_bits() {
    let models = models();
    assert!(models.len() > 80, "{} files", models.len());
    if std::env::var_os("RECORD_MODELS").is_some() {
        let section = |(name, bytes): (&String, &Vec<u8>)| {
            format!("# {name}\n{}", predictions(name, &Model::load_from_bytes(bytes).unwrap()))
        };
        let text: String = models.iter().map(section).collect();
        fs::write(folder().join("predictions.txt"), text).unwrap();
        return;
    }
    let recorded = recorded();
    assert_eq!(models.keys().collect::<Vec<_>>(), recorded.keys().collect::<Vec<_>>());
    for (name, bytes) in &models {
        let model = Model::load_from_bytes(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(predictions(name, &model), recorded[name], "{name}");
    }
}

#[test]
fn models_of_earlier_builds_are_written_anew_without_a_change() {
    for (name, bytes) in &models() {
        let model = Model::load_from_bytes(bytes).unwrap();
        let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(model, again, "{name}");
    }
}
