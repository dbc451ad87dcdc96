//! A table read whole: either an encoding is learned from it, or one learned before is applied.

use super::super::options::{Column, LabelColumn, ReadOptions};
use super::profile::{ColumnProfile, profile};
use super::{ColumnEncoding, RawColumn, RawTable, Reading, Role, TableEncoding, encode, fit};
use crate::data::Dataset;
use crate::error::{Error, Result};

/// Names that mark the label column, in any case.
const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];

/// What a table becomes.
pub(in crate::data::read) struct LoadedTable {
    pub(in crate::data::read) dataset: Dataset,
    pub(in crate::data::read) encoding: TableEncoding,
    pub(in crate::data::read) columns: Vec<ColumnProfile>,
}

/// A file of named columns.
pub(in crate::data::read) trait TableSource {
    /// An error about the file as a whole.
    fn refuse(&self, message: String) -> Error;

    /// An error about the field of that row and column (both from 0).
    fn error_at(&self, row: usize, column: usize, expected: String, found: String) -> Error;

    /// The number of rows and, for each column, what `readings` asks for.
    fn columns(
        &self,
        readings: &[Reading],
        names: &[String],
        label: Option<usize>,
    ) -> Result<(usize, Vec<RawColumn>)>;
}

/// Reads `source`, whose columns are called `names`, from the file itself if `header`.
pub(in crate::data::read) fn load(
    source: &impl TableSource,
    names: Vec<String>,
    header: bool,
    options: &ReadOptions,
) -> Result<LoadedTable> {
    let named = header && all_different(&names);
    match &options.encoding {
        Some(encoding) => apply(source, names, named, encoding, options),
        None => learn(source, names, named, header, options),
    }
}

/// Reads the table and learns its encoding.
fn learn(
    source: &impl TableSource,
    names: Vec<String>,
    named: bool,
    header: bool,
    options: &ReadOptions,
) -> Result<LoadedTable> {
    let find = |column: &Column, what: &str| {
        find(column, &names, header).map_err(|found| {
            let expected = listed(column, &names, header);
            source.refuse(format!("{what}: expected {expected}, found {found}"))
        })
    };
    let label = match &options.label_column {
        LabelColumn::Absent => None,
        LabelColumn::At(column) => Some(find(column, "label column")?),
        LabelColumn::Auto if options.labels_path.is_some() => None,
        LabelColumn::Auto => Some(usual_label(&names, header)),
    };
    let mut readings = vec![Reading::Guess; names.len()];
    for column in &options.categorical {
        readings[find(column, "categorical column")?] = Reading::Words;
    }
    for column in &options.ignored {
        readings[find(column, "column to ignore")?] = Reading::Skip;
    }
    if let Some(column) = &options.text {
        let place = find(column, "text column")?;
        if Some(place) == label {
            let message = format!("column '{}' is both text and the label", names[place]);
            return Err(source.refuse(message));
        }
        readings[place] = Reading::Text;
    }
    if let Some(label) = label
        && readings[label] == Reading::Skip
    {
        let message = format!("column '{}' is both ignored and the label", names[label]);
        return Err(source.refuse(message));
    }
    let (rows, columns) = source.columns(&readings, &names, label)?;
    let error_at = |row, column, expected, found| source.error_at(row, column, expected, found);
    let table = RawTable { rows, names, named, columns, error_at: &error_at };
    let unknown = options.unknown_category.unwrap_or_default();
    let encoding = fit(&table, label, &readings, options.missing, unknown)?;
    check_width(&encoding, source, options)?;
    let places: Vec<Option<usize>> = (0..table.columns.len()).map(Some).collect();
    let dataset = encode(&table, &encoding, &places, options)?;
    let columns = profile(&table, &encoding, &places);
    Ok(LoadedTable { dataset, encoding, columns })
}

/// Reads the table by an encoding learned from another.
fn apply(
    source: &impl TableSource,
    names: Vec<String>,
    named: bool,
    encoding: &TableEncoding,
    options: &ReadOptions,
) -> Result<LoadedTable> {
    let places = encoding.places(&names, named).map_err(|message| source.refuse(message))?;
    let mut readings = vec![Reading::Skip; names.len()];
    let mut label = None;
    for (column, place) in encoding.columns.iter().zip(&places) {
        let Some(place) = *place else { continue };
        readings[place] = match column.role {
            Role::Label if options.label_column == LabelColumn::Absent => Reading::Skip,
            Role::Label => {
                label = Some(place);
                Reading::Guess
            }
            Role::Ignored => Reading::Skip,
            Role::Number { .. } => Reading::Numbers,
            Role::Words { .. } => Reading::Words,
            Role::Text { .. } => Reading::Text,
        };
    }
    let (rows, columns) = source.columns(&readings, &names, label)?;
    let error_at = |row, column, expected, found| source.error_at(row, column, expected, found);
    let table = RawTable { rows, names, named, columns, error_at: &error_at };
    let dataset = encode(&table, encoding, &places, options)?;
    let columns = profile(&table, encoding, &places);
    Ok(LoadedTable { dataset, encoding: encoding.clone(), columns })
}

impl TableEncoding {
    /// Whether `words` are a header of a table like the one this was learned from.
    pub(in crate::data::read) fn is_header(&self, words: &[String]) -> bool {
        self.columns
            .iter()
            .filter(|c| !matches!(c.role, Role::Label | Role::Ignored))
            .all(|column| words.contains(&column.name))
    }

    /// The column of a table that each column of the encoding means.
    fn places(
        &self,
        names: &[String],
        named: bool,
    ) -> std::result::Result<Vec<Option<usize>>, String> {
        let optional = |role: &Role| matches!(role, Role::Label | Role::Ignored);
        if self.named && named {
            return (self.columns.iter())
                .map(|column| match names.iter().position(|name| *name == column.name) {
                    None if !optional(&column.role) => {
                        Err(format!("expected a column '{}', found none", column.name))
                    }
                    place => Ok(place),
                })
                .collect();
        }
        let all = self.columns.len();
        if names.len() == all {
            return Ok((0..all).map(Some).collect());
        }
        let labels = self.columns.iter().filter(|c| c.role == Role::Label).count();
        if labels > 0 && names.len() + labels == all {
            let mut next = 0..all;
            let place = |c: &ColumnEncoding| {
                if c.role == Role::Label { None } else { next.next() }
            };
            return Ok(self.columns.iter().map(place).collect());
        }
        Err(format!("expected {all} columns as in the training data, found {}", names.len()))
    }
}

fn all_different(names: &[String]) -> bool {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

fn usual_label(names: &[String], header: bool) -> usize {
    let usual = |name: &String| LABEL_NAMES.iter().any(|usual| name.eq_ignore_ascii_case(usual));
    let mut marked = (0..names.len()).filter(|j| header && usual(&names[*j]));
    match (marked.next(), marked.next()) {
        (Some(only), None) => only,
        _ => names.len() - 1,
    }
}

/// The index of a column, or the column that was requested.
fn find(column: &Column, names: &[String], header: bool) -> std::result::Result<usize, String> {
    let count = names.len() as i64;
    match column {
        Column::Index(index) if (0..count).contains(index) => Ok(*index as usize),
        Column::Index(index) if (-count..0).contains(index) => Ok((count + index) as usize),
        Column::Index(index) => Err(format!("column {index}")),
        Column::Name(name) if !header => Err(format!("the name '{name}' but no header")),
        Column::Name(name) => {
            names.iter().position(|n| n == name).ok_or_else(|| format!("'{name}'"))
        }
    }
}

fn listed(column: &Column, names: &[String], header: bool) -> String {
    const SHOWN: usize = 8;
    if !header || matches!(column, Column::Index(_)) {
        return format!("a column from 0 to {} or -{} to -1", names.len() - 1, names.len());
    }
    let mut quoted: Vec<String> = names.iter().take(SHOWN).map(|n| format!("'{n}'")).collect();
    if names.len() > SHOWN {
        quoted.push(format!("... ({} in all)", names.len()));
    }
    format!("one of {}", quoted.join(", "))
}

fn check_width(
    encoding: &TableEncoding,
    source: &impl TableSource,
    options: &ReadOptions,
) -> Result<()> {
    let (count, limit) = (encoding.feature_count(), options.most_columns());
    if count > limit {
        let expected = format!("at most {limit} features (the limit on columns)");
        return Err(source.refuse(format!("expected {expected}, found {count}")));
    }
    if count == 0 {
        let message = "expected at least one feature, found none beside the label";
        return Err(source.refuse(message.into()));
    }
    Ok(())
}
