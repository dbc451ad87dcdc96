//! The report about the data that a command read: how columns were taken, and what is probably not meant.

use serde_json::{Value, json};
use widemargin::data::read::{ColumnProfile, ColumnRole};
use widemargin::operation::advice::Advice;

use crate::table::{count, grid};
use crate::terminal;

/// Columns of words that a line of text names.
const NAMED: usize = 8;

/// The report about a data file.
pub(crate) struct DataReport {
    /// The columns of a table; none for other files.
    pub(crate) columns: Vec<ColumnProfile>,
    pub(crate) advice: Vec<Advice>,
}

impl DataReport {
    /// Warns of everything on standard error.
    pub(crate) fn warn(&self) {
        for advice in &self.advice {
            terminal::warn(&message(advice));
        }
    }

    /// The columns that were read as words, with the number of words.
    pub(crate) fn words(&self) -> Option<String> {
        let columns = self.columns.iter().filter(|column| column.role == ColumnRole::Words);
        let all: Vec<String> = columns
            .filter_map(|column| Some(format!("{} ({})", column.name, column.words?)))
            .collect();
        let more = all.len().saturating_sub(NAMED);
        let shown = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        match (all.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(shown),
            (false, more) => Some(format!("{shown}, ... and {more} more columns")),
        }
    }

    /// Adds `columns`, for a table, and `warnings` to a JSON object.
    pub(crate) fn add_to(&self, document: &mut Value) {
        if let Value::Object(fields) = document {
            if !self.columns.is_empty() {
                fields.insert("columns".to_owned(), json!(self.columns));
            }
            let warnings: Vec<String> = self.advice.iter().map(message).collect();
            fields.insert("warnings".to_owned(), json!(warnings));
        }
    }

    /// The columns that are no plain numbers without gaps, a line each.
    pub(crate) fn table(&self) -> String {
        let is_special = |column: &&ColumnProfile| {
            column.missing > 0 || column.role != ColumnRole::Number || column.appearance.is_some()
        };
        let special: Vec<&ColumnProfile> = self.columns.iter().filter(is_special).collect();
        let mut rows = vec![["column", "read as", "words", "missing"].map(str::to_owned).to_vec()];
        rows.extend(special.iter().map(|column| {
            let role = match column.role {
                ColumnRole::Label => "label",
                ColumnRole::Words => "words",
                ColumnRole::Text => "text",
                ColumnRole::Ignored => "ignored",
                _ => "number",
            };
            let words = column.words.map_or(String::new(), |words| count(words as u64));
            vec![column.name.clone(), role.to_owned(), words, count(column.missing as u64)]
        }));
        let plain = self.columns.len() - special.len();
        let mut text = grid(&rows);
        if plain > 0 {
            text.push_str(&format!("{} columns of numbers without gaps\n", count(plain as u64)));
        }
        text
    }
}

/// A warning with the option that helps.
fn message(advice: &Advice) -> String {
    let option = match advice {
        Advice::Identifier { column } | Advice::Date { column } => {
            format!(" (--ignore-column '{column}' leaves it out)")
        }
        Advice::NumericClasses { .. } => " (--machine epsilon-svr)".to_owned(),
        Advice::UnscaledFeatures { .. } => " (--scale standard or --scale minmax)".to_owned(),
        Advice::ManyWords { column, .. } => {
            format!(" (--ignore-column '{column}' leaves it out)")
        }
        _ => String::new(),
    };
    format!("{advice}{option}")
}
