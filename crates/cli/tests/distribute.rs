//! Training at several sites and on random working sets: the same optimum as at one place.

use crate::common::Folder;
use serde_json::Value;

/// The JSON summary of a training.
fn summary(folder: &Folder, words: &str) -> Value {
    let run = folder.run(&format!("train {words} --precision f64 --tol 1e-7 --json -o model.wm"));
    serde_json::from_str(&run.exits(0).stdout).expect("JSON")
}

fn dual(summary: &Value) -> f64 {
    summary["dual"].as_f64().expect("a number")
}

fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["iris.libsvm", "diabetes.csv", "ripley-train.csv"] {
        folder.copy(name);
    }
    folder
}

#[test]
fn sites_find_the_optimum_of_one_place() {
    let folder = folder();
    for (data, links) in [
        ("iris.libsvm", "--topology full --schedule parallel"),
        ("iris.libsvm --scale standard", "--topology ring --schedule sequential"),
        ("diabetes.csv -s epsilon-svr --epsilon 10", "--topology random:13 --schedule async"),
        ("ripley-train.csv -s one-class --nu 0.2", "--topology tree"),
    ] {
        let plain = dual(&summary(&folder, data));
        let ours = summary(&folder, &format!("{data} --sites 5 {links}"));
        assert!((dual(&ours) - plain).abs() <= 1e-6 * plain.abs(), "{data}: {plain} {ours}");
        assert_eq!(ours["status"], "solved");
        let told = &ours["distribution"];
        assert_eq!((&told["sites"], &told["verified"]), (&5.into(), &true.into()));
        for name in ["rounds", "vectors", "bytes", "largest_site", "verifications"] {
            assert!(told[name].as_u64().is_some_and(|n| n > 0), "{name}: {told}");
        }
    }
}

#[test]
fn one_file_a_site_and_an_ordinary_model() {
    let folder = folder();
    let text = std::fs::read_to_string(folder.file("iris.libsvm")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // Sorted by class: no file has all of them.
    for (name, part) in ["a", "b", "c"].iter().zip(lines.chunks(50)) {
        folder.write(&format!("{name}.libsvm"), part.join("\n") + "\n");
    }
    let plain = dual(&summary(&folder, "iris.libsvm"));
    let ours = summary(&folder, "a.libsvm b.libsvm c.libsvm --sites 3 --gamma scale");
    assert!((dual(&ours) - plain).abs() <= 1e-6 * plain.abs(), "{plain} {ours}");
    assert_eq!(ours["rows"], 150);
    let run = folder.run("predict iris.libsvm --model model.wm -o answers.txt").exits(0);
    assert!(run.stdout.contains("accuracy"), "{}", run.stdout);
}

#[test]
fn random_working_sets_find_the_optimum_of_all_rows() {
    let folder = folder();
    let plain = dual(&summary(&folder, "iris.libsvm"));
    let ours = summary(&folder, "iris.libsvm --site-method prsvm --working-set 40");
    // The name that it had before.
    let before = summary(&folder, "iris.libsvm --method prsvm --working-set 40");
    assert_eq!(before["dual"], ours["dual"]);
    assert!((dual(&ours) - plain).abs() <= 1e-6 * plain.abs(), "{plain} {ours}");
    let functions = ours["distribution"]["functions"].as_array().expect("functions");
    assert!(functions.len() == 3 && functions.iter().all(|f| f["verified"] == true));
}

#[test]
fn the_summary_has_the_traffic_and_the_certificate() {
    let run = folder().run("train iris.libsvm --sites 4 --topology ring -o m.wm").exits(0);
    for line in
        ["sites", "4, 4 links", "rounds", "sent", "to verify", "largest site", "certificate"]
    {
        assert!(run.stdout.contains(line), "{line}\n{}", run.stdout);
    }
}

#[test]
fn linear_machines_share_sums() {
    let folder = folder();
    for data in ["iris.libsvm --linear --loss logistic", "iris.libsvm --linear"] {
        let words = format!("train {data} --solver newton --tol 1e-8 --gap 1e-8 --json -o m.wm");
        let plain = folder.run(&words).exits(0).json();
        let ours = folder.run(&format!("{words} --sites 4")).exits(0).json();
        let primal = |summary: &Value| summary["primal"].as_f64().expect("a number");
        let difference = (primal(&ours) - primal(&plain)).abs();
        assert!(difference <= 1e-7 * primal(&plain), "{data}: {plain} {ours}");
        let told = &ours["distribution"];
        assert_eq!((&told["vectors"], &told["verified"]), (&0.into(), &true.into()));
    }
    let refused = folder.run("train iris.libsvm --linear --loss hinge --sites 2 -o m.wm").exits(2);
    assert!(refused.stderr.contains("squared-hinge or logistic"), "{}", refused.stderr);
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn three_processes_with_three_files() {
    let folder = folder();
    let text = std::fs::read_to_string(folder.file("iris.libsvm")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (name, part) in ["a", "b", "c"].iter().zip(lines.chunks(50)) {
        folder.write(&format!("{name}.libsvm"), part.join("\n") + "\n");
    }
    let plain = dual(&summary(&folder, "iris.libsvm"));
    let address = format!("127.0.0.1:{}", free_port());
    let start = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = folder.command(&words);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().expect("the program starts")
    };
    let leader = start(&format!(
        "train a.libsvm --sites 3 --listen {address} --precision f64 --tol 1e-7 --json -o all.wm"
    ));
    let others = ["b", "c"].map(|name| start(&format!("site {name}.libsvm --connect {address}")));
    for other in others {
        let run: crate::common::Run = other.wait_with_output().expect("an end").into();
        assert!(run.exits(0).stdout.contains("of 3: 50 rows took part"));
    }
    let run: crate::common::Run = leader.wait_with_output().expect("an end").into();
    let ours = run.exits(0).json();
    assert!((dual(&ours) - plain).abs() <= 1e-6 * plain.abs(), "{plain} {ours}");
    folder.run("predict iris.libsvm --model all.wm -o answers.txt").exits(0);
    let alone = folder.run("site a.libsvm --connect 127.0.0.1:1 --max-time 1");
    assert_ne!(alone.code, Some(0));
}
