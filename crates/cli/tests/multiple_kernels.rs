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

/// Iris: sepals with the labels, petals with labels too, and products of all columns; 0-based rows `keep`.
fn write_views(folder: &Folder, names: [&str; 3], keep: impl Fn(usize) -> bool, all: &[[f64; 4]]) {
    let text = folder.read("iris.csv");
    let (mut sepals, mut petals, mut gram) =
        ("a,b,class\n".to_owned(), "c,class,d\n".to_owned(), String::new());
    for (row, line) in text.lines().skip(1).enumerate().filter(|(row, _)| keep(*row)) {
        let cells: Vec<&str> = line.split(',').collect();
        sepals.push_str(&format!("{},{},{}\n", cells[0], cells[1], cells[4]));
        petals.push_str(&format!("{},{},{}\n", cells[2], cells[4], cells[3]));
        let own = &all[row];
        let product = |other: &[f64; 4]| own.iter().zip(other).map(|(x, z)| x * z).sum::<f64>();
        let values: Vec<String> = all.iter().map(|other| product(other).to_string()).collect();
        gram.push_str(&format!("{}\n", values.join(",")));
    }
    for (name, text) in names.into_iter().zip([sepals, petals, gram]) {
        folder.write(name, text);
    }
}

/// The features of iris.
fn iris_rows(folder: &Folder) -> Vec<[f64; 4]> {
    let text = folder.read("iris.csv");
    let row = |line: &str| {
        let mut cells = line.split(',').map(|cell| cell.parse().unwrap_or(0.0));
        std::array::from_fn(|_| cells.next().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn views_are_kernels_of_files_of_the_same_rows() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let all = iris_rows(&folder);
    write_views(&folder, ["sepals.csv", "petals.csv", "gram.csv"], |_| true, &all);
    write_views(&folder, ["some.csv", "some2.csv", "some3.csv"], |row| row % 2 == 1, &all);
    let shared = "--json --c 10 --view sepal=1-2:rbf:gamma=0.5";
    let words = format!(
        "train sepals.csv -o files.wm {shared} --view petal=petals.csv:linear --view all=gram.csv:precomputed"
    );
    let of_files = folder.run(&words).exits(0).json();
    let words = [
        "train",
        "iris.csv",
        "-o",
        "columns.wm",
        "--json",
        "--c",
        "10",
        "--kernels",
        "view(1-2: rbf(gamma=0.5)), view(3-4: linear), linear",
    ];
    let of_columns = folder.run_words(&words).exits(0).json();
    let (left, right) =
        (of_files["primal"].as_f64().unwrap(), of_columns["primal"].as_f64().unwrap());
    assert!((left - right).abs() < 2e-3 * right, "{left} {right}");
    let predict = "predict some.csv -q -m files.wm -d";
    let found =
        folder.run(&format!("{predict} --view-file some2.csv --view-file some3.csv")).exits(0);
    let expected = folder.run("predict iris.csv -q -m columns.wm -d").exits(0);
    let labels = |text: &str, step: usize| -> Vec<String> {
        let lines = text.lines().skip(1).skip(step - 1).step_by(step);
        lines.map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    let (found, expected) = (labels(&found.stdout, 1), labels(&expected.stdout, 2));
    let same = found.iter().zip(&expected).filter(|(a, b)| a == b).count();
    assert!(found.len() == 75 && same >= 74, "{same}");
    let table = folder.run(
        "compare sepals.csv --view sepal=1-2:rbf --view petal=petals.csv:rbf --c 10 --folds 3 --repeats 1 \
         --bootstrap 0 --json --max-time 100",
    );
    let table = table.exits(0).json();
    let mean = |name: &str| {
        let all = table["machines"].as_array().unwrap();
        all.iter().find(|way| way["name"] == name).unwrap()["accuracy"].as_f64().unwrap()
    };
    assert!(mean("kernel 2") > mean("kernel 1") + 0.1, "{table}");
}

#[test]
fn files_of_views_that_do_not_fit_have_messages_of_their_own() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.copy("iris.libsvm");
    let all = iris_rows(&folder);
    write_views(&folder, ["sepals.csv", "petals.csv", "gram.csv"], |_| true, &all);
    write_views(&folder, ["few.csv", "few2.csv", "few3.csv"], |row| row < 100, &all);
    // The same rows in another order: the labels tell.
    let petals = folder.read("petals.csv");
    let (header, rows) = petals.split_once('\n').unwrap();
    let turned: Vec<&str> = rows.lines().rev().collect();
    folder.write("turned.csv", format!("{header}\n{}\n", turned.join("\n")));
    folder.write("words.csv", "a\n".to_owned() + &"b\nc\n".repeat(75));
    let narrow: Vec<String> = folder
        .read("gram.csv")
        .lines()
        .map(|line| line[..line.rfind(',').unwrap()].into())
        .collect();
    folder.write("narrow.csv", narrow.join("\n") + "\n");
    let gram = folder.read("gram.csv");
    folder.write("zeros.csv", (["0"; 150].join(",") + "\n").repeat(150));
    folder.write("skew.csv", gram.replacen(gram.split(',').nth(1).unwrap(), "1e6", 1));
    let (_, rest) = gram.split_once(',').unwrap();
    folder.write("nan.csv", format!("nan,{rest}"));
    let one: String =
        folder.read("sepals.csv").replace("setosa", "virginica").replace("versicolor", "virginica");
    folder.write("one.csv", one);
    for (words, message) in [
        ("sepals.csv --view p=few2.csv:rbf", "few2.csv: "),
        ("sepals.csv --view p=turned.csv:rbf", "the same rows in the same order"),
        ("sepals.csv --view p=words.csv:rbf", "expected numbers in a view's file"),
        ("sepals.csv --view p=iris.libsvm:rbf", "found LIBSVM text"),
        ("sepals.csv --view p=none.csv:rbf", "none.csv"),
        ("sepals.csv --view p=narrow.csv:precomputed", "as many columns as training rows"),
        ("sepals.csv --view p=few3.csv:precomputed", "few3.csv: "),
        ("sepals.csv --view p=zeros.csv:precomputed", "a positive trace"),
        ("sepals.csv --view p=skew.csv:precomputed", "a symmetric table"),
        ("sepals.csv --view p=nan.csv:precomputed", "expected a value in column"),
        ("one.csv --view p=gram.csv:precomputed", "two classes"),
        (
            "sepals.csv --view p=petals.csv:rbf --kernels view(1:rbf)",
            "not with columns in --kernels",
        ),
        ("sepals.csv --view p=petals.csv:rbf --test sepals.csv", "--test cannot be used"),
    ] {
        let run = folder.run(&format!("train {words} -o m.wm -q"));
        assert!(run.code != Some(0) && run.stderr.contains(message), "{words}: {}", run.stderr);
    }
    folder.run("train sepals.csv --view p=petals.csv:rbf -o m.wm -q").exits(0);
    for (words, message) in [
        ("sepals.csv", "expected"),
        ("sepals.csv --view-file few2.csv", "few2.csv: "),
        ("sepals.csv --view-file gram.csv", "expected"),
    ] {
        let run = folder.run(&format!("predict {words} -m m.wm -q"));
        assert!(run.code != Some(0) && run.stderr.contains(message), "{words}: {}", run.stderr);
    }
}

#[test]
fn kernels_for_numbers_are_compared_by_their_errors() {
    let folder = Folder::new();
    let rows = (0..60).map(|i| {
        let x = f64::from(i) / 8.0;
        format!("{x},{}\n", (2.0 * x).sin() + 0.01 * f64::from(i % 7))
    });
    folder.write("sine.csv", rows.collect::<String>());
    let words = [
        "compare",
        "sine.csv",
        "-s",
        "epsilon-svr",
        "--epsilon",
        "0.01",
        "--kernels",
        "linear, rbf(gamma=1)",
        "--c",
        "10",
        "--folds",
        "3",
        "--repeats",
        "1",
        "--bootstrap",
        "3",
        "--max-time",
        "100",
    ];
    let table = folder.run_words(&words).exits(0).stdout;
    assert!(table.contains("rmse") && !table.contains("accuracy"), "{table}");
    let json = folder.run_words(&[&words[..], &["--json"]].concat()).exits(0).json();
    let error = |name: &str| {
        let all = json["machines"].as_array().unwrap();
        all.iter().find(|way| way["name"] == name).unwrap()["rmse"].as_f64().unwrap()
    };
    assert!(error("kernel 2") < 0.1 && error("kernel 1") > 0.5, "{json}");
    assert_eq!(error("best-single"), error("kernel 2"));
}

#[test]
fn an_indefinite_kernel_of_one_machine_is_a_warning() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let run = folder.run("train iris.csv -o m.wm --kernel sigmoid --gamma 0.1 --coef0 -5");
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.stderr);
    assert!(run.stderr.contains("not positive semidefinite"), "{}", run.stderr);
    let shown = folder.run("inspect m.wm").exits(0).stdout;
    assert!(shown.contains("negative-eigenvalue=-"), "{shown}");
    let run = folder.run("train iris.csv -o m.wm").exits(0);
    assert!(!run.stderr.contains("semidefinite"), "{}", run.stderr);
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
        (
            "compare iris.csv --kernels linear -s one-class",
            "c-svc, an all-in-one machine or epsilon-svr",
        ),
        ("compare iris.csv --epsilon 0.1", "needs --kernels or --view"),
    ] {
        let run = folder.run(words).exits(2);
        assert!(run.stderr.contains(message), "{words}: {}", run.stderr);
    }
}

#[test]
fn weights_that_a_rule_makes_all_zero_are_an_error() {
    let folder = Folder::new();
    let rows =
        (0..20).map(|i| format!("{},{}\n", f64::from(i % 7), if i % 2 == 0 { "a" } else { "b" }));
    folder.write("rows.csv", rows.collect::<String>());
    folder.write("ones.csv", (["1"; 20].join(",") + "\n").repeat(20));
    let words = "train rows.csv -o m.wm -q --view all=ones.csv:precomputed --weights";
    let run = folder.run(&format!("{words} alignment")).exits(1);
    assert!(run.stderr.contains("weights that are all 0"), "{}", run.stderr);
    assert!(run.stderr.contains("a kernel that tells the labels apart"), "{}", run.stderr);
}

#[test]
fn kernels_may_be_features_of_more_rows_than_memory_has_tables_for() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let kernels = "linear, rbf(gamma=0.1), rbf(gamma=10), poly(degree=2, coef0=1)";
    let train = |more: &[&str]| {
        let mut words = vec!["train", "iris.csv", "--json", "--c", "10", "--tol", "1e-5"];
        words.extend(["--precision", "f64", "--kernels", kernels]);
        words.extend(more);
        folder.run_words(&words)
    };
    let exact = train(&["-o", "exact.wm"]).exits(0).json();
    let all = train(&["-o", "all.wm", "--approximate", "nystroem:150"]).exits(0).json();
    let (left, right) = (all["primal"].as_f64().unwrap(), exact["primal"].as_f64().unwrap());
    assert!((left - right).abs() < 3e-5 * right, "{left} {right}");
    let shown = folder.run("inspect all.wm").exits(0).stdout;
    assert!(shown.contains("kernels with a weight"), "{shown}");
    assert!(shown.contains("approximate=nystroem:150"), "{shown}");
    let predicted =
        |model: &str| folder.run(&format!("predict iris.csv -q -m {model}")).exits(0).stdout;
    let (left, right) = (predicted("exact.wm"), predicted("all.wm"));
    let same = left.lines().zip(right.lines()).filter(|(a, b)| a == b).count();
    assert!(same >= 149, "{same}");
    // Fewer features, one-vs-rest, a search for C, rows without labels.
    let words = ["tune", "iris.csv", "-q", "--grid", "c=1,10", "--folds", "3", "-o", "t.wm"];
    let few = ["--kernels", "linear, rbf(gamma=0.5)", "--approximate", "rff:40"];
    folder.run_words(&[&words[..], &few, &["--multiclass", "ovr"]].concat()).exits(0);
    let (text, labels) = hidden(&folder, "?");
    folder.write("half.csv", text);
    let words = ["train", "half.csv", "-q", "-o", "h.wm", "--c", "5", "--unlabelled", "?"];
    let more = ["--transduced", "out.txt", "-s", "cs"];
    folder.run_words(&[&words[..], &few, &more].concat()).exits(0);
    assert!(right_of(&folder, &labels) >= 45, "{}", folder.read("out.txt"));
    for (more, code, message) in [
        (&["--weights", "signed"][..], 1, "nonnegative, lp=P or uniform"),
        (&["--jitter", "1e-6"], 1, "with approximate features"),
        (&["-s", "ww"], 1, "c-svc or cs with approximate features"),
        (&["--loss", "squared-hinge"], 1, "hinge with approximate features"),
    ] {
        let words = ["train", "iris.csv", "-q", "-o", "no.wm"];
        let run = folder.run_words(&[&words[..], &few, more].concat());
        assert!(run.code == Some(code) || run.code == Some(2), "{more:?}: {:?}", run.code);
        assert!(run.stderr.contains(message), "{more:?}: {}", run.stderr);
    }
    let run = folder.run("train iris.csv -q -o no.wm --approximate rff:10");
    assert!(
        run.code != Some(0) && run.stderr.contains("kernels for approximate"),
        "{}",
        run.stderr
    );
}

/// How many lines of out.txt are right.
fn right_of(folder: &Folder, labels: &[String]) -> usize {
    right(&folder.read("out.txt"), labels)
}
