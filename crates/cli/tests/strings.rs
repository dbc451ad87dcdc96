//! Columns of text and the kernels of strings on the command line.

use crate::common::Folder;

/// Words of two kinds, one of them with letters of another script, after a column of numbers.
fn words() -> String {
    let mut text = String::from("length,word,kind\n");
    for i in 0..12 {
        let (vowel, other) = (["a", "e", "i"][i % 3], ["ж", "ш", "щ"][i / 4]);
        text += &format!("{},\"b{vowel}n{vowel}n{vowel}, NA\",fruit\n", 9 + i % 2);
        text += &format!("{},{other}у{other}а{vowel},verb\n", 9 + i % 2);
    }
    text
}

#[test]
fn strings_are_trained_saved_and_predicted() {
    let folder = Folder::new();
    folder.write("words.csv", words());
    for kernel in [
        "spectrum(length=2)",
        "spectrum(length=3,shortest=1)",
        "mismatch(length=3,mismatches=1)",
        "subsequence(length=2,decay=0.7)",
        "alignment(beta=0.3)",
        "alignment(log=true)",
    ] {
        let train =
            ["train", "words.csv", "--ignore-column", "length", "--text", "word", "--kernel"];
        let rest = ["-o", "words.wm", "--json"];
        let report = folder.run_words(&[&train[..], &[kernel], &rest[..]].concat());
        assert_eq!(report.exits(0).json()["status"], "solved", "{kernel}");
        // Longer than every training string, with letters that none had, and empty.
        folder.write("new.csv", "word,length\nbananananananananananananananana,1\nшушуẞ,2\n,3\n");
        let predicted = folder.run("predict new.csv --model words.wm").exits(0).stdout;
        let predicted: Vec<&str> = predicted.lines().collect();
        assert_eq!(predicted[..2], ["fruit", "verb"], "{kernel}");
        assert_eq!(predicted.len(), 3, "{kernel}");
        let report =
            folder.run("predict words.csv --model words.wm --json -o p.txt").exits(0).json();
        assert_eq!(report["accuracy"].as_f64(), Some(1.0), "{kernel}");
    }
    let folds =
        "cross-validate words.csv --ignore-column length --text word --kernel spectrum --json";
    assert!(folder.run(folds).exits(0).json()["accuracy"].as_f64().unwrap() > 0.9);
    let inspected = folder.run("inspect words.csv --text word").exits(0).stdout;
    assert!(inspected.contains("text"), "{inspected}");
}

#[test]
fn characters_are_the_last_columns_beside_numbers() {
    let folder = Folder::new();
    folder.write("words.csv", words());
    let kernel = "view(1: rbf(gamma=1)) + view(2-11: spectrum(length=2))";
    let train = ["train", "words.csv", "--text", "word", "-o", "w.wm", "--kernel", kernel];
    folder.run_words(&train).exits(0);
    folder.run("predict words.csv --model w.wm").exits(0);
    // A view has so many characters: a longer string is refused, not cut.
    folder.write("long.csv", "length,word\n9,bananananana\n");
    let message = folder.run("predict long.csv --model w.wm").exits(1).stderr;
    assert!(message.contains("expected 11, found 13"), "{message}");
}

#[test]
fn numbers_and_wrong_columns_are_refused() {
    let folder = Folder::new();
    folder.write("words.csv", words());
    folder.copy("iris.csv");
    let message = folder.run("train iris.csv --kernel spectrum -o i.wm").exits(1).stderr;
    assert!(message.contains("a column read as text") && message.contains("row 1"), "{message}");
    let message = folder.run("train words.csv --kernel spectrum -o i.wm").exits(1).stderr;
    assert!(message.contains("a column read as text"), "{message}");
    let message =
        folder.run("train words.csv --text kind --kernel spectrum -o i.wm").exits(1).stderr;
    assert!(message.contains("'kind' is both text and the label"), "{message}");
    let message =
        folder.run("train words.csv --text wort --kernel spectrum -o i.wm").exits(1).stderr;
    assert!(message.contains("text column") && message.contains("'wort'"), "{message}");
    let train = ["train", "words.csv", "--text", "word", "-o", "i.wm", "--kernel"];
    for (kernel, message) in [
        ("spectrum(length=0)", "length"),
        ("spectrum(size=3)", "length, shortest, normalize"),
        ("mismatch(length=3,mismatches=3)", "mismatches"),
        ("subsequence(decay=2)", "decay"),
        ("alignment(match=-1,mismatch=1)", "mismatch"),
        ("spectrum(normalize=maybe)", "true or false"),
    ] {
        let failed = folder.run_words(&[&train[..], &[kernel]].concat());
        assert!(failed.stderr.contains(message), "{kernel}: {}", failed.stderr);
    }
}

#[test]
fn searches_take_strings_and_their_kernels() {
    let folder = Folder::new();
    folder.write("words.csv", words());
    let tune = ["tune", "words.csv", "--ignore-column", "length", "--text", "word", "--folds", "3"];
    let best = |more: &[&str]| {
        let run = folder.run_words(&[&tune[..], &["-o", "best.wm", "--json"], more].concat());
        let best = run.exits(0).json()["best"].clone();
        let report = folder.run("predict words.csv --model best.wm --json -o p.txt").exits(0);
        assert_eq!(report.json()["accuracy"].as_f64(), Some(1.0), "{more:?}");
        best
    };
    best(&["--kernel", "spectrum"]);
    best(&["--kernel", "alignment(log=true)", "--method", "surrogate", "--points", "4"]);
    let kernel = best(&["--grid", "kernel=spectrum(length=2),subsequence(length=2)"]);
    assert!(kernel["kernel"].is_string(), "{kernel}");
    best(&["--kernels", "spectrum(length=2), alignment(beta=0.3)", "--grid", "c=1,10"]);
}
