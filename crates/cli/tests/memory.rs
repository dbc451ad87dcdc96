//! Rows with a huge index in a program that may take little memory: what does not fit is refused with the
//! number of bytes it would take, and nothing is aborted by a failed allocation.

#![cfg(target_os = "linux")]

use std::fmt::Write;
use std::process::{Command, Stdio};

use crate::common::{Folder, PROGRAM, Run};

use widemargin::machine::Specification;

/// Address space of the program, in kibibytes: less than one number for each of 2^27 features.
const KIBIBYTES: usize = 1_000_000;

/// Runs the program in little memory; it ends by itself, and says how much memory is missing if it fails.
fn run_in_little_memory(folder: &Folder, line: &str) -> Run {
    let limited = format!("ulimit -v {KIBIBYTES}; exec \"$0\" {line}");
    let output = Command::new("sh")
        .args(["-c", &limited, PROGRAM])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("a shell starts");
    let run = Run::from(output);
    let failed = match run.code {
        Some(0 | 3) => false,
        Some(1) => true,
        code => panic!("{line}: {code:?}\n{}", run.stderr),
    };
    let says_why = run.stderr.contains("bytes, more than the limit of");
    assert_eq!(failed, says_why, "{line}\n{}", run.stderr);
    run
}

fn folder() -> Folder {
    let folder = Folder::new();
    let mut text = String::new();
    for i in 0..16 {
        let (label, index) = (1 + i % 2, 1 + i % 5);
        writeln!(text, "{label} {index}:0.{} 134217728:{}", i + 1, 1 + i % 3).expect("a string");
    }
    folder.write("rows", text);
    folder
}

#[test]
fn every_machine_learns_sparsely_or_says_what_it_would_need() {
    let folder = folder();
    let mut learnt = Vec::new();
    for specification in Specification::all() {
        let name = specification.name();
        let options = match name.strip_prefix("online ") {
            Some(batch) => format!("{batch} --online"),
            None => name.to_string(),
        };
        let run = run_in_little_memory(&folder, &format!("train rows -s {options} -o m.wm -q"));
        if run.code != Some(1) {
            learnt.push(name.to_string());
            run_in_little_memory(&folder, "predict rows --model m.wm -q");
            run_in_little_memory(&folder, "inspect m.wm");
        }
    }
    for name in [
        "c-svc",
        "ls-svc",
        "ww",
        "knn",
        "parzen",
        "density",
        "pnn",
        "spectral",
        "kmeans",
        "linear-svc",
        "logistic",
        "linear-svr",
        "linear-one-class",
        "rank-svm",
    ] {
        assert!(learnt.iter().any(|known| known == name), "{name} needs no dense rows");
    }
}

#[test]
fn every_command_works_on_sparse_rows_or_says_what_it_would_need() {
    let folder = folder();
    run_in_little_memory(&folder, "train rows -o k.wm -q").exits(0);
    for line in [
        "train rows -o m.wm -q --online",
        "train rows -o m.wm -q -s ww --online",
        "train rows -o m.wm -q --probability",
        "train rows -o m.wm -q --scale standard",
        "train rows -o m.wm -q --scale minmax",
        "train rows -o m.wm -q --linear --approximate rff:20",
        "train rows -o m.wm -q --linear --approximate nystroem:4",
        "train rows -o m.wm -q -s linear-svc --penalty l1",
        "train rows -o m.wm -q -s linear-svc --multiclass crammer-singer",
        "train rows -o m.wm -q -s gmm --covariance diag",
        "train rows -o m.wm -q -s knn --metric mahalanobis",
        "train rows -o m.wm -q --sites 2",
        "train rows -o m.wm -q -s linear-svc --sites 2",
        "cross-validate rows -q",
        "tune rows -q --grid c=1,10",
        "scale rows -o scaled.txt",
        "inspect rows",
        "convert rows -o rows.csv",
        "convert rows -o rows.npy",
        "compress k.wm -o c.wm --vectors 2",
        "plot regions rows --model k.wm -o c.svg",
        "plot confusion rows --model k.wm -o c.svg",
        "svm-train rows m",
        "ll-train rows m",
        "ll-train -s 11 rows m",
        "ll-train -s 21 rows m",
    ] {
        run_in_little_memory(&folder, line);
    }
}

/// Random rows of two classes that no machine separates, so that the whole kernel matrix is asked for.
fn overlapping(rows: u32) -> String {
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut text = String::new();
    for _ in 0..rows {
        let label = 1 + random() % 2;
        write!(text, "{label}").expect("a string");
        (1..4).for_each(|j| write!(text, " {j}:0.{:04}", random() % 10_000).expect("a string"));
        text.push('\n');
    }
    text
}

#[test]
fn a_cache_larger_than_the_memory_is_a_smaller_cache_or_an_error() {
    let folder = Folder::new();
    // The matrix takes 900 MB, and as much is asked for as there is.
    folder.write("rows", overlapping(15_000));
    let train = "train rows -o m.wm --gamma 50 --c 1000 --cache-mb 4000 --max-time 8 -q --threads";
    for (kibibytes, threads) in [(900_000, 1), (600_000, 1), (900_000, 2)] {
        let limited = format!("ulimit -v {kibibytes}; exec \"$0\" {train} {threads}");
        let output = Command::new("sh")
            .args(["-c", &limited, PROGRAM])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("a shell starts");
        let run = Run::from(output);
        let words = &run.stderr;
        match run.code {
            Some(0 | 3 | 124) => {
                std::fs::remove_file(folder.file("m.wm")).expect("a model was written");
            }
            Some(1) => assert!(words.contains("out of memory"), "{words}"),
            code => panic!("{kibibytes} {threads}: {code:?} {words}"),
        }
    }
}
