//! A table turned into features and labels by an encoding.

use std::collections::HashMap;

use super::raw::{MISSING, RawColumn, RawTable};
use super::{Role, TableEncoding};
use crate::data::read::assemble::{Real, RowsPart, assemble};
use crate::data::read::companion::label;
use crate::data::read::number::whole_value;
use crate::data::read::options::{ReadOptions, StoredPrecision, UnknownCategory};
use crate::data::{Dataset, Label, Labels, Matrix, symbol};
use crate::error::{Error, Result};

/// Where a feature column of the encoding finds its values.
enum Source<'a> {
    Numbers {
        values: &'a [f64],
        fill: Option<f64>,
        feature: u32,
    },
    /// `features[code]` is the feature of a word of the file.
    Words {
        codes: &'a [u32],
        features: Vec<Option<u32>>,
        fill: Option<u32>,
        /// The feature of all other words.
        other: Option<u32>,
    },
    /// Features from `first` on are the characters of the text.
    Text {
        codes: &'a [u32],
        words: &'a [String],
        first: u32,
    },
}

/// Encodes `table`; `places[k]` is the column of the table that column `k` of the encoding means.
pub(in crate::data::read) fn encode(
    table: &RawTable<'_>,
    encoding: &TableEncoding,
    places: &[Option<usize>],
    options: &ReadOptions,
) -> Result<Dataset> {
    let mut sources = Vec::new();
    let mut labels = Labels::None;
    let mut next = 0_u32;
    let mut text = None;
    for (column, place) in encoding.columns.iter().zip(places) {
        match (&column.role, place) {
            (Role::Label, Some(place)) => {
                labels = labels_of(table, *place, options.missing_labels)?;
            }
            (Role::Label | Role::Ignored, _) | (_, None) => {}
            (Role::Number { fill }, Some(place)) => {
                if let RawColumn::Numbers(values) = &table.columns[*place] {
                    sources.push((*place, Source::Numbers { values, fill: *fill, feature: next }));
                }
                next += 1;
            }
            (Role::Words { words, fill, other }, Some(place)) => {
                if let RawColumn::Words { codes, words: seen } = &table.columns[*place] {
                    let known: HashMap<&str, u32> =
                        words.iter().map(String::as_str).zip(next..).collect();
                    let features = seen.iter().map(|w| known.get(w.as_str()).copied()).collect();
                    let fill = fill.as_ref().and_then(|word| known.get(word.as_str()).copied());
                    let other = other.then_some(next + words.len() as u32);
                    sources.push((*place, Source::Words { codes, features, fill, other }));
                }
                next += column.role.features() as u32;
            }
            (Role::Text { longest }, Some(place)) => {
                if let RawColumn::Words { codes, words } = &table.columns[*place] {
                    let found = words.iter().map(|word| word.chars().count()).max();
                    text = Some((*place, codes, words, found.unwrap_or(0).max(*longest)));
                }
            }
        }
    }
    let mut names = encoding.names_before_text();
    // The characters of a text are the last features: there may be more than the encoding has seen.
    if let Some((place, codes, words, longest)) = text {
        sources.push((place, Source::Text { codes, words, first: next }));
        next += longest as u32;
        names.extend((1..=longest).map(|at| format!("{}[{at}]", table.names[place])));
    }
    let unknown = options.unknown_category.unwrap_or(encoding.unknown);
    let features = match options.precision {
        StoredPrecision::F32 => features::<f32>(table, &sources, next as usize, unknown, options)?,
        StoredPrecision::Auto | StoredPrecision::F64 => {
            features::<f64>(table, &sources, next as usize, unknown, options)?
        }
    };
    Dataset::new(features, labels)?.with_feature_names(names)
}

fn features<T: Real>(
    table: &RawTable<'_>,
    sources: &[(usize, Source<'_>)],
    columns: usize,
    unknown: UnknownCategory,
    options: &ReadOptions,
) -> Result<Matrix> {
    let mut part = RowsPart {
        ends: Vec::with_capacity(table.rows),
        indices: Vec::with_capacity(table.rows * sources.len()),
        values: Vec::with_capacity(table.rows * sources.len()),
    };
    for i in 0..table.rows {
        for (place, source) in sources {
            let (feature, value) = match source {
                Source::Text { codes, words, first } => {
                    for (feature, character) in (*first..).zip(words[codes[i] as usize].chars()) {
                        part.indices.push(feature);
                        part.values.push(T::from_f64(symbol(character).into()));
                    }
                    continue;
                }
                Source::Numbers { values, fill, feature } => {
                    let value = if values[i].is_nan() { *fill } else { Some(values[i]) };
                    (*feature, value.ok_or_else(|| no_value(table, i, *place))?)
                }
                Source::Words { codes, features, fill, other } => {
                    let known = match codes[i] {
                        MISSING => *fill,
                        code => features[code as usize],
                    };
                    let feature = match (known, unknown, other) {
                        (Some(feature), _, _) => feature,
                        (None, UnknownCategory::Ignore, _) => continue,
                        (None, UnknownCategory::Other, Some(other)) => *other,
                        (None, _, _) if codes[i] == MISSING => {
                            return Err(no_value(table, i, *place));
                        }
                        (None, _, _) => return Err(unknown_word(table, i, *place, unknown)),
                    };
                    (feature, 1.0)
                }
            };
            if value != 0.0 {
                part.indices.push(feature);
                part.values.push(T::from_f64(value));
            }
        }
        part.ends.push(part.indices.len());
    }
    assemble(vec![part], columns, 0, options.layout)
}

#[cold]
fn no_value(table: &RawTable<'_>, row: usize, column: usize) -> Error {
    let expected = format!(
        "a value in column '{}' (the training data had no gaps there to learn from)",
        table.names[column]
    );
    (table.error_at)(row, column, expected, "none".into())
}

#[cold]
fn unknown_word(
    table: &RawTable<'_>,
    row: usize,
    column: usize,
    unknown: UnknownCategory,
) -> Error {
    let found = match &table.columns[column] {
        RawColumn::Words { codes, words } => format!("'{}'", words[codes[row] as usize]),
        _ => "another".into(),
    };
    let name = &table.names[column];
    let reason = match unknown {
        UnknownCategory::Other => " (it was not read with a feature for other words)",
        _ => "",
    };
    let expected = format!("a word the training data had in column '{name}'{reason}");
    (table.error_at)(row, column, expected, found)
}

/// What is written in the place of a missing label.
const NO_LABEL: &str = "?";

/// The labels of a column: whole numbers if all are, else real numbers, else words. Where some may be missing,
/// these become `?` and all are words.
fn labels_of(table: &RawTable<'_>, column: usize, may_miss: bool) -> Result<Labels> {
    let gap = |row: usize| {
        let expected = format!("a label in column '{}'", table.names[column]);
        Err((table.error_at)(row, column, expected, "none".into()))
    };
    match &table.columns[column] {
        RawColumn::Skipped => Ok(Labels::None),
        RawColumn::Numbers(values) => {
            match values.iter().position(|v| v.is_nan()) {
                None => {}
                Some(_) if may_miss => {
                    let word = |v: &f64| if v.is_nan() { NO_LABEL.into() } else { v.to_string() };
                    return Ok(Labels::Text(values.iter().map(word).collect()));
                }
                Some(row) => return gap(row),
            }
            let whole: Option<Vec<i64>> = values.iter().map(|v| whole_value(*v)).collect();
            Ok(whole.map_or_else(|| Labels::Real(values.clone()), Labels::Int))
        }
        RawColumn::Words { codes, words } => {
            let missing = codes.iter().position(|code| *code == MISSING);
            if let (Some(row), false) = (missing, may_miss) {
                return gap(row);
            }
            let kinds: Vec<Label> = words.iter().filter_map(|w| label(w.as_bytes()).ok()).collect();
            let are_numbers = kinds.len() == words.len()
                && !kinds.iter().any(|kind| matches!(kind, Label::Text(_)));
            if are_numbers && missing.is_none() {
                let of = |code: &u32| kinds[*code as usize].clone();
                return Ok(Labels::from_labels(&codes.iter().map(of).collect::<Vec<Label>>()));
            }
            let word = |code: &u32| words.get(*code as usize).map_or(NO_LABEL, String::as_str);
            Ok(Labels::Text(codes.iter().map(|code| word(code).to_owned()).collect()))
        }
    }
}
