//! The dual of structured large-margin problems,
//!
//! ```text
//! minimise over w   ½‖w‖² + Σᵢ Cᵢ max over u [Δᵢ(u) − ⟨w, ψᵢ(u)⟩]
//! maximise over α   Σᵢ Cᵢ Σᵤ αᵢ(u) Δᵢ(u) − ½‖w‖²,   w = Σᵢ Cᵢ Σᵤ αᵢ(u) ψᵢ(u),   αᵢ ≥ 0, Σᵤ αᵢ(u) = 1
//! ```
//!
//! with one simplex a block i over all its labellings u, by block-coordinate Frank–Wolfe (Lacoste-Julien, Jaggi,
//! Schmidt and Pletscher, 2013) with pairwise steps and the labellings met so far kept (Shah, Kolmogorov and Lampert,
//! 2015; Osokin, Alayrac, Lukasewitz, Dokania and Lacoste-Julien, 2016). Of a block only those u with αᵢ(u) > 0 are
//! stored. The true labelling has ψ = 0 and Δ = 0 and is never stored.
//!
//! Blocks are decoded in batches of a size that depends on the data alone, so that the result does not depend on the
//! number of threads; the steps that follow see the weights of the moment.

use std::time::Instant;

use super::{Outcome, Status};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::numeric::parallel::Scratches;
use crate::numeric::random::Generator;

/// Largest number of blocks that are decoded with the same weights.
const BATCH: usize = 16;

/// A batch has at most this share of the blocks.
const BATCH_SHARE: usize = 64;

/// Steps within a block after it was decoded.
const STEPS: usize = 5;

/// Cost of a sweep over the kept labellings beside one that decodes, and the most sweeps in between.
const SWEEP_COST: f64 = 0.3;
const SWEEPS: usize = 10;

/// What a structured problem knows about its blocks; weights may be any linear space.
pub(crate) trait Blocks: Sync {
    /// A labelling of a block other than the true one.
    type Labelling: PartialEq + Send + Sync;
    /// w.
    type Weights: Send + Sync;
    /// Memory of a decoder.
    type Scratch: Default + Send;

    /// Number of blocks.
    fn count(&self) -> usize;

    /// Price Cᵢ of the loss of a block.
    fn price(&self, block: usize) -> f64;

    /// w = 0.
    fn zero(&self) -> Self::Weights;

    /// The u with the largest Δ(u) − ⟨w, ψ(u)⟩; nothing if that is the true labelling.
    fn most_violating(
        &self,
        block: usize,
        weights: &Self::Weights,
        scratch: &mut Self::Scratch,
    ) -> Result<Option<Self::Labelling>>;

    /// Δ(u).
    fn loss(&self, block: usize, labelling: &Self::Labelling) -> f64;

    /// ⟨w, ψ(u)⟩.
    fn margin(&self, block: usize, labelling: &Self::Labelling, weights: &Self::Weights) -> f64;

    /// ⟨ψ(u), ψ(v)⟩.
    fn product(&self, block: usize, left: &Self::Labelling, right: &Self::Labelling) -> f64;

    /// w ← w + factor · ψ(u).
    fn add(
        &self,
        block: usize,
        labelling: &Self::Labelling,
        factor: f64,
        weights: &mut Self::Weights,
    );

    /// ‖w‖².
    fn squared_norm(&self, weights: &Self::Weights) -> f64;
}

/// Options of the solver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Duality gap, as a share of the primal objective, that ends it.
    pub(crate) tol: f64,
    /// Most passes in which every block is decoded once.
    pub(crate) max_passes: usize,
}

/// A labelling with a positive multiplier.
struct Kept<L> {
    labelling: L,
    /// α(u).
    share: f64,
    loss: f64,
    square: f64,
}

/// The multipliers of a block.
struct Block<L> {
    /// α of the true labelling.
    truth: f64,
    kept: Vec<Kept<L>>,
}

/// Weights and what is proven about them.
pub(crate) struct Solution<W> {
    pub(crate) weights: W,
    pub(crate) outcome: Outcome,
}

/// Solves the problem from w = 0.
///
/// # Errors
/// Those of the decoder.
pub(crate) fn solve<B: Blocks + ?Sized>(
    problem: &B,
    options: &Options,
    context: &Context,
) -> Result<Solution<B::Weights>> {
    let mut ascent = Ascent::new(problem, context);
    ascent.climb(options)?;
    Ok(Solution { weights: ascent.weights, outcome: ascent.outcome })
}

/// What to do about values that are not finite.
const SCALE: &str = "scale the features or choose a smaller c";

/// Refuses a value of a block that is not finite.
fn check_finite(value: f64, block: usize) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    let place = block + 1;
    Err(Error::model(format!("a step in block {place} is {value}, not a finite number: {SCALE}")))
}

struct Ascent<'a, B: Blocks + ?Sized> {
    problem: &'a B,
    context: &'a Context,
    weights: B::Weights,
    blocks: Vec<Block<B::Labelling>>,
    scratches: Scratches<B::Scratch>,
    /// Dual objective by the sum of the improvements.
    dual: f64,
    outcome: Outcome,
}

impl<'a, B: Blocks + ?Sized> Ascent<'a, B> {
    fn new(problem: &'a B, context: &'a Context) -> Self {
        let blocks = (0..problem.count()).map(|_| Block { truth: 1.0, kept: Vec::new() });
        let outcome = Outcome {
            status: Status::IterationLimit,
            primal: f64::INFINITY,
            dual: 0.0,
            violation: f64::INFINITY,
            iterations: 0,
            blocks: 0,
            kernel_rows: 0,
        };
        Self {
            problem,
            context,
            weights: problem.zero(),
            blocks: blocks.collect(),
            scratches: Scratches::new(),
            dual: 0.0,
            outcome,
        }
    }

    fn climb(&mut self, options: &Options) -> Result<()> {
        let mut random = Generator::new(self.context.seed());
        let mut order: Vec<usize> = (0..self.problem.count()).collect();
        let mut verification = 0.0_f64;
        for pass in 1..=options.max_passes {
            random.shuffle(&mut order);
            let (before, started) = (self.dual, Instant::now());
            let Some(gap) = self.pass(&order)? else { break };
            // A pass without steps bounds the time that the proof will take.
            verification = verification.max(started.elapsed().as_secs_f64());
            self.outcome.blocks += 1;
            self.sweeps(&order, before)?;
            self.context.report(&Event::Iteration {
                iteration: pass,
                violation: gap,
                objective: self.dual,
                active: self.blocks.iter().filter(|block| !block.kept.is_empty()).count(),
            });
            // The gaps were those of the moment when their blocks were decoded: mostly too large.
            let small = gap <= options.tol * (self.dual + gap);
            if small || pass == options.max_passes {
                self.verify(options.tol)?;
            }
            if self.outcome.status.is_solved() {
                return Ok(());
            }
            let left = self.context.time_left().map(|left| left.as_secs_f64());
            if left.is_some_and(|left| left < 1.5 * verification) {
                self.verify(options.tol)?;
                self.outcome.status = match self.outcome.status {
                    Status::IterationLimit => Status::TimeLimit,
                    status => status,
                };
                return Ok(());
            }
        }
        if let Some(status) =
            self.context.stop_request().filter(|_| self.outcome.primal.is_infinite())
        {
            self.outcome.status = status;
            self.outcome.dual = self.fresh_dual();
        }
        Ok(())
    }

    /// Decodes every block and takes steps in it; the sum of the blocks' gaps at that moment, or nothing when it was
    /// asked to stop.
    fn pass(&mut self, order: &[usize]) -> Result<Option<f64>> {
        let size = (order.len() / BATCH_SHARE).clamp(1, BATCH);
        let mut gap = 0.0;
        for batch in order.chunks(size) {
            if self.context.stop_request().is_some() {
                return Ok(None);
            }
            for (&block, found) in batch.iter().zip(self.decode(batch)?) {
                gap += self.visit(block, found)?;
            }
        }
        Ok(Some(gap))
    }

    fn decode(&self, batch: &[usize]) -> Result<Vec<Option<B::Labelling>>> {
        self.context.try_map(batch.iter(), |&block| {
            self.scratches
                .with(|scratch| self.problem.most_violating(block, &self.weights, scratch))
        })
    }

    /// Steps in a block for which a labelling was found; its gap before them.
    fn visit(&mut self, block: usize, found: Option<B::Labelling>) -> Result<f64> {
        let own = &mut self.blocks[block];
        own.kept.retain(|kept| kept.share > 0.0);
        if let Some(labelling) = found
            && own.kept.iter().all(|kept| kept.labelling != labelling)
        {
            let loss = self.problem.loss(block, &labelling);
            let square = self.problem.product(block, &labelling, &labelling);
            own.kept.push(Kept { labelling, share: 0.0, loss, square });
        }
        let mut gap = 0.0;
        for step in 0..STEPS.min(own.kept.len()) {
            let Some(found) = self.step(block)? else { break };
            if step == 0 {
                gap = found;
            }
        }
        Ok(gap)
    }

    /// Moves multipliers from the worst labelling to the best among those kept; the gap before, or nothing where
    /// there is no step to take.
    fn step(&mut self, block: usize) -> Result<Option<f64>> {
        let (problem, price) = (self.problem, self.problem.price(block));
        let own = &mut self.blocks[block];
        // The true labelling has the value 0; its place is none.
        let (mut best, mut highest) = (None, 0.0);
        let (mut worst, mut lowest) = (None, if own.truth > 0.0 { 0.0 } else { f64::INFINITY });
        let mut mean = 0.0;
        for (place, kept) in own.kept.iter().enumerate() {
            let value = kept.loss - problem.margin(block, &kept.labelling, &self.weights);
            mean += kept.share * value;
            if value > highest {
                (best, highest) = (Some(place), value);
            }
            if kept.share > 0.0 && value < lowest {
                (worst, lowest) = (Some(place), value);
            }
        }
        let (gap, slope) = (price * (highest - mean), highest - lowest);
        // A value that is no number is neither the highest nor the lowest, but makes the mean one.
        check_finite(mean, block)?;
        if best == worst || slope <= 1e-14 * (1.0 + highest.abs()) {
            return Ok(None);
        }
        let square = |place: Option<usize>| place.map_or(0.0, |place| own.kept[place].square);
        let cross = match (best, worst) {
            (Some(a), Some(b)) => {
                problem.product(block, &own.kept[a].labelling, &own.kept[b].labelling)
            }
            _ => 0.0,
        };
        let curvature = price * (square(best) + square(worst) - 2.0 * cross);
        check_finite(slope, block)?;
        check_finite(curvature, block)?;
        let most = worst.map_or(own.truth, |place| own.kept[place].share);
        let length = if slope < curvature * most { slope / curvature } else { most };
        for (place, sign) in [(best, 1.0), (worst, -1.0)] {
            match place {
                Some(place) => {
                    let kept = &mut own.kept[place];
                    let moved = sign * length;
                    kept.share = if kept.share + moved > 0.0 { kept.share + moved } else { 0.0 };
                    problem.add(block, &kept.labelling, price * moved, &mut self.weights);
                }
                None => own.truth = (own.truth + sign * length).clamp(0.0, 1.0),
            }
        }
        if length == most {
            match worst {
                Some(place) => own.kept[place].share = 0.0,
                None => own.truth = 0.0,
            }
        }
        self.dual += price * length * (slope - 0.5 * curvature * length);
        self.outcome.iterations += 1;
        Ok(Some(gap))
    }

    /// Steps among the labellings that are kept, for as long as a sweep improves the dual more, for what it costs,
    /// than the pass that decoded.
    fn sweeps(&mut self, order: &[usize], before: f64) -> Result<()> {
        let mut cost = 1.0;
        for _ in 0..SWEEPS {
            if self.context.stop_request().is_some() {
                return Ok(());
            }
            let start = self.dual;
            for &block in order {
                for _ in 0..2 {
                    if self.blocks[block].kept.is_empty() || self.step(block)?.is_none() {
                        break;
                    }
                }
            }
            cost += SWEEP_COST;
            let (own, all) = (self.dual - start, self.dual - before);
            if own / SWEEP_COST < all / cost {
                break;
            }
        }
        Ok(())
    }

    /// w and the dual objective from the multipliers alone.
    fn fresh_dual(&mut self) -> f64 {
        self.weights = self.problem.zero();
        let mut loss = 0.0;
        for (i, block) in self.blocks.iter_mut().enumerate() {
            block.kept.retain(|kept| kept.share > 0.0);
            let sum = block.truth + block.kept.iter().map(|kept| kept.share).sum::<f64>();
            let price = self.problem.price(i);
            for kept in &mut block.kept {
                kept.share /= sum;
                loss += price * kept.share * kept.loss;
                let factor = price * kept.share;
                self.problem.add(i, &kept.labelling, factor, &mut self.weights);
            }
            block.truth /= sum;
        }
        self.dual = loss - 0.5 * self.problem.squared_norm(&self.weights);
        self.dual
    }

    /// The objectives at the weights of the multipliers, every block decoded with the same weights.
    fn verify(&mut self, tol: f64) -> Result<()> {
        let dual = self.fresh_dual();
        let mut losses = 0.0;
        let all: Vec<usize> = (0..self.problem.count()).collect();
        for batch in all.chunks(1024) {
            if let Some(status) = self.context.stop_request() {
                self.outcome = Outcome { status, dual, ..self.outcome };
                return Ok(());
            }
            for (&block, found) in batch.iter().zip(self.decode(batch)?) {
                let Some(labelling) = found else { continue };
                let loss = self.problem.loss(block, &labelling);
                let margin = self.problem.margin(block, &labelling, &self.weights);
                losses += self.problem.price(block) * (loss - margin).max(0.0);
            }
        }
        let primal = 0.5 * self.problem.squared_norm(&self.weights) + losses;
        if !primal.is_finite() {
            return Err(Error::model(format!(
                "the objective is {primal}, not a finite number: {SCALE}"
            )));
        }
        // Rounding may put an exact dual value above the primal one.
        let dual = dual.min(primal);
        let violation = (primal - dual) / primal.abs().max(f64::MIN_POSITIVE);
        self.outcome = Outcome { primal, dual, violation, ..self.outcome };
        if violation <= tol || primal == 0.0 {
            self.outcome.status = Status::Solved;
        }
        Ok(())
    }
}
