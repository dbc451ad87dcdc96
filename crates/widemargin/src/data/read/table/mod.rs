//! How a table of words and numbers becomes a table of numbers, fitted once and applied to later files.
//!
//! A column of numbers stays one feature; a column of words becomes one feature `name=word` per word,
//! 1 where the row has that word and 0 elsewhere, words in alphabetical order. With
//! A column of text becomes the features `name[1]`, `name[2]` and so on, after all others: its characters,
//! as [`Matrix::of_strings`](crate::data::Matrix::of_strings) has them; later files may have longer ones.
//! With [`UnknownCategory::Other`] the words of single rows share a feature, which later words get as well.
//! [`TableEncoding`] remembers this, and what stands in for missing values, for the files that follow.

mod encode;
mod fit;
mod load;
mod profile;
mod raw;

use serde::{Deserialize, Serialize};

use super::options::UnknownCategory;
use encode::encode;
use fit::fit;
pub(super) use load::{LoadedTable, TableSource, load};
pub use profile::{Appearance, ColumnProfile, ColumnRole};
use raw::RawTable;
pub(super) use raw::{MISSING, RawColumn, Reading, is_missing};

/// The meaning of every column of the table a model was trained on; kept with the model so that a
/// later file is turned into the same features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableEncoding {
    /// Whether columns are found by name; otherwise by place.
    pub(super) named: bool,
    /// What a later file does with words that are not listed, by default.
    #[serde(default, skip_serializing_if = "UnknownCategory::is_error")]
    pub(super) unknown: UnknownCategory,
    pub(super) columns: Vec<ColumnEncoding>,
}

/// One column of the file, in file order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ColumnEncoding {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) role: Role,
}

/// What a column is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum Role {
    Label,
    Ignored,
    Number {
        fill: Option<f64>,
    },
    Words {
        words: Vec<String>,
        fill: Option<String>,
        /// Whether the last feature is that of all other words.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        other: bool,
    },
    Text {
        /// Characters of the longest string.
        longest: usize,
    },
}

impl Role {
    /// Features that a column of this role becomes.
    fn features(&self) -> usize {
        match self {
            Self::Label | Self::Ignored => 0,
            Self::Number { .. } => 1,
            Self::Words { words, other, .. } => words.len() + usize::from(*other),
            Self::Text { longest } => *longest,
        }
    }
}

impl TableEncoding {
    /// Names of the features it makes: the column's name, `name=word` for each word of a column, or
    /// `name[place]` for each place of a text.
    pub fn feature_names(&self) -> Vec<String> {
        let mut names = self.names_before_text();
        for column in &self.columns {
            if let Role::Text { longest } = column.role {
                names.extend((1..=longest).map(|place| format!("{}[{place}]", column.name)));
            }
        }
        names
    }

    /// Whether it ends with the characters of a text, of which later files may have more.
    pub fn has_text(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.role, Role::Text { .. }))
    }

    fn names_before_text(&self) -> Vec<String> {
        let mut names = Vec::new();
        for column in &self.columns {
            match &column.role {
                Role::Label | Role::Ignored | Role::Text { .. } => {}
                Role::Number { .. } => names.push(column.name.clone()),
                Role::Words { words, other, .. } => {
                    names.extend(words.iter().map(|word| format!("{}={word}", column.name)));
                    names.extend(other.then(|| format!("{} (other)", column.name)));
                }
            }
        }
        names
    }

    /// Number of features it makes.
    pub fn feature_count(&self) -> usize {
        self.columns.iter().map(|column| column.role.features()).sum()
    }
}
