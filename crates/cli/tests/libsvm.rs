//! The stand-ins for LIBSVM's programs, against what LIBSVM 3.24 prints for the same command lines.

use crate::common::{Folder, Run};

/// The numbers in a text, in order.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e')))
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// The words of a text with every number replaced by `N`.
fn shape(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            let words = line.split_inclusive([' ', '%', ',', '(', '/']).map(|word| {
                let number = word.trim_end_matches([' ', '%', ',', '(', '/', ')']);
                if !number.is_empty() && number.parse::<f64>().is_ok() {
                    word.replace(number, "N")
                } else {
                    word.to_owned()
                }
            });
            words.collect()
        })
        .collect()
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

/// Same lines; objective and offset of every `obj = ..., rho = ...` line as LIBSVM found them.
#[track_caller]
fn assert_like_libsvm(run: &Run, expected: &str) {
    assert_eq!(shape(&run.stdout), shape(expected), "{}", run.stdout);
    for (found, expected) in run.stdout.lines().zip(expected.lines()) {
        if !expected.starts_with("obj") {
            continue;
        }
        let (found, expected) = (numbers(found), numbers(expected));
        assert!(close(found[0], expected[0], 1e-4), "objective {found:?} {expected:?}");
        assert!(close(found[1], expected[1], 5e-3), "offset {found:?} {expected:?}");
    }
}

const IRIS_C_SVC: &str = "\
*
optimization finished, #iter = 46
nu = 0.046496
obj = -2.403416, rho = 0.039857
nSV = 11, nBSV = 2
*
optimization finished, #iter = 30
nu = 0.038905
obj = -1.945147, rho = 0.167775
nSV = 10, nBSV = 0
*
optimization finished, #iter = 36
nu = 0.293565
obj = -21.377491, rho = 0.143705
nSV = 33, nBSV = 26
Total nSV = 45
";

#[test]
fn svm_train_prints_libsvms_lines_and_writes_its_model() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let run = folder.run("svm-train iris.libsvm").exits(0);
    assert_like_libsvm(&run, IRIS_C_SVC);
    let model = folder.read("iris.libsvm.model");
    let header: Vec<&str> = model.lines().take(5).collect();
    assert_eq!(header[..2], ["svm_type c_svc", "kernel_type rbf"]);
    assert!(header.contains(&"gamma 0.25") && header.contains(&"nr_class 3"), "{header:?}");
    assert!(model.contains("\nlabel 0 1 2\n") && model.contains("\nnr_sv "), "{model}");
}

#[test]
fn svm_train_solves_the_other_machines_as_libsvm_does() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for (options, expected) in [
        (
            "-s 3",
            "*\noptimization finished, #iter = 401\nnu = 0.319355\n\
             obj = -8.639626, rho = -1.038897\nnSV = 56, nBSV = 42\n",
        ),
        (
            "-s 4",
            "*\noptimization finished, #iter = 7566\nepsilon = 0.046086\n\
             obj = -15.293976, rho = -1.032063\nnSV = 88, nBSV = 64\n",
        ),
        (
            "-s 2 -n 0.1",
            "*\noptimization finished, #iter = 111\nobj = 29.146837, rho = 4.024546\n\
             nSV = 20, nBSV = 10\n",
        ),
    ] {
        let run = folder.run(&format!("svm-train {options} -e 0.000001 iris.libsvm m")).exits(0);
        assert_like_libsvm(&run, expected);
        let (found, expected) = (numbers(&run.stdout), numbers(expected));
        let counts = |list: &[f64]| list[list.len() - 2..].to_vec();
        assert_eq!(counts(&found), counts(&expected), "{options}");
    }
}

#[test]
fn weights_of_classes_change_the_problem_as_in_libsvm() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let run = folder.run("svm-train -w1 5 -w9 2 -e 0.0000001 iris.libsvm").exits(0);
    assert!(run.stderr.contains("WARNING: class label 9 specified in weight is not found"));
    assert_like_libsvm(
        &run,
        "*\noptimization finished, #iter = 158\nobj = -2.495489, rho = 0.064410\n\
         nSV = 10, nBSV = 1\n*\noptimization finished, #iter = 67\nnu = 0.038903\n\
         obj = -1.945148, rho = 0.167820\nnSV = 10, nBSV = 0\n*\n\
         optimization finished, #iter = 54\nobj = -35.470949, rho = 0.202713\n\
         nSV = 30, nBSV = 25\nTotal nSV = 42\n",
    );
}

#[test]
fn svm_predict_prints_libsvms_lines() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("svm-train -q iris.libsvm").exits(0);
    let run = folder.run("svm-predict iris.libsvm iris.libsvm.model out").exits(0);
    assert_eq!(run.stdout, "Accuracy = 98.6667% (148/150) (classification)\n");
    assert_eq!(folder.read("out").lines().filter(|line| *line == "0").count(), 50);
    let run = folder.run("svm-predict -q iris.libsvm iris.libsvm.model out").exits(0);
    assert_eq!(run.stdout, "");
    folder.run("svm-train -q -s 3 iris.libsvm regression").exits(0);
    let run = folder.run("svm-predict iris.libsvm regression out").exits(0);
    let lines = run.lines();
    assert!(lines[0].starts_with("Mean squared error = ") && lines[0].ends_with(" (regression)"));
    assert!(lines[1].starts_with("Squared correlation coefficient = "), "{lines:?}");
    // LIBSVM's own pair of programs prints 0.0246627 and 0.963242.
    assert!((numbers(lines[0])[0] - 0.024_662_7).abs() < 1e-5, "{lines:?}");
    assert!((numbers(lines[1])[0] - 0.963_242).abs() < 1e-5, "{lines:?}");
}

#[test]
fn cross_validation_prints_what_grid_scripts_look_for() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let run = folder.run("svm-train -c 2 -g 0.125 -v 5 iris.libsvm").exits(0);
    // As LIBSVM's grid.py does it: the last word of the line with 'Cross', its last letter cut.
    let line = run.lines().into_iter().find(|line| line.contains("Cross")).expect("a result");
    let word = line.split_whitespace().last().expect("a word");
    let rate: f64 = word[..word.len() - 1].parse().expect("a rate");
    assert!((94.0..=100.0).contains(&rate), "{line}");
    assert_eq!(line, format!("Cross Validation Accuracy = {word}"));
    let run = folder.run("svm-train -s 3 -v 5 iris.libsvm").exits(0);
    assert_eq!(run.lines().len(), 2);
    assert!(run.lines()[0].starts_with("Cross Validation Mean squared error = 0.03"));
    assert!(run.lines()[1].starts_with("Cross Validation Squared correlation coefficient = 0.9"));
    let run = folder.run("svm-train -q -v 500 iris.libsvm").exits(0);
    assert!(run.stderr.contains("leave-one-out"), "{}", run.stderr);
    assert_eq!(folder.names(), ["iris.libsvm"]);
}

#[test]
fn probabilities_are_learnt_and_written_as_libsvm_does() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("svm-train -q -b 1 iris.libsvm model").exits(0);
    let model = folder.read("model");
    assert!(model.contains("\nprobA ") && model.contains("\nprobB "), "{model}");
    let run = folder.run("svm-predict -b 1 iris.libsvm model out").exits(0);
    assert!(run.stdout.starts_with("Accuracy = 9"), "{}", run.stdout);
    let out = folder.read("out");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("labels 0 1 2"));
    for line in lines {
        let row = numbers(line);
        assert!((row[1..].iter().sum::<f64>() - 1.0).abs() < 1e-5, "{line}");
        let likely = (1..4).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
        assert_eq!(row[0], (likely - 1) as f64, "{line}");
    }
    let run = folder.run("svm-predict iris.libsvm model out").exits(0);
    assert!(run.stdout.starts_with("Model supports probability estimates, but disabled"));
    folder.run("svm-train -q -b 1 -s 3 iris.libsvm model").exits(0);
    let run = folder.run("svm-predict -b 1 iris.libsvm model out").exits(0);
    assert!(run.stdout.contains("z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=0.1"));
    folder.run("svm-train -q iris.libsvm model").exits(0);
    let run = folder.run("svm-predict -b 1 iris.libsvm model out2").exits(1);
    assert_eq!(run.stderr, "error: Model does not support probability estimates\n");
    assert!(!folder.names().contains(&"out2".to_owned()));
}

#[test]
fn svm_scale_writes_what_libsvm_writes() {
    let folder = Folder::new();
    folder.write("s", "1 1:3 5:0.123456789\n2 1:3 2:-1 5:1\n+1 2:5 3:7\n");
    let run = folder.run("svm-scale -s r s").exits(0);
    assert_eq!(
        run.stdout,
        "1 1:1 2:-0.666667 3:-1 5:-0.753086 \n2 1:1 2:-1 3:-1 5:1 \n1 1:-1 2:1 3:1 5:-1 \n"
    );
    assert_eq!(folder.read("r"), "x\n-1 1\n1 0 3\n2 -1 5\n3 0 7\n5 0 1\n");
    assert!(run.stderr.contains("WARNING: original #nonzeros 7"), "{}", run.stderr);
    folder.write("t", "1.123456789123 1:30 7:1\n");
    let run = folder.run("svm-scale -r r t").exits(0);
    assert_eq!(run.stdout, "1.1234567891230001 1:19 2:-0.666667 3:-1 5:-1 \n");
    let run = folder.run("svm-scale -l 0 -u 1 -y 0 1 -s r3 s").exits(0);
    assert!(run.stdout.starts_with("0 1:1 2:0.166667"), "{}", run.stdout);
    assert!(folder.read("r3").starts_with("y\n0 1\n1 2\nx\n0 1\n"));
    folder.run("svm-scale -l 2 -u 1 s").exits(1);
    folder.run("svm-scale -r r -s r3 s").exits(1);
}

#[test]
fn precomputed_kernels_carry_serial_numbers() {
    let folder = Folder::new();
    // Linear kernel of the points 1, 2, -1, -2.
    let points = [1.0_f64, 2.0, -1.0, -2.0];
    let mut gram = String::new();
    let mut plain = String::new();
    for (i, x) in points.iter().enumerate() {
        let label = if *x > 0.0 { "+1" } else { "-1" };
        gram.push_str(&format!("{label} 0:{}", i + 1));
        for (j, z) in points.iter().enumerate() {
            gram.push_str(&format!(" {}:{}", j + 1, x * z));
        }
        gram.push('\n');
        plain.push_str(&format!("{label} 1:{x}\n"));
    }
    folder.write("gram", gram);
    folder.write("plain", plain);
    let given = folder.run("svm-train -t 4 gram").exits(0);
    let linear = folder.run("svm-train -t 0 plain").exits(0);
    let objective = |run: &Run| numbers(run.lines()[3]);
    for (found, expected) in objective(&given).iter().zip(objective(&linear)) {
        assert!(close(*found, expected, 1e-4));
    }
    let run = folder.run("svm-predict gram gram.model out").exits(0);
    assert_eq!(run.stdout, "Accuracy = 100% (4/4) (classification)\n");
    folder.run("train gram --kernel precomputed").exits(0);
    let run = folder.run("predict gram --model gram.wm --quiet").exits(0);
    assert_eq!(run.lines(), ["1", "1", "-1", "-1"]);
}

#[test]
fn the_first_label_is_the_first_class() {
    let folder = Folder::new();
    folder.write("data", "7 1:1\n3 1:2\n7 1:1.1\n3 1:2.1\n");
    folder.run("svm-train -q data").exits(0);
    assert!(folder.read("data.model").contains("\nlabel 7 3\n"));
    folder.write("signs", "-1 1:1\n+1 1:2\n-1 1:1.1\n+1 1:2.1\n");
    folder.run("svm-train -q signs").exits(0);
    assert!(folder.read("signs.model").contains("\nlabel 1 -1\n"));
}

#[test]
fn mistakes_end_with_1_and_the_options() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for (arguments, stdout, stderr) in [
        ("svm-train", "Usage: svm-train", ""),
        ("svm-train -z 1 iris.libsvm", "Usage: svm-train", "Unknown option: -z\n"),
        ("svm-train -c", "Usage: svm-train", "option -c: a value is missing\n"),
        (
            "svm-train -c x iris.libsvm",
            "Usage: svm-train",
            "option -c: expected a number, found 'x'\n",
        ),
        ("svm-train -h 2 iris.libsvm", "Usage: svm-train", "option -h: expected 0 or 1, found 2\n"),
        (
            "svm-train -v 1 iris.libsvm",
            "Usage: svm-train",
            "n-fold cross validation: n must >= 2\n",
        ),
        ("svm-train -s 9 iris.libsvm", "", "error: unknown svm type\n"),
        ("svm-train -t 9 iris.libsvm", "", "error: unknown kernel type\n"),
        (
            "svm-train -c 0 iris.libsvm",
            "",
            "error: parameter c: expected inf or a finite number above 0, found 0\n",
        ),
        ("svm-train -m 0 iris.libsvm", "", "error: cache_size <= 0\n"),
        ("svm-predict", "Usage: svm-predict", ""),
        (
            "svm-predict iris.libsvm",
            "Usage: svm-predict",
            "expected a test file, a model file and an output file\n",
        ),
        ("svm-scale", "Usage: svm-scale", ""),
    ] {
        let run = folder.run(arguments).exits(1);
        assert!(run.stdout.starts_with(stdout), "{arguments}: {}", run.stdout);
        assert_eq!(run.stderr, stderr, "{arguments}");
    }
    folder.run("svm-train no-such-file").exits(1);
    assert_eq!(folder.names(), ["iris.libsvm"]);
}

#[cfg(unix)]
#[test]
fn the_name_of_the_program_chooses_the_stand_in() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for name in ["svm-train", "svm-predict", "svm-scale"] {
        std::os::unix::fs::symlink(crate::common::PROGRAM, folder.file(name)).unwrap();
    }
    let run = |name: &str, arguments: &[&str]| -> Run {
        std::process::Command::new(folder.file(name))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap()
            .into()
    };
    let scaled = run("svm-scale", &["iris.libsvm"]).exits(0).stdout;
    folder.write("iris.scale", scaled);
    run("svm-train", &["-c", "8", "-g", "0.125", "iris.scale", "model"]).exits(0);
    let tested = run("svm-predict", &["iris.scale", "model", "out"]).exits(0);
    assert!(tested.stdout.starts_with("Accuracy = 9"), "{}", tested.stdout);
}
