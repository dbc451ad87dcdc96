//! Looking at files, converting them, scaling them, drawing them.

mod common;

use common::{Folder, PROGRAM};
use std::process::{Command, Stdio};

#[test]
fn inspect_tells_what_is_in_a_data_file() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let text = folder.run("inspect iris.csv --features 1").exits(0).stdout;
    assert!(text.contains("rows") && text.contains("150"), "{text}");
    assert!(text.contains("... and 3 more features"), "{text}");
    let json = folder.run("inspect iris.csv --json").exits(0).json();
    assert_eq!(json["kind"], "data");
    assert_eq!(json["labels"]["counts"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["feature_summaries"][0]["minimum"], 4.3);
}

#[test]
fn inspect_tells_what_is_in_a_model() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("train iris.libsvm --gamma 0.25").exits(0);
    let text = folder.run("inspect iris.wm").exits(0).stdout;
    for words in ["widemargin model", "rbf(gamma=0.25)", "one-vs-one", "solved", "c=1"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let native = folder.run("inspect iris.wm --json").exits(0).json();
    folder.run("convert iris.wm iris.model").exits(0);
    let libsvm = folder.run("inspect iris.model --json").exits(0).json();
    assert_eq!((&native["format"], &libsvm["format"]), (&"widemargin".into(), &"libsvm".into()));
    assert_eq!(native["support_vectors"], libsvm["support_vectors"]);
    assert_eq!(native["offsets"], libsvm["offsets"]);
    assert!(libsvm["training"].is_null());
}

#[test]
fn models_go_both_ways_and_predict_the_same() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("train iris.libsvm").exits(0);
    folder.run("convert iris.wm iris.model --to libsvm").exits(0);
    folder.run("convert iris.model back.wm --to native").exits(0);
    let answers = |model: &str| {
        folder.run(&format!("predict iris.libsvm --model {model} --quiet")).exits(0).stdout
    };
    assert_eq!(answers("iris.wm"), answers("iris.model"));
    assert_eq!(answers("iris.wm"), answers("back.wm"));
}

#[test]
fn data_survives_every_format() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("convert iris.libsvm iris.csv").exits(0);
    folder.run("convert iris.csv iris.npy --output-labels labels.npy").exits(0);
    folder.run("convert iris.npy iris.txt --labels labels.npy").exits(0);
    assert_eq!(folder.read("iris.txt"), folder.read("iris.libsvm"));
    let run = folder.run("convert iris.libsvm --to csv").exits(0);
    assert_eq!(run.stdout, folder.read("iris.csv"));
    folder.run("convert iris.libsvm -o other.csv").exits(0);
    assert_eq!(folder.read("other.csv"), folder.read("iris.csv"));
}

#[test]
fn scaling_is_learnt_kept_and_used_again() {
    let folder = Folder::new();
    folder.write("train", "1 1:2 2:10\n2 1:4 2:30\n");
    folder.write("test", "1 1:3 2:40\n");
    let run = folder.run("scale train --method minmax:0,1 --save ranges").exits(0);
    assert_eq!(run.stdout, "1\n2 1:1 2:1\n");
    assert_eq!(folder.read("ranges"), "x\n0 1\n1 2 4\n2 10 30\n");
    let run = folder.run("scale test --load ranges").exits(0);
    assert_eq!(run.stdout, "1 1:0.5 2:1.5\n");
    folder.run("scale train --method standard --save s.json -o scaled.csv").exits(0);
    assert_eq!(folder.read("scaled.csv"), "x1,x2,label\n-1,-1,1\n1,1,2\n");
    let run = folder.run("scale test --load s.json").exits(0);
    assert_eq!(run.stdout, "1 2:2\n");
    folder.write("s.json", "{\"kind\":");
    let run = folder.run("scale test --load s.json").exits(1);
    assert!(run.stderr.starts_with("error: s.json:1:"), "{}", run.stderr);
}

#[test]
fn pictures_are_drawn() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.run("train iris.csv --multiclass ovr").exits(0);
    for (arguments, words) in [
        ("regions iris.csv --model iris.wm --axes 3,4 --cells 30", "setosa"),
        ("confusion iris.csv --model iris.wm", "predicted"),
        ("roc iris.csv --model iris.wm", "area"),
    ] {
        folder.run(&format!("plot {arguments} -o picture.svg")).exits(0);
        let svg = folder.read("picture.svg");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{arguments}");
        assert!(svg.contains(words), "{arguments}: {words}");
        let stdout = folder.run(&format!("plot {arguments} -o -")).exits(0).stdout;
        assert_eq!(stdout, svg);
    }
    let run = folder.run("plot regions iris.csv --model iris.wm --axes 3,9 -o p.svg").exits(2);
    assert!(run.stderr.contains("two of the 4 features"), "{}", run.stderr);
    assert!(!folder.names().contains(&"p.svg".to_owned()));
}

#[test]
fn completions_know_the_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&format!("completions {shell}")).exits(0).stdout;
        for word in ["cross-validate", "svm-train", "kernel"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn help_has_examples() {
    let folder = Folder::new();
    for command in [
        "",
        "train",
        "predict",
        "cross-validate",
        "scale",
        "inspect",
        "convert",
        "plot",
        "completions",
    ] {
        let run = folder.run(&format!("{command} --help")).exits(0);
        assert!(run.stdout.contains("Examples:"), "{command}");
    }
    assert!(folder.run("--version").exits(0).stdout.starts_with("widemargin "));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    folder.write("long", "1 1:1 2:2\n".repeat(200_000));
    let mut child = Command::new(PROGRAM)
        .args(["convert", "long", "--to", "csv"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn nothing_is_left_when_a_save_fails() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("train iris.libsvm -o no/such/folder.wm").exits(1);
    folder.run("train iris.libsvm -o /dev/full").exits(1);
    assert_eq!(folder.names(), ["iris.libsvm"]);
}
