//! An encoding learned from a table: which columns are what, their words, and what stands in for
//! missing values.

use super::raw::{MISSING, RawColumn, RawTable, Reading};
use super::{ColumnEncoding, Role, TableEncoding};
use crate::data::read::options::{Missing, UnknownCategory};
use crate::error::Result;

/// Learns the encoding of `table`, whose column `label` holds the labels and which was read by `readings`.
pub(in crate::data::read) fn fit(
    table: &RawTable<'_>,
    label: Option<usize>,
    readings: &[Reading],
    missing: Missing,
    unknown: UnknownCategory,
) -> Result<TableEncoding> {
    let mut columns = Vec::with_capacity(table.columns.len());
    for (j, (name, column)) in table.names.iter().zip(&table.columns).enumerate() {
        let role = match column {
            _ if Some(j) == label => Role::Label,
            RawColumn::Skipped => Role::Ignored,
            RawColumn::Numbers(values) => {
                let first = values.iter().position(|v| v.is_nan());
                let fill = first.and_then(|_| number_fill(values, missing));
                require_filled(table, first, fill.is_some(), j, missing)?;
                Role::Number { fill }
            }
            RawColumn::Words { words, .. } if readings[j] == Reading::Text => {
                let longest = words.iter().map(|word| word.chars().count()).max();
                Role::Text { longest: longest.unwrap_or(0).max(1) }
            }
            RawColumn::Words { codes, words } => {
                let first = codes.iter().position(|code| *code == MISSING);
                let fill = first.and_then(|_| word_fill(codes, words, missing));
                require_filled(table, first, fill.is_some(), j, missing)?;
                let other = unknown == UnknownCategory::Other;
                let mut known = if other { repeated(codes, words) } else { words.clone() };
                let stand_in = fill.clone().filter(|word| !known.contains(word));
                known.extend(stand_in);
                known.sort_unstable();
                Role::Words { words: known, fill, other }
            }
        };
        columns.push(ColumnEncoding { name: name.clone(), role });
    }
    Ok(TableEncoding { named: table.named, unknown, columns })
}

/// The words of more than one row.
fn repeated(codes: &[u32], words: &[String]) -> Vec<String> {
    let counts = counts(codes, words.len());
    let often = words.iter().zip(counts).filter(|(_, count)| *count > 1);
    often.map(|(word, _)| word.clone()).collect()
}

/// Rows of each word.
fn counts(codes: &[u32], words: usize) -> Vec<usize> {
    let mut counts = vec![0_usize; words];
    for &code in codes.iter().filter(|code| **code != MISSING) {
        counts[code as usize] += 1;
    }
    counts
}

fn require_filled(
    table: &RawTable<'_>,
    first_missing: Option<usize>,
    filled: bool,
    column: usize,
    missing: Missing,
) -> Result<()> {
    match first_missing {
        Some(row) if !filled => {
            let name = &table.names[column];
            let (expected, found) = if missing == Missing::Error {
                (format!("a value in column '{name}' (or an option that fills gaps)"), "none")
            } else {
                (format!("some value in column '{name}' to fill gaps from"), "none at all")
            };
            Err((table.error_at)(row, column, expected, found.into()))
        }
        _ => Ok(()),
    }
}

fn number_fill(values: &[f64], missing: Missing) -> Option<f64> {
    let mut present: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    match missing {
        Missing::Error => None,
        Missing::Constant(value) => Some(value),
        _ if present.is_empty() => None,
        Missing::Mean => Some(present.iter().sum::<f64>() / present.len() as f64),
        Missing::Median => {
            present.sort_unstable_by(f64::total_cmp);
            let (low, high) = (present[(present.len() - 1) / 2], present[present.len() / 2]);
            Some(low + (high - low) / 2.0)
        }
        Missing::MostFrequent => {
            present.sort_unstable_by(f64::total_cmp);
            let runs = present.chunk_by(|a, b| a == b);
            runs.rev().max_by_key(|run| run.len()).map(|run| run[0])
        }
    }
}

fn word_fill(codes: &[u32], words: &[String], missing: Missing) -> Option<String> {
    match missing {
        Missing::Error => None,
        Missing::Constant(value) => Some(value.to_string()),
        Missing::Mean | Missing::Median | Missing::MostFrequent => {
            let counts = counts(codes, words.len());
            let by_count_then_word =
                |a: &usize, b: &usize| counts[*a].cmp(&counts[*b]).then(words[*b].cmp(&words[*a]));
            (0..words.len()).max_by(by_count_then_word).map(|most| words[most].clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: f64 = f64::NAN;

    #[test]
    fn gaps_of_numbers_are_filled_as_asked() {
        let values = [3.0, GAP, 1.0, 1.0, GAP, 7.0, 3.0];
        assert_eq!(number_fill(&values, Missing::Mean), Some(3.0));
        assert_eq!(number_fill(&values, Missing::Median), Some(3.0));
        assert_eq!(number_fill(&[1.0, 4.0, GAP], Missing::Median), Some(2.5));
        assert_eq!(number_fill(&values, Missing::MostFrequent), Some(1.0));
        assert_eq!(number_fill(&values, Missing::Constant(-1.0)), Some(-1.0));
        assert_eq!(number_fill(&[GAP], Missing::Mean), None);
    }

    #[test]
    fn gaps_of_words_are_filled_as_asked() {
        let words = ["b", "a", "c"].map(str::to_owned);
        let codes = [0, 1, MISSING, 1, 0, 2];
        assert_eq!(word_fill(&codes, &words, Missing::MostFrequent).as_deref(), Some("a"));
        assert_eq!(word_fill(&codes, &words, Missing::Constant(-1.0)).as_deref(), Some("-1"));
        assert_eq!(word_fill(&codes, &words, Missing::Error), None);
    }
}
