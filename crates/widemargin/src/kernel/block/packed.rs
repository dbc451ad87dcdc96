//! Kernels that are a function of a sum over features, on packed dense or sparse rows.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::Kernel;
use super::dense::{DenseProduct, Shape, Stripes};
use super::features::{Dropped, Features};
use super::mixed::MixedProduct;
use super::pairing::Pairing;
use super::sparse::{PADDING, SparseProduct, SparseRows};
use super::survey::Survey;
use super::transform::Transform;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, Real, dispatch, run_plain};

/// Share of non-zeros below which rows are multiplied as sparse ones, whatever their storage was.
const SPARSE_BELOW: f64 = 0.5;

/// What a kernel asks of the engine.
#[derive(Clone, Copy, Debug)]
enum Formula {
    /// A function of ⟨x, z⟩.
    Product,
    /// exp(−γ‖x − z‖²), which needs squared norms and gains digits by centring.
    Gaussian,
    /// ⟨x, z⟩ / (‖x‖‖z‖)
    Cosine,
    /// A function of a distance that is a sum over features.
    Distance,
}

/// Packed rows of one kernel.
#[derive(Clone)]
pub(super) struct Packed<T> {
    set: InstructionSet,
    name: String,
    formula: Formula,
    pairing: Pairing,
    transform: Transform<T>,
    shape: Shape,
    features: Arc<Features>,
    rows: PackedRows<T>,
    /// Whether sparse left rows stay as they are although the packed ones are dense.
    takes_sparse: bool,
    /// What sums with sparse left rows begin with.
    beginnings: OnceLock<Vec<T>>,
}

/// Rows with the statistic of each that the transform needs.
#[derive(Clone)]
pub(super) struct PackedRows<T> {
    storage: Storage<T>,
    features: usize,
    statistics: Vec<T>,
}

#[derive(Clone)]
enum Storage<T> {
    Dense(Stripes<T>),
    Sparse(SparseRows<T>),
}

impl<T: Real> Packed<T> {
    /// Packs the rows of `matrix` named by `order`; returns the diagonal too.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel cannot take the data.
    pub(super) fn new(
        kernel: &Kernel,
        matrix: &Matrix,
        order: &[usize],
        set: InstructionSet,
    ) -> Result<(Self, Vec<T>)> {
        let survey = Survey::of(matrix, order);
        let sparse = survey.density() < SPARSE_BELOW;
        let (formula, pairing, transform) = plan(kernel, sparse);
        if let (Pairing::ChiSquared, Some((row, column, value))) = (pairing, survey.negative) {
            return Err(negative_feature(row, column, value));
        }
        let centred = matches!(formula, Formula::Gaussian) && !sparse;
        let origin = centred.then_some(survey.means);
        let features = Arc::new(Features::new(matrix.columns(), &survey.used, origin));
        let storage = if sparse {
            Storage::Sparse(SparseRows::new())
        } else {
            Storage::Dense(Stripes::new(0, 0, 1))
        };
        let rows = PackedRows { storage, features: 0, statistics: Vec::new() };
        let shape = Shape::of::<T>(set);
        let name = kernel.name().to_owned();
        // Of a table stored sparsely a value shall not depend on which row is the left one.
        let stored_sparsely = matches!(matrix, Matrix::SparseF32(_) | Matrix::SparseF64(_));
        let takes_sparse = !sparse && !stored_sparsely && pairing == Pairing::Product;
        let beginnings = OnceLock::new();
        let mut packed = Self {
            set,
            name,
            formula,
            pairing,
            transform,
            shape,
            features,
            rows,
            takes_sparse,
            beginnings,
        };
        let (rows, diagonal) = packed.pack(matrix, order.iter().copied(), shape.panel)?;
        packed.rows = rows.padded();
        Ok((packed, diagonal))
    }

    /// Number of columns a row has to have.
    pub(super) fn columns(&self) -> usize {
        self.features.columns()
    }

    /// Features of a dense row, non-zeros of a sparse one.
    pub(super) fn products_per_value(&self) -> usize {
        match &self.rows.storage {
            Storage::Dense(_) => self.rows.features,
            Storage::Sparse(rows) => rows.nonzeros() / rows.rows().max(1),
        }
    }

    /// Whether preparing a row that is not finite fails.
    pub(super) fn refuses_non_finite(&self) -> bool {
        !matches!(self.formula, Formula::Distance)
    }

    /// Packs foreign rows as left rows; returns their similarities with themselves too.
    pub(super) fn prepare(
        &self,
        matrix: &Matrix,
        rows: &[usize],
    ) -> Result<(PackedRows<T>, Vec<T>)> {
        if self.pairing == Pairing::ChiSquared
            && let Some((row, column, value)) = Survey::of(matrix, rows).negative
        {
            return Err(negative_feature(row, column, value));
        }
        if self.takes_sparse && matches!(matrix, Matrix::SparseF32(_) | Matrix::SparseF64(_)) {
            return self.prepare_sparse(matrix, rows);
        }
        self.pack(matrix, rows.iter().copied(), self.shape.group)
    }

    /// Packs foreign sparse rows for dense packed ones.
    fn prepare_sparse(&self, matrix: &Matrix, rows: &[usize]) -> Result<(PackedRows<T>, Vec<T>)> {
        let (mut list, mut dropped) = (SparseRows::new(), Vec::with_capacity(rows.len()));
        // ‖x − o‖² is ‖x‖² and this much more.
        let origin = self.features.origin();
        let far = origin.map_or(0.0, |origin| origin.iter().map(|o| o * o).sum::<f64>());
        let mut shifts = Vec::with_capacity(rows.len());
        for &row in rows {
            let mut shift = far;
            dropped.push(self.features.for_each(matrix, row, |k, value| {
                list.push(k, T::from_f64(value));
                shift -= origin.map_or(0.0, |origin| 2.0 * value * origin[k as usize]);
            }));
            list.end_row();
            shifts.push(shift);
        }
        let (mut left, own) = self.with_statistics(Storage::Sparse(list), &dropped)?;
        if origin.is_some() {
            for (statistic, shift) in left.statistics.iter_mut().zip(shifts) {
                *statistic = T::from_f64(statistic.to_f64() + shift);
            }
        }
        Ok((left, own))
    }

    /// The packed rows named by `rows`, as left rows.
    pub(super) fn gather(&self, rows: &[usize]) -> PackedRows<T> {
        self.rows.select(rows, self.shape.group)
    }

    /// The packed rows named by `keep` only.
    pub(super) fn subset(&self, keep: &[usize]) -> Self {
        let rows = self.rows.select(keep, self.shape.panel).padded();
        let (features, name) = (Arc::clone(&self.features), self.name.clone());
        Self { rows, features, name, beginnings: OnceLock::new(), ..*self }
    }

    /// Kernel values of left rows with packed rows.
    pub(super) fn product(
        &self,
        left: &PackedRows<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let Self { set, pairing, transform, .. } = *self;
        assert_eq!(left.features, self.rows.features, "rows with the features of the engine");
        let left_statistics = &left.statistics;
        let right_statistics = &self.rows.statistics;
        match (&left.storage, &self.rows.storage) {
            (Storage::Dense(left), Storage::Dense(right)) => dispatch(
                set,
                DenseProduct {
                    left,
                    left_statistics,
                    rows,
                    right,
                    right_statistics,
                    columns,
                    pairing,
                    transform,
                    out,
                },
            ),
            (Storage::Sparse(left), Storage::Sparse(right)) => dispatch(
                set,
                SparseProduct {
                    features: self.features.kept(),
                    left,
                    left_statistics,
                    rows,
                    right,
                    right_statistics,
                    columns,
                    pairing,
                    transform,
                    out,
                },
            ),
            (Storage::Sparse(left), Storage::Dense(right)) => {
                let beginnings = self.beginnings.get_or_init(|| {
                    let none = vec![0.0; self.features.kept()];
                    right.negative_products(self.features.origin().unwrap_or(&none))
                });
                let product = MixedProduct {
                    left,
                    left_statistics,
                    rows,
                    right,
                    right_statistics,
                    beginnings,
                    columns,
                    transform,
                    out,
                };
                dispatch(set, product);
            }
            (Storage::Dense(_), Storage::Sparse(_)) => {
                unreachable!("left rows of a sparse engine are sparse")
            }
        }
    }

    fn pack(
        &self,
        matrix: &Matrix,
        rows: impl ExactSizeIterator<Item = usize>,
        stride: usize,
    ) -> Result<(PackedRows<T>, Vec<T>)> {
        let mut dropped = Vec::with_capacity(rows.len());
        let storage = match &self.rows.storage {
            Storage::Dense(_) => {
                let mut stripes = Stripes::new(rows.len(), self.features.kept(), stride);
                let (features, stripes_out) = (&*self.features, &mut stripes);
                let reading =
                    Reading { features, matrix, rows, stripes: stripes_out, dropped: &mut dropped };
                run_plain(self.set, reading);
                Storage::Dense(stripes)
            }
            Storage::Sparse(_) => {
                let mut list = SparseRows::new();
                for from in rows {
                    let visit = |k, value| list.push(k, T::from_f64(value));
                    dropped.push(self.features.for_each(matrix, from, visit));
                    list.end_row();
                }
                Storage::Sparse(list)
            }
        };
        self.with_statistics(storage, &dropped)
    }

    /// Computes the statistic of every row, and the kernel of every row with itself.
    fn with_statistics(
        &self,
        storage: Storage<T>,
        dropped: &[Dropped],
    ) -> Result<(PackedRows<T>, Vec<T>)> {
        let add = |sums: Vec<T>, extra: &dyn Fn(&Dropped) -> f64| -> Vec<T> {
            sums.iter().zip(dropped).map(|(&s, d)| s + T::from_f64(extra(d))).collect()
        };
        let sums = match (self.formula, &storage) {
            (Formula::Distance, Storage::Dense(_)) => {
                add(vec![T::ZERO; dropped.len()], &|d| d.absolute)
            }
            (Formula::Distance, Storage::Sparse(rows)) => {
                add(rows.absolute_norms(), &|d| d.absolute)
            }
            (_, Storage::Dense(rows)) => add(rows.squared_norms(self.set), &|d| d.squares),
            (_, Storage::Sparse(rows)) => add(rows.squared_norms(self.set), &|d| d.squares),
        };
        if let Some(row) = sums.iter().position(|s| !s.is_finite()) {
            let found = format!("row {} with the squared norm {}", row + 1, sums[row]);
            return Err(Error::Overflow { kernel: self.name.clone(), found });
        }
        let (statistics, own) = match self.formula {
            Formula::Product => {
                let own = self.transform.of_pairs(self.set, &sums, &sums);
                (sums, own)
            }
            Formula::Cosine => {
                let inverse: Vec<T> = sums.iter().map(|&s| inverse_root(s)).collect();
                let own = self.transform.of_pairs(self.set, &sums, &inverse);
                (inverse, own)
            }
            Formula::Gaussian | Formula::Distance => {
                let own = vec![T::ONE; sums.len()];
                (sums, own)
            }
        };
        Ok((PackedRows { storage, features: self.features.kept(), statistics }, own))
    }
}

/// Rows on their way into stripes.
struct Reading<'a, T, I> {
    features: &'a Features,
    matrix: &'a Matrix,
    rows: I,
    stripes: &'a mut Stripes<T>,
    dropped: &'a mut Vec<Dropped>,
}

impl<T: Real, I: Iterator<Item = usize>> PlainLoop for Reading<'_, T, I> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut buffer = vec![T::ZERO; self.features.kept()];
        for (to, from) in self.rows.enumerate() {
            self.dropped.push(self.features.read(self.matrix, from, &mut buffer));
            self.stripes.set(to, &buffer);
        }
    }
}

impl<T: Real> PackedRows<T> {
    fn select(&self, rows: &[usize], stride: usize) -> Self {
        let storage = match &self.storage {
            Storage::Dense(stripes) => Storage::Dense(stripes.select(rows, stride)),
            Storage::Sparse(list) => Storage::Sparse(list.select(rows)),
        };
        let statistics = rows.iter().map(|&row| self.statistics[row]).collect();
        Self { storage, features: self.features, statistics }
    }

    /// Statistics that can be read in whole panels from any row on.
    fn padded(mut self) -> Self {
        self.statistics.resize(self.statistics.len() + PADDING, T::ZERO);
        self
    }
}

/// 1 / √value, 0 for 0
fn inverse_root<T: Real>(value: T) -> T {
    if value == T::ZERO { T::ZERO } else { T::from_f64(1.0 / value.to_f64().sqrt()) }
}

fn plan<T: Real>(kernel: &Kernel, sparse: bool) -> (Formula, Pairing, Transform<T>) {
    let real = T::from_f64;
    match *kernel {
        Kernel::Linear => (Formula::Product, Pairing::Product, Transform::Identity),
        Kernel::Polynomial { gamma, coef0, degree } => {
            let transform = Transform::Power { gamma: real(gamma), coef0: real(coef0), degree };
            (Formula::Product, Pairing::Product, transform)
        }
        Kernel::Sigmoid { gamma, coef0 } => {
            let transform = Transform::Tanh { gamma: real(gamma), coef0: real(coef0) };
            (Formula::Product, Pairing::Product, transform)
        }
        Kernel::Cosine => (Formula::Cosine, Pairing::Product, Transform::Scaled),
        Kernel::Gaussian { gamma } => {
            (Formula::Gaussian, Pairing::Product, Transform::exponential(gamma, -2.0))
        }
        Kernel::Laplacian { gamma } => {
            let slope = if sparse { -1.0 } else { 1.0 };
            (Formula::Distance, Pairing::Distance, Transform::exponential(gamma, slope))
        }
        Kernel::ChiSquared { gamma } => {
            let slope = if sparse { -4.0 } else { 1.0 };
            (Formula::Distance, Pairing::ChiSquared, Transform::exponential(gamma, slope))
        }
        Kernel::Precomputed | Kernel::Custom(_) | Kernel::Sum(_) | Kernel::Product(_) => {
            unreachable!("these kernels are not functions of one sum over features")
        }
    }
}

fn negative_feature(row: usize, column: usize, value: f64) -> Error {
    Error::Kernel {
        kernel: "chi2".into(),
        expected: "features of at least 0".into(),
        found: format!("{value} in row {}, feature {}", row + 1, column + 1),
    }
}
