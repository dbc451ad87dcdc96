//! Smaller models: the support vectors of every decision function merged into fewer new ones.
//!
//! A function Σ αᵢK(xᵢ, ·) is replaced by Σ βⱼK(zⱼ, ·) with fewer vectors, built bottom-up from pairs
//! of the same sign, given the weights of least residual ‖Ψ − Ψ'‖, and, by default, moved
//! together to a still smaller one (Nguyen 2006, chapter 3). By Cauchy and Schwarz no decision value
//! changes by more than the residual times √K(x, x).

mod assemble;
mod bottom_up;
mod chunk;
mod curvature;
mod element;
mod estimate;
mod gaussian;
mod lossless;
mod merge_kernel;
mod method;
mod objective;
mod pivots;
mod polynomial;
mod pool;
mod refine;
mod rounds;
mod search;
mod select;
mod store;
mod sums;
mod top_down;

pub use method::CompressionMethod;
pub use search::{SizeScore, accuracy_by_size, smallest_within};

use self::assemble::{assemble_separate, assemble_together, expansion_of, separate, together};
use self::bottom_up::{MergeStop, merge};
use self::element::Element;
use self::merge_kernel::MergeKernel;
use self::pool::{Expansion, VectorPool};
use self::rounds::merge_in_rounds;
use self::select::{eliminate, prune, sparse};
use self::sums::{compare, gram, reweigh};
use self::top_down::{VectorSearch, construct};
use crate::context::{Context, Event};
use crate::data::memory;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::{Model, Precision};

/// Most vectors of a pool whose Gram matrix selection may hold.
const MOST_SELECTED_FROM: usize = 8192;

/// Most vectors of a pool that elimination by eigenvectors takes on.
const MOST_FOR_EIGENVECTORS: usize = 512;

/// How far a model is to be compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CompressionTarget {
    /// Merge while no function changes by more than this at any of its own support vectors (the
    /// maximum marginal difference θ).
    Difference(f64),
    /// This many vectors; at least one per class, or per function and sign, remains.
    Vectors(usize),
    /// This share of the vectors, between 0 and 1.
    Ratio(f64),
    /// As few vectors as give the same functions exactly: one per function for a linear kernel, as
    /// many as features for a quadratic one, otherwise those whose images do not depend on others'.
    Lossless,
}

/// How models are compressed.
///
/// ```
/// use widemargin::Context;
/// use widemargin::data::read::{ReadOptions, read_dataset};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{Machine, Svc};
/// use widemargin::operation::compress::{ModelCompression, CompressionTarget};
///
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");
/// # std::env::set_current_dir(folder).unwrap();
/// let data = read_dataset("iris.csv", &ReadOptions::new())?;
/// let context = Context::new();
/// let svc = Svc { kernel: Kernel::Gaussian { gamma: 0.5 }, ..Svc::default() };
/// let model = svc.fit(&data, &context)?;
/// let compressed = ModelCompression::new(CompressionTarget::Ratio(0.25)).apply(&model, &context)?;
/// assert!(compressed.model.support_count() < model.support_count());
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelCompression {
    /// How far to go.
    pub target: CompressionTarget,
    /// How fewer vectors are found.
    pub method: CompressionMethod,
    /// Whether the functions of a model share vectors, as those of a trained model do. Vectors are
    /// then counted once, and each has a weight in all functions that are about its class; otherwise
    /// every function gets vectors of its own, and all are counted.
    pub shared: bool,
    /// Most steps of the joint optimisation of vectors and weights; 0 leaves it out. `None` is 30 or,
    /// for large models, as many, down to one, as take no longer than training; none after a
    /// selection.
    pub refinement: Option<usize>,
}

/// One function before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reduction {
    /// Vectors before.
    pub before: usize,
    /// Vectors after.
    pub after: usize,
    /// ‖Ψ − Ψ'‖² / ‖Ψ‖²; not a number where the time limit left none to measure it.
    pub relative_residual: f64,
    /// Largest change of the function at the original support vectors, or not a number likewise.
    pub largest_difference: f64,
}

/// A compressed model and what was lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compressed {
    /// An ordinary model with fewer vectors.
    pub model: Model,
    /// Every decision function, in the model's order.
    pub functions: Vec<Reduction>,
}

impl ModelCompression {
    /// Compression to `target` with the usual refinement, sharing vectors where the target is a
    /// number of them.
    pub fn new(target: CompressionTarget) -> Self {
        let shared = matches!(target, CompressionTarget::Vectors(_) | CompressionTarget::Ratio(_));
        Self { target, method: CompressionMethod::Merge, shared, refinement: None }
    }

    /// Compresses every decision function of `model`.
    ///
    /// Probabilities are kept as they are; calibrate again where they matter. When the context asks
    /// to stop, what was merged so far is returned; functions whose vectors are then too many to be weighted in a
    /// moment stay as they are.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a target out of range; [`Error::Kernel`] for kernels whose vectors
    /// cannot be merged; [`Error::Model`] for models that are not sums over support vectors.
    pub fn apply(&self, model: &Model, context: &Context) -> Result<Compressed> {
        self.validate()?;
        match expansion_of(model)?.precision {
            Precision::F32 => self.apply_in::<f32>(model, context),
            Precision::F64 => self.apply_in::<f64>(model, context),
        }
    }

    fn apply_in<T: Element>(&self, model: &Model, context: &Context) -> Result<Compressed> {
        let originals = self.originals(model)?;
        let budget = match self.target {
            CompressionTarget::Vectors(count) => count,
            CompressionTarget::Ratio(ratio) => {
                let total: usize = originals.iter().map(VectorPool::len).sum();
                ((ratio * total as f64).round() as usize).max(1)
            }
            CompressionTarget::Difference(_) | CompressionTarget::Lossless => 1,
        };
        let reduced = match self.starts::<T>(model, &originals, &[budget], context) {
            Err(Error::Interrupted) => originals.clone(),
            starts => starts?.swap_remove(0),
        };
        self.complete::<T>(model, &originals, reduced, context)
    }

    /// The pools of a model that are compressed: one for all functions, or one for each.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there is no memory for their vectors, which are dense.
    fn originals(&self, model: &Model) -> Result<Vec<VectorPool>> {
        let shared = self.shared && model.functions().len() > 1;
        let copies = if shared { 1 } else { model.functions().len() };
        let (vectors, features) = (model.support_count(), model.features());
        // The vectors themselves and those they are merged to.
        let bytes = 2 * 8 * copies as u128 * vectors as u128 * features as u128;
        memory::check(|| format!("{vectors} dense vectors of {features} features"), bytes)?;
        Ok(if shared { vec![together(model)] } else { separate(model) })
    }

    /// The model over reduced pools, with their best weights and places.
    fn complete<T: Element>(
        &self,
        model: &Model,
        originals: &[VectorPool],
        mut reduced: Vec<VectorPool>,
        context: &Context,
    ) -> Result<Compressed> {
        context.report(&Event::Stage { name: "compression", total: originals.len() });
        let mut functions = Vec::new();
        for (original, reduced) in originals.iter().zip(&mut reduced) {
            match self.finish::<T>(model, original, reduced, context) {
                // Without weights the vectors are of no use: those of the model stay.
                Err(Error::Interrupted) => reduced.clone_from(original),
                finished => finished?,
            }
            let kernel = &expansion_of(model)?.kernel;
            let compared = match reduced == original {
                true => Ok(sums::unchanged(original)),
                false => compare::<T>(kernel, original, reduced, &context.with_grace()),
            };
            functions.extend(match compared {
                Err(Error::Interrupted) => sums::unmeasured(original, reduced),
                compared => compared?,
            });
            context.report(&Event::StageStep { name: "compression" });
        }
        let model = match reduced.len() == model.functions().len() {
            true => assemble_separate(model, &reduced)?,
            false => assemble_together(model, &reduced[0])?,
        };
        Ok(Compressed { model, functions })
    }

    fn validate(&self) -> Result<()> {
        match self.target {
            CompressionTarget::Difference(limit) if !(limit.is_finite() && limit >= 0.0) => {
                Err(Error::parameter("difference", "a number of at least 0", limit))
            }
            CompressionTarget::Difference(_) | CompressionTarget::Lossless if self.shared => {
                Err(Error::parameter(
                    "shared",
                    "a number of vectors or a ratio as target",
                    "a target that every function reaches by itself",
                ))
            }
            CompressionTarget::Difference(_)
                if !matches!(self.method, CompressionMethod::Merge | CompressionMethod::Greedy) =>
            {
                Err(Error::parameter("method", "merge, for a difference as target", self.method))
            }
            CompressionTarget::Vectors(0) => {
                Err(Error::parameter("vectors", "a number of at least 1", 0))
            }
            CompressionTarget::Ratio(ratio) if !(ratio > 0.0 && ratio <= 1.0) => {
                Err(Error::parameter("ratio", "a number above 0 and at most 1", ratio))
            }
            _ => Ok(()),
        }
    }

    /// Fewer vectors for every pool, once for each of `budgets` (descending).
    fn starts<T: Element>(
        &self,
        model: &Model,
        originals: &[VectorPool],
        budgets: &[usize],
        context: &Context,
    ) -> Result<Vec<Vec<VectorPool>>> {
        let kernel = &expansion_of(model)?.kernel;
        let total: usize = originals.iter().map(VectorPool::len).sum();
        let every =
            |reduce: &dyn Fn(&VectorPool) -> Result<VectorPool>| -> Result<Vec<Vec<VectorPool>>> {
                Ok(vec![originals.iter().map(reduce).collect::<Result<_>>()?])
            };
        match (self.target, self.method) {
            (CompressionTarget::Lossless, _) => {
                every(&|pool| lossless::reduce(kernel, pool, context))
            }
            (CompressionTarget::Difference(limit), _) => {
                let rule = MergeKernel::of(kernel)?;
                every(&|pool| merged_within(pool, &rule, limit, context))
            }
            (_, CompressionMethod::Merge | CompressionMethod::Greedy) => {
                let rule = MergeKernel::of(kernel)?;
                let lists: Vec<Vec<Expansion>> = originals.iter().map(VectorPool::lists).collect();
                let all = lists.concat();
                let merged = match self.method {
                    CompressionMethod::Merge => merge_in_rounds(&all, &rule, budgets, context)?,
                    _ => merge_greedily(&all, &rule, budgets, context)?,
                };
                let over = |merged: Vec<Expansion>| {
                    let mut merged = merged.into_iter();
                    let of = |(pool, lists): (&VectorPool, &Vec<Expansion>)| {
                        pool.over(merged.by_ref().take(lists.len()).collect())
                    };
                    originals.iter().zip(&lists).map(of).collect()
                };
                Ok(merged.into_iter().map(over).collect())
            }
            (_, method) => {
                // A part of the budget in proportion to the vectors before.
                let share = |pool: &VectorPool, budget: usize| {
                    let count = (budget * pool.len()) as f64 / total.max(1) as f64;
                    (count.round() as usize).clamp(1, pool.len().max(1))
                };
                let reduced = |&budget: &usize| {
                    let one = |pool: &VectorPool| {
                        chosen::<T>(method, kernel, pool, share(pool, budget), context)
                    };
                    originals.iter().map(one).collect()
                };
                budgets.iter().map(reduced).collect()
            }
        }
    }

    /// Gives vectors their best weights and places.
    fn finish<T: Element>(
        &self,
        model: &Model,
        original: &VectorPool,
        reduced: &mut VectorPool,
        context: &Context,
    ) -> Result<()> {
        if self.target == CompressionTarget::Lossless {
            return Ok(());
        }
        if reduced.len() >= original.len() {
            reduced.clone_from(original);
            return Ok(());
        }
        let usual = refine::usual_steps(original.len(), reduced.len());
        let usual = if self.method.selects() { 0 } else { usual };
        let steps = self.refinement.unwrap_or(usual);
        let finishing = context.with_grace();
        if steps == 0 {
            reweigh::<f64>(&expansion_of(model)?.kernel, reduced, original, &finishing)?;
        } else {
            reweigh::<T>(&expansion_of(model)?.kernel, reduced, original, &finishing)?;
            let rule = MergeKernel::of(&expansion_of(model)?.kernel)?;
            refine::refine::<T>(&rule, reduced, original, steps, context)?;
        }
        Ok(())
    }
}

/// A function merged pair by pair as far as it moves by at most `limit`.
fn merged_within(
    pool: &VectorPool,
    rule: &MergeKernel,
    limit: f64,
    context: &Context,
) -> Result<VectorPool> {
    let single = pool.function(0);
    let merging = merge(&single, rule, MergeStop::Difference(limit), context)?;
    Ok(pool.over(merging.after(merging.costs().count()).by_sign()))
}

/// Every list merged pair by pair, once for each of `budgets`; a common budget is spent where
/// merging costs least.
fn merge_greedily(
    lists: &[Expansion],
    rule: &MergeKernel,
    budgets: &[usize],
    context: &Context,
) -> Result<Vec<Vec<Expansion>>> {
    let total: usize = lists.iter().map(|list| list.vectors.len()).sum();
    let mut mergings = Vec::with_capacity(lists.len());
    for list in lists {
        mergings.push(merge(list, rule, MergeStop::End, context)?);
    }
    let mut merges = Vec::new();
    for (l, merging) in mergings.iter().enumerate() {
        let mut worst = 0.0;
        for cost in merging.costs() {
            worst = f64::max(worst, cost);
            merges.push((worst, l));
        }
    }
    merges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let cut = |&budget: &usize| {
        let mut counts = vec![0; lists.len()];
        for &(_, l) in merges.iter().take(total.saturating_sub(budget)) {
            counts[l] += 1;
        }
        mergings.iter().zip(counts).map(|(merging, count)| merging.after(count)).collect()
    };
    Ok(budgets.iter().map(cut).collect())
}

/// `count` vectors constructed top-down or selected.
fn chosen<T: Element>(
    method: CompressionMethod,
    kernel: &Kernel,
    pool: &VectorPool,
    count: usize,
    context: &Context,
) -> Result<VectorPool> {
    let most = match method {
        CompressionMethod::KernelPca => MOST_FOR_EIGENVECTORS,
        _ => MOST_SELECTED_FROM,
    };
    let search = match (method, kernel) {
        (CompressionMethod::FixedPoint, &Kernel::Gaussian { gamma }) => {
            VectorSearch::FixedPoint { gamma }
        }
        (CompressionMethod::FixedPoint, _) => {
            return Err(Error::kernel(
                kernel.name(),
                "a Gaussian kernel for the fixed-point iteration",
                "another one; use the method gradient",
            ));
        }
        (CompressionMethod::Gradient, _) => VectorSearch::Gradient,
        _ => {
            if pool.len() > most {
                let expected = format!("at most {most} vectors in a function (or shared pool)");
                return Err(Error::parameter("method", expected, pool.len()));
            }
            let gram = gram(kernel, &pool.vectors, context)?;
            let keep = match method {
                CompressionMethod::KernelPca => eliminate(pool, &gram, count, context).0,
                CompressionMethod::L1 => sparse(pool, &gram, count, context)?,
                _ => prune(pool, &gram, count, context)?.0,
            };
            return Ok(pool.selection(&keep));
        }
    };
    construct::<T>(kernel, &MergeKernel::of(kernel)?, pool, count, search, context)
}

#[cfg(test)]
mod closed_forms;
#[cfg(test)]
mod tests;
