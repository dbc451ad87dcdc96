//! The documentation names what there is: source files, bodies of models, machines.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use widemargin::machine::{Body, MachineKind, Specification};

/// Folders of the repository that pages name files of.
const FOLDERS: [&str; 9] =
    ["bench", "crates", "data", "docs", "examples", "fuzz", "python", "reproduce", ".ci"];

/// First parts of paths that are told from a folder within the library or the repository.
const PARTS: [&str; 17] = [
    "block",
    "bench",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "kernel",
    "machine",
    "numeric",
    "operation",
    "python",
    "reproduce",
    "rows",
    "smo",
    "solver",
    "src",
    "tests",
];

/// Programs of LIBSVM that pages compare with.
const FOREIGN: [&str; 2] = ["grid.py", "easy.py"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds every ending of the path of everything below a folder: `c`, `b/c`, `a/b/c`.
fn collect(folder: &Path, name: &str, found: &mut HashSet<String>) {
    let parts: Vec<&str> = name.split('/').collect();
    found.extend((0..parts.len()).map(|from| parts[from..].join("/")));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        let below = format!("{name}/{own}");
        if entry.path().is_dir() && own != "target" && !own.starts_with("__") {
            collect(&entry.path(), &below, found);
        } else {
            let parts: Vec<&str> = below.split('/').collect();
            found.extend((0..parts.len()).map(|from| parts[from..].join("/")));
        }
    }
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of pages").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => pages(&path, found),
            false if path.extension().is_some_and(|end| end == "md") => found.push(path),
            false => {}
        }
    }
}

/// What stands between backticks outside blocks of code, with its line.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let (mut inside, mut found) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            found.extend(line.split('`').skip(1).step_by(2).map(|word| (number + 1, word)));
        }
    }
    found
}

/// Whether a word is the path of a source file or of a folder with source.
fn is_source_path(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_file = word.ends_with(".rs") || word.ends_with(".py");
    let is_below = word.split_once('/').is_some_and(|(first, _)| PARTS.contains(&first));
    word.chars().all(is_plain) && (is_file || is_below) && !FOREIGN.contains(&word)
}

#[test]
fn every_path_that_the_pages_name_exists() {
    let mut known = HashSet::new();
    for folder in FOLDERS {
        collect(&root().join(folder), folder, &mut known);
    }
    let mut files = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    pages(&root().join("docs"), &mut files);
    let (mut checked, mut missing) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable page");
        for (line, word) in quoted(&text) {
            let word = word.trim_end_matches('/');
            if is_source_path(word) {
                checked += 1;
                if !known.contains(word) {
                    missing.push(format!("{}:{line}: {word}", file.display()));
                }
            }
        }
    }
    assert!(checked > 100, "{checked} paths were found");
    assert!(missing.is_empty(), "paths that do not exist:\n{}", missing.join("\n"));
}

/// Targets of the links outside blocks of code, with their lines, but for those to other hosts.
fn links(text: &str) -> Vec<(usize, &str)> {
    let (mut inside, mut found) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let own = targets.filter(|to| !to.starts_with("http") && !to.starts_with("mailto:"));
            found.extend(own.map(|to| (number + 1, to)));
        }
    }
    found
}

/// The anchors of the headings of a page: small letters, digits and hyphens for blanks.
fn anchors(text: &str) -> HashSet<String> {
    let mut inside = false;
    let mut found = HashSet::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside && line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}

#[test]
fn every_link_between_the_pages_leads_somewhere() {
    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    for folder in ["docs", "bench", "reproduce", "examples"] {
        let mut found = Vec::new();
        pages(&root().join(folder), &mut found);
        // Packages that a comparison has installed bring pages of their own.
        files.extend(found.into_iter().filter(|path| !path.to_string_lossy().contains("/.venv/")));
    }
    let (mut checked, mut broken) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable page");
        for (line, target) in links(&text) {
            checked += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let linked = match path {
                "" => file.clone(),
                path => file.parent().expect("a folder").join(path),
            };
            let is_page = linked.extension().is_some_and(|end| end == "md");
            let has_anchor = || {
                let page = fs::read_to_string(&linked).expect("a readable page");
                anchors(&page).contains(anchor)
            };
            if !linked.exists() || (is_page && !anchor.is_empty() && !has_anchor()) {
                broken.push(format!("{}:{line}: {target}", file.display()));
            }
        }
    }
    assert!(checked > 100, "{checked} links were found");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn links_and_anchors_are_found() {
    let text = "[a](b.md#c) [d](https://e)\n```\n[f](g.md)\n```\n[h](#i)";
    assert_eq!(links(text), [(1, "b.md#c"), (5, "#i")]);
    let headings = anchors("# One `two`, three\n```\n# no\n```\n## Four-five");
    assert_eq!(headings, HashSet::from(["one-two-three".to_owned(), "four-five".to_owned()]));
}

#[test]
fn paths_are_told_from_other_words() {
    for path in ["solver/smo", "kernel_expression.rs", "crates/widemargin/src", "machine/model"] {
        assert!(is_source_path(path), "{path}");
    }
    for word in ["1/features", "grid.py", "rbf", "machine/<name>.rs", "iris.wm", "n/a"] {
        assert!(!is_source_path(word), "{word}");
    }
    let text = "a `b` c\n```\n`d`\n```\n`e` `f`";
    assert_eq!(quoted(text), [(1, "b"), (5, "e"), (5, "f")]);
}

#[test]
fn every_body_and_every_machine_has_its_place() {
    let page = |name: &str| fs::read_to_string(root().join("docs").join(name)).expect("a page");
    let models = page("models.md");
    for body in Body::NAMES {
        assert!(models.contains(&format!("| `{body}` |")), "docs/models.md lacks {body}");
    }
    let mut files = Vec::new();
    pages(&root().join("docs/machines"), &mut files);
    let all: String = files.iter().map(|file| fs::read_to_string(file).expect("a page")).collect();
    for kind in MachineKind::all().chain(MachineKind::SEQUENCES) {
        let summary = Specification::new(kind).entry().summary;
        assert!(all.contains(kind.name()), "no page names {kind}: {summary}");
    }
}
