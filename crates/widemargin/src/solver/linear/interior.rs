//! An interior-point method for the duals of hinge and tube losses over narrow tables.
//!
//! Every side of a variable is a piece 0 ≤ a ≤ u of the dual, whose gradient g is to be z − y with
//! az = (u − a)y = 0; Newton's steps towards az = (u − a)y = μ → 0 need one factor of I + Σ θᵢxᵢxᵢᵀ
//! each, θ = 1 / (z/a + y/(u − a)), and there are a few dozen of them whatever the data. Mehrotra
//! (1992); Ferris and Munson (2003).

use super::problem::{Options, squared_norm};
use super::products::Products;
use super::table::{Table, WeightedRows};
use super::tuning::interior::{ROW, STORED_VALUE, USUAL_STEPS, WORTH};
use super::tuning::newton::{FACTOR_ENTRY, MOST_FACTORED};
use super::variable::Variable;
use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::solver::linear::rows::LinearRows;

/// Steps at most.
const MOST_STEPS: usize = 100;

/// The duality gap, relative to the objective, at which there is nothing left to gain.
const CONVERGED: f64 = 1e-13;

/// That from which on a gap that grows is one of rounding.
const ROUNDING_GAP: f64 = 1e-6;

/// How near to its bounds a step may bring a piece, as a share of the way.
const NEAREST: f64 = 0.995;

/// How near to its bounds a piece begins, as a share of their distance.
const INSIDE: f64 = 0.05;

/// How much farther than its multiplier a bound may be from the pieces that are put there; the first
/// that leaves the gap at no more than some times what it was.
const ROUNDING: [f64; 5] = [1.0, 1e2, 1e4, 1e6, f64::INFINITY];
const KEPT: f64 = 10.0;

/// About how many multiplications a solution takes, if the table is narrow enough for it.
pub(super) fn work<R: LinearRows>(rows: &R) -> Option<u64> {
    let [count, width, stored] = [rows.rows(), rows.width(), rows.nonzeros()].map(|n| n as f64);
    let per_row = stored / count.max(1.0) + 1.0;
    let pairs = 0.5 * per_row * per_row * count;
    let step = pairs + FACTOR_ENTRY * width.powi(3) + STORED_VALUE * stored + ROW * count;
    (rows.width() <= MOST_FACTORED).then_some((USUAL_STEPS * step) as u64)
}

/// One side of a variable: its row moves towards it by `at`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    row: u32,
    side: f64,
    /// The linear part of the gradient.
    slope: f64,
    upper: f64,
    at: f64,
    /// What is left to the bound.
    room: f64,
    /// Multipliers of the bounds at 0 and above.
    low: f64,
    high: f64,
    gradient: f64,
}

/// Where a step leads a piece.
#[derive(Clone, Copy, Debug, Default)]
struct Move {
    at: f64,
    low: f64,
    high: f64,
}

impl Piece {
    /// θ
    fn softness(&self) -> f64 {
        1.0 / (self.low / self.at + self.high / self.room)
    }

    /// The conditions of a step: both products at `goal`, given what `before` already changes.
    fn pull(&self, goal: f64, before: &Move) -> f64 {
        (goal - before.at * before.low) / self.at
            - (goal + before.at * before.high) / self.room
            - self.gradient
    }

    /// The multipliers that go with a step of `at` towards `goal`.
    fn follow(&self, at: f64, goal: f64, before: &Move) -> Move {
        let low = (goal - before.at * before.low - self.low * at) / self.at - self.low;
        let high = (goal + before.at * before.high + self.high * at) / self.room - self.high;
        Move { at, low, high }
    }

    /// How much of a move keeps everything positive.
    fn longest(&self, step: &Move) -> f64 {
        let largest_step = |from: f64, by: f64| if by < 0.0 { -from / by } else { f64::INFINITY };
        let point = largest_step(self.at, step.at).min(largest_step(self.room, -step.at));
        point.min(largest_step(self.low, step.low)).min(largest_step(self.high, step.high))
    }

    /// The sum of its products after a share of a move.
    fn products_after(&self, share: f64, step: &Move) -> f64 {
        (self.at + share * step.at) * (self.low + share * step.low)
            + (self.room - share * step.at) * (self.high + share * step.high)
    }

    fn advance(&mut self, share: f64, step: &Move) {
        self.at += share * step.at;
        self.room -= share * step.at;
        self.low += share * step.low;
        self.high += share * step.high;
    }
}

/// The solution of the dual with these variables, from near where they are, or what rounding leaves of it; nothing
/// when it does not come near the optimum, or `context` wishes to stop.
pub(super) fn solve<R: LinearRows>(
    rows: &R,
    variables: &[Variable],
    epsilon: f64,
    options: &Options,
    context: &Context,
) -> Option<Vec<f64>> {
    let sum: f64 = variables.iter().map(|v| v.beta.abs()).sum();
    let usual = sum / variables.len().max(1) as f64;
    // Bounds far beyond the size of the variables say little about where to begin.
    let from = |scale: f64| follow(rows, variables, epsilon, scale, options, context);
    from(f64::INFINITY).or_else(|| if usual > 0.0 { from(usual) } else { None })
}

/// The same from variables that are at least a share of `scale` inside their bounds.
fn follow<R: LinearRows>(
    rows: &R,
    variables: &[Variable],
    epsilon: f64,
    scale: f64,
    options: &Options,
    context: &Context,
) -> Option<Vec<f64>> {
    let mut path = Path::new(rows, variables, epsilon, scale, options.alone, context);
    let mut least = path.look();
    path.choose_multipliers();
    let mut best = path.pieces.clone();
    for _ in 0..MOST_STEPS {
        if context.stop_request().is_some() {
            return None;
        }
        if least <= CONVERGED || !path.step() {
            break;
        }
        let gap = path.look();
        if gap < least {
            least = gap;
            best.clone_from(&path.pieces);
        } else if least <= ROUNDING_GAP {
            break;
        }
    }
    path.pieces = best;
    (least <= WORTH).then(|| path.settle(rows, least, options.gap))
}

/// The way to the solution.
struct Path<'a, R> {
    products: Products<'a, R>,
    context: &'a Context,
    pieces: Vec<Piece>,
    /// By piece.
    softness: Vec<f64>,
    moves: Vec<Move>,
    /// By row.
    sums: Vec<f64>,
    values: Vec<f64>,
}

impl<'a, R: LinearRows> Path<'a, R> {
    /// The sides of all variables that can move, inside their bounds.
    fn new(
        rows: &'a R,
        variables: &[Variable],
        epsilon: f64,
        scale: f64,
        alone: bool,
        context: &'a Context,
    ) -> Self {
        let mut pieces = Vec::with_capacity(variables.len());
        for (row, v) in variables.iter().enumerate() {
            for (side, upper) in [(1.0, v.upper), (-1.0, -v.lower)] {
                if upper > 0.0 {
                    let inside = INSIDE * upper.min(scale);
                    let at = (side * v.beta).clamp(inside, upper - inside);
                    let (row, slope, room) = (row as u32, epsilon - side * v.target, upper - at);
                    let (low, high, gradient) = (0.0, 0.0, 0.0);
                    pieces.push(Piece { row, side, slope, upper, at, room, low, high, gradient });
                }
            }
        }
        Self {
            products: Products::new(rows, alone, context),
            context,
            softness: vec![0.0; pieces.len()],
            moves: vec![Move::default(); pieces.len()],
            pieces,
            sums: vec![0.0; rows.rows()],
            values: vec![0.0; rows.rows()],
        }
    }

    /// Σ fᵢxᵢ, where the factor of a row is the sum over its pieces.
    fn combine(&mut self, factors: impl Iterator<Item = f64>) -> Vec<f64> {
        self.sums.fill(0.0);
        for (piece, factor) in self.pieces.iter().zip(factors) {
            self.sums[piece.row as usize] += piece.side * factor;
        }
        self.products.transposed(&WeightedRows::new(&self.sums))
    }

    /// Brings the gradients up to date; the duality gap, relative to the objective.
    fn look(&mut self) -> f64 {
        let at: Vec<f64> = self.pieces.iter().map(|piece| piece.at).collect();
        let weights = self.combine(at.into_iter());
        self.products.write_values(&weights, &mut self.values);
        let (mut gap, mut objective) = (0.0, 0.5 * squared_norm(&weights));
        for piece in &mut self.pieces {
            piece.gradient = piece.side * self.values[piece.row as usize] + piece.slope;
            gap += piece.at * piece.gradient.max(0.0) + piece.room * (-piece.gradient).max(0.0);
            objective += piece.slope * piece.at;
        }
        if gap > 0.0 { gap / objective.abs() } else { gap }
    }

    /// Multipliers that suit the gradients.
    fn choose_multipliers(&mut self) {
        let sum: f64 = self.pieces.iter().map(|piece| piece.gradient.abs()).sum();
        let least = (sum / self.pieces.len().max(1) as f64).max(f64::MIN_POSITIVE);
        for piece in &mut self.pieces {
            piece.low = piece.gradient.max(0.0) + least;
            piece.high = (-piece.gradient).max(0.0) + least;
        }
    }

    /// A factor of I + Σ θᵢxᵢxᵢᵀ, if rounding leaves one.
    fn factor(&mut self) -> Option<Cholesky> {
        self.sums.fill(0.0);
        for (piece, softness) in self.pieces.iter().zip(&self.softness) {
            self.sums[piece.row as usize] += softness;
        }
        let width = self.products.width();
        let mut matrix = self.products.weighted_gram(&WeightedRows::new(&self.sums));
        (0..width).for_each(|j| matrix[j * width + j] += 1.0);
        Cholesky::new(matrix, width, self.context)
    }

    /// What pieces move by when they follow their pulls, θ for each unit less what the move of all
    /// changes in ⟨w, x⟩.
    fn respond(&mut self, factor: &Cholesky, pulls: &[f64]) -> Vec<f64> {
        let pulled: Vec<f64> = pulls.iter().zip(&self.softness).map(|(p, s)| p * s).collect();
        let mut turn = self.combine(pulled.into_iter());
        factor.solve(&mut turn);
        self.products.write_values(&turn, &mut self.values);
        let pieces = self.pieces.iter().zip(&self.softness).zip(pulls);
        let rest = |piece: &Piece, pull| pull - piece.side * self.values[piece.row as usize];
        pieces.map(|((piece, softness), pull)| softness * rest(piece, pull)).collect()
    }

    /// A step towards products of 0, then, using its result, towards small ones; whether there
    /// was a factor.
    fn step(&mut self) -> bool {
        self.softness = self.pieces.iter().map(Piece::softness).collect();
        let Some(factor) = self.factor() else { return false };
        let total: f64 = self.pieces.iter().map(|p| p.products_after(0.0, &Move::default())).sum();
        self.moves.fill(Move::default());
        let (mut goal, mut share) = (0.0, 1.0);
        for _ in 0..2 {
            let moves = self.pieces.iter().zip(&self.moves);
            let pulls: Vec<f64> = moves.map(|(piece, before)| piece.pull(goal, before)).collect();
            let moved = self.respond(&factor, &pulls);
            let (mut longest, mut after) = (f64::INFINITY, 0.0);
            for ((piece, step), at) in self.pieces.iter().zip(&mut self.moves).zip(moved) {
                *step = piece.follow(at, goal, step);
                longest = piece.longest(step).min(longest);
            }
            share = (NEAREST * longest).min(1.0);
            for (piece, step) in self.pieces.iter().zip(&self.moves) {
                after += piece.products_after(share, step);
            }
            goal = (after / total).powi(3) * total / (2 * self.pieces.len()) as f64;
        }
        let moves = self.pieces.iter_mut().zip(&self.moves);
        moves.for_each(|(piece, step)| piece.advance(share, step));
        true
    }

    /// The variables of all rows, at a bound where its multiplier outweighs the way to it by as
    /// little as keeps the gap, or one that is half of that asked for.
    fn settle(&mut self, rows: &R, gap: f64, asked: f64) -> Vec<f64> {
        let pieces = self.pieces.clone();
        let allowed = (KEPT * gap).min(gap.max(0.5 * asked)).max(CONVERGED);
        for weight in ROUNDING {
            for (piece, inside) in self.pieces.iter_mut().zip(&pieces) {
                let square = weight * rows.squared_norm(piece.row as usize);
                (piece.at, piece.room) = if square * inside.at < inside.low {
                    (0.0, piece.upper)
                } else if square * inside.room < inside.high {
                    (piece.upper, 0.0)
                } else {
                    (inside.at, inside.room)
                };
            }
            if self.look() <= allowed {
                break;
            }
        }
        let mut variables = vec![0.0; rows.rows()];
        for piece in &self.pieces {
            variables[piece.row as usize] += piece.side * piece.at;
        }
        variables
    }
}
