//! Sequences on the command line.

use crate::common::Folder;

/// Sentences in which an article comes before a noun, and a noun before a verb.
fn sentences(count: usize) -> String {
    let nouns = ["dog", "cat", "tree"];
    let verbs = ["barks", "sleeps", "grows"];
    let mut text = String::new();
    for k in 0..count {
        let (noun, verb) = (nouns[k % 3], verbs[(k / 2) % 3]);
        text += &format!("the D B-NP\n{noun} N I-NP\n{verb} V O\n\n");
    }
    text
}

#[test]
fn sequences_are_learnt_and_labelled() {
    let folder = Folder::new();
    folder.write("train.txt", sentences(12));
    folder.write("test.txt", sentences(3));
    let train = "sequence train train.txt --c 1 --constraints bio --test test.txt -o s.wm --json";
    let report = folder.run(train).exits(0).json();
    assert_eq!(report["sequences"], 12);
    assert!(report["gap"].as_f64().unwrap() <= 0.01, "{report}");
    assert!(report["dual"].as_f64().unwrap() <= report["primal"].as_f64().unwrap());
    assert_eq!(report["test"]["accuracy"], 1.0);
    assert_eq!(report["test"]["chunk_f1"], 1.0);
    let tags = folder.run("sequence label test.txt --model s.wm").exits(0);
    assert_eq!(tags.lines()[..5], ["B-NP", "I-NP", "O", "", "B-NP"]);
    assert!(tags.stderr.contains("100.00 %"), "{}", tags.stderr);
    folder.write("new.txt", "a D\ncow N\n");
    let label = "sequence label new.txt --untagged --model s.wm --n-best 2 -o out.txt -q";
    folder.run(label).exits(0);
    let written = folder.read("out.txt");
    assert!(written.starts_with("# 1 "), "{written}");
    assert_eq!(written.matches("# ").count(), 2);
    folder.run("predict test.txt --model s.wm").exits(1);
    assert!(folder.run("inspect s.wm").exits(0).stdout.contains("chain-svc"));
}

#[test]
fn parameters_are_those_of_the_table_of_machines() {
    let folder = Folder::new();
    folder.write("train.txt", "1 qid:1 1:1\n2 qid:1 2:1\n1 qid:2 1:2\n2 qid:2 2:2\n");
    let train = "sequence train train.txt --kernel rbf --gamma 0.5 --c 3 --loss 0,1,2,0";
    folder.run(&format!("{train} --max-iter 50 -o s.wm -q")).exits(0);
    let inspected = folder.run("inspect s.wm --json").exits(0).json();
    let stored = &inspected["training"]["specification"]["parameters"];
    assert_eq!((&stored["c"], &stored["gamma"]), (&3.0.into(), &0.5.into()), "{stored}");
    folder.run("sequence label train.txt --model s.wm -q").exits(0);
    let failed = folder.run("sequence train train.txt --gamma 0.5 -o x.wm").exits(2);
    assert!(failed.stderr.contains("a kernel with gamma"), "{}", failed.stderr);
    let failed = folder.run("sequence train train.txt --c 0 -o x.wm").exits(2);
    assert!(failed.stderr.contains("above 0"), "{}", failed.stderr);
}

#[test]
fn other_commands_say_where_sequences_are_trained() {
    let folder = Folder::new();
    folder.write("rows.txt", "1 1:1\n-1 1:2\n");
    for command in [
        "train rows.txt -s chain-svc",
        "tune rows.txt -s chain-svc",
        "cross-validate rows.txt -s chain-svc",
        "compare rows.txt --kernels linear,rbf -s chain-svc",
        "train --help chain-svc",
    ] {
        let failed = folder.run(command).exits(2);
        assert!(failed.stderr.contains("'widemargin sequence train'"), "{}", failed.stderr);
    }
}

#[test]
fn other_formats_and_mistakes() {
    let folder = Folder::new();
    let mut letters = String::new();
    for word in 1..=6 {
        letters += &format!("1 qid:{word} 1:1 2:{word}\n2 qid:{word} 3:1\n1 qid:{word} 1:1\n");
    }
    folder.write("letters.txt", letters);
    folder.run("sequence train letters.txt --c 1 -o l.wm -q").exits(0);
    let found = folder.run("sequence label letters.txt --model l.wm --json").exits(0).json();
    assert_eq!(found["accuracy"], 1.0);
    folder.write("one.txt", "a X\nb X\n");
    let failed = folder.run("sequence train one.txt -o x.wm -q").exits(1);
    assert!(failed.stderr.contains("only 'X'"), "{}", failed.stderr);
    folder.write("gap.txt", "a X\nb ?\nc Y\n");
    let failed = folder.run("sequence train gap.txt -o x.wm -q").exits(1);
    assert!(failed.stderr.contains("none at position 2 of sequence 1"), "{}", failed.stderr);
    folder.run("sequence train gap.txt --cut-at-unknown -o x.wm -q").exits(0);
    folder.write("templates.txt", "nothing\n");
    let train = "sequence train gap.txt --templates templates.txt -o x.wm -q";
    let failed = folder.run(train).exits(2);
    assert!(failed.stderr.contains("%x[-1,0]"), "{}", failed.stderr);
}

#[test]
fn a_training_at_its_time_limit_is_summed_up_without_its_test() {
    let folder = Folder::new();
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    };
    let mut text = String::new();
    for _ in 0..600 {
        for _ in 0..10 {
            text += &format!("w{} T{}\n", random() % 3000, random() % 12);
        }
        text.push('\n');
    }
    folder.write("hard.txt", text);
    let train = "sequence train hard.txt --c 1000 --tol 1e-9 --max-iter 1000000 -o s.wm";
    let run = folder.run(&format!("{train} --test hard.txt --max-time 3")).exits(124);
    assert!(run.stderr.contains("time limit reached: the model was not tested"), "{}", run.stderr);
    assert!(run.stdout.contains("sequences"), "{}", run.stdout);
    assert!(folder.names().contains(&"s.wm".to_owned()));
}

#[test]
fn more_labellings_than_memory_holds_are_refused() {
    let folder = Folder::new();
    folder.write("train.txt", sentences(12));
    let long = sentences(400).replace("\n\n", "\n");
    folder.write("long.txt", long);
    folder.run("sequence train train.txt -o s.wm -q").exits(0);
    let run = folder.run("sequence label long.txt --model s.wm --n-best 18446744073709551615");
    let run = run.exits(1);
    assert!(run.stderr.contains("best labellings"), "{}", run.stderr);
    // There are no more labellings than tags to the power of the length.
    let all = folder.run("sequence label train.txt --model s.wm --n-best 1000000000 -q").exits(0);
    assert_eq!(all.stdout.matches("# ").count(), 12 * 27);
}

#[test]
fn an_empty_table_of_sequences_is_told_to_be_empty() {
    let folder = Folder::new();
    folder.write("empty.csv", "");
    let run = folder.run("sequence train empty.csv -o s.wm").exits(1);
    assert!(run.stderr.contains("empty.csv: the file is empty"), "{}", run.stderr);
}

/// Two kinds of weather and what they are seen by; every third tag is unknown where `partly`.
fn weather(partly: bool) -> String {
    let (mut text, seen) = (String::new(), ["walk", "walk", "swim", "clean", "clean", "shop"]);
    for day in 0..36 {
        let tag = match day {
            day if partly && day % 3 == 0 => "?",
            day if day % 6 < 3 => "sunny",
            _ => "rainy",
        };
        text += &format!("{} {tag}\n", seen[day % 6]);
        if day % 12 == 11 {
            text.push('\n');
        }
    }
    text
}

#[test]
fn hidden_markov_models_are_learnt_from_tags_some_tags_or_none() {
    let folder = Folder::new();
    folder.write("all.txt", weather(false));
    folder.write("some.txt", weather(true));
    for file in ["all.txt", "some.txt"] {
        let train = format!("sequence train {file} -s hmm -o w.wm --test all.txt --json");
        let report = folder.run(&train).exits(0).json();
        assert_eq!(report["tags"], serde_json::json!(["rainy", "sunny"]), "{report}");
        assert!(report["log_likelihood"].as_f64().unwrap() < 0.0, "{report}");
        assert_eq!(report["test"]["accuracy"], 1.0, "{file}: {report}");
    }
    // A word that the training data did not have counts as not observed.
    folder.write("new.txt", "walk\ndive\nswim\nclean\n");
    for option in ["", "--posterior"] {
        let label = format!("sequence label new.txt --untagged --model w.wm {option} -q");
        let lines = folder.run(&label).exits(0);
        assert_eq!(lines.lines()[..4], ["sunny", "sunny", "sunny", "rainy"], "{option}");
    }
    let shown = folder.run("inspect w.wm").exits(0).stdout;
    assert!(shown.contains("hmm") && shown.contains("rainy, sunny"), "{shown}");
    folder.run("predict new.txt --model w.wm").exits(1);
    let failed = folder.run("sequence label new.txt --untagged --model w.wm --n-best 2").stderr;
    assert!(failed.contains("--n-best needs a model of chain-svc"), "{failed}");
    folder.write("heights.csv", "sequence,height\n1,0.1\n1,0.3\n1,?\n1,5.2\n2,4.9\n2,5.1\n2,0.2\n");
    let train = "sequence train heights.csv -s hmm --emissions gaussian --states 2 --starts 5";
    folder.run(&format!("{train} --untagged -o h.wm")).exits(0);
    let found = folder.run("sequence label heights.csv --untagged --model h.wm -q").exits(0);
    let lines = found.lines();
    assert!(lines[0] == lines[1] && lines[0] != lines[3] && lines[3] == lines[5], "{lines:?}");
    let failed = folder.run("sequence train heights.csv -s hmm --untagged -o x.wm");
    assert!(failed.stderr.contains("states"), "{}", failed.stderr);
    let failed = folder.run("sequence train all.txt -s hmm --constraints bio -o x.wm").exits(2);
    assert!(failed.stderr.contains("constraints"), "{}", failed.stderr);
    let failed = folder.run("sequence train all.txt -s hmm --emissions poisson -o x.wm").exits(1);
    assert!(
        failed.stderr.contains("expected numbers in column 1, found 'walk'"),
        "{}",
        failed.stderr
    );
}
