//! `widemargin tune`, end to end.

use widemargin::machine::Specification;
use widemargin::operation::tune::Axis;

use crate::common::{Folder, shipped};

const GRID: [&str; 4] = ["--grid", "c=0.1:100:4", "--grid", "gamma=0.01:1:3"];

#[test]
fn a_search_writes_its_model_table_journal_and_picture() {
    let folder = Folder::new();
    let iris = shipped("iris.csv").display().to_string();
    let mut words = vec!["tune", &iris, "--scale", "standard", "--json", "-o", "best.wm"];
    words.extend(["--table", "all.csv", "--journal", "j.jsonl", "--plot", "heat.svg"]);
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
fn a_journal_belongs_to_one_machine() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let search = "tune iris.libsvm --folds 3 --grid c=1,10 --json";
    let first = folder.run(&format!("{search} --journal j")).exits(0).json();
    for (options, told) in [
        ("--kernel linear", "with kernel rbf where this search has linear"),
        ("--gamma 3", "with gamma scale where this search has 3"),
        ("--tol 0.1", "with tol 0.001 where this search has 0.1"),
        ("--class-weight balanced", "with class-weight"),
        ("--scale standard", "with scale"),
        ("--seed 5", "with seed 0 where this search has 5"),
        ("-s ww", "with machine c-svc where this search has ww"),
        ("--linear --approximate rff:10", "with machine c-svc where this search has linear-svc"),
        ("--sample-weights weights", "other rows, labels, weights"),
    ] {
        folder.write("weights", "2\n".repeat(150));
        let run = folder.run(&format!("{search} --journal j {options}")).exits(1);
        assert!(run.stderr.contains(told), "{options}: {}", run.stderr);
    }
    // What is said by default and what is searched make no other machine.
    for options in ["--kernel rbf", "--tol 0.001", "--c 7", "--cold", "--threads 1"] {
        let again = folder.run(&format!("{search} --journal j {options}")).exits(0).json();
        assert_eq!(again["trials"], first["trials"], "{options}");
    }
}

#[test]
fn a_scaling_that_is_searched_takes_the_place_of_the_given_one() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let search = "tune iris.libsvm --folds 3 --grid scale=none,standard --grid c=1,10 --json";
    let means = |options: &str| -> Vec<f64> {
        let found = folder.run(&format!("{search} {options}")).exits(0).json();
        let trials = found["trials"].as_array().unwrap();
        trials.iter().map(|trial| trial["mean"].as_f64().unwrap()).collect()
    };
    let alone = means("--gamma 0.01");
    assert_ne!(alone[0], alone[2]);
    assert_eq!(means("--gamma 0.01 --scale standard"), alone);
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
        (vec!["--grid", "depth=1,2"], "c-svc has no parameter 'depth'; it has c, "),
        (vec!["--grid", "c=2:1:5"], "0 < low < high"),
        (vec!["--grid", "c"], "expected NAME="),
        (vec!["--grid", "c=a,b"], "parameter c: expected inf or a finite number above 0, found a"),
        (vec!["--linear", "--grid", "gamma=1,2"], "gamma"),
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

/// The share of rows that a model of `tune` answers as a model of `train` with the parameters that were
/// found.
fn tuned_equals_trained(folder: &Folder, data: &str, options: &str, grid: &str) {
    let tuned =
        folder.run(&format!("tune {data} {options} --grid {grid} --folds 3 -o tuned.wm --json"));
    assert_eq!(tuned.code, Some(0), "{data} {options}: {}", tuned.stderr);
    let found: serde_json::Value = serde_json::from_str(&tuned.stdout).unwrap();
    let best = found["best"].as_object().unwrap();
    let words: Vec<String> = best
        .iter()
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => format!("--{name} {text}"),
            number => format!("--{name} {number}"),
        })
        .collect();
    let words = words.join(" ");
    folder.run(&format!("train {data} {options} {words} -o trained.wm --quiet")).exits(0);
    for model in ["tuned", "trained"] {
        folder.run(&format!("predict {data} --model {model}.wm -o {model}.txt --quiet")).exits(0);
    }
    assert_eq!(folder.read("tuned.txt"), folder.read("trained.txt"), "{data} {options} {words}");
}

#[test]
fn a_tuned_model_is_the_model_of_its_parameters() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.copy("iris.libsvm");
    let machines = [
        ("-s c-svc", "c=1,10"),
        ("-s nu-svc", "nu=0.1,0.3"),
        ("-s ww", "c=1,10"),
        ("--linear", "c=1,10"),
        ("--linear --approximate rff:40", "c=1,10"),
        ("--linear --loss logistic --approximate nystroem:20", "gamma=0.1,0.5"),
        ("-s epsilon-svr", "epsilon=0.1,0.2"),
        ("-s linear-svr", "c=1,10"),
        ("-s fisher", "shrinkage=none,0.5"),
        ("-s kernel-fisher", "mu=0.001,0.1"),
        ("-s gmm-bayes", "components=1,2"),
        ("-s knn", "neighbours=3,7"),
        ("-s parzen", "width=cv,scott"),
        ("-s pnn", "width=cv,scott"),
    ];
    for (machine, grid) in machines {
        for scale in ["none", "standard", "minmax"] {
            let options = format!("{machine} --scale {scale}");
            let regression = machine.contains("svr");
            for data in ["iris.libsvm", "iris.csv"] {
                if !(regression && data == "iris.csv") {
                    tuned_equals_trained(&folder, data, &options, grid);
                }
            }
        }
    }
}

#[test]
fn every_machine_with_a_usual_grid_gives_the_model_of_its_parameters() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let iris = folder.read("iris.libsvm");
    let rows: Vec<(&str, &str)> = iris.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let written = |label: &dyn Fn(usize, &str) -> String| -> String {
        let lines = rows.iter().enumerate();
        lines.map(|(i, (class, features))| format!("{} {features}\n", label(i, class))).collect()
    };
    let first = rows[0].0;
    folder.write("two", written(&|_, class| (if class == first { "1" } else { "-1" }).to_owned()));
    folder.write("queries", written(&|i, class| format!("{class} qid:{}", i % 6)));
    let mut searched = 0;
    for specification in Specification::all().filter(|one| !one.is_online()) {
        let (kind, grid) = (specification.kind(), specification.default_grid());
        let Some(text) = grid.first() else { continue };
        let axis = Axis::parse(&specification, text).unwrap();
        let middle = axis.values.len() / 2;
        let values = [&axis.values[middle - 1], &axis.values[middle]].map(ToString::to_string);
        let data = match kind {
            _ if kind.is_ranker() => "queries",
            _ if kind.is_novelty_detector() => "two",
            _ => "iris.libsvm",
        };
        let grid = format!("{}={}", axis.name, values.join(","));
        tuned_equals_trained(&folder, data, &format!("-s {kind}"), &grid);
        searched += 1;
    }
    assert!(searched >= 25, "{searched}");
    tuned_equals_trained(&folder, "iris.libsvm", "--kernels linear,rbf", "c=1,10");
}

#[test]
fn whole_numbers_are_searched_as_whole_numbers() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let searched = [
        ("--kernel poly", "degree=1,2,3,5"),
        ("-s knn", "neighbours=1,3,9,25"),
        ("-s gmm-bayes", "components=1,2,5"),
    ];
    let methods = ["grid", "refine", "random", "halving", "race", "surrogate", "model"];
    for (machine, grid) in searched {
        for method in methods {
            let more = "--points 7 --folds 3 --min-rows 40 --json";
            let run = folder
                .run(&format!("tune iris.libsvm {machine} --grid {grid} --method {method} {more}"));
            let found: serde_json::Value = run.exits(0).json();
            let name = grid.split_once('=').unwrap().0;
            for trial in found["trials"].as_array().unwrap() {
                assert!(trial["parameters"][name].is_u64(), "{method}: {trial}");
                assert!(trial["failure"].is_null(), "{method}: {trial}");
            }
        }
    }
}

#[test]
fn default_grids_are_those_of_the_machine() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for (machine, names) in [
        ("--linear", vec!["c"]),
        ("-s linear-svc --approximate rff:20", vec!["gamma", "c"]),
        ("--kernel linear", vec!["c"]),
        ("-s knn", vec!["neighbours", "weights"]),
        ("-s nu-svc", vec!["gamma", "nu"]),
    ] {
        let run = folder.run(&format!(
            "tune iris.libsvm {machine} --method random --points 2 --folds 2 --json"
        ));
        let found: serde_json::Value = run.exits(0).json();
        let mut expected = names.clone();
        let best = found["best"].as_object().unwrap();
        let mut searched: Vec<&str> = best.keys().map(String::as_str).collect();
        expected.sort_unstable();
        searched.sort_unstable();
        assert_eq!(searched, expected, "{machine}");
    }
}

#[test]
fn a_search_that_runs_out_of_time_reports_and_writes_its_best() {
    let folder = Folder::new();
    let data = shipped("digits.libsvm.xz").display().to_string();
    let run = folder.run(&format!(
        "tune {data} -s knn --grid neighbours=1:400:300 --max-time 4 --json -o best.wm"
    ));
    let run = run.exits(124);
    let found = run.json();
    assert!(found["best"].is_object() && found["score"].as_f64().unwrap() > 0.5);
    assert!(found["scored_splits"].as_u64().unwrap() >= 1);
    folder.run(&format!("predict {data} --model best.wm -o answers.txt")).exits(0);
}

#[test]
fn rows_are_held_out_by_share_or_by_the_bootstrap() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let search = "tune iris.csv --grid c=1,10 --grid gamma=0.1 --json";
    let found = folder.run(&format!("{search} --hold-out 0.2 --repeats 3")).exits(0).json();
    let trial = &found["trials"][0];
    assert_eq!(trial["splits"].as_array().unwrap().len(), 3, "{trial}");
    // A fifth of each class is 10 rows: scores are thirtieths.
    for split in trial["splits"].as_array().unwrap() {
        let rows = 30.0 * split["score"].as_f64().unwrap();
        assert!((rows - rows.round()).abs() < 1e-9, "{rows}");
    }
    let drawn = folder.run(&format!("{search} --bootstrap 4")).exits(0).json();
    assert_eq!(drawn["trials"][0]["splits"].as_array().unwrap().len(), 4);
    assert!(drawn["score"].as_f64().unwrap() > 0.85);
    let both = folder.run(&format!("{search} --bootstrap 4 --hold-out 0.2"));
    assert!(both.code != Some(0) && both.stderr.contains("cannot be used with"), "{}", both.stderr);
    folder.run(&format!("{search} --hold-out 1.5")).exits(2);
}

#[test]
fn grids_shift_and_patterns_descend() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let shifted = folder
        .run("tune iris.csv --grid c=0.2,0.4 --gamma 0.008 --method shift --json")
        .exits(0)
        .json();
    // The two points of the grid, and at least the one beyond the better of them.
    assert!(shifted["trials"].as_array().unwrap().len() >= 3, "{shifted}");
    let pattern = folder
        .run("tune iris.csv --grid c=0.1:1000:5 --grid gamma=0.001:10:5 --method pattern --json")
        .exits(0)
        .json();
    assert!(pattern["score"].as_f64().unwrap() >= 0.95, "{pattern}");
    assert!(pattern["trials"].as_array().unwrap().len() < 25);
    folder.run("tune iris.csv --grid kernel=rbf,linear --method pattern").exits(2);
}

#[test]
fn online_machines_are_searched() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let search = "tune iris.csv --machine ww --online --grid c=1,10 --grid epochs=1,3";
    let found = folder.run(&format!("{search} --gamma 0.5 --json")).exits(0).json();
    assert_eq!(found["trials"].as_array().unwrap().len(), 4);
    assert!(found["score"].as_f64().unwrap() > 0.85, "{found}");
}

#[test]
fn a_learning_curve_grows_with_the_rows() {
    let folder = Folder::new();
    folder.copy("wdbc.csv");
    let run = "cross-validate wdbc.csv --scale standard --sizes 0.05,0.3,1";
    let found = folder.run(&format!("{run} --json --plot curve.svg")).exits(0).json();
    let points = found["points"].as_array().unwrap();
    let rows: Vec<u64> = points.iter().map(|point| point["rows"].as_u64().unwrap()).collect();
    let of_all = |share: f64| (share * rows[2] as f64).round() as u64;
    assert!(rows[2] == 455 || rows[2] == 456, "four fifths of 569 rows: {rows:?}");
    assert_eq!(rows[..2], [of_all(0.05), of_all(0.3)]);
    let mean = |point: &serde_json::Value| {
        let scores = point["held_out"].as_array().unwrap();
        scores.iter().map(|score| score.as_f64().unwrap()).sum::<f64>() / 5.0
    };
    assert!(mean(&points[0]) < mean(&points[2]));
    // All rows of every fold: what cross-validation says.
    let whole = folder.run("cross-validate wdbc.csv --scale standard --json").exits(0).json();
    let folds = whole["folds"].as_array().unwrap();
    for (fold, score) in folds.iter().zip(points[2]["held_out"].as_array().unwrap()) {
        let expected = fold["quality"]["accuracy"].as_f64().unwrap();
        assert!((score.as_f64().unwrap() - expected).abs() < 1e-12, "{fold} {score}");
    }
    assert!(folder.read("curve.svg").contains("<svg"));
    folder.run("cross-validate wdbc.csv --sizes 0,0.5").exits(2);
    let text = folder.run(run).exits(0).stdout;
    assert!(text.contains("held-out accuracy"), "{text}");
}
