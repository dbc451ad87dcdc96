//! `widemargin tune`, end to end.

mod common;

use common::{Folder, shipped};

const GRID: [&str; 4] = ["--grid", "c=0.1:100:4", "--grid", "gamma=0.01:1:3"];

#[test]
fn a_search_writes_its_model_table_journal_and_picture() {
    let folder = Folder::new();
    let iris = shipped("iris.csv").display().to_string();
    let mut words = vec!["tune", &iris, "--scale", "standard", "--json", "-o", "best.wm"];
    words.extend(["--table", "all.csv", "--journal", "j.jsonl", "--picture", "heat.svg"]);
    words.extend(GRID);
    let first = folder.run_words(&words);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let found: serde_json::Value = serde_json::from_str(&first.stdout).unwrap();
    assert!(found["score"].as_f64().unwrap() > 0.94);
    assert_eq!(found["trials"].as_array().unwrap().len(), 12);
    let table = folder.read("all.csv");
    assert_eq!(table.lines().count(), 13);
    assert!(table.starts_with("c,gamma,rows,mean,"));
    assert!(folder.read("heat.svg").contains("<svg"));
    assert_eq!(folder.read("j.jsonl").lines().count(), 61);
    let again = folder.run_words(&words);
    let known: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(known["trials"], found["trials"]);
    let check = folder.run_words(&["predict", &iris, "--model", "best.wm", "-o", "answers.txt"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
}

#[test]
fn cold_and_warm_searches_agree() {
    let folder = Folder::new();
    let iris = shipped("iris.csv").display().to_string();
    let means = |more: &[&str]| {
        let mut words = vec!["tune", &iris, "--json", "--tol", "1e-6"];
        words.extend(GRID);
        words.extend(more);
        let result = folder.run_words(&words);
        assert_eq!(result.code, Some(0), "{}", result.stderr);
        let found: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
        let trials = found["trials"].as_array().unwrap().clone();
        trials.iter().map(|trial| trial["mean"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(means(&[]), means(&["--cold"]));
}

#[test]
fn mistakes_are_told_before_anything_is_computed() {
    let folder = Folder::new();
    let iris = shipped("iris.csv").display().to_string();
    for (words, part) in [
        (vec!["--grid", "depth=1,2"], "expected one of c, nu, epsilon"),
        (vec!["--grid", "c=2:1:5"], "0 < low < high"),
        (vec!["--grid", "c"], "expected NAME="),
        (vec!["--grid", "c=a,b"], "expected a number"),
        (vec!["--score", "speed"], "accuracy"),
        (vec!["--estimate", "xi-alpha", "--scale", "standard"], "scaled already"),
    ] {
        let mut all = vec!["tune", &iris];
        all.extend(&words);
        let result = folder.run_words(&all);
        assert_eq!(result.code, Some(2), "{words:?} {}", result.stderr);
        assert!(result.stderr.contains(part), "{words:?}: {}", result.stderr);
    }
}
