//! The public surface, item by item: a change of it is seen in review.
//!
//! `unreachable_pub` is a warning and warnings are errors, so that whatever is written `pub` is public.
//! After a deliberate change, `UPDATE_PUBLIC_API=1 cargo test --test public_api` writes the list anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The enumerations that programs match on without a rest: another variant would be a change that they have to see.
const CLOSED: [&str; 20] = [
    "Address",
    "AllInOne",
    "Bias",
    "Calibration",
    "ClassOrder",
    "IndexBase",
    "Judge",
    "Label",
    "LabelSummary",
    "Labels",
    "Layout",
    "LinearLoss",
    "Matrix",
    "ModelFormat",
    "Penalty",
    "Precision",
    "Quality",
    "Scaler",
    "Scheme",
    "Value",
];

/// Every source file of a folder, in the order of their names.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    let nested = entries.into_iter().flat_map(|path| match path.is_dir() {
        true => rust_files(&path),
        false => vec![path],
    });
    nested.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// Whether a line begins a structure with named fields that is not public itself.
fn begins_private_struct(line: &str) -> bool {
    let line = line.trim_start();
    let declared = line.strip_prefix("pub(").and_then(|rest| rest.split_once(") "));
    let item = declared.map_or(line, |(_, item)| item);
    item.starts_with("struct ") && line.ends_with('{')
}

/// The public items of a file: each from `pub` to the brace, semicolon or comma that ends it. Fields
/// are public where their structure is.
fn public_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut lines = text.lines().take_while(|line| *line != "mod tests {");
    while let Some(line) = lines.next() {
        if begins_private_struct(line) {
            lines.find(|line| line.trim() == "}");
        }
        if !line.trim_start().starts_with("pub ") {
            continue;
        }
        let mut item = line.trim().to_owned();
        let is_use = item.starts_with("pub use");
        let name_end = item[4..].find(|c: char| !c.is_alphanumeric() && c != '_');
        let is_field = name_end.is_some_and(|end| item[4 + end..].starts_with(": "));
        let ended = |item: &str| {
            (is_field && item.ends_with(','))
                || item.ends_with(';')
                || (!is_use && item.contains('{'))
        };
        while !ended(&item) {
            let Some(next) = lines.next() else { break };
            item.push(' ');
            item.push_str(next.trim());
        }
        let end = if is_use { item.len() } else { item.find(" {").unwrap_or(item.len()) };
        items.push(item[..end].trim_end_matches([',', ';']).to_owned());
    }
    items
}

#[test]
fn the_public_surface_is_the_one_written_down() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = library.join("src");
    let mut found = String::new();
    for path in rust_files(&source) {
        let text = fs::read_to_string(&path).expect("a readable file");
        let items = public_items(&text);
        if !items.is_empty() {
            let name = path.strip_prefix(&source).expect("a file of the library");
            found.push_str(&format!("{}\n", name.display()));
            items.iter().for_each(|item| found.push_str(&format!("    {item}\n")));
        }
    }
    let list = library.join("public-api.txt");
    if std::env::var_os("UPDATE_PUBLIC_API").is_some() {
        fs::write(&list, &found).expect("a writable list");
    }
    let expected = fs::read_to_string(&list).expect("crates/widemargin/public-api.txt");
    let difference = found.lines().filter(|line| !expected.lines().any(|other| other == *line));
    let new: Vec<&str> = difference.collect();
    let gone = expected.lines().filter(|line| !found.lines().any(|other| other == *line));
    let gone: Vec<&str> = gone.collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "the public surface changed\nnew:\n{}\ngone:\n{}",
        new.join("\n"),
        gone.join("\n")
    );
}

#[test]
fn no_two_public_types_have_one_name() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in rust_files(&source) {
        let text = fs::read_to_string(&path).expect("a readable file");
        for item in public_items(&text) {
            let mut words = item.split(|c: char| !c.is_alphanumeric() && c != '_');
            let kind = words.nth(1).unwrap_or_default();
            if let ("struct" | "enum" | "trait" | "type", Some(name)) = (kind, words.next()) {
                places.entry(name.to_owned()).or_default().push(path.display().to_string());
            }
        }
    }
    assert!(places.len() > 200, "{} types were found", places.len());
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "types with one name: {places:#?}");
}

#[test]
fn enumerations_can_grow_unless_they_are_closed_on_purpose() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut closed, mut open) = (Vec::new(), 0);
    for path in rust_files(&source) {
        let text = fs::read_to_string(&path).expect("a readable file");
        let mut can_grow = false;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("pub enum ") {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                match can_grow {
                    true => open += 1,
                    false => closed.push(name.to_owned()),
                }
            }
            can_grow = line.starts_with("#[non_exhaustive]")
                || can_grow && (line.starts_with("#[") || line.starts_with("//"));
        }
    }
    closed.sort();
    assert!(open > 50, "{open} enumerations that can grow were found");
    assert_eq!(closed, CLOSED, "add #[non_exhaustive], or the name here");
}
