//! A layer uses only the layers under it (docs/architecture.md): no `crate::…` path leads upwards.

use std::fs;
use std::path::{Path, PathBuf};

/// The layers, lowest first. What is not named (`error`, `context`, `outcome`) crosses all layers.
const LAYERS: [&str; 6] = ["numeric", "data", "kernel", "solver", "machine", "operation"];

/// Modules that every layer uses, and the highest layer that they may use themselves: the context names
/// the trait of the backend it carries, which is that of the kernel layer.
const SHARED: [(&str, &str); 3] =
    [("error.rs", "numeric"), ("context.rs", "kernel"), ("outcome.rs", "numeric")];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the library") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
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
        files.iter().for_each(|path| check(path, highest));
    }
    for (name, highest) in SHARED {
        let highest = LAYERS.iter().position(|layer| *layer == highest).expect("a layer");
        check(&source.join(name), highest);
    }
    assert!(checked > 300, "only {checked} uses were found: the check reads the wrong files");
    assert!(wrong.is_empty(), "upward uses:\n{}", wrong.join("\n"));
}
