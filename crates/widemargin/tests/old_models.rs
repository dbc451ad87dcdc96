//! Model files of earlier builds still load, and predict what the build that wrote them predicted, to the
//! last bit (`fixtures/models` for format version 1, `version2` inside it for version 2; both have the
//! `make.sh` that wrote them).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use widemargin::data::read::{ReadOptions, read};
use widemargin::data::{Dense, Layout, Matrix, TaggedSequences};
use widemargin::machine::sequence::{Chain, Emission, HiddenMarkov};
use widemargin::machine::{Body, MachineKind, Model};
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

/// Everything that a model predicts, numbers as their bits.
fn predictions(name: &str, model: &Model) -> String {
    let context = Context::new().with_instruction_set(InstructionSet::Portable).unwrap();
    if let Body::Chain(chain) = &model.body {
        return labellings(chain, model.features(), &context);
    }
    if let Body::HiddenMarkov(markov) = &model.body {
        return paths(markov, model.features(), &context);
    }
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

/// The two best labellings of two sequences.
fn labellings(chain: &Chain, features: usize, context: &Context) -> String {
    let mut text = String::new();
    for layout in [Layout::Dense, Layout::Sparse] {
        let rows = queries(features).into_layout(layout);
        let data = TaggedSequences::new(rows, vec![4, 2]).unwrap();
        let labeller = chain.labeller(context).unwrap();
        for labelling in labeller.n_best(&data, 2).unwrap().iter().flatten() {
            let names: Vec<String> =
                labeller.names(&labelling.tags).map(ToString::to_string).collect();
            writeln!(text, "tags {} {:016x}", names.join(" "), labelling.score.to_bits()).unwrap();
        }
    }
    text
}

/// The best paths and the likeliest states of two sequences.
fn paths(markov: &HiddenMarkov, features: usize, context: &Context) -> String {
    let rows = match markov.hmm().emission() {
        Emission::Categorical { .. } => {
            let value = |i: usize, j: usize| f64::from(u8::from(i % features == j));
            let values = (0..6).flat_map(|i| (0..features).map(move |j| value(i, j))).collect();
            Matrix::DenseF64(Dense::new(6, features, values).unwrap())
        }
        _ => queries(features),
    };
    let data = TaggedSequences::new(rows, vec![4, 2]).unwrap();
    let found = [markov.label(&data, context), markov.label_positions(&data, context)];
    let mut text = String::new();
    for labelling in found.iter().flat_map(|list| list.as_ref().unwrap()) {
        let names: Vec<String> =
            labelling.tags.iter().map(|&i| markov.names()[i as usize].to_string()).collect();
        writeln!(text, "states {} {:016x}", names.join(" "), labelling.score.to_bits()).unwrap();
    }
    text
}

/// Name and content of all model files of a folder.
fn models(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let is_model = |path: &Path| {
        let extension = path.extension().and_then(|e| e.to_str());
        extension.is_some_and(|e| ["wm", "libsvm", "liblinear"].contains(&e))
    };
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.filter(|path| is_model(path)).map(|path| (name(&path), fs::read(path).unwrap())).collect()
}

/// The recorded predictions: a line `# file` before those of every file.
fn recorded(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join("predictions.txt")).unwrap_or_default();
    let sections = text.split("# ").filter(|section| !section.is_empty());
    let parts = sections.map(|section| section.split_once('\n').unwrap());
    parts.map(|(name, lines)| (name.to_owned(), lines.to_owned())).collect()
}

/// Records what the models of a folder predict, those that are recorded already excepted.
fn record(folder: &Path, models: &BTreeMap<String, Vec<u8>>) {
    let mut sections = recorded(folder);
    for (name, bytes) in models {
        let predict = || predictions(name, &Model::load_from_bytes(bytes).unwrap());
        sections.entry(name.clone()).or_insert_with(predict);
    }
    let text: String = sections.iter().map(|(name, lines)| format!("# {name}\n{lines}")).collect();
    fs::write(folder.join("predictions.txt"), text).unwrap();
}

fn predict_as_recorded(folder: &Path, least: usize) {
    let models = models(folder);
    assert!(models.len() >= least, "{} files", models.len());
    if std::env::var_os("RECORD_MODELS").is_some() {
        record(folder, &models);
    }
    let recorded = recorded(folder);
    assert_eq!(models.keys().collect::<Vec<_>>(), recorded.keys().collect::<Vec<_>>());
    for (name, bytes) in &models {
        let model = Model::load_from_bytes(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(predictions(name, &model), recorded[name], "{name}");
        let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(model, again, "{name} changes when it is written anew");
    }
}

#[test]
fn models_of_the_first_format_predict_the_same_bits() {
    predict_as_recorded(&folder(), 80);
}

#[test]
fn models_of_the_second_format_predict_the_same_bits() {
    predict_as_recorded(&folder().join("version2"), 100);
}

/// A new kind or body needs a line in `version2/make.sh`, its file there, and `RECORD_MODELS=1`.
#[test]
fn every_kind_of_machine_and_every_body_has_a_sample() {
    let samples = models(&folder().join("version2"));
    let samples: Vec<Model> =
        samples.values().map(|bytes| Model::load_from_bytes(bytes).unwrap()).collect();
    for kind in MachineKind::all().chain(MachineKind::SEQUENCES) {
        assert!(samples.iter().any(|model| model.kind == kind), "no sample of {kind}");
    }
    for body in Body::NAMES {
        assert!(samples.iter().any(|model| model.body.name() == *body), "no sample of {body}");
    }
}
