//! Rules of the source that the compiler does not check: a layer uses only the layers under it
//! (docs/architecture.md), so that no `crate::…` path leads upwards, and functions stay short.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first. What is not named (`error`, `context`, `outcome`) crosses all layers.
const LAYERS: [&str; 6] = ["numeric", "data", "kernel", "solver", "machine", "operation"];

/// Modules that every layer uses, and the highest layer that they may use themselves: the context names
/// the trait of the backend it carries, which is that of the kernel layer.
const SHARED: [(&str, &str); 3] =
    [("error.rs", "numeric"), ("context.rs", "kernel"), ("outcome.rs", "numeric")];

/// Lines that a function may have, from its name to its last brace.
const LONGEST_FUNCTION: usize = 80;

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the library") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// The layers that a file names after `crate::`, with their lines; documentation and unit tests may name
/// any.
fn uses(path: &Path) -> Vec<(usize, usize)> {
    let text = fs::read_to_string(path).expect("a readable file");
    let mut found = Vec::new();
    for (number, line) in text.lines().take_while(|line| *line != "mod tests {").enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for rest in line.split("crate::").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if let Some(layer) = LAYERS.iter().position(|layer| *layer == name) {
                found.push((number + 1, layer));
            }
        }
    }
    found
}

#[test]
fn no_layer_uses_one_above_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut checked = 0;
    let mut check = |path: &Path, highest: usize| {
        for (line, layer) in uses(path) {
            checked += 1;
            if layer > highest {
                wrong.push(format!("{}:{line} uses {}", path.display(), LAYERS[layer]));
            }
        }
    };
    for (highest, layer) in LAYERS.iter().enumerate() {
        let mut files = Vec::new();
        rust_files(&source.join(layer), &mut files);
        files.retain(|path| !path.ends_with("tests.rs"));
        files.iter().for_each(|path| check(path, highest));
    }
    for (name, highest) in SHARED {
        let highest = LAYERS.iter().position(|layer| *layer == highest).expect("a layer");
        check(&source.join(name), highest);
    }
    assert!(checked > 300, "only {checked} uses were found: the check reads the wrong files");
    assert!(wrong.is_empty(), "upward uses:\n{}", wrong.join("\n"));
}

/// Whether a line begins a function.
fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let known = ["const", "unsafe", "extern", "\"C\""];
    let mut before = words.by_ref().take_while(|word| *word != "fn");
    let only_qualifiers = before.all(|word| {
        word.starts_with("pub") || word.starts_with("crate::") || known.contains(&word)
    });
    only_qualifiers && words.next().is_some()
}

/// The functions of a formatted file that are too long, with their lines.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let length = |first: usize| {
        let line = lines[first];
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| {
            line.strip_prefix(indent).is_some_and(|rest| {
                rest == "}"
                    || (!rest.starts_with(' ') && (rest.ends_with(';') || rest.ends_with("}")))
            })
        };
        lines[first..].iter().position(ends).map_or(0, |last| last + 1)
    };
    (0..lines.len())
        .filter(|&first| begins_function(lines[first]))
        .map(|first| (first + 1, length(first)))
        .filter(|&(_, length)| length > LONGEST_FUNCTION)
        .collect()
}

#[test]
fn functions_are_short() {
    let body = "    let x = 1;\n".repeat(LONGEST_FUNCTION - 2);
    let function = |body: &str| format!("pub(crate) fn f(\n    x: u8,\n) {{\n{body}}}\n");
    assert_eq!(long_functions(&function(&body)), [(1, LONGEST_FUNCTION + 2)]);
    assert!(long_functions(&function("")).is_empty());
    let mut files = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders =
        ["widemargin/src", "cli/src", "python/src", "mpi/src", "widemargin/tests", "cli/tests"];
    for folder in folders {
        rust_files(&crates.join(folder), &mut files);
    }
    assert!(files.len() > 300, "only {} files were found", files.len());
    let mut long = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a readable file");
        for (line, length) in long_functions(&text) {
            long.push(format!("{}:{line} has {length} lines", path.display()));
        }
    }
    assert!(long.is_empty(), "functions over {LONGEST_FUNCTION} lines:\n{}", long.join("\n"));
}

/// Test files are modules of few programs (`tests/suites`), or test targets of their own.
#[test]
fn every_test_file_is_in_a_suite() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut missing = Vec::new();
    for folder in ["widemargin", "cli"].map(|name| crates.join(name)) {
        let mut programs = Vec::new();
        rust_files(&folder.join("tests/suites"), &mut programs);
        programs.push(folder.join("Cargo.toml"));
        let read = |path: &PathBuf| fs::read_to_string(path).expect("a readable file");
        let texts: String = programs.iter().map(read).collect();
        for entry in fs::read_dir(folder.join("tests")).expect("the folder of tests") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".rs") && !texts.contains(&format!("/{name}\"")) {
                missing.push(path.display().to_string());
            }
        }
    }
    assert!(missing.is_empty(), "list these in a file of tests/suites:\n{}", missing.join("\n"));
}

/// A file of the repository.
fn from_root(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(path).expect("a file of the repository")
}

#[test]
fn programs_are_stripped_and_a_profile_keeps_their_symbols() {
    let manifest = from_root("Cargo.toml");
    let section = |name: &str| {
        let (_, rest) = manifest.split_once(&format!("[profile.{name}]\n")).expect("a profile");
        rest.split("\n[").next().unwrap_or_default().to_owned()
    };
    assert!(section("release").contains("strip = true"));
    let profiling = section("profiling");
    assert!(profiling.contains("inherits = \"release\"") && profiling.contains("strip = false"));
}

#[test]
fn the_tests_of_parquet_and_of_the_source_distribution_are_run_with_all_others() {
    let makefile = from_root("Makefile");
    let features = makefile.lines().find(|line| line.starts_with("WORKSPACE = "));
    assert!(features.is_some_and(|line| line.contains("widemargin-cli/parquet")));
    assert!(makefile.contains("cargo test $(WORKSPACE)"));
    assert!(makefile.contains("test: test-rust test-python test-sdist"));
    assert!(from_root(".ci/run").contains("make test"));
}
