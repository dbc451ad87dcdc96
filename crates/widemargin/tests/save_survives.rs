//! A model file is never lost while it is being replaced: not to `kill -9`, not to a full disk.
//!
//! The test program starts itself again as a child that saves models; the child is then killed, or
//! limited in the size of its files as a full disk would.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use widemargin::data::{Dense, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{DecisionFunction, KernelExpansion, MachineKind, Model, Part, Precision};

/// Where the child saves, and how often.
const TARGET: &str = "WIDEMARGIN_TEST_TARGET";
const ROUNDS: &str = "WIDEMARGIN_TEST_ROUNDS";

/// A model of about 1.6 MB whose offset says which one it is.
fn model(number: usize) -> Model {
    let (rows, columns) = (2000, 100);
    let values = (0..rows * columns).map(|i| (i * (number + 1)) as f64).collect();
    let body = KernelExpansion {
        kernel: Kernel::Linear,
        precision: Precision::F64,
        support: Matrix::DenseF64(Dense::new(rows, columns, values).unwrap()),
        support_rows: Vec::new(),
        functions: vec![DecisionFunction {
            parts: vec![Part { support: 0..rows, coefficients: vec![number as f64; rows] }],
            offset: number as f64,
        }],
    };
    Model::new(MachineKind::OneClass, body)
}

/// The model in the file, which must be one that was saved completely.
fn intact(path: &Path) -> usize {
    let found = Model::load(path).expect("the model file is damaged");
    let number = found.functions()[0].offset as usize;
    assert_eq!(found, model(number));
    number
}

#[test]
#[ignore = "the child of the other tests"]
fn saving_child() {
    let (Ok(path), Ok(rounds)) = (std::env::var(TARGET), std::env::var(ROUNDS)) else { return };
    for number in 1..=rounds.parse().unwrap() {
        if let Err(error) = model(number).save(&path) {
            eprintln!("save failed: {error}");
            std::process::exit(3);
        }
    }
}

/// This program as the child, started through a shell that first runs `limits`.
fn start(limits: &str, path: &Path, rounds: usize) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &format!("{limits} exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["saving_child", "--ignored", "--nocapture"])
        .env(TARGET, path)
        .env(ROUNDS, rounds.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn killing_a_save_leaves_a_whole_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.wm");
    model(0).save(&path).unwrap();
    let mut seen = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(20);
    for round in 0..25_u64 {
        let mut child = start("", &path, usize::MAX);
        // Different delays catch different moments of the save.
        std::thread::sleep(Duration::from_millis(15 + 7 * (round % 11)));
        child.kill().unwrap();
        child.wait().unwrap();
        seen.push(intact(&path));
        if Instant::now() > deadline {
            break;
        }
    }
    assert!(seen.iter().any(|&number| number > 0), "no child ever saved: {seen:?}");
    model(7).save(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "temporary files were left");
}

#[test]
fn a_full_disk_is_reported_and_leaves_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.wm");
    model(0).save(&path).unwrap();
    // With the signal ignored, a write beyond the limit fails as one on a full disk does.
    let child = start("trap '' XFSZ; ulimit -f 100;", &path, 1);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains(&format!("save failed: {}: ", path.display())), "{message}");
    assert_eq!(intact(&path), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left");
}

#[test]
fn dying_of_a_full_disk_leaves_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.wm");
    model(0).save(&path).unwrap();
    let output = start("ulimit -f 100; ulimit -c 0;", &path, 1).wait_with_output().unwrap();
    assert!(output.status.code().is_none_or(|code| code != 0), "the limit had no effect");
    assert_eq!(intact(&path), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_reported() {
    let error = model(0).save("/proc/widemargin/model.wm").unwrap_err().to_string();
    assert!(error.starts_with("/proc/widemargin/model.wm: "), "{error}");
    let error = Model::load("/proc/widemargin/model.wm").unwrap_err().to_string();
    assert!(error.starts_with("/proc/widemargin/model.wm: "), "{error}");
    let error = Model::load(std::env::temp_dir()).unwrap_err().to_string();
    assert!(error.to_lowercase().contains("directory"), "{error}");
}
