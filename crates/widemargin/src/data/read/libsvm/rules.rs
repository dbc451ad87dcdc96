//! Which indices are valid in a file, and the error for those that are not.

use super::super::options::{IndexBase, LabelColumn, ReadOptions};
use super::super::place::{Fault, quoted};

/// Which indices and values are valid in a file.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) labelled: bool,
    pub(super) smallest: u64,
    pub(super) largest: u64,
    pub(super) columns: usize,
    pub(super) declared: bool,
    pub(super) allow_non_finite: bool,
}

impl Rules {
    pub(super) fn new(options: &ReadOptions) -> Self {
        let most = options.most_columns().min(u32::MAX as usize);
        let columns = options.columns.map_or(most, |c| c.min(most));
        Self {
            labelled: options.label_column != LabelColumn::Absent,
            smallest: u64::from(options.index_base == IndexBase::One),
            largest: match options.index_base {
                IndexBase::Zero => (columns as u64).saturating_sub(1),
                IndexBase::One | IndexBase::Auto => columns as u64,
            },
            columns,
            declared: options.columns.is_some(),
            allow_non_finite: options.allow_non_finite,
        }
    }

    #[cold]
    pub(super) fn bad_index(&self, at: usize, index: u64, text: &[u8], previous_end: u64) -> Fault {
        let expected = if index < self.smallest {
            "an index of at least 1 (features are declared to count from 1)".to_owned()
        } else if index > self.largest && self.declared {
            format!("an index of at most {} (the declared number of columns)", self.largest)
        } else if index > self.largest {
            format!("an index of at most {} (the limit on columns)", self.largest)
        } else if index + 1 == previous_end {
            format!("an index above {index}, which this row already has")
        } else {
            format!("an index above {}: indices of a row must ascend", previous_end - 1)
        };
        Fault::new(at, expected, quoted(text))
    }
}
