//! The table of a machine as rows that linear solvers read: in place, or packed when that pays.

use crate::data::{Csr, Matrix, pieces};
use crate::machine::parameters::Precision;
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;
use crate::solver::linear::rows::{DenseRows, LinearRows, One, SparseRows, Stored};

/// Features whose weights fit the first-level cache; beyond that their order matters where the
/// rows are read again and again.
const CACHED_FEATURES: usize = 4096;

/// Features whose weights fit the second-level cache; beyond that their order always matters.
const NEAR_FEATURES: usize = 1 << 16;

/// Most threads of the context that spin between the short sections in which tables are checked and packed.
pub(super) const MOST_SPINNING: usize = 2;

/// Counts from which on features are sorted.
const MOST_COUNTED: u32 = 1024;

/// A computation over rows of any storage.
pub(in crate::machine) trait RowTask {
    /// What it gives.
    type Output;

    /// The computation; weights of the rows stand in `order`.
    fn run<R: LinearRows>(self, rows: &R, order: &FeatureOrder) -> Self::Output;
}

/// Where the weights of features stand; a bias is always the last.
pub(in crate::machine) struct FeatureOrder(Option<Vec<u32>>);

impl FeatureOrder {
    /// The most frequent features first, so that their weights share cache lines.
    fn by_frequency<T: Copy>(table: &Csr<T>) -> Self {
        let mut counts = vec![0_u32; table.columns()];
        for &j in table.indices() {
            counts[j as usize] = counts[j as usize].saturating_add(1);
        }
        Self(Some(places(&counts)))
    }

    /// Weights in the order of the table from those of the rows.
    pub(in crate::machine) fn restored<'a>(
        &'a self,
        weights: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
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

/// Where features stand when those of larger counts come first, equal ones in their order.
fn places(counts: &[u32]) -> Vec<u32> {
    // Few features have large counts, and all others are counted by them.
    let class = |count: u32| count.min(MOST_COUNTED) as usize;
    let mut starts = vec![0_u32; MOST_COUNTED as usize + 2];
    counts.iter().for_each(|&count| starts[class(count)] += 1);
    let mut before = 0;
    for start in starts.iter_mut().rev() {
        before += *start;
        *start = before - *start;
    }
    let mut place = vec![0; counts.len()];
    let mut frequent = Vec::new();
    for (j, &count) in counts.iter().enumerate() {
        let start = &mut starts[class(count)];
        place[j] = *start;
        *start += 1;
        if count >= MOST_COUNTED {
            frequent.push(j as u32);
        }
    }
    frequent.sort_by_key(|&j| std::cmp::Reverse(counts[j as usize]));
    frequent.iter().enumerate().for_each(|(at, &j)| place[j as usize] = at as u32);
    place
}

/// Runs `task` on the rows of a table with an appended constant feature, if `bias` says so.
///
/// Sparse values that are all 1 are not read at all; others are read as singles when they are
/// singles or `precision` says so. With many features the frequent ones get the first weights,
/// at once or when several `functions` are to be learned.
pub(in crate::machine) fn with_rows<T: RowTask>(
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
        Matrix::SparseF32(table) => sparse(table, || table.values(), bias, most, task),
        Matrix::SparseF64(table) => {
            // Singles where they are wanted and none overflows, or where they lose nothing.
            let singles = precision == Precision::F32;
            let single = |all: bool, &v: &f64| {
                let single = v as f32;
                all & (singles & single.is_finite() | (f64::from(single) == v))
            };
            if pieces::all(table.values(), |piece| piece.iter().fold(true, single)) {
                let values = || table.values().iter().map(|&v| v as f32).collect::<Vec<f32>>();
                sparse(table, values, bias, most, task)
            } else {
                sparse(table, || table.values(), bias, most, task)
            }
        }
    }
}

fn all_one<T: Real>(table: &Csr<T>) -> bool {
    pieces::all(table.values(), |piece| piece.iter().fold(true, |all, v| all & (*v == T::ONE)))
}

fn ones<C: Copy + Sync, T: RowTask>(
    table: &Csr<C>,
    bias: Option<f64>,
    most: usize,
    task: T,
) -> T::Output {
    sparse(table, || vec![One; table.values().len()], bias, most, task)
}

fn sparse<C: Copy + Sync, V: Stored, L: AsRef<[V]> + Send, T: RowTask>(
    table: &Csr<C>,
    values: impl FnOnce() -> L + Send,
    bias: Option<f64>,
    most: usize,
    task: T,
) -> T::Output {
    let order = || match table.columns() > most {
        true => FeatureOrder::by_frequency(table),
        false => FeatureOrder(None),
    };
    let (values, order) = pieces::join(table.indices().len(), values, order);
    let packed: Vec<u32>;
    let indices = match &order.0 {
        Some(place) => {
            packed = table.indices().iter().map(|&j| place[j as usize]).collect();
            &packed[..]
        }
        None => table.indices(),
    };
    let (columns, starts) = (table.columns(), table.indptr());
    task.run(&SparseRows::from_parts(columns, starts, indices, values.as_ref(), bias), &order)
}

#[cfg(test)]
mod tests {
    use super::{MOST_COUNTED, places};

    #[test]
    fn features_stand_in_the_order_of_a_stable_sort() {
        let counts: Vec<u32> = (0..3000_u32)
            .map(|j| j * j % 97 * if j % 11 == 0 { MOST_COUNTED / 40 } else { 1 })
            .collect();
        let mut features: Vec<u32> = (0..counts.len() as u32).collect();
        features.sort_by_key(|&j| std::cmp::Reverse(counts[j as usize]));
        let place = places(&counts);
        assert!(counts.iter().any(|&count| count > MOST_COUNTED));
        assert!((0..).zip(&features).all(|(at, &j)| place[j as usize] == at));
    }
}
