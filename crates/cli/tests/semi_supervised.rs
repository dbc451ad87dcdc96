//! Semi-supervised classification on the command line: rows without labels in a file or beside it.

use crate::common::{Folder, hidden_iris, right};

/// Two classes of Iris that overlap a little, the label of all rows but every tenth hidden behind `mark`.
fn hidden(folder: &Folder, mark: &str) -> (String, Vec<String>) {
    hidden_iris(folder, mark, |row| row > 50, |row| row % 10 != 0)
}

#[test]
fn rows_without_labels_are_learnt_from_wherever_they_come_from() {
    for mark in ["?", ""] {
        let folder = Folder::new();
        let (text, labels) = hidden(&folder, mark);
        folder.write("half.csv", &text);
        let words = |more: &[&'static str]| {
            let mut words = vec!["train", "half.csv", "-q", "-o", "m.wm", "-s", "semi-svc"];
            words.extend(["--scale", "standard", "--share", "0.5"]);
            words.extend(more);
            folder.run_words(&words)
        };
        words(&["--transduced", "out.txt"]).exits(0);
        let inside = folder.read("out.txt");
        assert!(right(&inside, &labels) >= 78, "{} of {}", right(&inside, &labels), labels.len());
        let (header, rows) = text.split_once('\n').unwrap();
        let ends = format!(",{mark}");
        let (without, with): (Vec<&str>, Vec<&str>) =
            rows.lines().partition(|line| line.ends_with(&ends));
        folder.write("half.csv", format!("{header}\n{}\n", with.join("\n")));
        folder.write("rest.csv", format!("{header}\n{}\n", without.join("\n")));
        words(&["--transduce", "rest.csv", "--transduced", "apart.txt"]).exits(0);
        assert!(right(&folder.read("apart.txt"), &labels) >= 78);
        let again = folder.run("predict rest.csv -m m.wm --label-column none -q").exits(0);
        assert_eq!(again.stdout, folder.read("apart.txt"));
        let report = folder.run("inspect m.wm --json").exits(0).json().to_string();
        assert!(report.contains("unlabelled-rows") && report.contains("shares"), "{report}");
    }
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let folder = Folder::new();
    let (text, _) = hidden(&folder, "?");
    folder.write("half.csv", &text);
    for (options, part) in [
        ("--share 1.5", "above 0 and below 1"),
        ("--share 0.2,0.2", "add up to 1"),
        ("--share 0.2,0.3,0.5", "each of 2 classes"),
        ("--nu 0.5", "nu"),
        ("--labelling other", "annealing"),
    ] {
        let done = folder.run(&format!("train half.csv -q -o m.wm -s semi-svc {options}"));
        assert_ne!(done.code, Some(0), "{options}");
        assert!(done.stderr.contains(part), "{options}: {}", done.stderr);
    }
}

#[test]
fn rows_without_labels_are_not_counted_by_cross_validation_and_searches() {
    let folder = Folder::new();
    let (text, labels) = hidden(&folder, "?");
    let known = 100 - labels.len();
    folder.write("half.csv", &text);
    let machines = ["-s semi-svc", "-s gmm-bayes", "--kernels linear,rbf"];
    for machine in machines {
        let options = format!("{machine} --unlabelled ? --folds 2 --json");
        let report = folder.run(&format!("cross-validate half.csv {options}")).exits(0).json();
        assert_eq!(report["rows"].as_u64(), Some(known as u64), "{machine}");
        // Before, every row without a label counted as wrong: 10 % were right at best.
        assert!(report["accuracy"].as_f64().unwrap() > 0.7, "{machine}: {report}");
        let report = folder.run(&format!("tune half.csv -o m.wm {options}")).exits(0).json();
        assert!(report["score"].as_f64().unwrap() > 0.7, "{machine}: {report}");
    }
}
