//! The classical machines on the command line, and the comparison of them all.

use crate::common::Folder;

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
    assert!(
        failed
            .exits(2)
            .stderr
            .contains("parameter neighbours: expected a whole number of at least 1")
    );
}

#[test]
fn machines_are_compared_with_intervals_and_a_picture() {
    let folder = Folder::new();
    folder.copy("wine.csv");
    let text = folder.run("compare wine.csv --repeats 1 -o wine.svg").exits(0).stdout;
    let usual = "svm-rbf svm-linear ls-svc fisher kernel-fisher gmm-bayes knn parzen pnn";
    for name in usual.split(' ') {
        assert!(text.contains(name), "{name} in {text}");
    }
    let others = "compare wine.csv --machines nu-svc,ww --folds 2 --repeats 1 --json";
    let others = folder.run(others).exits(0).json();
    assert!(others["machines"][1]["accuracy"].as_f64().unwrap() > 0.9, "{others}");
    assert!(text.contains("95 % interval") && text.contains("best"), "{text}");
    assert!(folder.read("wine.svg").starts_with("<svg"));
    let two = "compare wine.csv --machines fisher,knn --repeats 1 --json";
    let report = folder.run(two).exits(0).json();
    assert_eq!(report["machines"].as_array().unwrap().len(), 2);
    // The exact test by its definition: twice the probability of so uneven a split of a fair coin.
    let test = &report["mcnemar"];
    let count = |name: &str| test[name].as_u64().unwrap();
    let (first, second) = (count("first_only"), count("second_only"));
    let total = first + second;
    assert!(total > 0, "machines that never differ test nothing: {report}");
    let choose = |k: u64| (1..=k).fold(1.0, |c, i| c * (total - k + i) as f64 / i as f64);
    let tail: f64 = (first.max(second)..=total).map(choose).sum();
    let expected = (2.0 * tail / 2_f64.powi(total as i32)).min(1.0);
    let p_value = test["p_value"].as_f64().unwrap();
    assert!((p_value - expected).abs() < 1e-12, "{p_value} and {expected}");
    // The rows that only one machine gets right are the difference of their accuracies.
    let accuracy = |k: usize| report["machines"][k]["accuracy"].as_f64().unwrap();
    let difference = (first as f64 - second as f64) / 178.0;
    assert!((accuracy(0) - accuracy(1) - difference).abs() < 0.01, "{report}");
    let best = &report["machines"][0];
    assert!(best["interval"][0].as_f64().unwrap() <= accuracy(0) && accuracy(0) > 0.9);
    let failed = folder.run("compare wine.csv --machines oracle");
    assert!(failed.exits(2).stderr.contains("one of"));
}

#[test]
fn mistakes_with_the_classical_machines_are_told() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.copy("ripley-train.csv");
    for (command, exit, told) in [
        ("iris.csv --machine knn --neighbours 151", 2, "at least 1 and at most the 150 rows"),
        ("iris.csv --machine knn --metric manhattan", 2, "euclidean, mahalanobis"),
        ("iris.csv --machine parzen --width 0", 2, "cv-errors or a finite number above 0"),
        ("iris.csv --machine parzen --width wide", 2, "cv-errors or a finite number above 0"),
        ("iris.csv --machine parzen --window tophat", 2, "gaussian window"),
        ("iris.csv --machine density --width cv-errors", 2, "where there are no classes"),
        ("iris.csv --machine gmm --components 151", 2, "at most the 150 rows"),
        (
            "iris.csv --machine gmm-bayes --shrinkage auto",
            2,
            "parameter shrinkage: expected none or a number from 0 to 1",
        ),
        ("iris.csv --machine gmm-bayes --unbiased --components 2", 2, "one component a class"),
        ("iris.csv --machine gmm-bayes --losses 0,1,1,0", 1, "losses: expected 9, found 4"),
        ("iris.csv --machine gmm-bayes --priors 0.5,0.5", 1, "priors: expected 3, found 2"),
        ("iris.csv --machine kernel-fisher --mu 0", 2, "a finite number above 0"),
        ("iris.csv --machine fisher --threshold least-errors", 2, "prior or midpoint"),
        ("iris.csv --machine spectral --clusters 3 --cut normalised", 2, "2 for a normalised cut"),
        ("iris.csv --machine kmeans --clusters 0", 2, "at least 1"),
    ] {
        let failed = folder.run(&format!("train {command} -o m.wm")).exits(exit);
        assert!(failed.stderr.contains(told), "{command}: {}", failed.stderr);
    }
    folder.write("nan.csv", "a,b,class\n1,2,x\nnan,3,y\n2,2,x\n5,1,y\n");
    let failed = folder.run("train nan.csv --machine knn --neighbours 1 -o m.wm").exits(1);
    assert!(failed.stderr.contains("nan.csv:3:1"), "{}", failed.stderr);
    // Constant and duplicate columns: a warning, and the model.
    folder.write("flat.csv", "a,b,c,class\n1,1,7,x\n2,2,7,x\n3,3,7,x\n6,6,7,y\n7,7,7,y\n9,9,7,y\n");
    let done = folder.run("train flat.csv --machine fisher -o m.wm").exits(0);
    assert!(done.stderr.contains("singular"), "{}", done.stderr);
    folder.write("two.csv", "a,b,class\n1,1,x\n5,2,y\n");
    for machine in ["fisher", "kernel-fisher", "gmm-bayes", "knn --neighbours 1", "parzen", "pnn"] {
        folder.run(&format!("train two.csv --machine {machine} -o m.wm -q")).exits(0);
        let report = folder.run("predict two.csv --model m.wm --json").exits(0).json();
        assert_eq!(report["accuracy"], 1.0, "{machine}");
    }
}

#[test]
fn rows_without_a_class_and_searches_of_parameters() {
    let folder = Folder::new();
    folder.copy("ripley-train.csv");
    folder.copy("ripley-test.csv");
    let text = folder.read("ripley-train.csv");
    let hidden = text.lines().enumerate().map(|(i, line)| {
        let (values, label) = line.rsplit_once(',').unwrap();
        format!("{values},{}\n", if i == 0 || i % 5 == 0 { label } else { "unknown" })
    });
    folder.write("half.csv", hidden.collect::<String>());
    folder.run("train half.csv --machine gmm-bayes --unlabelled unknown -o m.wm -q").exits(0);
    let report = folder.run("predict ripley-test.csv --model m.wm --json").exits(0).json();
    assert!(report["accuracy"].as_f64().unwrap() > 0.8, "{report}");
    for (machine, grid) in [
        ("knn", "neighbours=1,9,25"),
        ("kernel-fisher", "mu=1e-3,1e-1"),
        ("parzen", "width=0.05,0.25"),
        ("gmm-bayes", "components=1,2"),
    ] {
        let command = format!("tune ripley-train.csv --machine {machine} --grid {grid} --json");
        let report = folder.run(&command).exits(0).json();
        assert!(report["score"].as_f64().unwrap() > 0.8, "{machine}: {report}");
    }
    let failed = folder.run("tune ripley-train.csv --machine knn --grid neighbours=x").exits(2);
    assert!(failed.stderr.contains("a whole number"), "{}", failed.stderr);
}

#[test]
fn a_moved_boundary_keeps_its_limit() {
    let folder = Folder::new();
    folder.copy("ripley-train.csv");
    folder.copy("ripley-test.csv");
    folder.run("train ripley-train.csv --machine kernel-fisher -o m.wm -q").exits(0);
    let command = "threshold m.wm ripley-test.csv --positive 1 --false-negatives 2% -o careful.wm";
    let report = folder.run(&format!("{command} --json")).exits(0).json();
    assert!(report["false_negatives"].as_f64().unwrap() <= 0.02 + 1e-12);
    assert!(folder.run(command).exits(0).stdout.contains("false positives"));
    let answers = folder.run("predict ripley-test.csv --model careful.wm -q").exits(0);
    let text = folder.read("ripley-test.csv");
    let truth = text.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().1);
    let missed = truth.zip(answers.lines()).filter(|(t, a)| *t == "1" && *a == "0").count();
    assert!(missed <= 10, "{missed}");
    folder.run("train ripley-train.csv --machine knn -o knn.wm -q").exits(0);
    let failed =
        folder.run("threshold knn.wm ripley-test.csv --false-positives 0.1 -o x.wm").exits(1);
    assert!(failed.stderr.contains("single boundary"), "{}", failed.stderr);
}

#[test]
fn rows_are_clustered_with_a_proof() {
    let folder = Folder::new();
    let points: String = (0..24)
        .map(|i| {
            let (side, step) = (f64::from(i % 2), f64::from(i / 2));
            format!(
                "{},{},{}\n",
                5.0 * side + 0.1 * step,
                0.3 * (step % 4.0),
                ["a", "b"][i as usize % 2]
            )
        })
        .collect();
    folder.write("points.csv", format!("x,y,class\n{points}"));
    let done = folder.run("cluster points.csv --gamma 0.1 --save-model m.wm").exits(0);
    let clusters: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(clusters, ["0", "1"].repeat(12));
    assert!(done.stderr.contains("proven bound"), "{}", done.stderr);
    let report = folder.run("predict points.csv --model m.wm --json").exits(0).json();
    assert_eq!(report["accuracy"].as_f64(), Some(1.0));
    assert!(folder.run("inspect m.wm").exits(0).stdout.contains("clusters         12, 12 rows"));
    let told = folder.run("cluster points.csv --machine kmeans --clusters 2 -o c.txt").exits(0);
    assert!(told.stdout.contains("accuracy"), "{}", told.stdout);
    let failed = folder.run("cluster points.csv --machine c-svc").exits(2);
    assert!(failed.stderr.contains("expected one that clusters"), "{}", failed.stderr);
    let failed = folder.run("cluster points.csv --balance -1").exits(2);
    assert!(failed.stderr.contains("balance"), "{}", failed.stderr);
}

#[test]
fn clusters_keep_links_and_have_memberships() {
    let folder = Folder::new();
    let points: String = (0..24).map(|i| format!("{},{}\n", i % 12, (i * 7) % 5)).collect();
    folder.write("points.csv", format!("x,y\n{points}"));
    let base = "cluster points.csv --label-column none --gamma 0.05 --tol 1e-4";
    let done = folder.run(&format!("{base} --links 0=11,1!2 --memberships shares.txt")).exits(0);
    let clusters: Vec<&str> = done.stdout.lines().collect();
    assert!(clusters[0] == clusters[11] && clusters[1] != clusters[2], "{clusters:?}");
    let shares = folder.read("shares.txt");
    assert_eq!(shares.lines().count(), 24);
    for line in shares.lines() {
        let sum: f64 = line.split(' ').map(|word| word.parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{line}");
    }
    let few = folder.run(&format!("{base} --share 0.25 --balance 0")).exits(0);
    let ones = few.stdout.lines().filter(|line| *line == "1").count();
    assert!(ones == 6 || ones == 18, "{ones}");
    let failed = folder.run(&format!("{base} --links 0=1,0!1")).exits(2);
    assert!(failed.stderr.contains("links"), "{}", failed.stderr);
    let failed = folder.run(&format!("{base} --links 0-1")).exits(2);
    assert!(failed.stderr.contains("ROW=ROW"), "{}", failed.stderr);
}

#[test]
fn clusterings_are_compared() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let line = "cluster iris.csv --scale standard --gamma 0.3 --tol 1e-2 --pairs 2 --max-time 60";
    let done =
        folder.run(&format!("{line} --try clusters=2,3 --beside kmeans -o best.txt")).exits(0);
    for word in ["stability", "adjusted Rand", "mmc", "kmeans", "clusters=3", "most stable"] {
        assert!(done.stdout.contains(word), "{word}: {}", done.stdout);
    }
    assert_eq!(folder.read("best.txt").lines().count(), 150);
    let failed = folder.run(&format!("{line} --try depth=3")).exits(2);
    assert!(failed.stderr.contains("no machine has 'depth'"), "{}", failed.stderr);
    let failed = folder.run(&format!("{line} --beside c-svc")).exits(2);
    assert!(failed.stderr.contains("machines that cluster"), "{}", failed.stderr);
}
