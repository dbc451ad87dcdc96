//! Ranking on the command line.

use crate::common::Folder;

/// Three queries of eight rows whose order is that of the first feature, but for some noise.
fn queries() -> String {
    let mut text = String::new();
    for query in 1..=3 {
        for row in 0..8 {
            let level = row / 3;
            let noise = (row * 7 + query * 3) % 5;
            let first = f64::from(level) + 0.3 * f64::from(noise);
            text += &format!("{level} qid:{query} 1:{first} 2:{noise}\n");
        }
    }
    text
}

#[test]
fn queries_are_ranked_validated_and_tuned() {
    let folder = Folder::new();
    folder.write("queries.txt", queries());
    let report = folder.run("train queries.txt -s rank-svm --c 10 --gap 1e-6 -o r.wm --json");
    let report = report.exits(0).json();
    let gap = report["primal"].as_f64().unwrap() - report["dual"].as_f64().unwrap();
    assert!(gap >= 0.0 && gap <= 1e-6 * report["primal"].as_f64().unwrap(), "{report}");
    let report = folder.run("predict queries.txt --model r.wm --json").exits(0).json();
    assert_eq!(report["queries"], 3);
    assert_eq!(report["pair_accuracy"].as_f64(), Some(1.0), "{report}");
    // All 21 pairs of different labels among 28 are in order.
    assert!((report["kendall_tau"].as_f64().unwrap() - 0.75_f64.sqrt()).abs() < 1e-12, "{report}");
    assert_eq!(report["ndcg"].as_f64(), Some(1.0), "{report}");
    let text = folder.run("predict queries.txt --model r.wm -o scores.txt").exits(0).stdout;
    assert!(text.contains("mean average precision") && text.contains("NDCG@10"), "{text}");
    let folds = "cross-validate queries.txt -s rank-svm --folds 3 --json";
    assert!(folder.run(folds).exits(0).json()["kendall_tau"].as_f64().unwrap() > 0.7);
    let tune = "tune queries.txt -s rank-svm --grid c=0.01,1 --folds 3 --score ndcg";
    assert!(folder.run(tune).exits(0).stdout.contains("ndcg"));
    folder.run("plot confusion queries.txt --model r.wm -o c.svg").exits(2);
}

#[test]
fn what_cannot_be_ranked_is_told() {
    let folder = Folder::new();
    folder.write("same.txt", "1 qid:1 1:1\n1 qid:1 1:2\n2 qid:2 1:3\n");
    let failed = folder.run("train same.txt -s rank-svm -o r.wm -q");
    let message = failed.stderr;
    assert!(message.contains("expected a query with two different labels"), "{message}");
}

#[test]
fn the_rows_of_queries_are_put_in_order() {
    let folder = Folder::new();
    folder.write("queries.txt", queries());
    folder.run("rank train queries.txt --c 10 --gap 1e-6 -o r.wm -q").exits(0);
    folder.run("train queries.txt -s rank-svm --c 10 --gap 1e-6 -o same.wm -q").exits(0);
    let found = folder.run("rank order queries.txt --model r.wm --top 2").exits(0);
    let lines = found.lines();
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert_eq!(lines[0], "query\trank\trow\tscore");
    let fields = |line: usize| lines[line].split('\t').collect::<Vec<_>>();
    assert_eq!(fields(1)[..2], ["1", "1"]);
    assert_eq!(fields(4)[..2], ["2", "2"]);
    let score = |line: usize| fields(line)[3].parse::<f64>().unwrap();
    assert!(score(1) >= score(2) && score(5) >= score(6));
    assert!(found.stderr.contains("NDCG"), "{}", found.stderr);
    let report = folder.run("rank order queries.txt --model same.wm -o o.tsv --json").exits(0);
    assert_eq!(report.json()["pair_accuracy"].as_f64(), Some(1.0));
    assert_eq!(folder.read("o.tsv").lines().count(), 25);
    let help = folder.run("rank train --help").exits(0).stdout;
    assert!(help.contains("--gap"), "{help}");
    folder.run("rank train queries.txt -s knn -o x.wm").exits(2);
    folder.write("rows.txt", "1 1:1\n-1 1:2\n");
    folder.run("train rows.txt -o c.wm -q").exits(0);
    let failed = folder.run("rank order rows.txt --model c.wm").exits(2).stderr;
    assert!(failed.contains("needs one of rank-svm"), "{failed}");
}
