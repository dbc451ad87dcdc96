//! What happens to the rows of a file between the reader and the kernel, so that a model repeats on
//! new rows what was done to those it was trained on.

use serde::{Deserialize, Serialize};

use crate::data::read::{IndexBase, Loaded, ReadOptions, TableEncoding};
use crate::data::scaling::Scaler;
use crate::kernel::FeatureMap;

/// How the training rows were prepared; empty for a model that takes rows as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preparation {
    /// Where the feature indices of LIBSVM text started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_base: Option<IndexBase>,
    /// How the words of a table became numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<TableEncoding>,
    /// The scaling of the features; prediction applies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaler: Option<Scaler>,
    /// Features that approximate a kernel; prediction computes them, after the scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<FeatureMap>,
}

impl Preparation {
    /// Properties of a file that later files have to share.
    pub fn of_file(loaded: &Loaded) -> Self {
        Self { index_base: loaded.index_base, encoding: loaded.encoding.clone(), ..Self::default() }
    }

    /// Whether there is nothing to repeat.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The options that read a later file as the training file was read.
    pub fn read_options(&self, mut options: ReadOptions) -> ReadOptions {
        if let Some(base) = self.index_base {
            options = options.index_base(base);
        }
        if let Some(encoding) = &self.encoding {
            options = options.encoding(encoding.clone());
        }
        options
    }
}
