//! Learnt kernels on the command line: rows without labels.

use crate::common::{Folder, hidden_iris, right};

/// Iris with the label of every third row hidden behind `mark`.
fn hidden(folder: &Folder, mark: &str) -> (String, Vec<String>) {
    hidden_iris(folder, mark, |_| true, |row| row % 3 == 0)
}

#[test]
fn rows_without_labels_are_predicted_wherever_they_come_from() {
    for mark in ["?", ""] {
        let folder = Folder::new();
        let (text, labels) = hidden(&folder, mark);
        folder.write("half.csv", &text);
        let words = |more: &[&'static str]| {
            let mut words = vec!["train", "half.csv", "-q", "-o", "m.wm"];
            words.extend(["--kernels", "linear, rbf(gamma=0.5)", "--c", "5"]);
            words.extend(more);
            folder.run_words(&words)
        };
        words(&["--unlabelled", "?", "--transduced", "out.txt"]).exits(0);
        let inside = folder.read("out.txt");
        assert!(right(&inside, &labels) >= 48, "{inside}");
        // The same rows in a file of their own.
        let (header, rows) = text.split_once('\n').unwrap();
        let ends = format!(",{mark}");
        let (without, with): (Vec<&str>, Vec<&str>) =
            rows.lines().partition(|line| line.ends_with(&ends));
        folder.write("half.csv", format!("{header}\n{}\n", with.join("\n")));
        folder.write("rest.csv", format!("{header}\n{}\n", without.join("\n")));
        words(&["--transduce", "rest.csv", "--transduced", "apart.txt"]).exits(0);
        assert_eq!(folder.read("apart.txt"), inside);
        let report = folder.run("inspect m.wm --json").exits(0).json();
        assert!(report.to_string().contains("unlabelled-rows"), "{report}");
        // The model has learnt the classes alone and predicts any rows.
        let again = folder.run("predict rest.csv -m m.wm --label-column none -q").exits(0);
        assert_eq!(again.stdout, inside);
    }
}

#[test]
fn targets_may_be_missing_and_signed_weights_see_all_rows() {
    let folder = Folder::new();
    let rows = (0..40).map(|i| {
        let x = f64::from(i) / 8.0;
        let target = if i % 4 == 1 { "?".to_owned() } else { x.sin().to_string() };
        format!("{x},{target}\n")
    });
    folder.write("sine.csv", rows.collect::<String>());
    let words = [
        "train",
        "sine.csv",
        "-q",
        "-s",
        "epsilon-svr",
        "--c",
        "100",
        "--epsilon",
        "0.01",
        "--kernels",
        "linear, rbf(gamma=1), poly(degree=2, coef0=1)",
        "--weights",
        "signed",
        "--jitter",
        "1e-4",
        "--unlabelled",
        "?",
        "--transduced",
        "out.txt",
        "-o",
        "m.wm",
    ];
    folder.run_words(&words).exits(0);
    let found: Vec<f64> =
        folder.read("out.txt").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), 10);
    for (k, value) in found.iter().enumerate() {
        let x = (4 * k + 1) as f64 / 8.0;
        assert!((value - x.sin()).abs() < 0.05, "{x}: {value}");
    }
}

#[test]
fn views_are_kernels_of_columns() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let by_view = folder
        .run("train iris.csv -o m.wm --json --view sepal=1-2:rbf:gamma=0.5 --view petal=3,4:linear")
        .exits(0)
        .json();
    let expression = "view(1-2: rbf(gamma=0.5)), view(3,4: linear)";
    let words = ["train", "iris.csv", "-o", "m.wm", "--json", "--kernels", expression];
    let by_expression = folder.run_words(&words).exits(0).json();
    assert_eq!(by_view["primal"], by_expression["primal"]);
    assert_eq!(by_view["kernel"], by_expression["kernel"]);
    for (view, message) in [
        ("sepal", "NAME=COLUMNS:KERNEL"),
        ("sepal=1-2", "NAME=COLUMNS:KERNEL"),
        ("a=1-2:rbff", "rbff"),
        ("a=1-9:rbf", "columns of a view"),
    ] {
        let run = folder.run(&format!("train iris.csv -o m.wm -q --view {view}"));
        assert!(run.code != Some(0) && run.stderr.contains(message), "{view}: {}", run.stderr);
    }
}

#[test]
fn mistakes_with_rows_without_labels_are_told() {
    let folder = Folder::new();
    let (text, _) = hidden(&folder, "?");
    folder.write("half.csv", text);
    folder.write("none.csv", "1,2,?\n2,3,?\n");
    for (words, code, message) in [
        (
            "half.csv --kernels linear --transduced o.txt",
            2,
            "--unlabelled LABEL or --transduce FILE",
        ),
        ("half.csv --transduce iris.csv --transduced o.txt", 2, "kernels for unlabelled"),
        ("half.csv --kernels linear", 1, "a label in column"),
        ("none.csv --kernels linear --unlabelled ?", 1, "at least one row with a label"),
        ("half.csv --kernels linear --unlabelled ? --probability", 2, "labels of all rows"),
        ("half.csv --kernels linear --unlabelled ? --transduced half.csv", 2, "destroy it"),
        ("iris.csv --kernels linear --transduce none.csv --transduced o.txt", 1, "column"),
    ] {
        let run = folder.run(&format!("train {words} -o m.wm -q")).exits(code);
        assert!(run.stderr.contains(message), "{words}: {}", run.stderr);
    }
}

#[test]
fn ways_to_use_kernels_are_compared_with_pictures() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let words = "compare iris.csv --view sepal=1-2:rbf --view petal=3-4:rbf --subsets --repeats 1 --folds 3 --c 10";
    let more = "--bootstrap 10 -o ways.svg --shares shares.svg --max-time 100";
    let text = folder.run(&format!("{words} {more}")).exits(0).stdout;
    for name in ["nonnegative", "signed", "margin", "voting", "concatenation-zscore", "best-subset"]
    {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(text.contains("view(3-4: rbf)"), "{text}");
    assert!(folder.read("ways.svg").starts_with("<svg"));
    assert!(folder.read("shares.svg").contains("kernel 2: share"));
    let report = folder.run(&format!("{words} --bootstrap 5 --json")).exits(0).json();
    let weights = report["kernels"].as_array().unwrap();
    let total: f64 = weights.iter().map(|kernel| kernel["weight"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{report}");
    // Petals tell the species apart, sepals do not.
    let mean = |name: &str| {
        let all = report["machines"].as_array().unwrap();
        let one = all.iter().find(|way| way["name"] == name).unwrap();
        one["accuracy"].as_f64().unwrap()
    };
    assert!(mean("kernel 2") > mean("kernel 1") + 0.1, "{report}");
    assert!(mean("best-single") > mean("kernel 1") + 0.1, "{report}");
    for (words, message) in [
        ("compare iris.csv --subsets", "need --kernels or --view"),
        ("compare iris.csv --kernels linear --machines knn", "cannot be used with"),
        ("compare iris.csv --kernels rbf(gamma=2:1:3)", "LOW:HIGH:COUNT"),
        ("compare iris.csv --kernels linear -s epsilon-svr", "c-svc or an all-in-one machine"),
    ] {
        let run = folder.run(words).exits(2);
        assert!(run.stderr.contains(message), "{words}: {}", run.stderr);
    }
}
