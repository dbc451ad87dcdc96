//! CRFsuite's text: `tag<TAB>attribute[:value]<TAB>...`, an empty line after every sequence; `\:` and `\\` in a name
//! stand for a colon and a backslash.

use std::path::Path;

use super::super::place::{Fault, quoted};
use super::{LoadedSequences, SequenceFormat, SequenceOptions, finish, tagged};
use crate::data::{Dictionary, SequenceBuilder};
use crate::error::Result;

pub(super) fn read(
    bytes: &[u8],
    path: &Path,
    options: &SequenceOptions,
    dictionary: &mut Dictionary,
) -> Result<LoadedSequences> {
    let (mut builder, mut tags, mut unknown) = (SequenceBuilder::default(), Vec::new(), 0);
    let mut at = 0;
    for line in bytes.split(|&b| b == b'\n') {
        let begin = at;
        at += line.len() + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            builder.end_sequence();
            continue;
        }
        let text = std::str::from_utf8(line).map_err(|error| {
            Fault::new(begin + error.valid_up_to(), "UTF-8 text", "other bytes")
                .in_text(path, bytes)
        })?;
        let mut fields = text.split('\t');
        let mut place = begin;
        if options.tagged {
            let tag = fields.next().unwrap_or_default();
            if tag.is_empty() {
                return Err(Fault::new(begin, "a tag", "none").in_text(path, bytes));
            }
            place += tag.len() + 1;
            tags.push(tag.to_owned());
        }
        for field in fields {
            if !field.is_empty() {
                let (name, value) = attribute(field).ok_or_else(|| {
                    let found = quoted(field.as_bytes());
                    Fault::new(place, "an attribute, or attribute:number", found)
                        .in_text(path, bytes)
                })?;
                match dictionary.place(&name) {
                    Some(feature) => builder.add(feature, value),
                    None => unknown += 1,
                }
            }
            place += field.len() + 1;
        }
        builder.end_position();
    }
    let tags = options.tagged.then_some(&tags[..]);
    let data = tagged(finish(builder, dictionary)?, tags, &options.unknown)?;
    let format = SequenceFormat::Crfsuite;
    Ok(LoadedSequences { data, format, templates: None, unknown_features: unknown })
}

/// Name and value of an attribute; nothing where the value is no finite number.
fn attribute(field: &str) -> Option<(String, f64)> {
    let mut name = String::with_capacity(field.len());
    let mut characters = field.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => name.push(characters.next().map_or('\\', |(_, c)| c)),
            ':' => {
                let value: f64 = field[at + 1..].parse().ok()?;
                return value.is_finite().then_some((name, value));
            }
            c => name.push(c),
        }
    }
    Some((name, 1.0))
}
