//! The message for every bad model file of `docs/errors.md`: the table there is this test.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;

use widemargin::Error;
use widemargin::data::scaling::Scaler;
use widemargin::data::{Dataset, Dense, Label, Labels, Matrix};
use widemargin::kernel::{CustomKernel, Kernel};
use widemargin::machine::{Calibration, Machine, Model, Scheme, Svc, Svdd};
use widemargin::{Context, Result};

use crate::common::assert_documented;

/// A bad model: how `docs/errors.md` describes it, and the error it gives.
struct Case {
    input: &'static str,
    error: Error,
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self) -> PathBuf {
        self.0.path().join("FILE")
    }

    fn load(&self, input: &'static str, content: &[u8]) -> Case {
        fs::write(self.path(), content).unwrap();
        Case { input, error: Model::load(self.path()).expect_err(input) }
    }
}

fn data() -> Dataset {
    let values = vec![-2.0, 0.5, -1.0, 0.0, 1.0, 0.25, 2.0, 1.0];
    let features = Matrix::DenseF64(Dense::new(4, 2, values).unwrap());
    Dataset::new(features, Labels::Int(vec![1, 1, 2, 2])).unwrap()
}

fn model() -> Model {
    let svc = Svc { kernel: Kernel::Gaussian { gamma: 0.5 }, ..Svc::default() };
    // Without the record of the training, whose length varies with its seconds.
    Model { training: None, ..svc.fit(&data(), &Context::new()).unwrap() }
}

/// A sound file with some text of its JSON replaced and a checksum that fits again.
fn forged(old: &str, new: &str) -> Vec<u8> {
    let mut bytes = model().to_bytes().unwrap();
    let new = format!("{new:<width$}", width = old.len());
    let at = bytes.windows(old.len()).position(|window| window == old.as_bytes()).expect(old);
    bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..12]);
    sum.update(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.finalize().to_le_bytes());
    bytes
}

fn native_cases(dir: &Folder) -> Vec<Case> {
    let sound = model().to_bytes().unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        bytes
    };
    let mut damaged = dir.load("a model file with one byte changed", &changed(100, b'#'));
    // The sums themselves depend on the model to the last digit.
    let message = damaged.error.to_string();
    let (start, end) = message.split_once("expected checksum ").unwrap();
    let end = end.split_once(": the").unwrap().1;
    damaged.error = Error::Format {
        path: dir.path(),
        message: format!("expected checksum ..., found ...: the{end}"),
    };
    assert!(start.ends_with("FILE: "), "{message}");
    vec![
        Case {
            input: "a model that does not exist",
            error: Model::load(dir.0.path().join("NONE")).unwrap_err(),
        },
        Case {
            input: "a folder instead of a model",
            error: Model::load(dir.0.path()).unwrap_err(),
        },
        dir.load("an empty model file", b""),
        dir.load("a data file instead of a model", b"1 1:0.5 2:1\n"),
        dir.load("a model file cut after 20 bytes", &sound[..20]),
        dir.load("a model file with a byte appended", &[sound.clone(), vec![0]].concat()),
        damaged,
        dir.load("a model file of a later version", &changed(8, 7)),
        dir.load("a model file of an unknown machine", &forged("c-svc", "d-svc")),
        dir.load(
            "a model file without an array",
            &forged("\"functions.parts\"", "\"functions.pa\""),
        ),
        dir.load(
            "a model file whose γ is negative",
            &forged("\\\"gamma\\\":0.5", "\\\"gamma\\\":-2"),
        ),
        dir.load(
            "a model file with too few features",
            &forged("\\\"features\\\":2", "\\\"features\\\":1"),
        ),
    ]
}

const BINARY: &str = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\n\
                      label 1 -1\nnr_sv 1 1\nSV\n1 1:1\n-1 1:2\n";

fn libsvm_cases(dir: &Folder) -> Vec<Case> {
    let change = |input, old: &str, new: &str| {
        assert!(BINARY.contains(old), "{old}");
        dir.load(input, BINARY.replacen(old, new, 1).as_bytes())
    };
    vec![
        change("LIBSVM model: `svm_type d_svc`", "c_svc", "d_svc"),
        change("LIBSVM model: `kernel_type gauss`", "rbf", "gauss"),
        change("LIBSVM model: rbf without `gamma`", "gamma 0.5\n", ""),
        change("LIBSVM model: `gamma nan`", "0.5", "nan"),
        change("LIBSVM model: `gamma -1`", "0.5", "-1"),
        change("LIBSVM model: `nr_class 0`", "nr_class 2", "nr_class 0"),
        change("LIBSVM model: `nr_class 4294967295`", "nr_class 2", "nr_class 4294967295"),
        change("LIBSVM model: `rho` before `nr_class`", "nr_class 2\n", ""),
        change("LIBSVM model: `rho` twice", "rho 0\n", "rho 0\nrho 0\n"),
        change("LIBSVM model: `label 1 1`", "label 1 -1", "label 1 1"),
        change("LIBSVM model: `label 1 x`", "label 1 -1", "label 1 x"),
        change("LIBSVM model: `probA` without `probB`", "nr_sv", "probA 1\nnr_sv"),
        change("LIBSVM model: `nr_sv` that does not add up", "nr_sv 1 1", "nr_sv 1 2"),
        change("LIBSVM model: too few support vectors", "-1 1:2\n", ""),
        change("LIBSVM model: too many support vectors", "-1 1:2\n", "-1 1:2\n1 1:3\n"),
        change("LIBSVM model: cut before `SV`", "SV\n1 1:1\n-1 1:2\n", ""),
        change("LIBSVM model: `-1 1=2`", "-1 1:2", "-1 1=2"),
        change("LIBSVM model: indices descend", "-1 1:2", "-1 2:1 1:2"),
        change("LIBSVM model: `-1 4294967295:1`", "-1 1:2", "-1 4294967295:1"),
        change("LIBSVM model: `-1 1:inf`", "-1 1:2", "-1 1:inf"),
    ]
}

fn saving_cases(dir: &Folder) -> Vec<Case> {
    let refused = |input, result: Result<()>| Case { input, error: result.expect_err(input) };
    let as_libsvm = |input, model: Model| refused(input, model.save_libsvm(dir.path()));
    let custom = Kernel::Custom(CustomKernel::new("mine", |a, b| a[0] * b[0]));
    let with_scheme = |scheme| Svc { scheme, ..Svc::default() }.fit(&data(), &Context::new());
    let with_kernel = |kernel| {
        let mut model = model();
        model.expansion_mut().unwrap().kernel = kernel;
        model
    };
    let mut named = model();
    named.classes.as_mut().unwrap().names[0] = Label::Text("setosa".into());
    let mut scaled = model();
    scaled.preparation.scaler = Some(Scaler::fit_standard(data().features()).unwrap());
    let isotonic = Calibration::Isotonic { knots: vec![vec![(0.0, 0.5)]] };
    let mut broken = model();
    broken.expansion_mut().unwrap().functions[0].offset = f64::NAN;
    vec![
        refused("saving a model with a user's kernel", with_kernel(custom).save(dir.path())),
        refused("saving a model whose offset is NaN", broken.save(dir.path())),
        refused("saving into a folder that does not exist", model().save(dir.0.path().join("a/b"))),
        refused("saving onto a full disk", model().save("/dev/full")),
        as_libsvm(
            "as LIBSVM model: a Laplacian kernel",
            with_kernel(Kernel::Laplacian { gamma: 1.0 }),
        ),
        as_libsvm("as LIBSVM model: one-vs-rest", with_scheme(Scheme::OneVsRest).unwrap()),
        as_libsvm("as LIBSVM model: class names that are words", named),
        as_libsvm("as LIBSVM model: with scaling", scaled),
        as_libsvm(
            "as LIBSVM model: isotonic probabilities",
            Model { calibration: Some(isotonic), ..model() },
        ),
        as_libsvm("as LIBSVM model: SVDD", Svdd::default().fit(&data(), &Context::new()).unwrap()),
        Case {
            input: "probabilities of a model trained without them",
            error: {
                let context = Context::new();
                let model = model();
                model.predictor(&context).unwrap().probabilities(data().features()).unwrap_err()
            },
        },
    ]
}

#[test]
fn every_bad_model_gets_the_message_of_the_documentation() {
    let dir = Folder(tempfile::tempdir().unwrap());
    let mut cases = native_cases(&dir);
    cases.extend(libsvm_cases(&dir));
    cases.extend(saving_cases(&dir));
    let folder = dir.0.path().display().to_string();
    let table: String = cases
        .iter()
        .map(|case| {
            let message = case.error.to_string().replace(&format!("{folder}/"), "");
            let message = message.replace(&folder, "FOLDER").replace('|', "\\|");
            format!("| {} | `{message}` |\n", case.input)
        })
        .collect();
    assert_documented(&table);
}
