//! Help: what fits a screen, what one machine takes, everything.

use crate::common::Folder;

/// Lines that a screen shows.
const SCREEN: usize = 60;

fn help(words: &str) -> String {
    Folder::new().run(words).exits(0).stdout
}

/// The options that a help text lists.
fn options(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.trim_start().starts_with('-'));
    lines
        .flat_map(|line| line.split([' ', ',', '[']))
        .filter(|word| word.starts_with("--"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_common_options_fit_a_screen() {
    for command in ["train", "tune", "cross-validate"] {
        for words in
            [format!("{command} --help"), format!("{command} -h"), format!("help {command}")]
        {
            let text = help(&words);
            assert!(text.lines().count() <= SCREEN, "{words}: {} lines", text.lines().count());
            for expected in ["--c <NUM>", "--kernel", "--scale", "--label-column", "Examples:"] {
                assert!(text.contains(expected), "{words} lacks {expected}:\n{text}");
            }
            assert!(text.contains("--help all"), "{text}");
        }
    }
}

#[test]
fn one_machine_lists_exactly_its_parameters() {
    let knn = options(&help("train --help knn"));
    for own in ["--neighbours", "--metric", "--search", "--weights", "--scale"] {
        assert!(knn.contains(&own.to_owned()), "{knn:?} lacks {own}");
    }
    for other in ["--c", "--kernel", "--clusters", "--threads", "--memory"] {
        assert!(!knn.contains(&other.to_owned()), "{knn:?} has {other}");
    }
    assert!(help("tune --help knn").contains("neighbours=1,3,5,9,15,25"));
    // Its own default, not those of other machines.
    let svc = help("train --linear --help");
    assert!(svc.starts_with("linear-svc: "), "{svc}");
    assert!(svc.contains("[default: squared-hinge]"), "{svc}");
    assert_eq!(help("train --help=linear-svc"), svc);
    assert!(help("train -s ww --online --help").contains("--epochs"));
    assert!(!help("train -s ww --help").contains("--epochs"));
}

#[test]
fn everything_is_one_word_away() {
    let (all, common) = (help("train --help all"), help("train --help"));
    for option in ["--instruction-set", "--landmarks", "--max-unpacked", "--resume"] {
        assert!(all.contains(option), "{option}");
        assert!(!common.contains(option), "{option}");
    }
    let machines = help("train --help machines");
    for line in
        ["c-svc             classification with penalty C", "spectral          spectral clustering"]
    {
        assert!(machines.contains(line), "{machines}");
        assert!(all.contains(line), "{all}");
    }
}

#[test]
fn a_machine_that_does_not_exist_is_told() {
    let run = Folder::new().run("train --help kmn").exits(2);
    assert!(run.stderr.contains("--help kmn: expected a machine"), "{}", run.stderr);
    let run = Folder::new().run("train --no-such-option x").exits(2);
    assert!(run.stderr.contains("'--help'"), "{}", run.stderr);
}
