//! Smaller models: the support vectors of every decision function merged into fewer new ones.
//!
//! A function Σ αᵢK(xᵢ, ·) is replaced by Σ βⱼK(zⱼ, ·) with fewer vectors, built bottom-up from pairs
//! of the same sign, given the weights of least residual ‖Ψ − Ψ'‖, and, unless told otherwise, moved
//! together to a still smaller one (Nguyen 2006, chapter 3). By Cauchy and Schwarz no decision value
//! changes by more than the residual times √K(x, x).

mod assemble;
mod bottom_up;
mod gaussian;
mod polynomial;
mod refine;
mod residual;
mod rule;
mod search;
mod store;

pub use search::smallest_within;

use self::assemble::{assemble, expansions};
use self::bottom_up::{Expansion, Stop, merge};
use self::residual::{Tables, largest_difference, squared_norm};
use self::rule::Rule;
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::machine::Model;

/// How far a model is to be compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Merge while no function changes by more than this at any of its own support vectors (the
    /// maximum marginal difference θ).
    Difference(f64),
    /// This many vectors, counted over all functions; at least one per function and sign remains.
    Vectors(usize),
    /// This share of the vectors counted over all functions, between 0 and 1.
    Ratio(f64),
}

/// How models are compressed.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::read::{ReadOptions, read_dataset};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{Machine, Svc};
/// use widemargin::operation::compress::{Compression, Target};
///
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");
/// # std::env::set_current_dir(folder).unwrap();
/// let data = read_dataset("iris.csv", &ReadOptions::new())?;
/// let context = Context::new();
/// let svc = Svc { kernel: Kernel::Gaussian { gamma: 0.5 }, ..Svc::default() };
/// let model = svc.fit(&data, &context)?;
/// let compressed = Compression::new(Target::Ratio(0.25)).apply(&model, &context)?;
/// assert!(compressed.model.support_count() < model.support_count());
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    /// How far to go.
    pub target: Target,
    /// Most steps of the joint optimisation of vectors and weights; 0 leaves it out.
    pub refinement: usize,
}

/// One function before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// Vectors before.
    pub before: usize,
    /// Vectors after.
    pub after: usize,
    /// ‖Ψ − Ψ'‖² / ‖Ψ‖²
    pub relative_residual: f64,
    /// Largest change of the function at the original support vectors.
    pub largest_difference: f64,
}

/// A compressed model and what was lost.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// An ordinary model with fewer vectors.
    pub model: Model,
    /// Every decision function, in the model's order.
    pub functions: Vec<Reduction>,
}

impl Compression {
    /// Compression to `target` with the usual refinement of 300 steps.
    pub fn new(target: Target) -> Self {
        Self { target, refinement: 300 }
    }

    /// Compresses every decision function of `model`.
    ///
    /// Probabilities are kept as they are; calibrate again where they matter. When the context asks
    /// to stop, what was merged so far is returned.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a target out of range; [`Error::Kernel`] for kernels whose vectors
    /// cannot be merged; [`Error::Model`] for SVDD, whose functions are not sums over vectors alone.
    pub fn apply(&self, model: &Model, context: &Context) -> Result<Compressed> {
        self.validate()?;
        if model.self_weight != 0.0 {
            return Err(Error::Model {
                message: "compression of SVDD is not supported: its radius depends on the exact \
                          centre; use a one-class SVM"
                    .into(),
            });
        }
        let rule = Rule::of(&model.kernel)?;
        let originals = expansions(model);
        let merged = self.merged(&originals, &rule, context)?;
        context.report(&Event::Stage { name: "compression", total: originals.len() });
        let (mut reduced, mut functions) = (Vec::new(), Vec::new());
        for (original, merged) in originals.iter().zip(merged) {
            let smaller = self.finish(original, merged, &rule, context)?;
            functions.push(compare(original, &smaller, &rule, context)?);
            reduced.push(smaller);
            context.report(&Event::StageStep { name: "compression" });
        }
        Ok(Compressed { model: assemble(model, &reduced)?, functions })
    }

    fn validate(&self) -> Result<()> {
        match self.target {
            Target::Difference(limit) if !(limit.is_finite() && limit >= 0.0) => {
                Err(Error::parameter("difference", "a number of at least 0", limit))
            }
            Target::Vectors(0) => Err(Error::parameter("vectors", "a number of at least 1", 0)),
            Target::Ratio(ratio) if !(ratio > 0.0 && ratio <= 1.0) => {
                Err(Error::parameter("ratio", "a number above 0 and at most 1", ratio))
            }
            _ => Ok(()),
        }
    }

    /// Every function merged as far as the target says; a common budget is spent where merging costs
    /// least.
    fn merged(
        &self,
        originals: &[Expansion],
        rule: &Rule,
        context: &Context,
    ) -> Result<Vec<Expansion>> {
        let total: usize = originals.iter().map(|o| o.vectors.len()).sum();
        let (stop, budget) = match (self.target, originals.len()) {
            (Target::Difference(limit), _) => (Stop::Difference(limit), 0),
            (Target::Vectors(count), functions) => (Stop::shared(count, functions), count),
            (Target::Ratio(ratio), functions) => {
                let count = ((ratio * total as f64).round() as usize).max(1);
                (Stop::shared(count, functions), count)
            }
        };
        let mut mergings = Vec::with_capacity(originals.len());
        for original in originals {
            mergings.push(merge(original, rule, stop, context)?);
        }
        let mut merges = Vec::new();
        for (f, merging) in mergings.iter().enumerate() {
            let mut worst = 0.0;
            for cost in merging.costs() {
                worst = f64::max(worst, cost);
                merges.push((worst, f));
            }
        }
        merges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut counts = vec![0; originals.len()];
        for &(_, f) in merges.iter().take(total.saturating_sub(budget)) {
            counts[f] += 1;
        }
        Ok(mergings.iter().zip(counts).map(|(merging, count)| merging.after(count)).collect())
    }

    /// Gives merged vectors their best weights and places.
    fn finish(
        &self,
        original: &Expansion,
        mut reduced: Expansion,
        rule: &Rule,
        context: &Context,
    ) -> Result<Expansion> {
        if reduced.vectors.len() == original.vectors.len() {
            return Ok(reduced);
        }
        reweigh(rule, &mut reduced, original, context)?;
        if self.refinement > 0 {
            refine::refine(rule, &mut reduced, original, self.refinement, context)?;
            reweigh(rule, &mut reduced, original, context)?;
        }
        Ok(reduced)
    }
}

/// Gives the vectors the weights of least residual, unless those they have are as good.
fn reweigh(
    rule: &Rule,
    reduced: &mut Expansion,
    original: &Expansion,
    context: &Context,
) -> Result<()> {
    let tables = Tables::new(rule, &reduced.vectors, original, context)?;
    if let Some(weights) = tables.best_weights()
        && tables.partial_residual(&weights) < tables.partial_residual(&reduced.weights)
    {
        reduced.weights = weights;
    }
    Ok(())
}

fn compare(
    original: &Expansion,
    reduced: &Expansion,
    rule: &Rule,
    context: &Context,
) -> Result<Reduction> {
    let norm = squared_norm(rule, original, context)?;
    let tables = Tables::new(rule, &reduced.vectors, original, context)?;
    let residual = (norm + tables.partial_residual(&reduced.weights)).max(0.0);
    Ok(Reduction {
        before: original.vectors.len(),
        after: reduced.vectors.len(),
        relative_residual: if norm > 0.0 { residual / norm } else { 0.0 },
        largest_difference: largest_difference(rule, reduced, original, context)?,
    })
}

#[cfg(test)]
mod tests;
