//! From a data file to a model, to answers, and to how good they are.

use crate::common::Folder;

#[test]
fn a_model_predicts_the_file_it_was_trained_on() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let run = folder.run("train iris.libsvm --c 10 --gamma auto").exits(0);
    for word in ["rows", "150", "classes", "status", "solved", "support vectors", "iris.wm"] {
        assert!(run.stdout.contains(word), "{word} in {}", run.stdout);
    }
    let run = folder.run("predict iris.libsvm --model iris.wm --output answers").exits(0);
    assert!(run.stdout.contains("accuracy"), "{}", run.stdout);
    assert!(run.stdout.contains("true \\ predicted"), "{}", run.stdout);
    let answers = folder.read("answers");
    assert_eq!(answers.lines().count(), 150);
    assert!(answers.lines().all(|line| ["0", "1", "2"].contains(&line)));
    let right = answers
        .lines()
        .zip(folder.read("iris.libsvm").lines())
        .filter(|(answer, row)| row.split(' ').next() == Some(answer))
        .count();
    let share = format!("({right} of 150)");
    assert!(run.stdout.contains(&share), "{share} in {}", run.stdout);
}

#[test]
fn weights_of_several_kernels_are_learnt_kept_and_shown() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let kernels = "linear, rbf(gamma=0.1), view(3-4: poly(degree=2))";
    for more in [&["-s", "c-svc"][..], &["-s", "cs", "--weights", "lp=2"]] {
        let mut words = vec!["train", "iris.csv", "--kernels", kernels, "-o", "iris.wm"];
        words.extend(more);
        folder.run_words(&words).exits(0);
        let shown = folder.run("inspect iris.wm").exits(0).stdout;
        assert!(shown.contains("kernel-weights="), "{shown}");
        let run = folder.run("predict iris.csv --model iris.wm --output answers --json").exits(0);
        assert!(run.json()["accuracy"].as_f64().expect("a number") > 0.93);
    }
    for (words, message) in [
        (["--weights", "signed"], "expected kernels for weights"),
        (["--kernels", "linear, rbff"], "'rbff' at character 9"),
        (["--kernels", "view(7-9: rbf)"], "columns of a view: expected 9, found 4"),
    ] {
        let words = [&["train", "iris.csv", "-o", "other.wm"][..], &words].concat();
        let run = folder.run_words(&words);
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
}

#[test]
fn the_summary_for_programs_has_every_number_a_benchmark_needs() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let fit = folder.run("train iris.libsvm --json --threads 1").exits(0).json();
    for name in [
        "fit_seconds",
        "fit_cpu_seconds",
        "support_vectors",
        "primal",
        "dual",
        "gap",
        "violation",
        "iterations",
        "kernel_rows",
        "rows",
        "features",
        "peak_rss_bytes",
    ] {
        assert!(fit[name].is_number(), "{name}: {}", fit[name]);
    }
    assert_eq!(fit["status"], "solved");
    assert_eq!(fit["classes"], serde_json::json!([0, 1, 2]));
    assert_eq!((fit["rows"].as_u64(), fit["features"].as_u64()), (Some(150), Some(4)));
    let number = |name: &str| fit[name].as_f64().expect(name);
    assert!((number("primal") - number("dual") - number("gap")).abs() < 1e-9);
    assert!(number("violation") <= 1e-3);
    let test = folder.run("predict iris.libsvm --model iris.wm --json").exits(0).json();
    for name in ["predict_seconds", "predict_cpu_seconds", "accuracy", "rows"] {
        assert!(test[name].is_number(), "{name}: {}", test[name]);
    }
    assert!(test["accuracy"].as_f64().is_some_and(|accuracy| accuracy > 0.95));
}

#[test]
fn scaling_and_words_of_a_table_travel_with_the_model() {
    let folder = Folder::new();
    let mut table = String::from("size,color,kind\n");
    for i in 0..40 {
        let (color, kind) = if i % 2 == 0 { ("red", "apple") } else { ("green", "pear") };
        table.push_str(&format!("{},{color},{kind}\n", 1000 + 10 * i));
    }
    folder.write("fruit.csv", table);
    folder.run("train fruit.csv --scale minmax:0,1 --c 10").exits(0);
    folder.write("new.csv", "size,color\n1000,green\n1390,red\n");
    let run = folder.run("predict new.csv --model fruit.wm --quiet").exits(0);
    assert_eq!(run.lines(), ["pear", "apple"]);
    let inspected = folder.run("inspect fruit.wm --json").exits(0).json();
    assert_eq!(inspected["scaling"], "minmax");
    let run = folder.run("convert fruit.wm fruit.model").exits(1);
    assert!(run.stderr.contains("scaling"), "{}", run.stderr);
}

#[test]
fn every_machine_trains_and_answers() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let wine = shipped_wine(&folder);
    for machine in ["c-svc", "nu-svc --nu 0.2", "c-svc --loss squared-hinge"] {
        let run = folder.run(&format!("train {wine} --machine {machine} --scale standard --json"));
        let fit = run.exits(0).json();
        assert_eq!(fit["status"], "solved", "{machine}");
    }
    for machine in ["epsilon-svr --epsilon 0.2", "nu-svr", "one-class --nu 0.1", "svdd --nu 0.1"] {
        let arguments = format!("train iris.libsvm --machine {machine} -o m.wm --json");
        assert_eq!(folder.run(&arguments).exits(0).json()["status"], "solved", "{machine}");
        folder.run("predict iris.libsvm -m m.wm -o answers").exits(0);
        let answers = folder.read("answers");
        let novelty = machine.starts_with("one-class") || machine.starts_with("svdd");
        if novelty {
            let outside = answers.lines().filter(|line| *line == "-1").count();
            assert!((5..=20).contains(&outside), "{machine}: {outside} of 150 outside");
        } else {
            assert!(answers.lines().all(|line| line.parse::<f64>().is_ok()), "{machine}");
        }
    }
}

fn shipped_wine(folder: &Folder) -> &'static str {
    folder.copy("wine.csv");
    "wine.csv"
}

#[test]
fn kernels_and_schemes_are_understood() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for kernel in [
        "linear",
        "poly",
        "rbf",
        "sigmoid(gamma=0.01)",
        "laplacian",
        "chi2",
        "cosine",
        "0.5*rbf(gamma=0.1)+poly(degree=2)",
    ] {
        let run = folder.run_words(&["train", "iris.libsvm", "--kernel", kernel, "--json"]);
        assert!(run.json()["support_vectors"].as_u64().is_some_and(|n| n > 0), "{kernel}");
    }
    for (scheme, functions) in [("ovo", 3), ("ovr", 3), ("dag", 3), ("ecoc", 3)] {
        folder.run(&format!("train iris.libsvm --multiclass {scheme} --c 10")).exits(0);
        let model = folder.run("inspect iris.wm --json").exits(0).json();
        assert_eq!(model["functions"], functions, "{scheme}");
        let test = folder.run("predict iris.libsvm -m iris.wm --json").exits(0).json();
        assert!(test["accuracy"].as_f64().is_some_and(|a| a > 0.94), "{scheme}: {test}");
    }
}

#[test]
fn decision_values_are_named_after_their_pair() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("train iris.libsvm").exits(0);
    let run = folder.run("predict iris.libsvm -m iris.wm --decision-values --quiet").exits(0);
    assert_eq!(run.lines()[0], "prediction\t0/1\t0/2\t1/2");
    let first: Vec<&str> = run.lines()[1].split('\t').collect();
    assert_eq!(first[0], "0");
    assert!(first[1].parse::<f64>().unwrap() > 0.0 && first[2].parse::<f64>().unwrap() > 0.0);
}

#[test]
fn probabilities_add_up_to_1() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    for method in ["sigmoid", "isotonic"] {
        folder.run(&format!("train iris.csv --probability={method} --scale standard")).exits(0);
        let run = folder.run("predict iris.csv -m iris.wm --probability --quiet").exits(0);
        let lines = run.lines();
        assert_eq!(lines[0], "prediction\tsetosa\tversicolor\tvirginica");
        for line in &lines[1..] {
            let shares = line.split('\t').skip(1).map(|word| word.parse::<f64>().unwrap());
            assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9, "{line}");
        }
        assert_eq!(folder.run("inspect iris.wm --json").json()["calibration"], method);
        folder.run("plot roc iris.csv -m iris.wm -o roc.svg").exits(0);
    }
    folder.run("train iris.csv").exits(0);
    let run = folder.run("predict iris.csv -m iris.wm --probability").exits(1);
    assert!(run.stderr.contains("no probabilities"), "{}", run.stderr);
}

#[test]
fn roc_curves_and_thresholds_agree_on_the_positive_class() {
    let folder = Folder::new();
    folder.copy("ripley-train.csv");
    // LIBSVM keeps classes as they come: 1 before 0.
    folder.write("turned.txt", "1 1:0.2 2:1\n0 1:-0.1 2:0\n1 1:0.4 2:0.8\n0 1:0.3 2:0.1\n1 1:0\n");
    folder.run("train ripley-train.csv -o native.wm").exits(0);
    folder.run("svm-train turned.txt libsvm.model").exits(0);
    for (data, model) in [("ripley-train.csv", "native.wm"), ("turned.txt", "libsvm.model")] {
        let limit = "--false-positives 10% -o moved.wm --json";
        let moved = folder.run(&format!("threshold {model} {data} {limit}")).exits(0).json();
        assert_eq!(moved["positive"], "1", "{model}");
        folder.run(&format!("plot roc {data} -m {model} -o roc.svg")).exits(0);
        let area = moved["area"].as_f64().unwrap();
        let name = format!("1 (area {area:.4})");
        assert!(folder.read("roc.svg").contains(&name), "{model}: {name}");
    }
}

#[test]
fn pictures_are_what_their_names_say() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.run("train iris.csv").exits(0);
    for command in [
        "plot confusion iris.csv -m iris.wm -o c.png",
        "tune iris.csv --picture c.png",
        "compare iris.csv -o c.pdf",
        "compress iris.wm --vectors 3 --data iris.csv -o s.wm --plot c.jpg",
    ] {
        let run = folder.run(command).exits(2);
        assert!(run.stderr.contains("a name that ends in .svg"), "{}", run.stderr);
        assert!(!folder.file("c.png").exists());
    }
    folder.run("plot confusion iris.csv -m iris.wm -o c.SVG").exits(0);
    assert!(folder.read("c.SVG").starts_with("<svg"));
}

#[test]
fn names_with_terminal_escapes_are_spelled_out() {
    let folder = Folder::new();
    folder.write("a.csv", "x,y\n1,\u{1b}[31mred\n2,\u{1b}[31mred\n5,blue\n6,blue\n");
    folder.run("train a.csv -o a.wm").exits(0);
    for command in ["inspect a.wm", "inspect a.csv", "predict a.csv -m a.wm -o out.txt"] {
        let run = folder.run(command).exits(0);
        assert!(!run.stdout.contains('\u{1b}'), "{command}: {:?}", run.stdout);
    }
    assert!(folder.run("inspect a.wm").stdout.contains("\\u001b[31mred"));
    let run = folder.run("inspect \u{1b}[31mnowhere").exits(1);
    assert!(run.stderr.contains("\\u001b[31mnowhere"), "{:?}", run.stderr);
}

#[test]
fn cross_validation_answers_every_row_once() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    let run = folder.run("cross-validate iris.csv --scale standard --folds 3 -o answers").exits(0);
    for words in ["fold", "accuracy", "true \\ predicted", "setosa"] {
        assert!(run.stdout.contains(words), "{words} in {}", run.stdout);
    }
    let answers = folder.read("answers");
    let rows = folder.read("iris.csv");
    let right = answers.lines().zip(rows.lines().skip(1)).filter(|(a, row)| row.ends_with(*a));
    let right = right.count();
    let json = folder.run("cross-validate iris.csv --scale standard --folds 3 --json").exits(0);
    let json = json.json();
    assert_eq!(json["rows"], 150);
    assert_eq!(json["correct"], right);
    assert_eq!(json["folds"].as_array().map(Vec::len), Some(3));
    let other = folder.run("cross-validate iris.csv --folds 3 --seed 7 --json").exits(0).json();
    assert!(other["accuracy"].as_f64().is_some_and(|accuracy| accuracy > 0.9));
    folder.copy("diabetes.csv");
    let run = folder.run("cross-validate diabetes.csv --machine nu-svr --c 100 --scale standard");
    assert!(run.exits(0).stdout.contains("mean squared error"));
}

#[test]
fn a_limit_is_a_warning_a_model_and_exit_code_3() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let run = folder.run("train iris.libsvm --c 1000 --max-iter 3").exits(3);
    assert!(run.stderr.starts_with("warning: iteration limit reached"), "{}", run.stderr);
    assert!(run.stdout.contains("iteration limit reached"));
    folder.run("predict iris.libsvm -m iris.wm").exits(0);
}

#[test]
fn standard_input_and_output_are_dashes() {
    let folder = Folder::new();
    let data = std::fs::read(crate::common::shipped("iris.libsvm")).unwrap();
    let run = folder.run_with_input("train - -o iris.wm", &data).exits(0);
    assert!(run.stdout.contains("150"));
    let run = folder.run_with_input("predict - --model iris.wm --quiet", &data).exits(0);
    assert_eq!(run.lines().len(), 150);
    let run = folder.run_with_input("train - -o - --model-format libsvm --quiet", &data).exits(0);
    assert!(run.stdout.starts_with("svm_type c_svc\n"), "{}", run.stdout);
    folder.write("iris.model", run.stdout);
    folder.run_with_input("predict - --model iris.model --json", &data).exits(0);
    let run = folder.run_with_input("inspect - --json", &data).exits(0);
    assert_eq!(run.json()["rows"], 150);
}

#[test]
fn a_test_file_is_tried_right_after_training() {
    let folder = Folder::new();
    folder.copy("mnist-500-images-idx3-ubyte.gz");
    folder.copy("mnist-500-labels-idx1-ubyte.gz");
    let images = "mnist-500-images-idx3-ubyte.gz --labels mnist-500-labels-idx1-ubyte.gz";
    let run = folder
        .run(&format!(
            "train {images} --c 10 --gamma 0.02 --scale minmax:0,1 -o m.wm --test \
             mnist-500-images-idx3-ubyte.gz --test-labels mnist-500-labels-idx1-ubyte.gz --json"
        ))
        .exits(0);
    let accuracy = run.json()["test"]["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.99, "{accuracy}");
}

#[test]
fn weights_of_rows_count() {
    let folder = Folder::new();
    folder.write("data", "1 1:1\n1 1:2\n-1 1:3\n-1 1:4\n");
    folder.write("weights", "1\n1\n# the third\n1\n0.5\n");
    folder.run("train data --kernel linear --sample-weights weights").exits(0);
    folder.write("weights", "1\n1\n");
    let run = folder.run("train data --sample-weights weights").exits(1);
    assert_eq!(run.stderr, "error: sample weights: expected 4, found 2\n");
    folder.write("weights", "1\n1\n1\n  minus\n");
    let run = folder.run("train data --sample-weights weights").exits(1);
    assert!(run.stderr.starts_with("error: weights:4:3: expected a weight"), "{}", run.stderr);
}

#[test]
fn threads_do_not_change_the_model() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let mut models = Vec::new();
    for threads in [1, 2, 4] {
        folder.run(&format!("train iris.libsvm --threads {threads} -o m --model-format libsvm"));
        models.push(folder.read("m"));
    }
    assert_eq!(models[0], models[1]);
    assert_eq!(models[0], models[2]);
}

#[test]
fn all_in_one_machines_train_in_batch_and_online() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for machine in ["ww", "cs", "llw", "adm", "dgi", "atm", "ats", "mmr", "ova", "reinforced"] {
        let common = format!("train iris.libsvm --machine {machine} --c 10 --json -o model.wm");
        let batch = folder.run(&common).exits(0).json();
        assert_eq!(batch["status"], "solved", "{machine}");
        let optimum = batch["dual"].as_f64().unwrap();
        let exact = folder.run(&format!("{common} --online --epochs inf")).exits(0).json();
        assert_eq!(exact["status"], "solved", "{machine}");
        let dual = exact["dual"].as_f64().unwrap();
        assert!((dual - optimum).abs() < 2e-3 * optimum, "{machine}: {dual} of {optimum}");
        let once = folder.run(&format!("{common} --online")).exits(0).json();
        let dual = once["dual"].as_f64().unwrap();
        assert!(dual > 0.0 && dual <= optimum * 1.0001, "{machine}: {dual} of {optimum}");
        let test = folder.run("predict iris.libsvm --model model.wm --json").exits(0).json();
        assert!(test["accuracy"].as_f64().unwrap() > 0.9, "{machine}");
    }
    folder.run("train iris.libsvm --machine nu-svc --online").exits(2);
}

#[test]
fn a_stream_is_learnt_as_it_arrives() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let text = folder.read("iris.libsvm");
    let command =
        "train - --format libsvm --machine cs --c 10 --gamma 0.5 --online -o model.wm --json";
    let fit = folder.run_with_input(command, &text).exits(0).json();
    assert_eq!((fit["rows"].as_u64(), fit["features"].as_u64()), (Some(150), Some(4)));
    let test = folder.run("predict iris.libsvm --model model.wm --json").exits(0).json();
    assert!(test["accuracy"].as_f64().unwrap() > 0.8);
}

#[test]
fn uncertain_rows_are_rejected() {
    let folder = Folder::new();
    folder.copy("wine.csv");
    folder.run("train wine.csv --machine gmm-bayes --covariance diag -o wine.wm").exits(0);
    let plain = folder.run("predict wine.csv --model wine.wm --probability -o all.txt").exits(0);
    let careful = "predict wine.csv --model wine.wm --probability --reject-below 0.9 -o sure.txt";
    let run = folder.run(careful).exits(0);
    let (all, sure) = (folder.read("all.txt"), folder.read("sure.txt"));
    let mut rejected = 0;
    for (before, now) in all.lines().zip(sure.lines()).skip(1) {
        let numbers = before.split('\t').skip(1).map(|number| number.parse::<f64>().unwrap());
        let is_sure = numbers.fold(0.0, f64::max) >= 0.9;
        let label = if is_sure { before.split('\t').next().unwrap() } else { "?" };
        assert_eq!(now.split('\t').next(), Some(label), "{before}");
        rejected += usize::from(!is_sure);
    }
    assert!(rejected > 0 && rejected < 50, "{rejected}");
    assert!(run.stderr.contains(&format!("{rejected} of 178 rows rejected")), "{}", run.stderr);
    assert_ne!(plain.stdout, run.stdout);
    folder.run("predict wine.csv --model wine.wm --reject-below 0.9").exits(2);
}

#[test]
fn the_most_influential_support_vectors_are_listed() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.run("train iris.csv --c 0.5 --scale standard -o iris.wm").exits(0);
    let model = folder.run("inspect iris.wm --json").exits(0).json();
    let list = model["influence"].as_array().unwrap();
    assert_eq!(list.len() as u64, model["support_vectors"].as_u64().unwrap());
    let weight = |one: &serde_json::Value| one["weight"].as_f64().unwrap();
    // Of three classes a row takes part in two functions, each of which gives it at most C.
    assert!(list.iter().all(|one| weight(one) > 0.0 && weight(one) <= 1.0 + 1e-9));
    assert!(list.windows(2).all(|pair| weight(&pair[0]) >= weight(&pair[1])));
    for one in list {
        let row = one["row"].as_u64().unwrap() as usize;
        let class = ["setosa", "versicolor", "virginica"][(row - 1) / 50];
        assert!(one["class"].as_str().unwrap().ends_with(class), "{one}");
    }
    let text = folder.run("inspect iris.wm --features 3").exits(0).stdout;
    assert!(text.contains("influence") && text.contains("support vectors with less"), "{text}");
}

#[test]
fn codes_hard_margins_and_the_adatron_are_options() {
    let folder = Folder::new();
    folder.copy("iris.csv");
    folder.copy("wdbc.csv");
    let code = "--multiclass ecoc --code 1,1,-1,1,-1,-1 --decoding hamming";
    folder.run(&format!("train iris.csv {code} --gamma 0.3 -o code.wm")).exits(0);
    let inspected = folder.run("inspect code.wm").exits(0).stdout;
    assert!(inspected.contains("error-correcting codes"), "{inspected}");
    folder.run("train iris.csv --code 1,-1,1 -o bad.wm").exits(2);
    folder.run("train wdbc.csv --scale standard --algorithm adatron --c 1 -o a.wm").exits(0);
    folder.run("train wdbc.csv --rate 0.5 -o bad.wm").exits(2);
    // The Gaussian kernel separates distinct rows: no training error without bound on C.
    folder.run("train wdbc.csv --scale standard --gamma 1 --c inf -o hard.wm").exits(0);
    let told = folder.run("predict wdbc.csv --model hard.wm --json -o p.txt").exits(0).json();
    assert_eq!(told["accuracy"], 1.0, "{told}");
    let online =
        "train wdbc.csv -s c-svc --online --without-bias --no-finish --class-weight balanced";
    folder.run(&format!("{online} --scale standard -o l.wm")).exits(0);
    let stream = "train iris.csv -s ww --online --steps 2,1 --rate-step 0.1 --least-share 0.1";
    folder.run(&format!("{stream} --class-weight balanced -o o.wm")).exits(0);
    let early =
        "train iris.csv -s ww --online --epochs inf --stop-gap 0.2 --clock counted --json -o e.wm";
    folder.run(early).exits(0);
    folder.run("train iris.csv -s ww --online --gamma jaakkola -o j.wm").exits(0);
    folder.run("train iris.csv -s gmm --components 4 --covariance auto -o m.wm").exits(0);
}
