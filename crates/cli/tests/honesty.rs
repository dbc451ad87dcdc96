//! What the program says about tables: columns read as words, gaps, and what is probably not meant.

use crate::common::Folder;

/// A table with a number, a column of `special(row)`, and two classes.
fn table(special: impl Fn(usize) -> String) -> String {
    let row = |i: usize| format!("{},{},{}\n", (i * 7 % 11) as f64 / 10.0, special(i), i % 2);
    "size,special,class\n".to_owned() + &(0..60).map(row).collect::<String>()
}

/// The warnings that training on a table gives, which are those of its JSON.
fn warnings(content: &str, options: &str) -> Vec<String> {
    let folder = Folder::new();
    folder.write("data.csv", content);
    let run = folder.run(&format!("train data.csv --json {options}")).exits(0);
    let found: Vec<String> = run.json()["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|text| text.as_str().expect("a text").to_owned())
        .collect();
    let told = run.stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
    assert_eq!(told.collect::<Vec<_>>(), found);
    found
}

#[track_caller]
fn warns(content: &str, options: &str, expected: &str) {
    let found = warnings(content, options);
    assert!(found.iter().any(|text| text.contains(expected)), "{found:?}");
}

#[test]
fn ordinary_tables_give_no_warning() {
    assert!(warnings(&table(|i| ["red", "green", "blue"][i % 3].to_owned()), "").is_empty());
    assert!(warnings(&table(|i| format!("{}", (i * 13 % 7) as f64 / 3.0)), "").is_empty());
}

#[test]
fn identifiers_are_warned_of() {
    let expected = "column 'special' looks like an identifier";
    warns(&table(|i| format!("customer {i}")), "", expected);
    warns(&table(|i| (1000 + i).to_string()), "--scale standard", expected);
    let ignored = warnings(&table(|i| (1000 + i).to_string()), "--ignore-column special");
    assert!(ignored.is_empty(), "{ignored:?}");
}

#[test]
fn dates_are_warned_of() {
    let day = |i: usize| format!("2024-01-{:02}", i % 28 + 1);
    warns(&table(day), "", "column 'special' looks like a date");
}

#[test]
fn numbers_with_commas_are_warned_of() {
    let decimal = table(|i| format!("\"{},{}\"", i % 9, i % 4 + 1));
    warns(&decimal, "", "looks like a number with a decimal comma");
    let thousands = table(|i| format!("\"{},{:03}\"", i % 9 + 1, i * 17 % 1000));
    warns(&thousands, "", "looks like a number with separated thousands");
}

#[test]
fn many_words_are_warned_of() {
    let row = |i: usize| format!("{},w{},{}\n", i as f64 / 7.0, i % 120, i % 2);
    let text = "size,city,class\n".to_owned() + &(0..240).map(row).collect::<String>();
    warns(&text, "", "column 'city' was read as 120 words");
}

#[test]
fn numbers_as_classes_are_warned_of() {
    let row = |i: usize| format!("{},{}\n", (i * 7 % 60) as f64 / 60.0, i * 3 % 59);
    let text = "size,price\n".to_owned() + &(0..60).map(row).collect::<String>();
    warns(&text, "", "did you mean regression? (--machine epsilon-svr)");
    assert!(warnings(&text, "-s epsilon-svr").is_empty());
}

#[test]
fn features_of_different_ranges_are_warned_of() {
    let text = table(|i| (i * 31 % 977).to_string());
    warns(&text, "", "the features are not scaled: 'special'");
    assert!(warnings(&text, "--scale minmax").is_empty());
    assert!(warnings(&text, "-s fisher").is_empty());
    let folder = Folder::new();
    folder.write("data.csv", &text);
    let validated = folder.run("cross-validate data.csv --json").exits(0);
    assert!(validated.stderr.contains("not scaled"), "{}", validated.stderr);
    assert_eq!(validated.json()["warnings"].as_array().map(Vec::len), Some(1));
    let searched =
        folder.run("tune data.csv --grid c=1 --grid scale=none,standard --json").exits(0);
    assert_eq!(searched.json()["warnings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn columns_of_words_are_named_with_their_number_of_words() {
    let folder = Folder::new();
    folder.write("data.csv", table(|i| ["red", "green", "blue"][i % 3].to_owned()));
    let run = folder.run("train data.csv").exits(0);
    assert!(run.stdout.contains("read as words    special (3)"), "{}", run.stdout);
    let json = folder.run("inspect data.csv --json").exits(0).json();
    assert_eq!(json["columns"][1]["role"], "words");
    assert_eq!(json["columns"][1]["words"], 3);
    assert_eq!(json["columns"][2]["role"], "label");
}

#[test]
fn inspect_counts_gaps_instead_of_refusing_them() {
    let folder = Folder::new();
    folder.write("gaps.csv", "a,b,class\n1,x,0\n,y,1\n3,,0\n,x,1\n");
    let run = folder.run("inspect gaps.csv").exits(0);
    let line = |name: &str| {
        let found = run.lines().into_iter().rfind(|line| line.starts_with(name));
        found.unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("a "), ["a", "number", "2"], "{}", run.stdout);
    assert_eq!(line("b "), ["b", "words", "2", "1"], "{}", run.stdout);
    let json = folder.run("inspect gaps.csv --json").exits(0).json();
    assert_eq!(json["columns"][0]["missing"], 2);
    folder.run("train gaps.csv").exits(1);
}

#[test]
fn blank_labels_can_be_predicted() {
    let folder = Folder::new();
    folder.write("data.csv", table(|i| format!("{}", i % 2)));
    folder.run("train data.csv -o m.wm -q").exits(0);
    folder.write("blank.csv", "size,special,class\n0.1,0,\n0.5,1,\n");
    let run = folder.run("predict blank.csv --model m.wm -q").exits(0);
    assert_eq!(run.lines(), ["0", "1"]);
    assert_eq!(run.stderr, "");
    folder.write("some.csv", "size,special,class\n0.1,0,\n0.5,1,1\n");
    let run = folder.run("predict some.csv --model m.wm -q").exits(0);
    assert_eq!(run.lines(), ["0", "1"]);
    assert!(run.stderr.contains("1 of 2 labels in column 'class' are blank"), "{}", run.stderr);
    folder.run("train blank.csv -o n.wm").exits(1);
}

#[test]
fn unknown_words_are_refused_ignored_or_others() {
    let folder = Folder::new();
    // Rare words go with class 1, which is what 'other' learns.
    let word =
        |i: usize| if i.is_multiple_of(2) { "common".to_owned() } else { format!("rare{i}") };
    let mut text = table(word);
    text.push_str("0.5,often,0\n0.4,often,0\n");
    folder.write("data.csv", text);
    folder.write("new.csv", "size,special\n0.5,never\n0.5,common\n0.5,\n");
    folder.run("train data.csv -o strict.wm -q").exits(0);
    let run = folder.run("predict new.csv --model strict.wm").exits(1);
    assert!(run.stderr.contains("found 'never'"), "{}", run.stderr);
    folder.run("predict new.csv --model strict.wm -q --unknown-category ignore").exits(0);
    let run = folder.run("predict new.csv --model strict.wm --unknown-category other").exits(1);
    assert!(run.stderr.contains("a feature for other words"), "{}", run.stderr);
    folder.run("train data.csv -o other.wm -q --unknown-category other").exits(0);
    let json = folder.run("inspect other.wm --json").exits(0).json();
    let names = ["size", "special=common", "special=often", "special (other)"];
    assert_eq!(json["feature_names"], serde_json::json!(names));
    let run = folder.run("predict new.csv --model other.wm -q").exits(0);
    assert_eq!(run.lines(), ["1", "0", "1"]);
}

#[test]
fn inspect_names_the_weights_of_a_linear_model() {
    let folder = Folder::new();
    // The class is the sign of b; a says nothing.
    let row = |i: usize| format!("{},{},{}\n", i * 7 % 11, i as f64 - 29.5, i32::from(i > 29));
    let text = "a,b,class\n".to_owned() + &(0..60).map(row).collect::<String>();
    folder.write("data.csv", text);
    folder.run("train data.csv --linear -o m.wm -q").exits(0);
    let json = folder.run("inspect m.wm --json").exits(0).json();
    let weights = json["coefficients"][0]["weights"].as_array().expect("a list");
    let names: Vec<&str> = weights.iter().filter_map(|pair| pair[0].as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let of = |k: usize| weights[k][1].as_f64().expect("a number");
    // The decision value of a row, by hand: the weights times the features, less the offset.
    let offset = json["offsets"][0].as_f64().expect("a number");
    folder.write("new.csv", "a,b\n3,2\n");
    let run = folder.run("predict new.csv --model m.wm --decision-values -q").exits(0);
    let told: f64 =
        run.lines()[1].split('\t').nth(1).and_then(|v| v.parse().ok()).expect("a value");
    assert!((3.0 * of(0) + 2.0 * of(1) - offset - told).abs() < 1e-6, "{json} {told}");
    let text = folder.run("inspect m.wm --features 1").exits(0);
    assert!(text.stdout.contains("... and 1 smaller weights"), "{}", text.stdout);
    folder.run("train data.csv --scale standard -o k.wm -q").exits(0);
    assert!(folder.run("inspect k.wm --json").exits(0).json()["coefficients"].is_null());
}
