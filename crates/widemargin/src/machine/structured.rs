//! Large-margin learning of any structure that its user can decode: trees, matchings, segments, sets of labels,
//!
//! ```text
//! minimise over w   ½‖w‖² + C Σᵢ max over u [Δ(yⁱ, u) − ⟨w, Φ(xⁱ, yⁱ) − Φ(xⁱ, u)⟩]
//! ```
//!
//! (Tsochantaridis, Joachims, Hofmann and Altun, 2005). The user says what Φ and Δ are and finds the u that is worst for
//! given weights; the rest is that of the [chain](super::sequence::ChainSvc).

use std::cmp::Ordering;

use super::names::defaults;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::outcome::Outcome;
use crate::solver::structured::{Blocks, Options, solve};

/// A structure to be predicted: joint features, a loss, and the decoder for both.
///
/// The multi-class machine of Crammer and Singer as an example:
///
/// ```
/// use widemargin::machine::{StructuredProblem, StructuredSvm};
/// use widemargin::{Context, Result};
///
/// struct Classes(usize);
///
/// impl StructuredProblem for Classes {
///     type Input = [f64; 2];
///     type Output = usize;
///
///     fn dimension(&self) -> usize {
///         2 * self.0
///     }
///     fn joint_features(&self, x: &[f64; 2], y: &usize) -> Result<Vec<(usize, f64)>> {
///         Ok(vec![(2 * y, x[0]), (2 * y + 1, x[1])])
///     }
///     fn loss(&self, truth: &usize, other: &usize) -> Result<f64> {
///         Ok(f64::from(truth != other))
///     }
///     fn decode(&self, x: &[f64; 2], w: &[f64], truth: Option<&usize>) -> Result<usize> {
///         let value = |u: &usize| {
///             let loss = truth.map_or(0.0, |y| f64::from(y != u));
///             loss + w[2 * u] * x[0] + w[2 * u + 1] * x[1]
///         };
///         Ok((0..self.0).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0))
///     }
/// }
///
/// let examples = [([1.0, 0.0], 0), ([0.0, 1.0], 1), ([-1.0, -1.0], 2)];
/// let fit = StructuredSvm { c: 10.0, ..StructuredSvm::default() }
///     .fit(&Classes(3), &examples, &Context::new())?;
/// assert_eq!(Classes(3).decode(&[-2.0, -1.0], &fit.weights, None)?, 2);
/// assert!(fit.outcome.gap() <= 0.01 * fit.outcome.primal);
/// # Ok::<(), widemargin::Error>(())
/// ```
pub trait StructuredProblem: Sync {
    /// What is given.
    type Input: Sync;
    /// What is predicted.
    type Output: Sync;

    /// Number of joint features.
    fn dimension(&self) -> usize;

    /// Φ(x, y): places below [`dimension`](Self::dimension) and values, in any order; values of one place are summed.
    ///
    /// # Errors
    /// Whatever keeps it from being computed; ends the training.
    fn joint_features(
        &self,
        input: &Self::Input,
        output: &Self::Output,
    ) -> Result<Vec<(usize, f64)>>;

    /// Δ(y, u) ≥ 0, and 0 for u = y.
    ///
    /// # Errors
    /// As [`joint_features`](Self::joint_features).
    fn loss(&self, truth: &Self::Output, other: &Self::Output) -> Result<f64>;

    /// The u with the largest Δ(y, u) + ⟨w, Φ(x, u)⟩; with the largest ⟨w, Φ(x, u)⟩ where no truth is given.
    ///
    /// # Errors
    /// As [`joint_features`](Self::joint_features).
    fn decode(
        &self,
        input: &Self::Input,
        weights: &[f64],
        truth: Option<&Self::Output>,
    ) -> Result<Self::Output>;
}

/// The support vector machine for a [`StructuredProblem`].
#[derive(Clone, Debug, PartialEq)]
pub struct StructuredSvm {
    /// Price C of the loss of an example.
    pub c: f64,
    /// Duality gap, as a share of the primal objective, that ends the training.
    pub tol: f64,
    /// Most passes over the examples.
    pub max_iterations: usize,
}

defaults!(StructuredSvm { c: 1.0, tol: 0.01, max_iterations: 100 });

/// Weights of the joint features and what is proven about them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StructuredFit {
    /// w.
    pub weights: Vec<f64>,
    /// Objectives, gap and how it ended; they hold as far as the decoder finds the largest value.
    pub outcome: Outcome,
}

impl StructuredSvm {
    /// Learns from examples.
    ///
    /// # Errors
    /// Parameters out of range, features or losses that are not finite, a decoder that finds less than the truth, and
    /// the errors of the problem.
    pub fn fit<P: StructuredProblem>(
        &self,
        problem: &P,
        examples: &[(P::Input, P::Output)],
        context: &Context,
    ) -> Result<StructuredFit> {
        Error::check_positive("c", self.c)?;
        Error::check_positive("tol", self.tol)?;
        if self.max_iterations == 0 {
            return Err(Error::parameter("max_iterations", "at least 1", 0));
        }
        if examples.is_empty() {
            return Err(Error::Empty { what: "example" });
        }
        let truths = examples
            .iter()
            .enumerate()
            .map(|(i, (x, y))| sparse(problem, i, problem.joint_features(x, y)?))
            .collect::<Result<Vec<_>>>()?;
        let joint = Joint { problem, examples, truths: &truths, c: self.c };
        let options = Options { tol: self.tol, max_passes: self.max_iterations };
        let solution = context.install(|| solve(&joint, &options, context))?;
        Ok(StructuredFit { weights: solution.weights, outcome: solution.outcome })
    }
}

/// Sorted places and values.
type Sparse = Vec<(usize, f64)>;

/// Checks, sorts and sums joint features.
fn sparse<P: StructuredProblem>(problem: &P, example: usize, mut list: Sparse) -> Result<Sparse> {
    list.sort_by_key(|(place, _)| *place);
    let mut sums: Sparse = Vec::with_capacity(list.len());
    for (place, value) in list {
        if place >= problem.dimension() || !value.is_finite() {
            return Err(Error::model(format!(
                "joint features of example {}: expected finite values at places below {}, found {value} at {place}",
                example + 1,
                problem.dimension()
            )));
        }
        match sums.last_mut() {
            Some(last) if last.0 == place => last.1 += value,
            _ => sums.push((place, value)),
        }
    }
    Ok(sums)
}

/// left − right.
fn difference(left: &Sparse, right: &Sparse) -> Sparse {
    let (mut i, mut j) = (0, 0);
    let mut all = Vec::with_capacity(left.len() + right.len());
    while i < left.len() || j < right.len() {
        let order = match (left.get(i), right.get(j)) {
            (Some(a), Some(b)) => a.0.cmp(&b.0),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let (place, value) = match order {
            Ordering::Less => left[i],
            Ordering::Greater => (right[j].0, -right[j].1),
            Ordering::Equal => (left[i].0, left[i].1 - right[j].1),
        };
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
        if value != 0.0 {
            all.push((place, value));
        }
    }
    all
}

fn product(left: &Sparse, right: &Sparse) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while i < left.len() && j < right.len() {
        let order = left[i].0.cmp(&right[j].0);
        if order == Ordering::Equal {
            sum += left[i].1 * right[j].1;
        }
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    sum
}

/// An output other than the truth, as its effect: ψ = Φ(x, y) − Φ(x, u) and Δ.
#[derive(PartialEq)]
struct WrongOutput {
    psi: Sparse,
    loss: f64,
}

struct Joint<'a, P: StructuredProblem> {
    problem: &'a P,
    examples: &'a [(P::Input, P::Output)],
    truths: &'a [Sparse],
    c: f64,
}

impl<P: StructuredProblem> Blocks for Joint<'_, P> {
    type Labelling = WrongOutput;
    type Weights = Vec<f64>;
    type Scratch = ();

    fn count(&self) -> usize {
        self.examples.len()
    }

    fn price(&self, _block: usize) -> f64 {
        self.c
    }

    fn zero(&self) -> Vec<f64> {
        vec![0.0; self.problem.dimension()]
    }

    fn most_violating(
        &self,
        block: usize,
        w: &Vec<f64>,
        _: &mut (),
    ) -> Result<Option<WrongOutput>> {
        let (input, truth) = &self.examples[block];
        let found = self.problem.decode(input, w, Some(truth))?;
        let features = sparse(self.problem, block, self.problem.joint_features(input, &found)?)?;
        let loss = self.problem.loss(truth, &found)?;
        if !(loss.is_finite() && loss >= 0.0) {
            let found = format!("{loss} in example {}", block + 1);
            return Err(Error::parameter("loss", "a finite number of at least 0", found));
        }
        let psi = difference(&self.truths[block], &features);
        let wrong = WrongOutput { psi, loss };
        let value = loss - self.margin(block, &wrong, w);
        // The truth itself has the value 0.
        let scale = 1.0 + loss + wrong.psi.iter().map(|(j, v)| (w[*j] * v).abs()).sum::<f64>();
        if value < -1e-9 * scale {
            return Err(Error::model(format!(
                "the decoder does not find the largest value for example {}: the true output has {:.3e} more",
                block + 1,
                -value
            )));
        }
        let is_truth = wrong.psi.is_empty() && loss == 0.0;
        Ok((!is_truth).then_some(wrong))
    }

    fn loss(&self, _block: usize, wrong: &WrongOutput) -> f64 {
        wrong.loss
    }

    fn margin(&self, _block: usize, wrong: &WrongOutput, weights: &Vec<f64>) -> f64 {
        wrong.psi.iter().map(|(place, value)| weights[*place] * value).sum()
    }

    fn product(&self, _block: usize, left: &WrongOutput, right: &WrongOutput) -> f64 {
        product(&left.psi, &right.psi)
    }

    fn add(&self, _block: usize, wrong: &WrongOutput, factor: f64, weights: &mut Vec<f64>) {
        wrong.psi.iter().for_each(|(place, value)| weights[*place] += factor * value);
    }

    fn squared_norm(&self, weights: &Vec<f64>) -> f64 {
        weights.iter().map(|w| w * w).sum()
    }
}
