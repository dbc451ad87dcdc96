//! Kernels that are a function of a sum over features, on packed dense or sparse rows.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::Kernel;
use super::column_statistics::ColumnStatistics;
use super::dense::{BlockRequest, DenseProduct, Shape, Stripes};
use super::features::{Dropped, Features};
use super::mixed::MixedProduct;
use super::of_products::{OfProducts, ValueOfProduct};
use super::pairing::Pairing;
use super::sparse::{PADDING, SparseProduct, SparseRows};
use super::transform::Transform;
use super::{PackedRows, Queries, check_columns, check_range};
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, Real, dispatch, run_plain};

/// Share of non-zeros below which rows are multiplied as sparse ones, whatever their storage was.
const SPARSE_BELOW: f64 = 0.5;

/// What a kernel needs of the sums over features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub(super) struct FeatureKernel<T> {
    set: InstructionSet,
    name: String,
    formula: Formula,
    pairing: Pairing,
    transform: Transform<T>,
    shape: Shape,
    features: Arc<Features>,
    /// Shared between kernels of a sum that need the same of them.
    rows: Arc<FeatureRows<T>>,
    diagonal: Vec<T>,
    /// Largest Σx² of a packed row.
    largest: f64,
    /// Whether sparse left rows stay as they are although the packed ones are dense.
    takes_sparse: bool,
    /// What sums with sparse left rows begin with.
    beginnings: OnceLock<Vec<T>>,
}

/// Rows with the statistic of each that the transform needs.
struct FeatureRows<T> {
    storage: Storage<T>,
    features: usize,
    statistics: Vec<T>,
}

enum Storage<T> {
    Dense(Stripes<T>),
    Sparse(SparseRows<T>),
}

impl<T: Real> FeatureKernel<T> {
    /// Packs the rows of `matrix` named by `order`.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel cannot take the data, [`Error::Overflow`] when its values
    /// overflow.
    pub(super) fn new(
        kernel: &Kernel,
        matrix: &Matrix,
        order: &[usize],
        set: InstructionSet,
    ) -> Result<Self> {
        let columns = ColumnStatistics::of(matrix, order);
        let sparse = columns.density() < SPARSE_BELOW;
        let (formula, pairing, transform) = plan(kernel, sparse);
        if let (Pairing::ChiSquared, Some((row, column, value))) = (pairing, columns.negative) {
            return Err(negative_feature(row, column, value));
        }
        let centred = matches!(formula, Formula::Gaussian) && !sparse;
        let origin = centred.then_some(columns.means);
        let storage = if sparse {
            Storage::Sparse(SparseRows::new())
        } else {
            Storage::Dense(Stripes::new(0, 0, 1))
        };
        let shape = Shape::of::<T>(set);
        let mut packed = Self {
            set,
            name: kernel.name().to_owned(),
            formula,
            pairing,
            transform,
            shape,
            features: Arc::new(Features::new(matrix.columns(), &columns.used, origin)),
            rows: Arc::new(FeatureRows { storage, features: 0, statistics: Vec::new() }),
            diagonal: Vec::new(),
            largest: 0.0,
            // In a table stored sparsely a value must not depend on which row is the left one.
            takes_sparse: !sparse && !matrix.is_sparse() && pairing == Pairing::Product,
            beginnings: OnceLock::new(),
        };
        let (rows, sums) = packed.pack(matrix, order, shape.panel)?;
        packed.largest = sums.iter().map(|sum| sum.to_f64()).fold(0.0, f64::max);
        packed.diagonal = packed.self_similarities(&rows, &sums);
        packed.rows = Arc::new(rows.padded());
        Ok(packed)
    }

    /// Another kernel on the same packed rows, if it needs the same of them.
    ///
    /// # Errors
    /// [`Error::Overflow`] when its values overflow.
    pub(super) fn sharing(&self, kernel: &Kernel, order: &[usize]) -> Result<Option<Self>> {
        if matches!(
            kernel,
            Kernel::Precomputed
                | Kernel::Custom(_)
                | Kernel::String(_)
                | Kernel::Sum(_)
                | Kernel::Product(_)
                | Kernel::View { .. }
        ) {
            return Ok(None);
        }
        let (formula, pairing, transform) =
            plan(kernel, matches!(self.rows.storage, Storage::Sparse(_)));
        if formula != self.formula || pairing != self.pairing || formula == Formula::Cosine {
            return Ok(None);
        }
        let mut other = Self {
            name: kernel.name().to_owned(),
            transform,
            features: Arc::clone(&self.features),
            rows: Arc::clone(&self.rows),
            diagonal: Vec::new(),
            beginnings: OnceLock::new(),
            largest: 0.0,
            ..*self
        };
        // The statistic of all these formulas is the sum itself.
        let sums = &self.rows.statistics[..self.diagonal.len()];
        let sizes = sums.iter().map(|sum| other.largest_value(sum.to_f64()));
        check_range::<T>(&other.name, order.iter().copied().zip(sizes))?;
        other.largest = self.largest;
        other.diagonal = other.self_similarities(&self.rows, sums);
        Ok(Some(other))
    }

    /// Whether the values of both are functions of the same products ⟨x, z⟩.
    pub(super) fn has_products_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows) && self.has_products()
    }

    /// The products ⟨x, z⟩ that its values are functions of.
    pub(super) fn products(&self) -> Self {
        Self {
            name: self.name.clone(),
            transform: Transform::Identity,
            features: Arc::clone(&self.features),
            rows: Arc::clone(&self.rows),
            diagonal: self.diagonal.clone(),
            beginnings: OnceLock::new(),
            ..*self
        }
    }

    /// Whether its values are functions of products ⟨x, z⟩.
    pub(super) fn has_products(&self) -> bool {
        self.pairing == Pairing::Product
    }

    /// The kernel over a table of the products of its rows.
    pub(super) fn of_products(&self, table: Dense<T>) -> OfProducts<T> {
        let statistics = self.rows.statistics[..self.diagonal.len()].to_vec();
        let value = ValueOfProduct { set: self.set, transform: self.transform, statistics };
        OfProducts::new(table, value, self.diagonal.clone(), self.features.columns())
    }

    /// Packs sparse query rows for dense packed ones; returns Σx² of each too.
    fn prepare_sparse(&self, matrix: &Matrix, rows: &[usize]) -> Result<(FeatureRows<T>, Vec<T>)> {
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
        let (mut left, sums) = self.with_statistics(Storage::Sparse(list), rows, &dropped)?;
        if origin.is_some() {
            for (statistic, shift) in left.statistics.iter_mut().zip(shifts) {
                *statistic = T::from_f64(statistic.to_f64() + shift);
            }
        }
        Ok((left, sums))
    }

    /// Packs rows in stripes of `stride`; returns the sum over the features of each with itself too.
    fn pack(
        &self,
        matrix: &Matrix,
        rows: &[usize],
        stride: usize,
    ) -> Result<(FeatureRows<T>, Vec<T>)> {
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
                for &from in rows {
                    let visit = |k, value| list.push(k, T::from_f64(value));
                    dropped.push(self.features.for_each(matrix, from, visit));
                    list.end_row();
                }
                Storage::Sparse(list)
            }
        };
        self.with_statistics(storage, rows, &dropped)
    }

    /// Computes the statistic of every row and checks that kernel values cannot overflow.
    fn with_statistics(
        &self,
        storage: Storage<T>,
        rows: &[usize],
        dropped: &[Dropped],
    ) -> Result<(FeatureRows<T>, Vec<T>)> {
        let add = |sums: Vec<T>, extra: &dyn Fn(&Dropped) -> f64| -> Vec<T> {
            sums.iter().zip(dropped).map(|(&s, d)| s + T::from_f64(extra(d))).collect()
        };
        let sums = match (self.formula, &storage) {
            (Formula::Distance, Storage::Dense(stripes)) => {
                let norms = stripes.absolute_norms();
                check_range::<T>(&self.name, rows.iter().copied().zip(norms))?;
                add(vec![T::ZERO; dropped.len()], &|d| d.absolute)
            }
            (Formula::Distance, Storage::Sparse(list)) => {
                add(list.absolute_norms(), &|d| d.absolute)
            }
            (_, Storage::Dense(stripes)) => add(stripes.squared_norms(self.set), &|d| d.squares),
            (_, Storage::Sparse(list)) => add(list.squared_norms(self.set), &|d| d.squares),
        };
        let sizes = sums.iter().map(|sum| self.largest_value(sum.to_f64()));
        check_range::<T>(&self.name, rows.iter().copied().zip(sizes))?;
        let statistics = match self.formula {
            Formula::Cosine => sums.iter().map(|&s| inverse_root(s)).collect(),
            _ => sums.clone(),
        };
        Ok((FeatureRows { storage, features: self.features.kept(), statistics }, sums))
    }

    /// A bound on the sizes of all numbers that a row with the given statistic leads to: by the
    /// inequality of Cauchy and Schwarz a product is at most ‖x‖‖z‖.
    fn largest_value(&self, sum: f64) -> f64 {
        let product = match self.largest {
            0.0 => sum,
            // The product of the two squares may overflow where that of the lengths does not.
            largest => sum.sqrt() * largest.sqrt(),
        };
        match self.transform {
            Transform::Power { gamma, coef0, degree } => {
                let base = gamma.to_f64() * product + coef0.to_f64().abs();
                base.powf(f64::from(degree)).max(base)
            }
            Transform::Tanh { gamma, coef0 } => gamma.to_f64() * product + coef0.to_f64().abs(),
            Transform::Identity => product,
            Transform::Scaled | Transform::Exponential { .. } => sum,
        }
    }

    /// K(x, x) of packed rows, given the sum over the features of each with itself.
    fn self_similarities(&self, rows: &FeatureRows<T>, sums: &[T]) -> Vec<T> {
        match self.formula {
            Formula::Product | Formula::Cosine => {
                self.transform.of_pairs(self.set, sums, &rows.statistics)
            }
            Formula::Gaussian | Formula::Distance => vec![T::ONE; sums.len()],
        }
    }
}

impl<T: Real> PackedRows<T> for FeatureKernel<T> {
    fn len(&self) -> usize {
        self.diagonal.len()
    }

    fn columns(&self) -> usize {
        self.features.columns()
    }

    fn diagonal(&self) -> &[T] {
        &self.diagonal
    }

    /// Features of a dense row, non-zeros of a sparse one.
    fn products_per_value(&self) -> usize {
        match &self.rows.storage {
            Storage::Dense(_) => self.rows.features,
            Storage::Sparse(rows) => rows.nonzeros() / rows.rows().max(1),
        }
    }

    fn refuses_non_finite(&self) -> bool {
        true
    }

    fn gather(&self, rows: &[usize]) -> Queries<T> {
        let diagonal = rows.iter().map(|&row| self.diagonal[row]).collect();
        Queries::new(rows.len(), Some(diagonal), self.rows.select(rows, self.shape.group))
    }

    fn prepare(&self, queries: &Matrix, rows: &[usize]) -> Result<Queries<T>> {
        check_columns(self.features.columns(), queries)?;
        if self.pairing == Pairing::ChiSquared
            && let Some((row, column, value)) = ColumnStatistics::of(queries, rows).negative
        {
            return Err(negative_feature(row, column, value));
        }
        let (left, sums) = if self.takes_sparse && queries.is_sparse() {
            self.prepare_sparse(queries, rows)?
        } else {
            self.pack(queries, rows, self.shape.group)?
        };
        let diagonal = self.self_similarities(&left, &sums);
        Ok(Queries::new(rows.len(), Some(diagonal), left))
    }

    fn block(
        &self,
        left: &Queries<T>,
        rows: Range<usize>,
        columns: Range<usize>,
        out: &mut [&mut [T]],
    ) {
        let Self { set, pairing, transform, .. } = *self;
        let left: &FeatureRows<T> = left.packed();
        assert_eq!(left.features, self.rows.features, "rows with the features of the packed ones");
        let (left_statistics, right_statistics) = (&left.statistics[..], &self.rows.statistics[..]);
        let request = BlockRequest {
            left_statistics,
            rows,
            right_statistics,
            columns,
            pairing,
            transform,
            out,
        };
        match (&left.storage, &self.rows.storage) {
            (Storage::Dense(left), Storage::Dense(right)) => {
                assert_eq!(left.stride(), self.shape.group, "rows packed for the instruction set");
                dispatch(set, DenseProduct { left, right, request });
            }
            (Storage::Sparse(left), Storage::Sparse(right)) => {
                dispatch(
                    set,
                    SparseProduct { features: self.features.kept(), left, right, request },
                );
            }
            (Storage::Sparse(left), Storage::Dense(right)) => {
                let beginnings = self.beginnings.get_or_init(|| {
                    let none = vec![0.0; self.features.kept()];
                    right.negative_products(self.features.origin().unwrap_or(&none))
                });
                dispatch(set, MixedProduct { left, right, beginnings, request });
            }
            (Storage::Dense(_), Storage::Sparse(_)) => {
                panic!("left rows packed for dense rows, multiplied with sparse ones")
            }
        }
    }

    fn shared(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn subset(&self, keep: &[usize]) -> Arc<dyn PackedRows<T>> {
        Arc::new(Self {
            rows: Arc::new(self.rows.select(keep, self.shape.panel).padded()),
            features: Arc::clone(&self.features),
            name: self.name.clone(),
            diagonal: keep.iter().map(|&row| self.diagonal[row]).collect(),
            beginnings: OnceLock::new(),
            ..*self
        })
    }
}

/// Rows on their way into stripes.
struct Reading<'a, T> {
    features: &'a Features,
    matrix: &'a Matrix,
    rows: &'a [usize],
    stripes: &'a mut Stripes<T>,
    dropped: &'a mut Vec<Dropped>,
}

impl<T: Real> PlainLoop for Reading<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut buffer = vec![T::ZERO; self.features.kept()];
        for (to, &from) in self.rows.iter().enumerate() {
            self.dropped.push(self.features.read(self.matrix, from, &mut buffer));
            self.stripes.set(to, &buffer);
        }
    }
}

impl<T: Real> FeatureRows<T> {
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
        Kernel::Precomputed
        | Kernel::Custom(_)
        | Kernel::String(_)
        | Kernel::Sum(_)
        | Kernel::Product(_)
        | Kernel::View { .. } => {
            unreachable!("these kernels are not functions of one sum over features")
        }
    }
}

fn negative_feature(row: usize, column: usize, value: f64) -> Error {
    Error::kernel(
        "chi2",
        "features of at least 0",
        format!("{value} in row {}, feature {}", row + 1, column + 1),
    )
}
