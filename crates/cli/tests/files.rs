//! Looking at files, converting them, scaling them, drawing them.

use std::process::{Command, Stdio};

use crate::common::{Folder, PROGRAM};

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
        "man",
    ] {
        let run = folder.run(&format!("{command} --help")).exits(0);
        assert!(run.stdout.contains("Examples:"), "{command}");
    }
    assert!(folder.run("--version").exits(0).stdout.starts_with("widemargin "));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    folder.run("man pages/man1").exits(0);
    let page = |name: &str| folder.read(&format!("pages/man1/{name}.1"));
    assert!(page("widemargin").contains(".TH widemargin 1"));
    for command in ["train", "tune", "plot-regions", "sequence-label", "svm-train", "ll-predict"] {
        let text = page(&format!("widemargin-{command}"));
        assert!(text.starts_with(".ie") && text.contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(page("widemargin-train").contains("max\\-time"));
    folder.write("file", "");
    let run = folder.run("man file").exits(1);
    assert!(run.stderr.starts_with("error: file: "), "{}", run.stderr);
}

#[test]
fn verbose_tells_the_steps_and_nothing_on_standard_output() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let run = folder.run("train iris.csv --verbose --json").exits(0);
    let report = run.json();
    assert!(run.stderr.contains("block ") && run.stderr.contains("KKT violation"));
    let solved = run.stderr.matches("support vectors (").count();
    assert_eq!(solved, 3, "{}", run.stderr);
    assert!(run.stderr.contains("function 3: solved"), "{}", run.stderr);
    assert!(report.is_object());
    let quiet = folder.run("train iris.csv --json").exits(0);
    assert!(!quiet.stderr.contains("KKT"));
    folder.run("train iris.csv --verbose --quiet").exits(2);
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
fn a_closed_pipe_loses_no_model() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    for (words, model) in [
        ("tune iris.csv --grid c=1,2 -o tuned.wm", "tuned.wm"),
        ("tune iris.csv --grid c=1,2 --json -o json.wm", "json.wm"),
        ("train iris.csv -o trained.wm", "trained.wm"),
        ("cluster iris.csv --machine kmeans --clusters 3 --save-model centres.wm", "centres.wm"),
        ("compress trained.wm --ratio 0.5 -o small.wm", "small.wm"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let mut child = folder
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {told}");
        folder.run(&format!("inspect {model}")).exits(0);
    }
}

#[test]
fn nothing_is_left_when_a_save_fails() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("train iris.libsvm -o no/such/folder.wm").exits(1);
    folder.run("train iris.libsvm -o /dev/full").exits(1);
    assert_eq!(folder.names(), ["iris.libsvm"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_data() {
    let folder = Folder::new();
    folder.write("plain", "1 1:2\n-1 1:3\n1 2:1\n");
    folder.write("marked", "\u{feff}1 1:2\n-1 1:3\n1 2:1\n");
    for threads in ["", "--threads 2"] {
        folder.run(&format!("train plain -o plain.wm -q {threads}")).exits(0);
        let marked = folder.run(&format!("train marked -o marked.wm --json {threads}")).exits(0);
        assert_eq!(marked.json()["classes"], serde_json::json!([-1, 1]));
        assert_eq!(folder.run("convert marked").exits(0).stdout, folder.read("plain"));
        assert_eq!(folder.run("svm-scale marked").exits(0).stdout.lines().count(), 3);
    }
    folder.write("weights", "\u{feff}1\n2\n1\n");
    folder.run("train plain --sample-weights weights -o m.wm -q").exits(0);
    folder.write("table.csv", "\u{feff}a,class\n1,x\n2,y\n");
    assert_eq!(folder.run("convert table.csv").exits(0).stdout, "x 1:1\ny 1:2\n");
    folder.write("features.npy", std::fs::read(npy(&folder)).unwrap());
    folder.write("labels", "\u{feff}7\n8\n9\n");
    let run = folder.run("convert features.npy --labels labels").exits(0);
    assert!(run.stdout.starts_with("7 "), "{}", run.stdout);
    folder.run("convert plain.wm plain.model").exits(0);
    folder.write("marked.model", format!("\u{feff}{}", folder.read("plain.model")));
    let answers = |model: &str| folder.run(&format!("predict plain -m {model} -q")).exits(0).stdout;
    assert_eq!(answers("marked.model"), answers("plain.wm"));
}

fn npy(folder: &Folder) -> std::path::PathBuf {
    folder.run("convert plain plain.npy --output-labels plain.labels.npy").exits(0);
    folder.file("plain.npy")
}

#[test]
fn a_table_with_a_column_called_label_is_no_model() {
    let folder = Folder::new();
    for name in ["label", "gamma", "degree", "rho"] {
        folder.write("table.txt", format!("{name} x1 x2\n1 2 3\n0 1 1\n"));
        let run = folder.run("inspect table.txt").exits(1);
        assert!(run.stderr.contains("index:value"), "{}", run.stderr);
        let run = folder.run("predict table.txt -m table.txt").exits(1);
        assert!(run.stderr.contains("LIBLINEAR model file, but it begins"), "{}", run.stderr);
    }
}

#[test]
fn labels_and_names_cannot_break_lines_or_command_the_terminal() {
    let folder = Folder::new();
    let table = "\"na\u{1b}[2Jme\",class\n1,\"two\nlines\"\n9,b\u{1b}[31m\n2,\"two\nlines\"\n8,b\u{1b}[31m\n";
    folder.write("odd.csv", table);
    let trained = folder.run("train odd.csv --probability --test odd.csv").exits(0);
    let run = folder.run("predict odd.csv -m odd.wm -q").exits(0);
    assert_eq!(run.lines(), ["two\\nlines", "b\\u001b[31m", "two\\nlines", "b\\u001b[31m"]);
    folder.run("predict odd.csv -m odd.wm --probability -o p.txt").exits(0);
    let lines = folder.read("p.txt");
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert_eq!(lines.lines().next().unwrap().split('\t').count(), 3, "{lines}");
    folder.run("cross-validate odd.csv --folds 2 -o cv.txt").exits(0);
    assert_eq!(folder.read("cv.txt").lines().count(), 4);
    for command in
        ["inspect odd.csv", "inspect odd.wm", "inspect odd.wm --json", "convert odd.csv -o x.txt"]
    {
        let run = folder.run(command);
        assert!(!run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'), "{command}");
    }
    assert!(!trained.stdout.contains('\u{1b}') && !trained.stderr.contains('\u{1b}'));
    let run = folder.run_words(&["train", "\u{1b}[2Jnone"]).exits(1);
    assert!(run.stderr.contains("\\u001b[2Jnone"), "{}", run.stderr);
}

/// Commands whose output is one of their inputs, or another output.
const DESTRUCTIVE: &[&str] = &[
    "train iris.csv -o iris.csv",
    "train link.csv -o iris.csv",
    "train iris.csv -o link.csv",
    "train iris.csv -o ./iris.csv",
    "train iris.csv --sample-weights weights -o weights",
    "train iris.csv --labels labels -o labels",
    "train iris.csv --test scaled.csv -o scaled.csv",
    "train iris.wm",
    "predict iris.csv -m iris.wm -o iris.csv",
    "predict iris.csv -m iris.wm -o iris.wm",
    "cross-validate iris.csv -o iris.csv",
    "tune iris.csv --grid c=1,2 -o iris.csv",
    "tune iris.csv --grid c=1,2 --table iris.csv",
    "tune iris.csv --grid c=1,2 --journal iris.csv",
    "tune iris.csv --grid c=1,2 --table t.csv -o t.csv",
    "scale iris.csv -o iris.csv",
    "scale iris.csv --save iris.csv -o new.csv",
    "scale iris.csv --load ranges -o ranges",
    "scale iris.csv --save new -o new",
    "convert iris.csv iris.csv",
    "convert iris.wm -o iris.wm",
    "compress iris.wm --ratio 0.5 -o iris.wm",
    "compress iris.wm --max-loss 1% --data iris.csv -o iris.csv",
    "threshold two.wm iris.csv --false-positives 0.1 -o two.wm",
    "plot confusion scaled.csv --model iris.wm -o iris.svg -o scaled.csv",
    "compare iris.svg -o iris.svg",
    "compare iris.csv --kernels linear,rbf -o a.svg --shares a.svg",
    "cluster iris.csv -o iris.csv",
    "cluster iris.csv --machine kmeans --clusters 3 --save-model clusters -o clusters",
    "cluster scaled.csv --labels labels -o labels",
    "sequence train tags.txt -o tags.txt",
    "sequence train tags.txt --test more.txt -o more.txt",
    "sequence train tags.txt --templates templates -o templates",
    "sequence label tags.txt --model tags.wm -o tags.txt",
    "sequence label tags.txt --model tags.wm -o tags.wm",
    "train iris.libsvm half.libsvm --sites 2 -o half.libsvm",
    "train iris.libsvm --kernels linear,rbf --transduce half.libsvm --transduced half.libsvm -o m",
    "train iris.libsvm --kernels linear,rbf --transduce half.libsvm --transduced m -o m",
    "train iris.libsvm --robust ramp --outliers iris.libsvm -o m",
    "train iris.libsvm --robust ramp --outliers m -o m",
];

#[test]
fn an_output_that_is_an_input_is_refused_and_nothing_is_lost() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.copy("iris.libsvm");
    folder.run("train iris.csv -o iris.wm -q").exits(0);
    folder.run("train iris.csv -o two.wm -q").exits(0);
    folder.run("scale iris.csv --save ranges -o scaled.csv").exits(0);
    folder.write("weights", "1\n".repeat(150));
    folder.write("labels", "1\n".repeat(75) + &"2\n".repeat(75));
    folder.run("svm-train iris.libsvm iris.model").exits(0);
    folder.write("half.libsvm", folder.read("iris.libsvm"));
    folder.write("iris.svg", folder.read("iris.csv"));
    folder.write("templates", "U0:%x[0,0]\n");
    for name in ["tags.txt", "more.txt"] {
        folder.write(name, "the D B-NP\ndog N I-NP\nbarks V O\n\n".repeat(3));
    }
    folder.run("sequence train tags.txt -o tags.wm -q").exits(0);
    #[cfg(unix)]
    std::os::unix::fs::symlink("iris.csv", folder.file("link.csv")).unwrap();
    #[cfg(not(unix))]
    folder.copy("iris.csv");
    let before: Vec<(String, Vec<u8>)> = folder
        .names()
        .into_iter()
        .map(|name| (name.clone(), std::fs::read(folder.file(&name)).unwrap()))
        .collect();
    for command in DESTRUCTIVE {
        let run = folder.run(command).exits(2);
        let told = run.stderr.contains("would destroy it") || run.stderr.contains("same file");
        assert!(told || command.starts_with("plot"), "{command}: {}", run.stderr);
    }
    for command in [
        "svm-train iris.libsvm iris.libsvm",
        "ll-train iris.libsvm iris.libsvm",
        "svm-predict iris.libsvm iris.model iris.model",
        "svm-scale -s iris.libsvm iris.libsvm",
    ] {
        let run = folder.run(command).exits(1);
        assert!(run.stderr.contains("would destroy it"), "{command}: {}", run.stderr);
    }
    let input = std::fs::File::open(folder.file("iris.csv")).unwrap();
    let mut command = folder.command(&["convert", "-", "-o", "/dev/stdin", "--to", "csv"]);
    let run: crate::common::Run = command.stdin(input).output().unwrap().into();
    assert!(run.exits(2).stderr.contains("would destroy it"));
    for (name, content) in before {
        assert_eq!(std::fs::read(folder.file(&name)).unwrap(), content, "{name}");
    }
    folder.write("data.svg", std::fs::read(folder.file("iris.csv")).unwrap());
    let run = folder.run("plot confusion data.svg --model iris.wm -o data.svg").exits(2);
    assert!(run.stderr.contains("would destroy it"), "{}", run.stderr);
}

#[test]
fn the_ending_of_a_name_decides_the_format_or_is_refused() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.run("train iris.csv -q").exits(0);
    for name in ["x.arff", "x.json", "x.parquet", "x.xlsx", "x.JSON", "x.wm"] {
        for command in ["convert iris.csv", "scale iris.csv -o"] {
            let run = folder.run(&format!("{command} {name}")).exits(2);
            assert!(run.stderr.contains("LIBSVM text, .csv, .tsv or .npy"), "{}", run.stderr);
        }
    }
    for name in ["x.arff", "x.json", "x.csv", "x.npy", "x.onnx"] {
        let run = folder.run(&format!("convert iris.wm {name}")).exits(2);
        assert!(run.stderr.contains("--to names"), "{}", run.stderr);
    }
    for name in ["c.png", "c.pdf", "c.jpg"] {
        let run =
            folder.run(&format!("plot confusion iris.csv --model iris.wm -o {name}")).exits(2);
        assert!(run.stderr.contains("ends in .svg"), "{}", run.stderr);
    }
    assert_eq!(folder.names(), ["iris.csv", "iris.wm"]);
    folder.run("convert iris.csv x.json --to csv").exits(0);
    folder.run("convert iris.csv iris.tsv").exits(0);
    assert_eq!(folder.read("x.json").replace(',', "\t"), folder.read("iris.tsv"));
    folder.run("convert iris.tsv back.csv").exits(0);
    assert_eq!(folder.read("back.csv"), folder.read("x.json"));
    folder.run("convert iris.wm copy.wm").exits(0);
    assert_eq!(
        std::fs::read(folder.file("copy.wm")).unwrap(),
        std::fs::read(folder.file("iris.wm")).unwrap()
    );
}

#[test]
fn an_archive_unpacks_to_no_more_than_allowed() {
    let folder = Folder::new();
    // Made with `printf '1 1:1\n2 1:2\n' | gzip -n`.
    let packed = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x33, 0x54, 0x30, 0xb4, 0x32, 0xe4, 0x32, 2, 0x92,
        0x46, 0x5c, 0, 0x7b, 0x57, 0x41, 0x47, 12, 0, 0, 0,
    ];
    folder.write("data.gz", packed);
    assert_eq!(folder.run("convert data.gz").exits(0).stdout, "1 1:1\n2 1:2\n");
    folder.run("convert data.gz --max-unpacked 12").exits(0);
    let run = folder.run("convert data.gz --max-unpacked 11").exits(1);
    assert_eq!(
        run.stderr,
        "error: data.gz: the gzip archive unpacks to more than the limit of 11 bytes\n\
         hint: --max-unpacked allows more\n"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn two_rows_with_a_huge_index_are_scaled_in_little_memory() {
    let folder = Folder::new();
    folder.write("wide", "1 1:1 134217728:3\n2 1:2 134217728:5\n1 1:4\n");
    let limited = |arguments: &str| {
        let script = format!("ulimit -v 3500000; exec {PROGRAM} {arguments}");
        let mut command = Command::new("sh");
        let output = command.args(["-c", &script]).current_dir(folder.path()).output();
        crate::common::Run::from(output.unwrap())
    };
    let run = limited("scale wide --method minmax:0,1").exits(0);
    assert_eq!(run.stdout, "1 134217728:0.6\n2 1:0.3333333333333333 134217728:1\n1 1:1\n");
    limited("scale wide").exits(0);
    limited("scale wide --method standard").exits(0);
}

#[test]
fn names_that_promise_another_format_than_that_of_a_model_are_refused() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.copy("iris.libsvm");
    folder.write("tags.txt", "the D B-NP\ndog N I-NP\nbarks V O\n\n".repeat(3));
    folder.run("train iris.csv -o iris.wm -q").exits(0);
    folder.run("svm-train iris.libsvm iris.model").exits(0);
    let before = folder.names();
    let commands = [
        "train iris.csv -o",
        "train iris.csv --model-format libsvm -o",
        "train iris.csv --linear --memory 1GB -o",
        "tune iris.csv --grid c=1,2 -o",
        "tune iris.csv --grid c=1,2 --table",
        "compress iris.wm --ratio 0.5 -o",
        "threshold iris.wm iris.csv --false-positives 0.1 -o",
        "sequence train tags.txt -o",
        "cluster iris.csv --machine kmeans --clusters 3 --save-model",
        "convert iris.model -o",
    ];
    for command in commands {
        for name in ["x.json", "x.ONNX", "x.npy", "x.parquet", "x.svg"] {
            let run = folder.run(&format!("{command} {name}")).exits(2);
            assert!(run.stderr.contains(name), "{command} {name}: {}", run.stderr);
        }
        let run = folder.run(&format!("{command} missing/x.wm"));
        if !command.ends_with("--table") {
            let run = run.exits(1);
            assert!(run.stderr.contains("no folder 'missing'"), "{command}: {}", run.stderr);
        }
    }
    assert_eq!(folder.names(), before);
    for name in ["x.wm", "x.model", "x.txt", "x"] {
        folder.run(&format!("train iris.csv -q -o {name}")).exits(0);
        folder.run(&format!("predict iris.csv -q -m {name}")).exits(0);
    }
    folder.run("tune iris.csv --grid c=1,2 --table x.csv -q").exits(0);
    // What is written beside a model must be possible before anything is computed.
    for option in ["--table missing/t.csv", "--plot missing/p.svg", "--journal missing/j"] {
        let run = folder.run(&format!("tune iris.csv --grid c=1,2 {option}")).exits(1);
        assert!(run.stderr.contains("no folder 'missing'"), "{option}: {}", run.stderr);
    }
}
