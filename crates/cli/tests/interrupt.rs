//! Ctrl-C: once keeps the best model so far, twice quits. A time limit has an exit code of its own.

#![cfg(unix)]

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Folder, Run};

/// Rows of two classes that overlap so much that a tight tolerance takes minutes.
fn hard_data(folder: &Folder) {
    overlapping(folder, 4000);
}

fn overlapping(folder: &Folder, rows: usize) {
    let mut state = 12345_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(u32::MAX) * 2.0 - 1.0
    };
    let mut text = String::new();
    for i in 0..rows {
        text.push_str(if i % 2 == 0 { "+1" } else { "-1" });
        for j in 1..=10 {
            text.push_str(&format!(" {j}:{:.5}", random()));
        }
        text.push('\n');
    }
    folder.write("hard", text);
}

fn start(folder: &Folder) -> Child {
    let child = folder
        .command(&[
            "train",
            "hard",
            "-o",
            "hard.wm",
            "--c",
            "1e6",
            "--gamma",
            "0.01",
            "--tol",
            "1e-9",
            "--cache-mb",
            "1",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Long enough to be inside the solver, short against the minutes it would take.
    sleep(Duration::from_millis(1500));
    child
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[test]
fn once_saves_the_best_model_so_far() {
    let folder = Folder::new();
    hard_data(&folder);
    let mut child = start(&folder);
    assert!(child.try_wait().unwrap().is_none(), "solved before it could be interrupted");
    let pressed = Instant::now();
    interrupt(&child);
    let run = Run::from(child.wait_with_output().unwrap()).exits(130);
    assert!(pressed.elapsed() < Duration::from_secs(60));
    assert!(run.stderr.contains("stopping at the next block"), "{}", run.stderr);
    assert!(run.stderr.contains("warning: interrupted"), "{}", run.stderr);
    assert!(run.stderr.contains("hard.wm"), "{}", run.stderr);
    let model = folder.run("inspect hard.wm --json").exits(0).json();
    assert_eq!(model["training"]["outcome"]["status"], "interrupted");
    folder.run("predict hard --model hard.wm --json").exits(0);
    assert_eq!(folder.names(), ["hard", "hard.wm"]);
}

#[test]
fn twice_quits_and_leaves_no_file() {
    let folder = Folder::new();
    hard_data(&folder);
    let mut child = start(&folder);
    assert!(child.try_wait().unwrap().is_none(), "solved before it could be interrupted");
    interrupt(&child);
    interrupt(&child);
    let run = Run::from(child.wait_with_output().unwrap());
    // Two signals that arrive as one count as one.
    if run.stderr.contains("warning: interrupted") {
        return;
    }
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert_eq!(folder.names(), ["hard"]);
}

#[test]
fn a_time_limit_keeps_the_best_model_so_far() {
    let folder = Folder::new();
    hard_data(&folder);
    let started = Instant::now();
    let run = folder
        .run("train hard -o hard.wm --c 1e6 --gamma 0.01 --tol 1e-9 --cache-mb 1 --max-time 1")
        .exits(124);
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(run.stderr.contains("warning: time limit reached"), "{}", run.stderr);
    let model = folder.run("inspect hard.wm --json").exits(0).json();
    assert_eq!(model["training"]["outcome"]["status"], "time-limit");
}

#[cfg(unix)]
#[test]
fn a_test_file_that_is_not_read_in_time_leaves_the_report_of_the_training() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.write("s.txt", "a X\nb Y\n\n");
    let made = std::process::Command::new("mkfifo").arg(folder.file("slow")).status().unwrap();
    assert!(made.success());
    // Nobody writes into the pipe, which reading waits for.
    for (train, told) in [
        ("sequence train s.txt -o m.wm --test slow --max-time 3", "objective"),
        ("train iris.csv -o m.wm --test slow --json --max-time 3", "\"primal\""),
        ("train iris.csv -o m.wm --test slow --max-time 3", "objective"),
    ] {
        let run = folder.run(train).exits(124);
        let warning = "time limit reached: the model was not tested";
        assert!(run.stderr.contains(warning), "{train}: {}", run.stderr);
        assert!(run.stdout.contains(told), "{train}: {}", run.stdout);
        folder.run("inspect m.wm").exits(0);
    }
    let run = folder.run("predict slow --model m.wm --max-time 0.5").exits(124);
    assert!(run.stderr.contains("while the data was read"), "{}", run.stderr);
}

#[test]
fn prediction_ends_at_its_time_limit() {
    let folder = Folder::new();
    hard_data(&folder);
    folder.run("train hard -o hard.wm --machine knn --neighbours 5 -q").exits(0);
    let many = folder.read("hard").repeat(10);
    folder.write("many", many);
    let whole = folder.run("predict hard --model hard.wm -q").exits(0);
    let limited = folder.run("predict hard --model hard.wm -q --max-time 600").exits(0);
    assert_eq!(whole.stdout, limited.stdout, "the same predictions in parts");
    let run = folder.run("predict many --model hard.wm --max-time 0.01 -o p.txt").exits(124);
    assert!(run.stderr.contains("the time limit was reached"), "{}", run.stderr);
    assert!(!folder.names().contains(&"p.txt".to_owned()));
}

/// A training on a pipe that stays open, fed by `feed` until it returns or the program ends.
fn streamed(
    folder: &Folder,
    options: &str,
    feed: impl FnOnce(&mut std::process::ChildStdin) + Send + 'static,
    then: impl FnOnce(&Child),
) -> Run {
    let words = format!("train - --format libsvm --machine ww --online -o m.wm {options}");
    let mut child = folder
        .command(&words.split_whitespace().collect::<Vec<_>>())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().unwrap();
    let (fed, wait) = std::sync::mpsc::channel();
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let feeder = std::thread::spawn(move || {
        feed(&mut pipe);
        let _ = fed.send(());
        // The pipe stays open.
        let _ = end.recv();
    });
    let _ = wait.recv_timeout(Duration::from_secs(2));
    then(&child);
    let run = Run::from(child.wait_with_output().unwrap());
    drop(ended);
    feeder.join().unwrap();
    run
}

#[test]
fn a_stream_that_stalls_ends_at_the_time_limit_with_what_was_learnt() {
    let folder = Folder::new();
    overlapping(&folder, 60);
    let text = folder.read("hard");
    let started = Instant::now();
    let few = text.clone();
    let feed = move |pipe: &mut std::process::ChildStdin| {
        pipe.write_all(few.as_bytes()).unwrap();
        // A line that was not finished is not learnt.
        pipe.write_all(b"+1 1:0.5 2:").unwrap();
    };
    let run = streamed(&folder, "--max-time 1", feed, |_| ()).exits(124);
    assert!(started.elapsed().as_secs_f64() < 1.6 + BUSY);
    assert!(run.stderr.contains("time limit reached"), "{}", run.stderr);
    let model = folder.run("inspect m.wm --json").exits(0).json();
    assert_eq!(model["training"]["outcome"]["status"], "time-limit");
    assert_eq!(model["training"]["rows"], 60);
    // Going on from the model on a pipe that stalls as well.
    let feed = move |pipe: &mut std::process::ChildStdin| {
        pipe.write_all(text.as_bytes()).unwrap();
    };
    let run = streamed(&folder, "--resume m.wm --max-time 1", feed, |_| ()).exits(124);
    assert!(run.stderr.contains("time limit reached"), "{}", run.stderr);
    folder.run("predict hard -m m.wm -q").exits(0);
    let nothing = streamed(&folder, "--max-time 0.5", |_| (), |_| ()).exits(124);
    assert!(nothing.stderr.contains("before there was a result"), "{}", nothing.stderr);
}

#[test]
fn an_endless_stream_ends_at_the_time_limit() {
    let folder = Folder::new();
    overlapping(&folder, 400);
    let text = folder.read("hard");
    let started = Instant::now();
    let feed = move |pipe: &mut std::process::ChildStdin| {
        while pipe.write_all(text.as_bytes()).is_ok() {}
    };
    let run = streamed(&folder, "--max-time 1", feed, |_| ()).exits(124);
    assert!(started.elapsed().as_secs_f64() < 1.6 + BUSY);
    assert!(run.stderr.contains("time limit reached"), "{}", run.stderr);
    folder.run("predict hard -m m.wm -q").exits(0);
}

#[test]
fn ctrl_c_while_a_stream_is_read_saves_what_was_learnt() {
    let folder = Folder::new();
    overlapping(&folder, 60);
    let text = folder.read("hard");
    let feed = move |pipe: &mut std::process::ChildStdin| {
        pipe.write_all(text.as_bytes()).unwrap();
        sleep(Duration::from_millis(1500));
    };
    let run = streamed(&folder, "", feed, interrupt).exits(130);
    assert!(run.stderr.contains("interrupted"), "{}", run.stderr);
    let model = folder.run("inspect m.wm --json").exits(0).json();
    assert_eq!(model["training"]["outcome"]["status"], "interrupted");
    assert_eq!(model["training"]["rows"], 60);
    folder.run("predict hard -m m.wm -q").exits(0);
}

/// A search over more points than can be tried in minutes.
const SEARCH: &str = "tune hard -o best.wm --journal journal --grid gamma=2^-15:2^3:37 \
                      --grid c=2^-5:2^15:41";

/// What can be used of a search that was stopped: its best point, and a model of it.
fn assert_best_is_kept(folder: &Folder, run: &Run) {
    assert!(run.stdout.contains("best "), "{}", run.stdout);
    assert!(run.stderr.contains("points were finished"), "{}", run.stderr);
    folder.run("predict hard --model best.wm --json").exits(0);
    assert_eq!(folder.names(), ["best.wm", "hard", "journal"]);
}

#[test]
fn a_search_stopped_by_ctrl_c_trains_and_writes_its_best_point() {
    let folder = Folder::new();
    overlapping(&folder, 200);
    let words: Vec<&str> = SEARCH.split_whitespace().collect();
    let mut child = folder
        .command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The journal has a line for every point and fold that is known.
    let journal = folder.file("journal");
    let begun = Instant::now();
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 10 {
        assert!(child.try_wait().unwrap().is_none(), "ended before it could be interrupted");
        assert!(begun.elapsed() < Duration::from_secs(300), "no point was finished");
        sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    let run = Run::from(child.wait_with_output().unwrap()).exits(130);
    assert!(run.stderr.contains("interrupted"), "{}", run.stderr);
    assert_best_is_kept(&folder, &run);
}

#[test]
fn a_search_and_its_last_training_share_one_time_limit() {
    let folder = Folder::new();
    overlapping(&folder, 800);
    let limit = 4.0;
    let started = Instant::now();
    let run = folder.run(&format!("{SEARCH} --max-time {limit}")).exits(124);
    let seconds = started.elapsed().as_secs_f64();
    assert!(seconds < 1.1 * limit + 0.5 + BUSY, "{seconds} s");
    assert!(run.stderr.contains("time limit"), "{}", run.stderr);
    assert_best_is_kept(&folder, &run);
}

/// Seconds that a program without optimisation may lose on two processors that it shares with other
/// tests, where what it does between two checks of the time takes a hundred times as long;
/// `bench/limits.py` checks the promise without them.
const BUSY: f64 = 10.0;

#[test]
fn a_time_limit_ends_the_reading_of_data_that_does_not_come() {
    let folder = Folder::new();
    let started = Instant::now();
    let mut child = folder
        .command(&["train", "-", "-o", "m.wm", "--max-time", "0.5"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let open = child.stdin.take();
    let run = Run::from(child.wait_with_output().unwrap()).exits(124);
    drop(open);
    assert!(started.elapsed().as_secs_f64() < 1.05 + BUSY);
    assert!(run.stderr.contains("while the data was read"), "{}", run.stderr);
    assert!(folder.names().is_empty());
}

#[test]
fn compression_at_its_time_limit_writes_the_best_model_so_far() {
    let folder = Folder::new();
    overlapping(&folder, 400);
    folder.run("train hard -o hard.wm --gamma 5 -q").exits(0);
    let run = folder.run("compress hard.wm -o small.wm --vectors 50 --max-time 0.001").exits(124);
    assert!(run.stderr.contains("time limit reached"), "{}", run.stderr);
    folder.run("predict hard --model small.wm -q").exits(0);
}

#[test]
fn compression_saves_its_model_before_anything_else_is_computed() {
    let folder = Folder::new();
    overlapping(&folder, 400);
    folder.run("train hard -o hard.wm --gamma 5 -q").exits(0);
    let compress = "compress hard.wm -o small.wm --vectors 50 --refine 0 --data hard";
    std::os::unix::fs::symlink("/dev/full", folder.file("full.svg")).unwrap();
    let run = folder.run(&format!("{compress} --plot full.svg"));
    assert!(run.code == Some(0) || run.stderr.contains("full.svg"), "{}", run.stderr);
    folder.run("predict hard --model small.wm -q").exits(0);
    std::fs::remove_file(folder.file("small.wm")).unwrap();
    // Sizes down to a few vectors of a model whose every size takes long.
    let slow = "compress hard.wm -o small.wm --vectors 350 --data hard --plot sizes.svg";
    for limit in ["0.3", "1", "3"] {
        let run = folder.run(&format!("{slow} --max-time {limit}"));
        if run.stderr.contains("while the data was read") {
            continue;
        }
        assert!(matches!(run.code, Some(0 | 124)), "{}", run.stderr);
        folder.run("predict hard --model small.wm -q").exits(0);
    }
}

#[test]
fn a_training_stopped_by_ctrl_c_is_summed_up_without_its_test() {
    let folder = Folder::new();
    hard_data(&folder);
    let words = "train hard -o hard.wm --c 1e6 --gamma 0.01 --tol 1e-9 --cache-mb 1 --test hard";
    let child = folder
        .command(&words.split_whitespace().collect::<Vec<_>>())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    sleep(Duration::from_millis(1500));
    interrupt(&child);
    let run = Run::from(child.wait_with_output().unwrap()).exits(130);
    assert!(run.stderr.contains("interrupted: the model was not tested"), "{}", run.stderr);
    assert!(run.stdout.contains("support vectors"), "{}", run.stdout);
}

#[test]
fn clusters_found_until_the_limit_or_ctrl_c_are_written() {
    let folder = Folder::new();
    overlapping(&folder, 2_000);
    let words = "cluster hard -s kmeans --clusters 20 --starts 1000000000 \
                 --save-model centres.wm -o clusters -q";
    let lines = |name: &str| folder.read(name).lines().count();
    folder.run(&format!("{words} --max-time 1.5")).exits(124);
    assert_eq!(lines("clusters"), 2_000);
    folder.run("predict hard --model centres.wm -q").exits(0);
    for name in ["clusters", "centres.wm"] {
        std::fs::remove_file(folder.file(name)).expect("it is there");
    }
    let child = folder
        .command(&words.split_whitespace().collect::<Vec<_>>())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    sleep(Duration::from_millis(1500));
    interrupt(&child);
    Run::from(child.wait_with_output().unwrap()).exits(130);
    assert_eq!(lines("clusters"), 2_000);
    folder.run("inspect centres.wm").exits(0);
}

#[test]
fn a_relaxation_stopped_by_ctrl_c_gives_clusters_and_a_bound() {
    let folder = Folder::new();
    overlapping(&folder, 600);
    for clusters in [2, 3] {
        let words = format!(
            "cluster hard --clusters {clusters} --labelling relaxation --tol 1e-12 --gamma 1 \
             --save-model found.wm -o clusters -q"
        );
        let words: Vec<&str> = words.split_whitespace().collect();
        let child =
            folder.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_millis(1500));
        interrupt(&child);
        let run = Run::from(child.wait_with_output().unwrap()).exits(130);
        assert!(run.stderr.contains("warning: interrupted"), "{}", run.stderr);
        let found = folder.read("clusters");
        assert_eq!(found.lines().count(), 600);
        assert!((0..clusters).all(|r| found.lines().any(|line| line == r.to_string())));
        let outcome = &folder.run("inspect found.wm --json").exits(0).json()["training"]["outcome"];
        let number = |name: &str| outcome[name].as_f64().unwrap();
        assert!(0.0 < number("dual") && number("dual") <= number("primal"), "{outcome}");
    }
}

#[test]
fn a_search_without_time_for_one_point_says_what_helps() {
    let folder = Folder::new();
    overlapping(&folder, 800);
    let run = folder.run("tune hard -o best.wm -q --max-time 0.001").exits(124);
    if !run.stderr.contains("while the data was read") {
        assert!(run.stderr.contains("before one point had been tried"), "{}", run.stderr);
        assert!(run.stderr.contains("--method halving"), "{}", run.stderr);
    }
    assert_eq!(folder.names(), ["hard"]);
}

#[test]
fn temporary_files_of_a_killed_program_are_removed_by_the_next_run() {
    let folder = Folder::new();
    overlapping(&folder, 100);
    folder.write(".hard.wm.aB3dE9.tmp", "half a model");
    folder.write("mine.tmp", "not of this program");
    folder.run("train hard -o hard.wm -q").exits(0);
    assert_eq!(folder.names(), ["hard", "hard.wm", "mine.tmp"]);
}
