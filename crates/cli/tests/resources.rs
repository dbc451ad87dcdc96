//! The options about threads, memory, time and randomness, which every command has.

use crate::common::Folder;

#[test]
fn resources_change_no_result() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let values = |options: &str| {
        folder.run(&format!("train iris.libsvm -o m.wm -q --tol 1e-8 {options}")).exits(0);
        let predict = format!("predict iris.libsvm -m m.wm -q --decision-values {options}");
        let run = folder.run(&predict).exits(0);
        let lines = run.stdout.lines().skip(1).map(|line| line.split('\t').skip(1));
        lines.flatten().map(|value| value.parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    let usual = values("");
    assert_eq!(values("--threads 1"), values("--threads 2"));
    for options in ["--threads 3", "--cache-mb 0", "--cache-mb 1", "--max-time 600", "--seed 9"] {
        for (own, other) in values(options).iter().zip(&usual) {
            assert!((own - other).abs() < 1e-5, "{options}: {own}, not {other}");
        }
    }
    for (own, other) in values("--instruction-set portable").iter().zip(&usual) {
        assert!((own - other).abs() < 1e-4, "{own}, not {other}");
    }
}

#[test]
fn the_seed_decides_what_is_random_and_nothing_else_does() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    let accuracy = |options: &str| {
        let validate = format!("cross-validate iris.libsvm --folds 3 --json {options}");
        folder.run(&validate).exits(0).json()["accuracy"].clone()
    };
    assert_eq!(accuracy("--seed 1"), accuracy("--seed 1 --threads 1"));
    let some: Vec<_> = (0..6).map(|seed| accuracy(&format!("--seed {seed}"))).collect();
    assert!(some.iter().any(|one| *one != some[0]), "{some:?}");
}

#[test]
fn resources_out_of_range_are_refused_by_every_command() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    folder.run("train iris.libsvm -o m.wm -q").exits(0);
    let commands = [
        "train iris.libsvm -o n.wm",
        "predict iris.libsvm -m m.wm",
        "cross-validate iris.libsvm",
        "tune iris.libsvm",
        "compress m.wm --ratio 0.5 -o n.wm",
        "cluster iris.libsvm",
        "compare iris.libsvm",
        "threshold m.wm iris.libsvm --false-positives 0.1 -o n.wm",
        "plot confusion iris.libsvm --model m.wm -o c.svg",
        "sequence train iris.libsvm -o n.wm",
    ];
    for command in commands {
        for (options, told) in [
            ("--threads 1025", "--threads"),
            ("--cache-mb x", "--cache-mb"),
            ("--max-time 0", "--max-time"),
            ("--max-time soon", "--max-time"),
            ("--seed 1.5", "--seed"),
            ("--instruction-set neon64", "--instruction-set"),
        ] {
            let run = folder.run(&format!("{command} {options}")).exits(2);
            assert!(run.stderr.contains(told), "{command} {options}: {}", run.stderr);
        }
    }
    assert_eq!(folder.names(), ["iris.libsvm", "m.wm"]);
}

#[test]
fn quiet_commands_say_nothing() {
    let folder = Folder::new();
    folder.copy("iris.libsvm");
    for command in [
        "train iris.libsvm --scale standard -o m.wm",
        "tune iris.libsvm --scale standard --grid c=1,10",
        "compress m.wm --ratio 0.5 -o n.wm",
        "cluster iris.libsvm --machine kmeans --clusters 3 -o c.txt",
        "predict iris.libsvm -m m.wm -o p.txt",
    ] {
        let run = folder.run(&format!("{command} --quiet")).exits(0);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""), "{command}");
    }
}
