//! What is probably not meant: columns that are no features, numbers that are no classes, features of
//! very different ranges. Each is trained on as it is, with a warning.

use std::fmt;

use serde::Serialize;

use crate::data::read::{Appearance, ColumnProfile, ColumnRole};
use crate::data::{ClassOrder, Dataset, Labels};
use crate::machine::{Classic, KernelDefaults, KernelExpression, MachineKind, Specification};

/// Ratio of the ranges of two features from which on the narrow one hardly counts in a distance.
const RANGE_RATIO: f64 = 100.0;

/// Different values up to which numbers are classes without a doubt.
const CERTAINLY_CLASSES: usize = 10;

/// Rows a class has at least on average, when numbers are classes.
const ROWS_PER_CLASS: usize = 5;

/// Words of a column from which on one feature each is rarely meant.
const MANY_WORDS: usize = 100;

/// Something that is probably not meant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Advice {
    /// A column of words that are almost all different, or of numbers that count the rows.
    Identifier {
        /// The column.
        column: String,
    },
    /// A column of dates.
    Date {
        /// The column.
        column: String,
    },
    /// Numbers with a decimal comma were read as words.
    DecimalComma {
        /// The column.
        column: String,
        /// One of them.
        example: String,
    },
    /// Numbers with separated thousands were read as words.
    ThousandsSeparator {
        /// The column.
        column: String,
        /// One of them.
        example: String,
    },
    /// A column of very many words.
    ManyWords {
        /// The column.
        column: String,
        /// Different words.
        words: usize,
    },
    /// A classifier is trained on labels that look like the targets of a regression.
    NumericClasses {
        /// Different labels.
        labels: usize,
        /// Rows.
        rows: usize,
    },
    /// Features of very different ranges without scaling.
    UnscaledFeatures {
        /// The feature with the widest range, and that range.
        widest: (String, f64),
        /// The feature with the narrowest range above 0, and that range.
        narrowest: (String, f64),
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier { column } => {
                write!(
                    f,
                    "column '{column}' looks like an identifier: it says nothing about new rows"
                )
            }
            Self::Date { column } => write!(f, "column '{column}' looks like a date"),
            Self::DecimalComma { column, example } => write!(
                f,
                "column '{column}' was read as words; '{example}' looks like a number with a decimal comma"
            ),
            Self::ThousandsSeparator { column, example } => write!(
                f,
                "column '{column}' was read as words; '{example}' looks like a number with separated \
                 thousands"
            ),
            Self::ManyWords { column, words } => {
                write!(f, "column '{column}' was read as {words} words, a feature each")
            }
            Self::NumericClasses { labels, rows } => write!(
                f,
                "the labels are {labels} different numbers in {rows} rows, a class each: did you mean \
                 regression?"
            ),
            Self::UnscaledFeatures { widest, narrowest } => write!(
                f,
                "the features are not scaled: '{}' has a range of {}, '{}' one of {}",
                widest.0,
                rounded(widest.1),
                narrowest.0,
                rounded(narrowest.1)
            ),
        }
    }
}

/// A number with three digits that count.
fn rounded(value: f64) -> String {
    let shown: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    format!("{shown}")
}

/// What is probably not meant about the columns of a table.
pub fn column_advice(columns: &[ColumnProfile]) -> Vec<Advice> {
    let is_feature =
        |column: &&ColumnProfile| matches!(column.role, ColumnRole::Number | ColumnRole::Words);
    let features = columns.iter().filter(is_feature).count();
    let advice = |column: &ColumnProfile| {
        let name = column.name.clone();
        let example = column.example.clone().unwrap_or_default();
        match (column.appearance, column.words) {
            // The only feature is what there is to learn from.
            (Some(Appearance::Identifier), _) if features == 1 => None,
            (Some(Appearance::Identifier), _) => Some(Advice::Identifier { column: name }),
            (Some(Appearance::Date), _) => Some(Advice::Date { column: name }),
            (Some(Appearance::DecimalComma), _) => {
                Some(Advice::DecimalComma { column: name, example })
            }
            (Some(Appearance::ThousandsSeparator), _) => {
                Some(Advice::ThousandsSeparator { column: name, example })
            }
            (None, Some(words)) if column.role == ColumnRole::Words && words > MANY_WORDS => {
                Some(Advice::ManyWords { column: name, words })
            }
            _ => None,
        }
    };
    columns.iter().filter_map(advice).collect()
}

/// What is probably not meant about training a machine on data.
pub fn training_advice(specification: &Specification, data: &Dataset) -> Vec<Advice> {
    let mut advice = Vec::new();
    if specification.kind().is_classifier() {
        advice.extend(numeric_classes(data.labels()));
    }
    // Kernel values and characters have no scale.
    let is_fixed = |kernel: &str| {
        let kernel_of = KernelExpression::parse(kernel, KernelDefaults::default());
        kernel == "precomputed" || kernel_of.is_ok_and(|kernel| kernel.compares_strings())
    };
    let scaled = specification.value("kernel").is_some_and(|k| is_fixed(&k.to_string()))
        || !matches!(specification.scaling(), Ok(None));
    if !scaled && depends_on_scale(specification.kind()) {
        advice.extend(unscaled_features(data));
    }
    advice
}

/// Whether stretching one feature changes what a machine learns.
fn depends_on_scale(kind: MachineKind) -> bool {
    let invariant = [Classic::Fisher, Classic::Mixture, Classic::MixtureBayes];
    !matches!(kind, MachineKind::Classic(machine) if invariant.contains(&machine))
}

fn numeric_classes(labels: &Labels) -> Option<Advice> {
    if matches!(labels, Labels::None | Labels::Text(_)) {
        return None;
    }
    let (rows, found) = (labels.len(), labels.classes(ClassOrder::Sorted).ok()?.count());
    let many = found > CERTAINLY_CLASSES && found * ROWS_PER_CLASS > rows;
    many.then_some(Advice::NumericClasses { labels: found, rows })
}

fn unscaled_features(data: &Dataset) -> Option<Advice> {
    let table = data.features();
    // A column without a value has no range; of very many columns most are such.
    let (columns, summary) = if table.is_sparse() && table.columns() > table.nonzeros() {
        let narrow = Dataset::new(table.without_empty_columns().into_owned(), Labels::None).ok()?;
        (table.occurring_columns(), narrow.summary())
    } else {
        ((0..table.columns() as u32).collect(), data.summary())
    };
    let features = summary.ok()?.features;
    let ranges = columns.into_iter().zip(&features).map(|(j, feature)| {
        let names = data.feature_names();
        let name = names.map_or_else(|| (j + 1).to_string(), |names| names[j as usize].clone());
        (name, feature.maximum - feature.minimum)
    });
    let ranges: Vec<(String, f64)> = ranges.filter(|(_, range)| *range > 0.0).collect();
    let widest = ranges.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.clone();
    let narrowest = ranges.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.clone();
    (widest.1 / narrowest.1 >= RANGE_RATIO)
        .then_some(Advice::UnscaledFeatures { widest, narrowest })
}
