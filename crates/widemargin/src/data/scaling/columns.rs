//! The features of a table that occur in it, so that two rows with a huge index need no list of all.

use crate::data::Matrix;

/// Features by their places in lists of those that occur.
pub(super) enum Occurring {
    /// All features, each at its own place.
    All(usize),
    /// These, ascending.
    Some(Vec<u32>),
}

impl Occurring {
    /// All features of a table, or those stored in it when they are far fewer.
    pub(super) fn of(features: &Matrix) -> Self {
        if !features.is_sparse() || features.columns() / 8 <= features.nonzeros() {
            return Self::All(features.columns());
        }
        Self::Some(features.occurring_columns())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(columns) => *columns,
            Self::Some(features) => features.len(),
        }
    }

    /// The place of a feature that occurs.
    pub(super) fn place(&self, feature: usize) -> usize {
        match self {
            Self::All(_) => feature,
            Self::Some(features) => features.partition_point(|f| (*f as usize) < feature),
        }
    }

    /// The feature at a place.
    pub(super) fn feature(&self, place: usize) -> usize {
        match self {
            Self::All(_) => place,
            Self::Some(features) => features[place] as usize,
        }
    }
}
