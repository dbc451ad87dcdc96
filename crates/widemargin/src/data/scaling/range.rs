//! Scaling to a range with the semantics of LIBSVM's `svm-scale`.
//!
//! A feature with smallest value `min` and largest `max` in the training data, zeros of sparse rows
//! included, maps by `x ↦ lower + (upper − lower)(x − min)/(max − min)`, exactly to `lower` and `upper`
//! at the two ends; a feature with `min = max` becomes zero. Values outside the training range go
//! outside `lower..=upper`, as they do there.

use serde::{Deserialize, Serialize};

use super::apply::{ColumnMap, apply};
use super::columns::Occurring;
use crate::data::{Labels, Matrix};
use crate::error::{Error, Result};

/// Smallest and largest value of a feature or target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

/// Scaling of every feature to the same range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct RangeScaling {
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) columns: usize,
    /// Ranges of the features that are not constant, by feature, ascending.
    pub(super) ranges: Vec<(u32, Range)>,
    pub(super) target: Option<TargetScaling>,
}

/// A [`RangeScaling`] as found in a file, before it is checked.
#[derive(Deserialize)]
struct Stored {
    lower: f64,
    upper: f64,
    columns: usize,
    ranges: Vec<(u32, Range)>,
    target: Option<TargetScaling>,
}

impl TryFrom<Stored> for RangeScaling {
    type Error = String;

    fn try_from(stored: Stored) -> std::result::Result<Self, String> {
        let Stored { lower, upper, columns, ranges, target } = stored;
        let ascending = ranges.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !ascending || ranges.last().is_some_and(|(j, _)| *j as usize >= columns) {
            return Err(format!("expected ranges of ascending features below {columns}"));
        }
        Ok(Self { lower, upper, columns, ranges, target })
    }
}

/// Scaling of the targets of a regression (`svm-scale -y`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetScaling {
    /// Image of the smallest target.
    pub lower: f64,
    /// Image of the largest target.
    pub upper: f64,
    /// The targets' range in the training data.
    pub range: Range,
}

fn scale(value: f64, range: Range, lower: f64, upper: f64) -> f64 {
    if value == range.min {
        lower
    } else if value == range.max {
        upper
    } else {
        lower + (upper - lower) * (value - range.min) / (range.max - range.min)
    }
}

fn check_limits(name: &'static str, lower: f64, upper: f64) -> Result<()> {
    if lower.is_finite() && upper.is_finite() && lower < upper {
        return Ok(());
    }
    Err(Error::parameter(name, "finite limits with lower < upper", format!("{lower} and {upper}")))
}

impl RangeScaling {
    /// Learns the range of every feature.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `lower < upper`, [`Error::Empty`] or [`Error::NonFinite`] for data
    /// that has no range.
    pub fn fit(features: &Matrix, lower: f64, upper: f64) -> Result<Self> {
        check_limits("lower/upper", lower, upper)?;
        features.validate()?;
        let columns = features.columns();
        let ranges = ranges(features);
        Ok(Self { lower, upper, columns, ranges, target: None })
    }

    /// Learns to scale the targets as well.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless `lower < upper`, [`Error::Labels`] for labels that are not numbers.
    pub fn with_target(mut self, labels: &Labels, lower: f64, upper: f64) -> Result<Self> {
        check_limits("target lower/upper", lower, upper)?;
        let values = labels.values()?;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if min == max {
            let found = format!("only {min}");
            return Err(Error::Labels { expected: "targets that differ".into(), found });
        }
        self.target = Some(TargetScaling { lower, upper, range: Range { min, max } });
        Ok(self)
    }

    /// Image of the smallest value of each feature.
    pub fn lower(&self) -> f64 {
        self.lower
    }

    /// Image of the largest value of each feature.
    pub fn upper(&self) -> f64 {
        self.upper
    }

    /// Number of features.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Feature, counted from 0, and range of those that are not constant; the others become zero.
    pub fn ranges(&self) -> &[(u32, Range)] {
        &self.ranges
    }

    /// Scaling of the targets, if any.
    pub fn target(&self) -> Option<&TargetScaling> {
        self.target.as_ref()
    }

    /// The scaled table; see [`Scaler::transform`](super::Scaler::transform).
    ///
    /// # Errors
    /// As there.
    pub fn transform(&self, features: Matrix) -> Result<Matrix> {
        if features.columns() != self.columns {
            return Err(Error::length("features to scale", self.columns, features.columns()));
        }
        apply(&RangeMap::new(self), &features)
    }
}

/// Ranges by feature: in a table, or found in the list where that is far shorter.
struct RangeMap<'a> {
    scaling: &'a RangeScaling,
    table: Option<Vec<Option<Range>>>,
}

impl<'a> RangeMap<'a> {
    fn new(scaling: &'a RangeScaling) -> Self {
        let table = (scaling.columns / 8 <= scaling.ranges.len()).then(|| {
            let mut table = vec![None; scaling.columns];
            for &(j, range) in &scaling.ranges {
                table[j as usize] = Some(range);
            }
            table
        });
        Self { scaling, table }
    }

    fn range(&self, j: usize) -> Option<Range> {
        match &self.table {
            Some(table) => table[j],
            None => {
                let list = &self.scaling.ranges;
                list.binary_search_by_key(&(j as u32), |(k, _)| *k).ok().map(|at| list[at].1)
            }
        }
    }
}

impl ColumnMap for RangeMap<'_> {
    fn map(&self, j: usize, value: f64) -> f64 {
        match self.range(j) {
            Some(range) => scale(value, range, self.scaling.lower, self.scaling.upper),
            None => 0.0,
        }
    }

    fn moving_zero(&self) -> impl Iterator<Item = usize> {
        self.scaling.ranges.iter().map(|(j, _)| *j as usize)
    }
}

impl TargetScaling {
    /// The scaled target.
    pub fn scale(&self, target: f64) -> f64 {
        scale(target, self.range, self.lower, self.upper)
    }

    /// The target whose image is `scaled`.
    pub fn unscale(&self, scaled: f64) -> f64 {
        let Range { min, max } = self.range;
        min + (max - min) * (scaled - self.lower) / (self.upper - self.lower)
    }

    /// The scaled labels.
    ///
    /// # Errors
    /// [`Error::Labels`] for labels that are not numbers.
    pub fn transform(&self, labels: &Labels) -> Result<Labels> {
        Ok(Labels::Real(labels.values()?.into_iter().map(|v| self.scale(v)).collect()))
    }
}

/// Range of every feature that is not constant, zeros that are not stored included.
fn ranges(features: &Matrix) -> Vec<(u32, Range)> {
    let occurring = Occurring::of(features);
    let empty = Range { min: f64::INFINITY, max: f64::NEG_INFINITY };
    let mut ranges = vec![empty; occurring.len()];
    let mut stored = vec![0_usize; occurring.len()];
    for i in 0..features.rows() {
        features.for_each_nonzero(i, |j, value| {
            let place = occurring.place(j);
            let range = &mut ranges[place];
            range.min = range.min.min(value);
            range.max = range.max.max(value);
            stored[place] += 1;
        });
    }
    for (range, stored) in ranges.iter_mut().zip(stored) {
        if stored < features.rows() {
            range.min = range.min.min(0.0);
            range.max = range.max.max(0.0);
        }
    }
    let features = (0..ranges.len()).map(|place| occurring.feature(place) as u32);
    features.zip(ranges).filter(|(_, range)| range.min < range.max).collect()
}
