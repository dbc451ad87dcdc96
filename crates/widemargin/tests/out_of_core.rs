//! Training from disk reaches the optimum of training in memory, also after being killed.

use std::fs;
use std::path::Path;

use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::machine::{
    LinearLoss, LinearOptions, LinearSvc, LinearSvr, Machine, Model, Precision,
};
use widemargin::operation::out_of_core::{LEAST_MEMORY, OutOfCore, OutOfCoreMachine, train};
use widemargin::solver::Status;
use widemargin::{Context, Error};

fn number(i: usize) -> f64 {
    (i.wrapping_mul(2_654_435_761) % 1_000_003) as f64 / 1_000_003.0
}

/// Sparse text with three classes, enough for some chunks of the smallest memory.
fn write_text(path: &Path, rows: usize) {
    let mut text = String::new();
    for i in 0..rows {
        let class = i % 3;
        text.push_str(&class.to_string());
        let mut index = 1;
        for k in 0..8 {
            index += 1 + (number(i * 11 + k) * 30.0) as usize;
            let value = number(index * 3 + class) + 0.3 * number(i + k);
            text.push_str(&format!(" {index}:{value:.4}"));
        }
        text.push('\n');
    }
    fs::write(path, text).unwrap();
}

fn job(folder: &Path, input: &Path) -> OutOfCore {
    OutOfCore {
        inputs: vec![input.to_owned()],
        folder: folder.join("work"),
        memory: LEAST_MEMORY,
        read: ReadOptions::new(),
    }
}

fn options(tol: f64) -> LinearOptions {
    LinearOptions { tol: Some(tol), precision: Precision::F64, ..LinearOptions::default() }
}

fn primal(model: &Model) -> f64 {
    let outcome = model.training.as_ref().unwrap().outcome;
    assert_eq!(outcome.status, Status::Solved);
    assert!(outcome.gap() >= -1e-9 * outcome.primal && outcome.gap() < 1e-2 * outcome.primal);
    outcome.primal
}

#[test]
fn disk_and_memory_agree() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    write_text(&text, 60_000);
    assert!(fs::metadata(&text).unwrap().len() as usize > 2 * LEAST_MEMORY / 12);
    let data = read_dataset(&text, &ReadOptions::new()).unwrap();
    let context = Context::new().with_threads(2).unwrap();
    let job = job(folder.path(), &text);
    for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
        let svc = LinearSvc { c: 0.05, loss, options: options(0.02), ..LinearSvc::default() };
        let expected = svc.fit(&data, &context).unwrap();
        let found = train(&OutOfCoreMachine::Classifier(svc), &job, &context).unwrap();
        let (a, b) = (primal(&found), expected.training.as_ref().unwrap().outcome.primal);
        assert!((a - b).abs() < 1e-2 * b, "{loss}: {a} and {b}");
        assert_eq!(found.functions.len(), 3);
        assert!(!job.folder.join("state.bin").exists());
    }
    let svr = LinearSvr { c: 0.05, options: options(1e-3), ..LinearSvr::default() };
    let expected = svr.fit(&data, &context).unwrap();
    let found = train(&OutOfCoreMachine::Regressor(svr), &job, &context).unwrap();
    let (a, b) = (primal(&found), expected.training.as_ref().unwrap().outcome.primal);
    assert!((a - b).abs() < 1e-3 * b, "{a} and {b}");
}

#[test]
fn an_interrupted_training_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    write_text(&text, 30_000);
    let job = job(folder.path(), &text);
    let svc = LinearSvc { c: 0.05, options: options(0.02), ..LinearSvc::default() };
    let machine = OutOfCoreMachine::Classifier(svc);
    let whole = train(&machine, &job, &Context::new()).unwrap();
    let token = widemargin::CancelToken::new();
    let stop = token.clone();
    let context =
        Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
            if matches!(event, widemargin::Event::Iteration { iteration: 2, .. }) {
                stop.cancel();
            }
        });
    let partial = train(&machine, &job, &context).unwrap();
    assert_eq!(partial.training.unwrap().outcome.status, Status::Interrupted);
    assert!(job.folder.join("state.bin").exists());
    let resumed = train(&machine, &job, &Context::new()).unwrap();
    assert_eq!(resumed.functions, whole.functions);
    assert_eq!(resumed.support, whole.support);
    // A damaged state is no state.
    train(&machine, &job, &context).unwrap();
    fs::write(job.folder.join("state.bin"), b"nonsense").unwrap();
    assert_eq!(train(&machine, &job, &Context::new()).unwrap().support, whole.support);
}

#[test]
fn mistakes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    fs::write(&text, "1 1:1\n2 1:x\n").unwrap();
    let job = job(folder.path(), &text);
    let machine = OutOfCoreMachine::Classifier(LinearSvc::default());
    let error = train(&machine, &job, &Context::new()).unwrap_err();
    assert!(matches!(error, Error::Parse { line: 2, .. }), "{error}");
    let small = OutOfCore { memory: 1000, ..job.clone() };
    let error = train(&machine, &small, &Context::new()).unwrap_err();
    assert!(error.to_string().starts_with("parameter memory: expected at least"), "{error}");
    fs::write(&text, "1 1:1\n1 1:2\n").unwrap();
    let error = train(&machine, &job, &Context::new()).unwrap_err();
    assert!(matches!(error, Error::OneClass { .. }), "{error}");
    fs::write(&text, "1 1:1\n-1 1:2\n").unwrap();
    train(&machine, &job, &Context::new()).unwrap();
    fs::write(job.folder.join("chunk-000000.bin"), b"short").unwrap();
    let error = train(&machine, &job, &Context::new()).unwrap_err();
    assert!(error.to_string().contains("chunk"), "{error}");
}
