//! The table of a machine as rows that linear solvers read: in place, or packed when that pays.

use crate::data::{Csr, Matrix};
use crate::kernel::{DenseRows, InstructionSet, LinearRows, One, Real, SparseRows, Stored};
use crate::machine::parameters::Precision;

/// Features whose weights fit the first-level cache; beyond that their order matters where the
/// rows are read again and again.
const CACHED_FEATURES: usize = 4096;

/// Features whose weights fit the second-level cache; beyond that their order always matters.
const NEAR_FEATURES: usize = 1 << 16;

/// A computation over rows of any storage.
pub(super) trait RowTask {
    /// What it gives.
    type Output;

    /// The computation; weights of the rows stand in `order`.
    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> Self::Output;
}

/// Where the weights of features stand; a bias is always the last.
pub(super) struct FeatureOrder(Option<Vec<u32>>);

impl FeatureOrder {
    /// The most frequent features first, so that their weights share cache lines.
    fn by_frequency<T: Copy>(table: &Csr<T>) -> Self {
        let mut counts = vec![0_u32; table.columns()];
        for &j in table.indices() {
            counts[j as usize] = counts[j as usize].saturating_add(1);
        }
        let mut features: Vec<u32> = (0..counts.len() as u32).collect();
        features.sort_unstable_by_key(|&j| (std::cmp::Reverse(counts[j as usize]), j));
        let mut place = vec![0; counts.len()];
        for (at, &j) in features.iter().enumerate() {
            place[j as usize] = at as u32;
        }
        Self(Some(place))
    }

    /// Weights in the order of the table from those of the rows.
    pub(super) fn restored<'a>(&'a self, weights: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let place = self.0.as_deref().unwrap_or_default();
        let own = place.iter().map(|&at| weights[at as usize]);
        own.chain(weights[place.len()..].iter().copied())
    }

    /// Weights of the rows from those in the order of the table.
    pub(super) fn arrange(&self, weights: &[f64]) -> Vec<f64> {
        let mut arranged = weights.to_vec();
        for (j, &at) in self.0.iter().flatten().enumerate() {
            arranged[at as usize] = weights[j];
        }
        arranged
    }
}

/// Runs `task` on the rows of a table with an appended constant feature, if `bias` says so.
///
/// Sparse values that are all 1 are not read at all; others are read as singles when they are
/// singles or `precision` says so. With many features the frequent ones get the first weights,
/// at once or when several `functions` are to be learnt.
pub(super) fn with_rows<T: RowTask>(
    features: &Matrix,
    bias: Option<f64>,
    precision: Precision,
    set: InstructionSet,
    functions: usize,
    task: T,
) -> T::Output {
    let most = if functions > 1 { CACHED_FEATURES } else { NEAR_FEATURES };
    let same = FeatureOrder(None);
    match features {
        Matrix::DenseF32(table) => task.run(&DenseRows::new(table, bias, set), &same),
        Matrix::DenseF64(table) => task.run(&DenseRows::new(table, bias, set), &same),
        Matrix::SparseF32(table) if all_one(table) => ones(table, bias, most, task),
        Matrix::SparseF64(table) if all_one(table) => ones(table, bias, most, task),
        Matrix::SparseF32(table) => sparse(table, table.values(), bias, most, task),
        Matrix::SparseF64(table) => {
            let lossless = || table.values().iter().all(|&v| f64::from(v as f32) == v);
            if precision == Precision::F32 || lossless() {
                let values: Vec<f32> = table.values().iter().map(|&v| v as f32).collect();
                sparse(table, &values, bias, most, task)
            } else {
                sparse(table, table.values(), bias, most, task)
            }
        }
    }
}

fn all_one<T: Real>(table: &Csr<T>) -> bool {
    table.values().iter().all(|v| *v == T::ONE)
}

fn ones<C: Copy, T: RowTask>(table: &Csr<C>, bias: Option<f64>, most: usize, task: T) -> T::Output {
    sparse(table, &vec![One; table.values().len()], bias, most, task)
}

fn sparse<C: Copy, V: Stored, T: RowTask>(
    table: &Csr<C>,
    values: &[V],
    bias: Option<f64>,
    most: usize,
    task: T,
) -> T::Output {
    let packed: Vec<u32>;
    let (indices, order) = if table.columns() > most {
        let order = FeatureOrder::by_frequency(table);
        let place = order.0.as_deref().unwrap_or_default();
        packed = table.indices().iter().map(|&j| place[j as usize]).collect();
        (&packed[..], order)
    } else {
        (table.indices(), FeatureOrder(None))
    };
    let (columns, starts) = (table.columns(), table.indptr());
    task.run(&SparseRows::from_parts(columns, starts, indices, values, bias), &order)
}
