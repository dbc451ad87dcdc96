//! Online training on the command line: streams, and going on from a model.

use crate::common::Folder;

/// The shipped iris rows, and every second of them in files of their own.
fn halves() -> Folder {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let iris = folder.read("iris.libsvm");
    for (name, rest) in [("first", 0), ("second", 1)] {
        let lines = iris.lines().enumerate().filter(|(i, _)| i % 2 == rest);
        let text: String = lines.map(|(_, line)| format!("{line}\n")).collect();
        folder.write(name, text);
    }
    folder
}

#[test]
fn a_stream_goes_on_from_a_model_as_a_file_does() {
    let folder = halves();
    let train = "train - --format libsvm --machine cs --online --gamma 0.5 --c 10 -o first.wm -q";
    folder.run_with_input(train, folder.read("first")).exits(0);
    let resume = "--online --resume first.wm --c 10 -q";
    folder.run(&format!("train second {resume} -o file.wm --sparse")).exits(0);
    let stream = format!("train - --format libsvm {resume} -o stream.wm");
    folder.run_with_input(&stream, folder.read("second")).exits(0);
    let answers = |model: &str| {
        let predict = format!("predict iris.libsvm -m {model} -q --decision-values");
        folder.run(&predict).exits(0).stdout
    };
    assert_eq!(answers("stream.wm"), answers("file.wm"));
    assert_ne!(answers("stream.wm"), answers("first.wm"));
    let right = folder.run("predict iris.libsvm -m stream.wm --json").exits(0).json();
    assert!(right["accuracy"].as_f64().unwrap() > 0.9, "{right}");
    // A model may be replaced by what it becomes.
    folder.run("train second --online --resume first.wm -o first.wm --c 10 -q --sparse").exits(0);
    assert_eq!(answers("first.wm"), answers("file.wm"));
}

#[test]
fn a_stream_without_rows_or_with_a_bad_line_is_an_error() {
    let folder = Folder::new();
    let train = "train - --format libsvm --machine ww --online -o m.wm";
    let empty = folder.run_with_input(train, "").exits(1);
    assert!(empty.stderr.contains("row"), "{}", empty.stderr);
    let bad = folder.run_with_input(train, "1 1:1\n2 1:x\n").exits(1);
    assert!(bad.stderr.contains("-:2:5"), "{}", bad.stderr);
    assert!(folder.names().is_empty());
}

#[test]
fn what_a_resumed_training_cannot_do_is_refused() {
    let folder = halves();
    folder.run("train first --machine cs --online -o first.wm -q").exits(0);
    folder.run("train first --machine cs --online --scale standard -o scaled.wm -q").exits(0);
    folder.run("train first -o svc.wm -q").exits(0);
    for (options, told) in [
        ("--resume first.wm --sample-weights missing", "--sample-weights"),
        ("--resume first.wm --probability", "--probability"),
        ("--resume first.wm --kernel linear", "--kernel"),
        ("--resume first.wm --gamma 2", "--gamma"),
        ("--resume first.wm --scale standard", "--scale"),
        ("--resume first.wm --epochs 3", "once"),
        ("--resume first.wm --machine ww", "--machine ww"),
        ("--resume scaled.wm", "scales"),
        ("--resume svc.wm", "models of ww"),
    ] {
        let run = folder.run(&format!("train second --online {options} -o m.wm")).exits(2);
        assert!(run.stderr.contains(told), "{options}: {}", run.stderr);
    }
    folder.run("train second --online --resume missing.wm -o m.wm").exits(1);
    assert!(!folder.names().contains(&"m.wm".to_owned()));
}
