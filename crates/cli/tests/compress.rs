//! Smaller models: size, accuracy, formats, and wishes that make no sense.

use crate::common::Folder;

/// A model of the digits and its file of data.
fn digits() -> Folder {
    let folder = Folder::new();
    folder.copy("digits.libsvm.xz");
    folder.run("train digits.libsvm.xz --gamma 0.001 --c 10 -o digits.wm").exits(0);
    folder
}

#[test]
fn a_tenth_of_the_vectors_answers_nearly_as_well() {
    let folder = digits();
    let report = folder
        .run("compress digits.wm --ratio 10% --data digits.libsvm.xz -o small.wm --json")
        .exits(0)
        .json();
    let number = |name: &str| report[name].as_f64().unwrap();
    let ratio = number("distinct_after") / number("distinct_before");
    assert!((0.095..=0.105).contains(&ratio), "{report}");
    let accuracy = |which: &str| report[which]["accuracy"].as_f64().unwrap();
    assert!(accuracy("after") > accuracy("before") - 0.01, "{report}");
    let inspected = folder.run("inspect small.wm --json").exits(0).json();
    assert_eq!(inspected["support_vectors"], report["distinct_after"]);
    let text = folder
        .run("compress digits.wm --vectors 300 --refine 0 --data digits.libsvm.xz -o small.wm")
        .exits(0)
        .stdout;
    for words in
        ["before", "after", "accuracy %", "time to predict", "faster", "largest difference"]
    {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn a_libsvm_model_stays_one_and_two_runs_write_the_same_bytes() {
    let folder = digits();
    folder.run("convert digits.wm digits.model --to libsvm").exits(0);
    folder.run("compress digits.model --mmd 0.5 --refine 10 -o one.model --threads 1").exits(0);
    folder.run("compress digits.model --mmd 0.5 --refine 10 -o two.model --threads 2").exits(0);
    assert_eq!(folder.read("one.model"), folder.read("two.model"));
    assert!(folder.read("one.model").starts_with("svm_type c_svc"));
}

#[test]
fn wishes_that_make_no_sense_are_refused() {
    let folder = digits();
    for (wish, code, words) in [
        ("compress digits.wm -o small.wm", 2, "required"),
        ("compress digits.wm --ratio 2 -o small.wm", 2, "at most 1"),
        ("compress digits.wm --ratio 0.1 --vectors 5 -o small.wm", 2, "cannot be used with"),
        ("compress digits.wm --max-loss 1% -o small.wm", 2, "--data"),
        ("compress digits.wm --vectors 0 -o small.wm", 2, "at least 1"),
        ("compress digits.wm --mmd nan -o small.wm", 2, "at least 0"),
        ("compress digits.wm --ratio 0.1 --method magic -o small.wm", 2, "kernel-pca"),
        ("compress digits.wm --mmd 1 --method prune -o small.wm", 2, "merge"),
        ("compress digits.wm --ratio 0.1 --plot way.svg -o small.wm", 2, "--data"),
        ("compress digits.libsvm.xz --ratio 0.1 -o small.wm", 2, "a model was expected"),
        ("compress missing.wm --ratio 0.1 -o small.wm", 1, "missing.wm"),
    ] {
        let stderr = folder.run(wish).exits(code).stderr;
        assert!(stderr.contains(words), "{wish}: {stderr}");
    }
    folder.run("train digits.libsvm.xz --kernel laplacian --gamma 0.01 -o other.wm").exits(0);
    let stderr = folder.run("compress other.wm --ratio 0.1 -o small.wm").exits(1).stderr;
    assert!(stderr.contains("cannot be merged") && stderr.contains("prune"), "{stderr}");
    folder.run("compress other.wm --ratio 0.3 --method prune -o small.wm").exits(0);
}

#[test]
fn a_linear_model_becomes_a_vector_per_function() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.run("train iris.csv --kernel linear -o iris.wm --probability").exits(0);
    let run = folder.run("compress iris.wm --lossless --data iris.csv -o small.wm").exits(0);
    assert!(run.stdout.contains("calibrated again"), "{}", run.stdout);
    let inspected = folder.run("inspect small.wm --json").exits(0).json();
    assert_eq!(inspected["support_vectors"], 3);
    let answers = |model: &str| {
        folder.run(&format!("predict iris.csv --model {model} -o answers.txt")).exits(0);
        folder.read("answers.txt")
    };
    assert_eq!(answers("iris.wm"), answers("small.wm"));
}

#[test]
fn sizes_are_drawn_and_the_smallest_within_a_loss_is_found() {
    let folder = digits();
    let report = folder
        .run(
            "compress digits.wm --max-loss 1% --refine 5 --data digits.libsvm.xz --plot way.svg \
             -o small.wm --json",
        )
        .exits(0)
        .json();
    let accuracy = |which: &str| report[which]["accuracy"].as_f64().unwrap();
    assert!(accuracy("after") >= accuracy("before") - 0.01, "{report}");
    let number = |name: &str| report[name].as_f64().unwrap();
    assert!(number("distinct_after") < 0.2 * number("distinct_before"), "{report}");
    let picture = folder.read("way.svg");
    assert!(picture.starts_with("<svg") && picture.contains("vectors"));
}
