//! The corpus of the fuzz targets of the model loaders, run without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use widemargin::data::read::{IndexBase, ReadOptions, read_bytes};
use widemargin::data::scaling::Scaler;
use widemargin::data::{Label, Layout};
use widemargin::kernel::Kernel;
use widemargin::machine::{Calibration, Model, Preparation, Scheme, Training};
use widemargin::{Outcome, Status};

use super::models;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn run_corpus(target: &str, check: fn(&[u8])) {
    let mut files = 0;
    for entry in fs::read_dir(corpus(target)).unwrap() {
        check(&fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 5, "{target} has only {files} seeds");
}

#[test]
fn model_native() {
    run_corpus("model_native", models::model_native);
    // A model of every kind, as earlier builds wrote it and as this one does.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models");
    let folders = [folder.join("version2"), folder];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "wm") {
            let bytes = fs::read(path).unwrap();
            models::model_native(&bytes[24..]);
            models::model_native(
                &Model::load_from_bytes(&bytes).unwrap().to_bytes().unwrap()[24..],
            );
        }
    }
}

#[test]
fn model_libsvm() {
    run_corpus("model_libsvm", models::model_libsvm);
}

#[test]
fn model_liblinear() {
    run_corpus("model_liblinear", models::model_liblinear);
}

#[test]
fn model_structure() {
    run_corpus("model_structure", models::model_structure);
    // Single changes of every kind at every place of every model.
    for model in 0..models::WHOLE.len() as u8 {
        for part in 0..3 {
            for place in 0..120 {
                let operation = place % 6;
                models::model_structure(&[model, part, place, operation, place / 6]);
            }
        }
    }
}

#[test]
#[ignore = "writes the seeds of the native loader from LIBSVM's models"]
fn make_native_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/libsvm");
    let load = |name: &str| Model::load(folder.join(format!("{name}.model"))).unwrap();
    let save = |name: &str, model: Model| {
        let bytes = model.to_bytes().unwrap();
        fs::write(corpus("model_native").join(name), &bytes[24..]).unwrap();
    };
    for name in [
        "c_svc_linear_binary",
        "c_svc_precomputed",
        "one_class_rbf",
        "epsilon_svr_rbf",
        "nu_svc_rbf",
    ] {
        save(name, load(name));
    }
    let mut named = load("c_svc_linear_binary");
    let table = named.classes.as_mut().unwrap();
    table.names = vec![Label::Text("yes".into()), Label::Real(-0.5)];
    named.calibration =
        Some(Calibration::Isotonic { knots: vec![vec![(-1.0, 0.25), (2.0, 0.75)]] });
    named.feature_names = Some(["a", "b", "c", "d"].map(str::to_owned).to_vec());
    named.training = Some(Training {
        outcome: Outcome {
            status: Status::IterationLimit,
            primal: f64::INFINITY,
            dual: 1.5,
            violation: 1e-3,
            iterations: 7,
            blocks: 2,
            kernel_rows: 9,
        },
        rows: 40,
        seconds: 0.5,
        parameters: vec![("c".into(), 1.0.into())],
        specification: None,
    });
    save("names", named);
    let mut kernels = load("epsilon_svr_no_vectors");
    kernels.expansion_mut().unwrap().kernel = Kernel::Sum(vec![
        (0.5, Kernel::Product(vec![Kernel::Cosine, Kernel::Laplacian { gamma: 1.0 }])),
        (2.0, Kernel::ChiSquared { gamma: 0.5 }),
    ]);
    save("kernels", kernels);
    let mut codes = load("c_svc_linear_binary");
    codes.classes.as_mut().unwrap().scheme =
        Scheme::ErrorCorrecting(vec![vec![1], vec![-1]].into());
    let body = codes.expansion_mut().unwrap();
    body.support = body.support.clone().into_layout(Layout::Sparse);
    codes.calibration = None;
    save("codes", codes);
    for (name, text, standard) in [
        ("scaled", "1 1:2 2:3 3:1 4:1\n2 1:5\n", false),
        ("standardised", "a,b,c,d,y\n1,x,2,3,1\n2,x,3,4,2\n", true),
    ] {
        let loaded = read_bytes(text.as_bytes(), &ReadOptions::new()).unwrap();
        let features = loaded.dataset.features();
        let scaler = if standard {
            Scaler::fit_standard(features)
        } else {
            Scaler::fit_range(features, -1.0, 1.0)
        };
        let preparation = Preparation {
            scaler: Some(scaler.unwrap()),
            index_base: (!standard).then_some(IndexBase::One),
            ..Preparation::of_file(&loaded)
        };
        save(name, Model { preparation, ..load("epsilon_svr_rbf") });
    }
}
