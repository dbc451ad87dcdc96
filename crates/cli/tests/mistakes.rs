//! Mistakes on the command line and what the program says, as listed in `docs/errors.md`.

use crate::common::{Folder, Run};

struct Row {
    command: String,
    code: i32,
    message: String,
}

/// The table under the heading "The command line".
fn table() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
    let text = std::fs::read_to_string(path).expect("docs/errors.md");
    let section = text.split("\n## The command line\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let line = line.replace("\\|", "\u{1}");
            let cells: Vec<String> =
                line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
            let code = |cell: &str| cell.trim_matches('`').to_owned();
            Row {
                command: code(&cells[1]),
                code: cells[2].parse().expect("an exit code"),
                message: code(&cells[3]),
            }
        })
        .collect()
}

/// The files the commands of the table speak of.
fn files() -> Folder {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.copy("iris.csv");
    folder.write("one-class.txt", "1 1:1\n1 1:2\n");
    folder.write("two.txt", "1 1:1\n1 1:2\n1 1:4\n2 1:3\n");
    folder.write("words.csv", "x,y\n1,a\n2,b\n3,a\n");
    folder.write("weights.txt", "1\n1\nheavy\n");
    folder.write("few-weights.txt", "1\n1\n");
    folder.run("train iris.libsvm --quiet -o iris.wm").exits(0);
    folder.run("train iris.libsvm --quiet -o scaled.wm --scale standard").exits(0);
    folder.run("train iris.libsvm --quiet -o numbers.wm --machine epsilon-svr").exits(0);
    let mut damaged = std::fs::read(folder.file("iris.wm")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    folder.write("damaged.wm", damaged);
    folder.write("cut.wm", &std::fs::read(folder.file("iris.wm")).unwrap()[..200]);
    folder
}

/// Words separated by blanks, double quotes keeping some together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in command.split('"').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Whether a message is the documented one, `…` standing for what differs from run to run.
fn fits(said: &str, documented: &str) -> bool {
    match documented.split_once('…') {
        None => said == documented,
        Some((start, end)) => {
            said.len() >= start.len() + end.len() && said.starts_with(start) && said.ends_with(end)
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn every_mistake_gets_the_documented_message_and_code() {
    let folder = files();
    let before = folder.names();
    let rows = table();
    assert!(rows.len() >= 40, "{} rows", rows.len());
    let mut wrong = String::new();
    for Row { command, code, message } in rows {
        let run: Run = folder.command(&words(&command)).output().unwrap().into();
        let first = run.stderr.lines().next().unwrap_or_default();
        let said = first.strip_prefix("error: ").unwrap_or(first);
        if !fits(said, &message) || run.code != Some(code) {
            wrong.push_str(&format!("| `{command}` | {} | `{said}` |\n", run.code.unwrap_or(-1)));
        }
    }
    assert!(wrong.is_empty(), "these rows differ from what the program says:\n{wrong}");
    assert_eq!(folder.names(), before, "a mistake left a file behind");
}

#[test]
fn likely_causes_get_a_hint() {
    let folder = files();
    for (command, hint) in [
        ("train none.txt", "hint: check the path"),
        ("train one-class.txt", "hint: --machine one-class"),
        ("train words.csv --machine epsilon-svr", "hint: --machine epsilon-svr needs numbers"),
    ] {
        let run = folder.run(command).exits(1);
        assert!(run.stderr.contains(hint), "{command}: {}", run.stderr);
    }
}

/// Runs the program with so many kibibytes of address space.
#[cfg(target_os = "linux")]
fn limited(folder: &Folder, kibibytes: usize, command: &str) -> Run {
    let script = format!("ulimit -v {kibibytes} && exec {} {command}", crate::common::PROGRAM);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder.path()).output().expect("a shell").into()
}

/// Two rows with one feature of a huge index must not take gigabytes that are not there.
#[cfg(target_os = "linux")]
#[test]
fn what_needs_more_memory_than_there_is_is_refused() {
    let folder = Folder::new();
    folder.write("huge", "1 1:1 134217728:1\n2 1:2 134217728:3\n");
    for command in [
        "train huge -s fisher -o m.wm",
        "train huge -s gmm -o m.wm",
        "train huge -s linear-svc --scale standard -o m.wm",
    ] {
        let run = limited(&folder, 1_000_000, command).exits(1);
        assert!(run.stderr.contains(" needs "), "{command}: {}", run.stderr);
        assert_eq!(folder.names(), ["huge"]);
    }
    // Rows that fit, in blocks of many times their size that do not.
    folder.write("broad", "1 1:1 4194304:1\n1 1:2 4194304:5\n2 1:3 4194304:7\n2 1:6 4194304:3\n");
    let command = "train broad -s gmm-bayes --covariance diag -o m.wm";
    let run = limited(&folder, 3_000_000, command).exits(1);
    assert!(run.stderr.contains(" needs "), "{}", run.stderr);
}

/// Machines of weights and centres learn from the columns that occur, as the others of 2^27 are 0.
#[cfg(target_os = "linux")]
#[test]
fn weights_and_centres_of_a_huge_index_take_little_memory() {
    let folder = Folder::new();
    folder.write("huge", "1 1:1 134217728:-1\n2 1:1 134217728:3\n");
    for machine in [
        "kmeans --clusters 2",
        "linear-svc --c 10",
        "linear-svc --c 10 --penalty l1",
        "linear-svc --c 10 --multiclass crammer-singer",
        "logistic --c 10",
        "logistic --c 10 --penalty l1",
        "linear-svr",
        "rank-svm",
        "linear-one-class",
    ] {
        // Where there is memory nothing may take it either.
        let whole = folder.run(&format!("train huge -s {machine} -o m.wm --json")).exits(0).json();
        let peak = whole["peak_rss_bytes"].as_u64().unwrap();
        assert!(peak < 1_000_000_000, "{machine}: {peak} bytes");
        let train = format!("train huge -s {machine} -o m.wm -q");
        limited(&folder, 1_000_000, &train).exits(0);
        let bytes = std::fs::metadata(folder.file("m.wm")).unwrap().len();
        assert!(bytes < 10_000, "{machine}: a file of {bytes} bytes");
        let predict = "predict huge --model m.wm -o out.txt -q";
        limited(&folder, 1_000_000, predict).exits(0);
        let found = std::fs::read_to_string(folder.file("out.txt")).unwrap();
        let lines: Vec<&str> = found.lines().collect();
        if machine.starts_with("linear-svc") || machine.starts_with("logistic") {
            assert_eq!(lines, ["1", "2"], "{machine}");
        }
        assert_eq!(lines.len(), 2, "{machine}");
        assert!(lines[0] != lines[1] || machine == "linear-one-class", "{machine}: {lines:?}");
        std::fs::remove_file(folder.file("m.wm")).unwrap();
    }
}
