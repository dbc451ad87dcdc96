//! Gram matrices as tables in memory, and what is done to them before kernels are combined.
//!
//! Trace normalisation K ← K c / tr K, centring in feature space K ← HKH with H = I − 11ᵀ/n, cosine
//! normalisation Kᵢⱼ / √(Kᵢᵢ Kⱼⱼ), jitter K + η (tr K / n) I, the smallest eigenvalue and the repair of a
//! matrix that is not positive semidefinite (Lu 2005, 2.1.1; Chen et al., JMLR 10, 2009), and the centred
//! alignment ⟨HKH, HLH⟩ / (‖HKH‖ ‖HLH‖) of Cortes, Mohri and Rostamizadeh (JMLR 13, 2012).

use std::fmt;
use std::str::FromStr;

use super::{Kernel, KernelBlocks, fill_table};
use crate::context::Context;
use crate::data::{Matrix, memory};
use crate::error::{Error, Result};
use crate::numeric::algebra::{Cholesky, dot, eigen_interruptible};

/// Difference of K(i, j) and K(j, i), as a share of the largest value, that is taken for rounding.
const ASYMMETRY: f64 = 1e-6;

/// A smallest eigenvalue above minus this share of the largest is taken for rounding of zero.
const ROUNDING: f64 = 1e-10;

/// Share of its largest diagonal value that is added to a matrix before it must have a Cholesky factor.
const FACTOR_SHIFT: f64 = 1e-8;

/// A symmetric matrix of kernel values between the rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Gram {
    order: usize,
    values: Vec<f64>,
}

/// The extreme eigenvalues of a symmetric matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definiteness {
    /// The smallest eigenvalue.
    pub smallest: f64,
    /// The largest eigenvalue.
    pub largest: f64,
}

impl Definiteness {
    /// Whether no eigenvalue is negative beyond rounding.
    pub fn is_semidefinite(&self) -> bool {
        self.smallest >= -ROUNDING * self.largest.abs()
    }
}

/// What is done to a matrix with negative eigenvalues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// K − λ_min I.
    #[default]
    Shift,
    /// Negative eigenvalues become 0.
    Clip,
    /// Negative eigenvalues change their sign.
    Flip,
    /// An error.
    Refuse,
}

impl Repair {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Shift, "shift"),
        (Self::Clip, "clip"),
        (Self::Flip, "flip"),
        (Self::Refuse, "refuse"),
    ];
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(repair, _)| repair == self).map(|(_, name)| name);
        f.write_str(name.unwrap_or(&"shift"))
    }
}

impl FromStr for Repair {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found
            .map(|(repair, _)| *repair)
            .ok_or_else(|| Error::parameter("repair", "one of shift, clip, flip, refuse", text))
    }
}

/// The means that centre kernel values in feature space, kept for rows that come later.
#[derive(Clone, Debug, PartialEq)]
pub struct Centring {
    /// Mean of every training row's values.
    means: Vec<f64>,
    /// Mean of all values.
    mean: f64,
}

impl Centring {
    /// Centres the kernel values of one new row with the training rows:
    /// k ← k − means − mean(k) + mean.
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one value per training row.
    pub fn apply(&self, row: &mut [f64]) -> Result<()> {
        if row.len() != self.means.len() {
            return Err(Error::length("kernel values of a row", self.means.len(), row.len()));
        }
        let own = row.iter().sum::<f64>() / row.len().max(1) as f64;
        for (value, mean) in row.iter_mut().zip(&self.means) {
            *value += self.mean - own - mean;
        }
        Ok(())
    }
}

impl Gram {
    /// A table of kernel values, row after row.
    ///
    /// # Errors
    /// [`Error::Length`] when it is not square, [`Error::NonFinite`] for a value that is not finite,
    /// [`Error::Kernel`] when it is not symmetric.
    pub fn new(order: usize, mut values: Vec<f64>) -> Result<Self> {
        if values.len() != order * order {
            return Err(Error::length("values of a Gram matrix", order * order, values.len()));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (at / order + 1, at % order + 1);
            return Err(Error::NonFinite { row, column, value: values[at] });
        }
        let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        for i in 0..order {
            for j in 0..i {
                let (above, below) = (values[j * order + i], values[i * order + j]);
                if (above - below).abs() > ASYMMETRY * largest {
                    let (i, j) = (i + 1, j + 1);
                    return Err(Error::Kernel {
                        kernel: "precomputed".into(),
                        expected: "a symmetric table".into(),
                        found: format!(
                            "{below} in row {i}, column {j} and {above} in row {j}, column {i}"
                        ),
                    });
                }
                let mean = 0.5 * (above + below);
                (values[j * order + i], values[i * order + j]) = (mean, mean);
            }
        }
        Ok(Self { order, values })
    }

    /// The values of `kernel` between all rows of `features`.
    ///
    /// # Errors
    /// As [`new`](Self::new); those of a kernel that does not suit the rows; [`Error::TooLarge`] when the
    /// table does not fit the cache of the context or the memory there is.
    pub fn of(kernel: &Kernel, features: &Matrix, context: &Context) -> Result<Self> {
        let order = features.rows();
        let bytes = 8 * order as u128 * order as u128;
        let limit = context.cache_bytes() as u128;
        if bytes > limit {
            return Err(Error::TooLarge { what: "a Gram matrix".into(), bytes, limit });
        }
        memory::check(|| "a Gram matrix".into(), bytes)?;
        let blocks = KernelBlocks::<f64>::new(kernel, features, None, context)?;
        let mut values = Vec::new();
        fill_table(&blocks, order, &mut values, context)?;
        blocks.check_values()?;
        Self::new(order, values)
    }

    /// Number of rows.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The values, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The values of one row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.order..(i + 1) * self.order]
    }

    /// Σᵢ Kᵢᵢ.
    pub fn trace(&self) -> f64 {
        (0..self.order).map(|i| self.row(i)[i]).sum()
    }

    /// Scales to the trace `budget`; returns the factor.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the trace is not positive, [`Error::Parameter`] for such a budget.
    pub fn scale_to_trace(&mut self, budget: f64) -> Result<f64> {
        let factor = trace_factor(self.trace(), budget)?;
        self.values.iter_mut().for_each(|value| *value *= factor);
        Ok(factor)
    }

    /// Adds `share` of the mean diagonal to the diagonal; returns what was added.
    pub fn add_jitter(&mut self, share: f64) -> f64 {
        let added = share * self.trace() / self.order.max(1) as f64;
        for i in 0..self.order {
            self.values[i * self.order + i] += added;
        }
        added
    }

    /// Moves the origin of the feature space to the mean of the rows.
    pub fn centre(&mut self) -> Centring {
        let n = self.order.max(1) as f64;
        let means: Vec<f64> =
            (0..self.order).map(|i| self.row(i).iter().sum::<f64>() / n).collect();
        let mean = means.iter().sum::<f64>() / n;
        for (row, own) in self.values.chunks_exact_mut(self.order.max(1)).zip(&means) {
            row.iter_mut().zip(&means).for_each(|(value, other)| *value += mean - own - other);
        }
        Centring { means, mean }
    }

    /// Divides every value by the lengths of its two rows in feature space; rows of length 0 keep
    /// zeros.
    pub fn normalise_cosine(&mut self) {
        let lengths: Vec<f64> = (0..self.order).map(|i| self.row(i)[i].max(0.0).sqrt()).collect();
        for (i, row) in self.values.chunks_exact_mut(self.order.max(1)).enumerate() {
            for (value, length) in row.iter_mut().zip(&lengths) {
                let product = lengths[i] * length;
                *value = if product > 0.0 { *value / product } else { 0.0 };
            }
        }
    }

    /// Fails with the name of the kernel for a matrix that is not positive semidefinite, rounding apart.
    pub(crate) fn check_semidefinite(&self, kernel: &Kernel, context: &Context) -> Result<()> {
        let n = self.order;
        let largest = (0..n).map(|i| self.row(i)[i]).fold(f64::MIN_POSITIVE, f64::max);
        let mut shifted = self.values.clone();
        (0..n).for_each(|i| shifted[i * n + i] += FACTOR_SHIFT * largest);
        match Cholesky::interruptible(shifted, n, context)? {
            Some(_) => Ok(()),
            None => {
                let expected = "a positive semidefinite matrix";
                Err(Error::kernel(kernel.name(), expected, "negative eigenvalues"))
            }
        }
    }

    /// The smallest and the largest eigenvalue.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub fn definiteness(&self, context: &Context) -> Result<Definiteness> {
        let eigen = eigen_interruptible(self.values.clone(), self.order, context)?;
        let at = |value: Option<&f64>| value.copied().unwrap_or(0.0);
        Ok(Definiteness { smallest: at(eigen.values.last()), largest: at(eigen.values.first()) })
    }

    /// Makes the matrix positive semidefinite where it is not; returns its eigenvalues before, which
    /// say whether anything was changed.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the smallest eigenvalue where [`Repair::Refuse`] finds a negative one,
    /// [`Error::Interrupted`] when the context asks to stop.
    pub fn repair(&mut self, how: Repair, context: &Context) -> Result<Definiteness> {
        let n = self.order;
        let eigen = eigen_interruptible(self.values.clone(), n, context)?;
        let at = |value: Option<&f64>| value.copied().unwrap_or(0.0);
        let found =
            Definiteness { smallest: at(eigen.values.last()), largest: at(eigen.values.first()) };
        if found.is_semidefinite() {
            return Ok(found);
        }
        let change = |value: f64| match how {
            Repair::Clip => -value,
            Repair::Flip => -2.0 * value,
            Repair::Shift | Repair::Refuse => 0.0,
        };
        match how {
            Repair::Refuse => {
                return Err(Error::Kernel {
                    kernel: "precomputed".into(),
                    expected: "a positive semidefinite matrix".into(),
                    found: format!("the eigenvalue {}", found.smallest),
                });
            }
            Repair::Shift => {
                (0..n).for_each(|i| self.values[i * n + i] -= found.smallest);
            }
            Repair::Clip | Repair::Flip => {
                for (e, &value) in eigen.values.iter().enumerate().filter(|(_, v)| **v < 0.0) {
                    let vector = eigen.vector(e);
                    for (row, own) in self.values.chunks_exact_mut(n).zip(vector) {
                        let factor = change(value) * own;
                        row.iter_mut().zip(vector).for_each(|(v, other)| *v += factor * other);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The centred alignment with another matrix over the same rows, from −1 to 1; 0 where one of
    /// them is constant.
    ///
    /// # Errors
    /// [`Error::Length`] when it has another order.
    pub fn centred_alignment(&self, other: &Self) -> Result<f64> {
        if self.order != other.order {
            return Err(Error::length("rows of a Gram matrix", self.order, other.order));
        }
        let (mut left, mut right) = (self.clone(), other.clone());
        left.centre();
        right.centre();
        let size =
            dot(&left.values, &left.values).sqrt() * dot(&right.values, &right.values).sqrt();
        Ok(if size > 0.0 { dot(&left.values, &right.values) / size } else { 0.0 })
    }
}

/// The factor that gives a matrix of trace `trace` the trace `budget`.
///
/// # Errors
/// [`Error::Kernel`] when the trace is not positive, [`Error::Parameter`] for such a budget.
fn trace_factor(trace: f64, budget: f64) -> Result<f64> {
    if !(budget.is_finite() && budget > 0.0) {
        return Err(Error::parameter("trace", "a finite number above 0", budget));
    }
    if !(trace.is_finite() && trace > 0.0) {
        return Err(Error::Kernel {
            kernel: "candidate".into(),
            expected: "a positive trace over the rows given".into(),
            found: format!("{trace}"),
        });
    }
    Ok(budget / trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::numeric::random::Generator;

    fn rows(n: usize, d: usize) -> Matrix {
        let mut generator = Generator::new(3);
        let values = (0..n * d).map(|_| generator.normal()).collect();
        Matrix::DenseF64(Dense::new(n, d, values).unwrap())
    }

    fn gram(kernel: &Kernel, n: usize) -> Gram {
        Gram::of(kernel, &rows(n, 3), &Context::new()).unwrap()
    }

    #[test]
    fn the_trace_becomes_the_budget_and_rows_of_zeros_are_refused() {
        let mut k = gram(&Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree: 2 }, 12);
        let before = k.trace();
        let factor = k.scale_to_trace(12.0).unwrap();
        assert!((k.trace() - 12.0).abs() < 1e-12 * 12.0);
        assert!((factor * before - 12.0).abs() < 1e-12 * 12.0);
        let message = Gram::new(2, vec![0.0; 4]).unwrap().scale_to_trace(2.0).unwrap_err();
        assert!(message.to_string().contains("a positive trace"), "{message}");
        assert!(k.scale_to_trace(0.0).is_err());
    }

    #[test]
    fn centring_equals_the_linear_kernel_of_centred_rows() {
        let (n, d) = (9, 3);
        let table = rows(n, d);
        let mut k = gram(&Kernel::Linear, n);
        let uncentred = k.clone();
        let centring = k.centre();
        let mut x = vec![vec![0.0; d]; n];
        x.iter_mut().enumerate().for_each(|(i, row)| table.copy_row(i, row));
        let mean: Vec<f64> =
            (0..d).map(|c| x.iter().map(|row| row[c]).sum::<f64>() / n as f64).collect();
        let product = |a: &[f64], b: &[f64]| -> f64 {
            (0..d).map(|c| (a[c] - mean[c]) * (b[c] - mean[c])).sum()
        };
        for i in 0..n {
            for j in 0..n {
                assert!((k.row(i)[j] - product(&x[i], &x[j])).abs() < 1e-12);
            }
        }
        // A new row that equals a training row gets that row's centred values.
        let mut new = uncentred.row(4).to_vec();
        centring.apply(&mut new).unwrap();
        assert!(new.iter().zip(k.row(4)).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(centring.apply(&mut [1.0]).is_err());
    }

    #[test]
    fn cosine_normalisation_equals_the_cosine_kernel() {
        let mut linear = gram(&Kernel::Linear, 8);
        linear.normalise_cosine();
        let cosine = gram(&Kernel::Cosine, 8);
        assert!(linear.values().iter().zip(cosine.values()).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn jitter_moves_every_eigenvalue_by_its_share_of_the_mean_diagonal() {
        let context = Context::new();
        let mut k = gram(&Kernel::Linear, 8);
        let before = k.definiteness(&context).unwrap();
        assert!(before.is_semidefinite() && before.smallest.abs() < 1e-12 * before.largest);
        let added = k.add_jitter(1e-3);
        let after = k.definiteness(&context).unwrap();
        assert!((after.smallest - before.smallest - added).abs() < 1e-12 * before.largest);
    }

    #[test]
    fn an_indefinite_matrix_is_found_and_repaired() {
        // Eigenvalues 3 and −1 with eigenvectors (1, 1)/√2 and (1, −1)/√2.
        let context = Context::new();
        let indefinite = Gram::new(2, vec![1.0, 2.0, 2.0, 1.0]).unwrap();
        for (how, expected) in [
            (Repair::Shift, [2.0, 2.0, 2.0, 2.0]),
            (Repair::Clip, [1.5, 1.5, 1.5, 1.5]),
            (Repair::Flip, [2.0, 1.0, 1.0, 2.0]),
        ] {
            let mut k = indefinite.clone();
            let found = k.repair(how, &context).unwrap();
            assert!(!found.is_semidefinite() && (found.smallest + 1.0).abs() < 1e-12);
            assert!(k.values().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{how}");
            assert_eq!(how.to_string().parse::<Repair>().unwrap(), how);
        }
        let error = indefinite.clone().repair(Repair::Refuse, &context).unwrap_err();
        assert!(error.to_string().contains("the eigenvalue -"), "{error}");
        let sigmoid = gram(&Kernel::Sigmoid { gamma: 1.0, coef0: -1.0 }, 10);
        assert!(!sigmoid.definiteness(&context).unwrap().is_semidefinite());
    }

    #[test]
    fn alignment_is_one_for_multiples_and_follows_the_closed_form() {
        let k = gram(&Kernel::Gaussian { gamma: 0.5 }, 10);
        let mut multiple = k.clone();
        multiple.scale_to_trace(70.0).unwrap();
        assert!((k.centred_alignment(&multiple).unwrap() - 1.0).abs() < 1e-12);
        // Labels (1, 1, −1, −1) as an ideal kernel yyᵀ against the identity: 1/√3.
        let y = [1.0, 1.0, -1.0, -1.0];
        let ideal = Gram::new(4, y.iter().flat_map(|a| y.map(|b| a * b)).collect()).unwrap();
        let mut identity = vec![0.0; 16];
        (0..4).for_each(|i| identity[5 * i] = 1.0);
        let identity = Gram::new(4, identity).unwrap();
        let alignment = ideal.centred_alignment(&identity).unwrap();
        assert!((alignment - 1.0 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert!(ideal.centred_alignment(&k).is_err());
    }

    #[test]
    fn tables_that_are_not_gram_matrices_are_refused() {
        for (order, values, message) in [
            (2, vec![1.0; 3], "expected 4, found 3"),
            (2, vec![1.0, f64::NAN, 0.0, 1.0], "row 1, feature 2"),
            (2, vec![1.0, 2.0, 0.0, 1.0], "a symmetric table"),
        ] {
            let error = Gram::new(order, values).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
