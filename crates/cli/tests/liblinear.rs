//! The stand-ins for LIBLINEAR's programs, against what LIBLINEAR 2.50 prints and writes for the same
//! command lines.

use crate::common::{Folder, PROGRAM};

/// The rows of weights in a model file.
fn weights(model: &str) -> Vec<Vec<f64>> {
    let rows = model.lines().skip_while(|line| *line != "w").skip(1);
    rows.map(|row| row.split_whitespace().map(|w| w.parse().unwrap()).collect()).collect()
}

/// What LIBLINEAR makes of a solver.
struct Expected {
    solver: u32,
    name: &'static str,
    /// Weights of the first feature.
    first: [f64; 3],
    bias: [f64; 3],
    accuracy: &'static str,
}

/// At this tolerance LIBLINEAR stops at its limit of passes with `-s 3` and `-s 5`, which are left out.
const SOLVERS: [Expected; 6] = [
    Expected {
        solver: 0,
        name: "L2R_LR",
        first: [0.4102251904, 0.4270074357, -1.707450736],
        bias: [0.2641743814, 1.094745495, -1.215934833],
        accuracy: "96% (144/150)",
    },
    Expected {
        solver: 1,
        name: "L2R_L2LOSS_SVC_DUAL",
        first: [0.1842446871, 0.05524624778, -0.8505912013],
        bias: [0.1095523668, 1.687371641, -1.710792661],
        accuracy: "96.6667% (145/150)",
    },
    Expected {
        solver: 2,
        name: "L2R_L2LOSS_SVC",
        first: [0.1842446565, 0.05524624776, -0.8505912014],
        bias: [0.1095523681, 1.687371641, -1.710792661],
        accuracy: "96.6667% (145/150)",
    },
    Expected {
        solver: 4,
        name: "MCSVM_CS",
        first: [0.6235048062, 0.2063823115, -0.8298871177],
        bias: [0.2745688, 1.093285553, -1.367854353],
        accuracy: "98% (147/150)",
    },
    Expected {
        solver: 6,
        name: "L1R_LR",
        first: [0.0, 0.3313399213, -2.625997548],
        bias: [0.0, 2.06884348, 0.0],
        accuracy: "96% (144/150)",
    },
    Expected {
        solver: 7,
        name: "L2R_LR_DUAL",
        first: [0.4102251905, 0.4270074365, -1.707450737],
        bias: [0.2641743877, 1.094745488, -1.215934833],
        accuracy: "96% (144/150)",
    },
];

#[test]
fn classifiers_have_liblinears_weights_and_answers() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for Expected { solver, name, first, bias, accuracy } in SOLVERS {
        let run = folder.run(&format!("ll-train -s {solver} -e 1e-9 -B 1 iris.libsvm m"));
        assert!(run.stdout.starts_with("optimization finished, #iter = "), "{}", run.stdout);
        let model = folder.read("m");
        let head =
            format!("solver_type {name}\nnr_class 3\nlabel 0 1 2\nnr_feature 4\nbias 1\nw\n");
        assert!(model.starts_with(&head), "{model}");
        let found = weights(&model);
        // Coordinate descent on ℓ1 and Crammer and Singer's machine stop a little short of 1e-9.
        let tolerance = if matches!(solver, 4 | 6) { 1e-3 } else { 1e-6 };
        for (found, expected) in [(&found[0], first), (&found[4], bias)] {
            for (a, b) in found.iter().zip(expected) {
                assert!((a - b).abs() < tolerance, "-s {solver}: {a} and {b}");
            }
        }
        let run = folder.run("ll-predict iris.libsvm m answers").exits(0);
        assert_eq!(run.stdout, format!("Accuracy = {accuracy}\n"));
        assert_eq!(folder.read("answers").lines().count(), 150);
    }
}

#[test]
fn regressors_and_novelty_detectors_answer_as_liblinears() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for solver in [11, 12] {
        folder.run(&format!("ll-train -q -s {solver} -e 1e-9 -p 0.2 -B 1 iris.libsvm m")).exits(0);
        let run = folder.run("ll-predict iris.libsvm m answers").exits(0);
        let expected = "Mean squared error = 0.0495001 (regression)\n\
                        Squared correlation coefficient = 0.928564 (regression)\n";
        assert_eq!(run.stdout, expected, "-s {solver}");
    }
    folder.run("ll-train -q -s 21 -n 0.3 -e 1e-6 iris.libsvm m").exits(0);
    let model = folder.read("m");
    assert!(model.starts_with("solver_type ONECLASS_SVM\n"), "{model}");
    for (found, expected) in weights(&model).iter().zip([220.5, 143.8, 75.7, 15.3]) {
        assert!((found[0] - expected).abs() < 1e-6, "{model}");
    }
    let run = folder.run("ll-predict iris.libsvm m answers").exits(0);
    assert_eq!(run.stdout, "Accuracy = 30.6667% (46/150)\n");
}

#[test]
fn probabilities_are_those_of_liblinear() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("ll-train -q -s 0 -e 1e-9 -B 1 iris.libsvm m").exits(0);
    folder.run("ll-predict -q -b 1 iris.libsvm m answers").exits(0);
    let answers = folder.read("answers");
    let lines: Vec<&str> = answers.lines().take(3).collect();
    let expected =
        ["labels 0 1 2", "0 0.878033 0.121956 1.08005e-05", "0 0.797069 0.202901 3.03016e-05"];
    assert_eq!(lines, expected);
}

#[test]
fn what_liblinear_refuses_is_refused() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("ll-train -q -s 3 iris.libsvm m").exits(0);
    for (command, message) in [
        ("ll-train -s 9 iris.libsvm", "unknown solver type"),
        ("ll-train -s 0 -R iris.libsvm", "option -R needs -B 1"),
        ("ll-train -s 1 -B 1 -R iris.libsvm", "option -R is for -s 0, 2, 5, 6 and 11"),
        ("ll-train -s 3 -C iris.libsvm", "option -C is for -s 0, 2 and 11"),
        ("ll-predict -b 1 iris.libsvm m answers", "only supported for logistic regression"),
        ("ll-predict iris.libsvm m", "expected a test file, a model file and an output file"),
    ] {
        let run = folder.run(command);
        assert!(run.code != Some(0) && run.stderr.contains(message), "{command}: {}", run.stderr);
    }
    assert!(!folder.names().contains(&"answers".to_owned()), "nothing is written");
}

#[cfg(unix)]
#[test]
fn the_names_of_the_programs_are_recognised() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let run = |name: &str, arguments: &[&str]| {
        let link = folder.file(name);
        std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
        let mut command = std::process::Command::new(&link);
        let output = command.args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = {
        folder.run("ll-train -q iris.libsvm m").exits(0);
        folder.run("ll-predict iris.libsvm m out").exits(0).stdout
    };
    for (train, predict) in [("train", "predict"), ("liblinear-train", "liblinear-predict")] {
        run(train, &["-q", "iris.libsvm", train.to_uppercase().as_str()]);
        assert_eq!(folder.read(&train.to_uppercase()), folder.read("m"));
        let model = train.to_uppercase();
        assert_eq!(run(predict, &["iris.libsvm", &model, "answers"]), expected);
    }
}
