//! How a table of words and numbers becomes a table of numbers, fitted once and applied to later files.

use serde::{Deserialize, Serialize};

/// The meaning of every column of the table a model was trained on; kept with the model so that a
/// later file is turned into the same features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableEncoding {
    pub(super) named: bool,
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
    Number { fill: Option<f64> },
    Words { words: Vec<String>, fill: Option<String> },
}
