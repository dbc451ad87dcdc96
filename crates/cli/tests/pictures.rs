//! What is written in pictures is what they show.

use crate::common::{Folder, Run, shipped};

/// The words of a picture, one a line, in order.
fn words(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text ").skip(1);
    texts.filter_map(|text| text.split_once('>')?.1.split('<').next()).map(str::trim).collect()
}

/// The place of words from the left side, in pixels of the picture.
fn left_of(svg: &str, wanted: &str) -> f64 {
    let texts = svg.split("<text ").skip(1);
    let mut found = texts.filter(|text| text.contains(&format!("\n{wanted}\n")));
    let text = found.next().expect("the words");
    let place = text.split_once("x=\"").and_then(|(_, rest)| rest.split('"').next());
    let number = |name: &str| -> f64 {
        let (_, rest) = svg.split_once(&format!("{name}=\"")).expect(name);
        rest.split(['"', ' ']).next().and_then(|text| text.parse().ok()).expect("a number")
    };
    let inner: f64 = svg
        .split_once("viewBox=\"0 0 ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .expect("a box");
    place.and_then(|text| text.parse::<f64>().ok()).expect("a place") * number("width") / inner
}

fn drawn(folder: &Folder, command: &str) -> String {
    let _: Run = folder.run(&format!("{command} p.svg")).exits(0);
    folder.read("p.svg")
}

#[test]
fn regions_tell_predictions_from_labels() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.run("train iris.csv -s one-class --nu 0.1 -o one.wm").exits(0);
    let svg = drawn(&folder, "plot regions iris.csv --model one.wm --cells 30 -o");
    let found = words(&svg);
    for word in ["inside", "outside", "label setosa", "label virginica", "boundary"] {
        assert!(found.contains(&word), "{word}: {found:?}");
    }
    assert!(found.contains(&"a slice: the other 2 features are at their means; rows lie off it"));
    assert!(!found.contains(&"-1") && !found.contains(&"setosa"));
    folder.run("cluster iris.csv --machine kmeans --clusters 3 --save-model k.wm").exits(0);
    let svg = drawn(&folder, "plot regions iris.csv --model k.wm --cells 30 -o");
    let found = words(&svg);
    for word in ["cluster 0", "cluster 2", "label versicolor"] {
        assert!(found.contains(&word), "{word}: {found:?}");
    }
}

#[test]
fn margins_and_support_vectors_are_explained_beside_the_regions() {
    let folder = Folder::new();
    let ripley = shipped("ripley-train.csv").display().to_string();
    folder.run_words(&["train", &ripley, "-o", "r.wm"]).exits(0);
    let plot = ["plot", "regions", &ripley, "--model", "r.wm", "--support", "-o", "r.svg"];
    folder.run_words(&plot).exits(0);
    let svg = folder.read("r.svg");
    let found = words(&svg);
    for word in ["boundary", "margins (±1)", "support vector"] {
        assert!(found.contains(&word), "{word}: {found:?}");
        // The frame of the regions ends at 640.
        assert!(left_of(&svg, word) > 650.0);
    }
    assert!(!found.iter().any(|word| word.starts_with("a slice")));
    // Neither a ranking of all classes nor machines without margins have them.
    folder.run_words(&["train", &ripley, "-s", "fisher", "-o", "f.wm"]).exits(0);
    folder.run_words(&["plot", "regions", &ripley, "--model", "f.wm", "-o", "f.svg"]).exits(0);
    assert!(!folder.read("f.svg").contains("margins"));
}

#[test]
fn a_search_is_drawn_as_what_it_was() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let one = drawn(&folder, "tune iris.csv --folds 3 --grid c=0.01:1000:6 --plot");
    let found = words(&one);
    assert!(found.contains(&"mean ± standard deviation of the splits"), "{found:?}");
    for word in ["accuracy over c", "0.01", "1", "100", "1000", "best"] {
        assert!(found.contains(&word), "{word}: {found:?}");
    }
    // The line is one path through six places.
    let six = |line: &&str| line.matches(',').count() == 6;
    assert!(one.split("points=\"").skip(1).filter_map(|p| p.split('"').next()).any(|p| six(&p)));
    let random = "tune iris.csv --folds 3 --method random --points 5 --grid c=0.01:1000:3 \
                  --grid gamma=0.001:10:3 --plot";
    let svg = drawn(&folder, random);
    let found = words(&svg);
    for word in
        ["accuracy over gamma and c", "a point that was tried", "0.01", "0.1", "1", "10", "100"]
    {
        assert!(found.contains(&word), "{word}: {found:?}");
    }
    let grid = "tune iris.csv --folds 3 --grid c=0.01,1 --grid gamma=0.1,1000000 --plot";
    let svg = drawn(&folder, grid);
    let found = words(&svg);
    assert!(found.contains(&"best") && found.contains(&"gamma"), "{found:?}");
    // Every cell, the worst as well, has a colour of its own, and the bar tells both ends.
    assert!(svg.contains("#D6E6F4") && svg.contains("#084081"), "{svg}");
}

#[test]
fn curves_of_many_classes_differ() {
    let folder = Folder::new();
    folder.copy("digits.libsvm.xz");
    folder.run("train digits.libsvm.xz --multiclass ovr -k linear -o d.wm").exits(0);
    let svg = drawn(&folder, "plot roc digits.libsvm.xz --model d.wm -o");
    let found = words(&svg);
    assert_eq!(found.iter().filter(|word| word.contains("(area ")).count(), 10);
    assert!(found.iter().any(|word| word.starts_with("mean area of the 10 classes: ")));
    // Two of ten share a colour with another and are dashed: many short strokes.
    let strokes = |color: &str| svg.matches(&format!("stroke=\"{color}\"")).count();
    assert!(strokes("#0072B2") > strokes("#009E73") + 10);
}

#[test]
fn marks_of_comparisons_and_sizes_are_explained() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let svg = drawn(&folder, "compare iris.csv --machines fisher,knn --repeats 1 --folds 3 -o");
    for word in ["95 % interval", "mean of the folds", "one fold"] {
        assert!(words(&svg).contains(&word), "{word}");
    }
    folder.run("train iris.csv").exits(0);
    let compress = "compress iris.wm --vectors 6 --data iris.csv -o s.wm --plot";
    let svg = drawn(&folder, compress);
    for word in ["accuracy on --data", "model written: 6 vectors"] {
        assert!(words(&svg).contains(&word), "{word}: {:?}", words(&svg));
    }
}

#[test]
fn precision_calibration_and_residuals_are_drawn() {
    let folder = Folder::new();
    folder.copy("wdbc.csv");
    folder.run("train wdbc.csv --scale standard --probability").exits(0);
    let svg = drawn(&folder, "plot precision-recall wdbc.csv --model wdbc.wm -o");
    let found = words(&svg);
    let entry = found.iter().find(|word| word.contains("(average ")).expect("an entry");
    let average: f64 = entry.split_once("(average ").unwrap().1[..6].parse().unwrap();
    assert!(average > 0.98 && found.contains(&"precision"), "{found:?}");
    let svg = drawn(&folder, "plot calibration wdbc.csv --model wdbc.wm -o");
    let found = words(&svg);
    let entry = found.iter().find(|word| word.contains("(Brier score ")).expect("an entry");
    let brier: f64 = entry.split_once("(Brier score ").unwrap().1[..6].parse().unwrap();
    assert!(brier < 0.03, "{found:?}");
    folder.run("train wdbc.csv --scale standard -o plain.wm").exits(0);
    let run = folder.run("plot calibration wdbc.csv --model plain.wm -o q.svg").exits(2);
    assert!(run.stderr.contains("--probability"), "{}", run.stderr);
    folder.copy("diabetes.csv");
    folder.run("train diabetes.csv -s epsilon-svr --scale standard").exits(0);
    let report = folder.run("predict diabetes.csv --model diabetes.wm --json -o a.txt").exits(0);
    let squared = report.json()["mean_squared_error"].as_f64().expect("an error");
    let svg = drawn(&folder, "plot residuals diabetes.csv --model diabetes.wm -o");
    let note = format!("root mean squared error {:.6}", squared.sqrt());
    assert!(words(&svg).iter().any(|word| word.starts_with(&note)), "{note}: {:?}", words(&svg));
    let run = folder.run("plot residuals wdbc.csv --model wdbc.wm -o q.svg").exits(2);
    assert!(run.stderr.contains("residuals need numbers, not c-svc"), "{}", run.stderr);
}
