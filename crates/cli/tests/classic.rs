//! The classical machines on the command line, and the comparison of them all.

mod common;

use common::Folder;

#[test]
fn every_machine_trains_predicts_and_is_inspected() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    for (machine, least) in [
        ("fisher --threshold midpoint", 0.97),
        ("kernel-fisher --gamma 0.1 --mu 0.01", 0.96),
        ("gmm-bayes --components 2 --covariance diag --priors equal", 0.94),
        ("knn --neighbours 7 --weights distance", 0.99),
        ("parzen --width silverman", 0.95),
        ("pnn --input lifted", 0.95),
        ("gmm --components 3", 0.9),
        ("kmeans --clusters 3 --starts 5", 0.85),
        ("spectral --clusters 3 --neighbours 10", 0.85),
    ] {
        folder.run(&format!("train iris.csv --machine {machine} -o m.wm -q")).exits(0);
        let report = folder.run("predict iris.csv --model m.wm --json").exits(0).json();
        assert!(report["accuracy"].as_f64().unwrap() >= least, "{machine}: {report}");
        folder.run("predict iris.csv --model m.wm --decision-values -o a.txt -q").exits(0);
        folder.run("inspect m.wm").exits(0);
    }
    folder.run("train iris.csv --machine fisher -o m.wm -q").exits(0);
    assert!(folder.run("inspect m.wm").exits(0).stdout.contains("petal_length ("));
    folder.run("predict iris.csv --model m.wm --probability -o p.txt -q").exits(0);
    folder.run("train iris.csv --machine density -o d.wm -q").exits(0);
    assert_eq!(folder.run("predict iris.csv --model d.wm -q").exits(0).lines().len(), 150);
    let failed = folder.run("train iris.csv --machine knn --neighbours 0 -o m.wm -q");
    assert!(failed.exits(2).stderr.contains("parameter k"));
}

#[test]
fn machines_are_compared_with_intervals_and_a_picture() {
    let folder = Folder::new();
    folder.copy("wine.csv");
    let text = folder.run("compare wine.csv --repeats 1 -o wine.svg").exits(0).stdout;
    for name in ["svm-rbf", "svm-linear", "fisher", "kernel-fisher", "gmm-bayes", "knn", "parzen"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(text.contains("95 % interval") && text.contains("best"), "{text}");
    assert!(folder.read("wine.svg").starts_with("<svg"));
    let two = "compare wine.csv --machines fisher,knn --repeats 1 --json";
    let report = folder.run(two).exits(0).json();
    assert_eq!(report["machines"].as_array().unwrap().len(), 2);
    assert!(report["mcnemar"]["p_value"].as_f64().unwrap() <= 1.0);
    let best = &report["machines"][0];
    let accuracy = best["accuracy"].as_f64().unwrap();
    assert!(best["interval"][0].as_f64().unwrap() <= accuracy && accuracy > 0.9);
    let failed = folder.run("compare wine.csv --machines oracle");
    assert!(failed.exits(2).stderr.contains("one of"));
}
