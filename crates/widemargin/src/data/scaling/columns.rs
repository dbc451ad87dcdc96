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
        let indices = match features {
            Matrix::SparseF32(table) => table.indices(),
            Matrix::SparseF64(table) => table.indices(),
            Matrix::DenseF32(_) | Matrix::DenseF64(_) => return Self::All(features.columns()),
        };
        if features.columns() / 8 <= indices.len() {
            return Self::All(features.columns());
        }
        let mut occurring = indices.to_vec();
        occurring.sort_unstable();
        occurring.dedup();
        Self::Some(occurring)
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
