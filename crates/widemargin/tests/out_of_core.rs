//! Training from disk reaches the optimum of training in memory, also after being killed.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use widemargin::Status;
use widemargin::data::read::{IndexBase, ReadOptions, read_dataset};
use widemargin::machine::{
    LinearLoss, LinearOptions, LinearSolver, LinearSvc, LinearSvr, Machine, Model, Precision,
};
use widemargin::operation::out_of_core::{LEAST_MEMORY, OutOfCore, OutOfCoreMachine, train};
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

/// A folder with some rows, and how to train on them.
fn some_rows() -> (tempfile::TempDir, OutOfCore) {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    write_text(&text, 30_000);
    let job = job(folder.path(), &text);
    (folder, job)
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
        assert_eq!(found.offsets().len(), 3);
        assert!(!job.folder.join("state.bin").exists());
    }
    let svr = LinearSvr { c: 0.05, options: options(1e-3), ..LinearSvr::default() };
    let expected = svr.fit(&data, &context).unwrap();
    let found = train(&OutOfCoreMachine::Regressor(svr), &job, &context).unwrap();
    let (a, b) = (primal(&found), expected.training.as_ref().unwrap().outcome.primal);
    assert!((a - b).abs() < 1e-3 * b, "{a} and {b}");
}

#[test]
fn newton_from_disk_and_in_memory_agree() {
    let folder = tempfile::tempdir().unwrap();
    let (wide, narrow) = (folder.path().join("wide.txt"), folder.path().join("narrow.txt"));
    write_text(&wide, 60_000);
    // Few features: the sampled Hessian is factored.
    let row = |i: usize| {
        let value = |k: usize| number(i * 5 + k) + 0.2 * ((i % 3 + k) % 3) as f64;
        format!("{} 1:{:.4} 2:{:.4} 4:{:.4}\n", i % 3, value(1), value(2), value(4))
    };
    fs::write(&narrow, (0..120_000).map(row).collect::<String>()).unwrap();
    let context = Context::new().with_threads(2).unwrap();
    for text in [&wide, &narrow] {
        assert!(fs::metadata(text).unwrap().len() as usize > 2 * LEAST_MEMORY / 12);
        let data = read_dataset(text, &ReadOptions::new()).unwrap();
        let job = job(folder.path(), text);
        let (solver, options) = (LinearSolver::Newton, options(1e-7));
        for loss in [LinearLoss::SquaredHinge, LinearLoss::Logistic] {
            let svc = LinearSvc { c: 0.05, loss, solver, options, ..LinearSvc::default() };
            let expected = primal(&svc.fit(&data, &context).unwrap());
            let found = train(&OutOfCoreMachine::Classifier(svc), &job, &context).unwrap();
            assert!((primal(&found) - expected).abs() < 1e-10 * expected, "{loss}");
            assert!(!job.folder.join("state.bin").exists());
        }
        let svr = LinearSvr { c: 0.05, squared: true, solver, options, ..LinearSvr::default() };
        let expected = primal(&svr.fit(&data, &context).unwrap());
        let found = train(&OutOfCoreMachine::Regressor(svr), &job, &context).unwrap();
        assert!((primal(&found) - expected).abs() < 1e-10 * expected);
    }
}

#[test]
fn two_classes_with_a_smooth_loss_go_by_newton() {
    let (folder, job) = some_rows();
    let text = folder.path().join("rows.txt");
    let two: String = fs::read_to_string(&text).unwrap().replace("\n2 ", "\n1 ");
    fs::write(&text, two).unwrap();
    let data = read_dataset(&text, &ReadOptions::new()).unwrap();
    let svc = LinearSvc { c: 0.05, options: options(1e-7), ..LinearSvc::default() };
    let expected = primal(&svc.fit(&data, &Context::new()).unwrap());
    let machine = OutOfCoreMachine::Classifier(svc);
    let found = train(&machine, &job, &Context::new()).unwrap();
    assert!((primal(&found) - expected).abs() < 1e-10 * expected);
    let passes = found.training.as_ref().unwrap().outcome.blocks;
    assert!(passes < 20, "{passes} steps are those of Newton");
}

/// A context that stops a training after its second round.
fn stopping() -> Context {
    let token = widemargin::CancelToken::new();
    let stop = token.clone();
    Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
        if matches!(event, widemargin::Event::Iteration { iteration: 2, .. }) {
            stop.cancel();
        }
    })
}

#[test]
fn interrupted_steps_of_newton_go_on_where_they_were() {
    let (_folder, job) = some_rows();
    let solver = LinearSolver::Newton;
    let svc = LinearSvc { c: 0.05, solver, options: options(1e-7), ..LinearSvc::default() };
    let machine = OutOfCoreMachine::Classifier(svc);
    let whole = train(&machine, &job, &Context::new()).unwrap();
    let partial = train(&machine, &job, &stopping()).unwrap();
    assert_eq!(partial.training.unwrap().outcome.status, Status::Interrupted);
    assert!(job.folder.join("state.bin").exists());
    let made = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&made);
    let counting = Context::new().with_observer(move |event: &widemargin::Event| {
        if matches!(event, widemargin::Event::Iteration { .. }) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let resumed = train(&machine, &job, &counting).unwrap();
    let (found, expected) = (primal(&resumed), primal(&whole));
    assert!((found - expected).abs() < 1e-10 * expected, "{found} and {expected}");
    assert!(!job.folder.join("state.bin").exists());
    let steps = whole.training.as_ref().unwrap().outcome.blocks;
    assert!(made.load(Ordering::Relaxed) < steps, "the first steps are not made again");
}

#[test]
fn an_interrupted_training_goes_on_where_it_was() {
    let (_folder, job) = some_rows();
    let svc = LinearSvc { c: 0.05, options: options(0.02), ..LinearSvc::default() };
    let machine = OutOfCoreMachine::Classifier(svc);
    let whole = train(&machine, &job, &Context::new()).unwrap();
    let partial = train(&machine, &job, &stopping()).unwrap();
    assert_eq!(partial.training.unwrap().outcome.status, Status::Interrupted);
    assert!(job.folder.join("state.bin").exists());
    let resumed = train(&machine, &job, &Context::new()).unwrap();
    assert_eq!(resumed.functions(), whole.functions());
    assert_eq!(resumed.body, whole.body);
    // Nothing is solved whose verification was left.
    let passes = whole.training.as_ref().unwrap().outcome.blocks as usize;
    let token = widemargin::CancelToken::new();
    let (stop, verifies) = (token.clone(), AtomicBool::new(false));
    let context =
        Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
            match event {
                widemargin::Event::Iteration { iteration, .. } if *iteration == passes => {
                    verifies.store(true, Ordering::Relaxed);
                }
                widemargin::Event::Stage { .. } if verifies.load(Ordering::Relaxed) => {
                    stop.cancel()
                }
                _ => {}
            }
        });
    let partial = train(&machine, &job, &context).unwrap();
    assert_eq!(partial.training.unwrap().outcome.status, Status::Interrupted);
    assert!(job.folder.join("state.bin").exists());
    fs::remove_file(job.folder.join("state.bin")).unwrap();
    // A damaged state is no state.
    train(&machine, &job, &stopping()).unwrap();
    fs::write(job.folder.join("state.bin"), b"nonsense").unwrap();
    assert_eq!(train(&machine, &job, &Context::new()).unwrap().body, whole.body);
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
    let hinge = LinearSvc { loss: LinearLoss::Hinge, ..LinearSvc::default() };
    for (solver, expected) in
        [(LinearSolver::Newton, "dual or auto"), (LinearSolver::Blocks, "auto")]
    {
        let machine = OutOfCoreMachine::Classifier(LinearSvc { solver, ..hinge.clone() });
        let error = train(&machine, &job, &Context::new()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("parameter solver: expected {expected}")), "{error}");
    }
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

#[test]
fn chunks_serve_again_for_the_same_content_read_alike_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    let machine = OutOfCoreMachine::Classifier(LinearSvc::default());
    let job = job(folder.path(), &text);
    let context = Context::new();
    let write = |content: &str| {
        fs::write(&text, content).unwrap();
        // As copies and archives do, the time says nothing about the content.
        fs::File::open(&text).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    };
    let manifest = || fs::metadata(job.folder.join("chunks.json")).unwrap().modified().unwrap();
    write("1 1:1 3:2\n-1 1:2\n");
    let columns = |job: &OutOfCore| train(&machine, job, &context).unwrap().features();
    assert_eq!(columns(&job), 3);
    let made = manifest();
    fs::File::open(&text).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    assert_eq!(columns(&job), 3);
    assert_eq!(manifest(), made, "the same content is not converted again");
    write("1 1:1 7:2\n-1 1:2\n");
    assert_eq!(columns(&job), 7, "other content of the same size and time");
    let zero_based = OutOfCore { read: ReadOptions::new().index_base(IndexBase::Zero), ..job };
    assert_eq!(columns(&zero_based), 8, "indices from 0");
    fs::write(zero_based.folder.join("chunk-000009.bin"), b"of a larger table").unwrap();
    write("1 1:1 2:2\n-1 1:2\n");
    assert_eq!(columns(&zero_based), 3);
    assert!(!zero_based.folder.join("chunk-000009.bin").exists());
}

#[test]
fn a_line_that_memory_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("rows.txt");
    fs::write(&text, format!("1 1:1\n2 1:{}\n", "0".repeat(LEAST_MEMORY / 4))).unwrap();
    let machine = OutOfCoreMachine::Classifier(LinearSvc::default());
    let error = train(&machine, &job(folder.path(), &text), &Context::new()).unwrap_err();
    assert!(error.to_string().contains("a line is longer than"), "{error}");
}
