//! One proximal Newton step: a quadratic program over the members of a block, solved by guessing
//! which variables end at which bound.

use super::factor::InsideFactor;
use super::projection::Slice;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::simd::{Real, accumulate};
use crate::solver::smo::decompose::worst;
use crate::solver::smo::inner::InnerMatrix;
use crate::solver::smo::state::State;

/// Damping, as a share of the mean of the diagonal, below which rounding of single precision entries
/// is larger than the smallest eigenvalues.
const LEAST_DAMPING: f64 = 1e-6;

/// Damping at the most, of a matrix that has no factor for less.
const MOST_DAMPING: f64 = 1.0;

/// Damping to begin with, in units of the violation over the room that variables have in their boxes.
const FIRST_SHARE: f64 = 0.15;

/// How much more damping a step is tried with whose guesses do not settle, and how often.
const MORE: f64 = 10.0;
const ATTEMPTS: usize = 3;

/// The damping falls by so much more after a step of few guesses.
const LESS: f64 = 0.1;

/// Smallest such share.
const LEAST_SHARE: f64 = 1e-3;

/// Guesses that one step may take.
const GUESSES: usize = 15;

/// A guess must change this share less than the one two before, or the damping was too small.
const SHRINKS: f64 = 0.75;

/// Guesses up to which the damping falls faster after a step.
const FEW_GUESSES: usize = 4;

/// Where a variable of the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    AtLower,
    AtUpper,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::solver::smo) struct StepOutcome {
    /// Whether the program was solved.
    pub(in crate::solver::smo) is_solved: bool,
    /// Σ q³ over the factors of order q.
    pub(in crate::solver::smo) cubes: f64,
    /// Σ q over the factors: rows of the matrix that products passed.
    pub(in crate::solver::smo) rows: f64,
}

/// Proximal Newton steps; keeps the share of the damping and memory from step to step.
pub(in crate::solver::smo) struct Newton {
    share: f64,
    memory: Vec<f64>,
}

impl Default for Newton {
    fn default() -> Self {
        Self { share: FIRST_SHARE, memory: Vec::new() }
    }
}

impl Newton {
    /// Moves the variables of `state` to the solution of the damped program, or to the projection of
    /// the last guess where that lowers the objective. Multipliers are right to within `tol`; no guess
    /// has more than `most` variables inside.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when it was stopped; the state is as it was.
    pub(in crate::solver::smo) fn step<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &M,
        most: usize,
        tol: f64,
        context: &Context,
    ) -> Result<StepOutcome> {
        let mut outcome = StepOutcome::default();
        for _ in 0..ATTEMPTS {
            let guesses = self.attempt(state, matrix, most, tol, context, &mut outcome)?;
            if outcome.is_solved {
                let factor = if guesses <= FEW_GUESSES { LESS } else { 1.0 };
                self.share = (factor * self.share).max(LEAST_SHARE);
                break;
            }
            self.share = (MORE * self.share).min(1.0 / LEAST_SHARE);
        }
        Ok(outcome)
    }

    /// One step; returns its guesses.
    fn attempt<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &M,
        most: usize,
        tol: f64,
        context: &Context,
        outcome: &mut StepOutcome,
    ) -> Result<usize> {
        let mean = state.mean_diagonal();
        if !(mean > 0.0 && mean.is_finite()) {
            return Ok(0);
        }
        let damping = self.share * worst(&state.extremes()) / state.room().max(f64::MIN_POSITIVE);
        let mut program =
            Program::new(state, damping.clamp(LEAST_DAMPING * mean, MOST_DAMPING * mean));
        let mut changes: Vec<usize> = Vec::new();
        while changes.len() < GUESSES && program.order() <= most {
            outcome.rows += program.order() as f64;
            let Some(cubes) = program.solve(matrix, &mut self.memory, context)? else { break };
            outcome.cubes += cubes;
            let changed = program.correct(tol);
            changes.push(changed);
            if changed == 0 {
                outcome.is_solved = true;
                break;
            }
            let last = changes.len() - 1;
            if last >= 2 && changed as f64 > SHRINKS * changes[last - 2] as f64 {
                break;
            }
        }
        if let Some(factor) = program.factor.take() {
            self.memory = factor.into_memory();
        }
        if !changes.is_empty() {
            let to = program.point(outcome.is_solved);
            move_to(state, &to, matrix, context);
        }
        Ok(changes.len())
    }
}

/// minimise ½dᵀ(K + diag(r) + μI)d + fᵀd over l ≤ β + d ≤ u, Σd = 0 in every group.
struct Program<'a> {
    state: &'a State,
    damping: f64,
    places: Vec<Place>,
    /// The step of the last guess.
    step: Vec<f64>,
    /// f + (K + diag(r) + μI)d of the last guess.
    gradient: Vec<f64>,
    factor: Option<InsideFactor>,
}

impl<'a> Program<'a> {
    /// Variables begin where they are.
    fn new(state: &'a State, damping: f64) -> Self {
        let n = state.len();
        let mut program = Self {
            state,
            damping,
            places: vec![Place::Inside; n],
            step: vec![0.0; n],
            gradient: state.gradient.clone(),
            factor: None,
        };
        for v in 0..n {
            if !state.can_fall(v) {
                program.places[v] = Place::AtLower;
            } else if !state.can_rise(v) {
                program.places[v] = Place::AtUpper;
            }
        }
        program
    }

    /// Variables of the program that are inside.
    fn inside(&self) -> Vec<u32> {
        let is_inside = |v: &u32| self.places[*v as usize] == Place::Inside;
        (0..self.places.len() as u32).filter(is_inside).collect()
    }

    fn order(&self) -> usize {
        self.places.iter().filter(|&&place| place == Place::Inside).count()
    }

    /// The mean gradient of each group's variables inside; `None` for a group without.
    fn multipliers(&self) -> [Option<f64>; 2] {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for (v, place) in self.places.iter().enumerate() {
            if *place == Place::Inside {
                let g = self.state.group(v);
                sums[g] += self.gradient[v];
                counts[g] += 1.0;
            }
        }
        std::array::from_fn(|g| (counts[g] > 0.0).then(|| sums[g] / counts[g]))
    }

    /// Lets a variable inside that its multiplier does not hold at its bound; whether it did.
    fn release(&mut self, v: usize, multipliers: &[Option<f64>; 2], tol: f64) -> bool {
        let Some(multiplier) = multipliers[self.state.group(v)] else { return false };
        let reduced = self.gradient[v] - multiplier;
        let (lower, upper) = (self.state.lower[v], self.state.upper[v]);
        let free = match self.places[v] {
            Place::Inside => false,
            Place::AtLower => reduced < -tol && upper > lower,
            Place::AtUpper => reduced > tol && upper > lower,
        };
        if free {
            self.places[v] = Place::Inside;
        }
        free
    }

    /// The step that is optimal when every variable stays in its place, and its cost as the cube of an
    /// order; `None` when there is none.
    fn solve<T: Real, M: InnerMatrix<T>>(
        &mut self,
        matrix: &M,
        memory: &mut Vec<f64>,
        context: &Context,
    ) -> Result<Option<f64>> {
        let (state, inside) = (self.state, self.inside());
        for v in 0..state.len() {
            self.step[v] = match self.places[v] {
                Place::Inside => 0.0,
                Place::AtLower => state.lower[v] - state.beta[v],
                Place::AtUpper => state.upper[v] - state.beta[v],
            };
        }
        let sums = self.sums_at_bounds();
        if inside.len() < 2 {
            return Ok(None);
        }
        self.gradient.clone_from(&state.gradient);
        self.add_steps(matrix, |place| place != Place::Inside, context);
        let Some(cubes) = self.refactor(&inside, matrix, memory, context)? else {
            return Ok(None);
        };
        let Some(steps) = self.steps_inside(&inside, sums) else { return Ok(None) };
        for (&v, step) in inside.iter().zip(steps) {
            self.step[v as usize] = step;
        }
        self.add_steps(matrix, |place| place == Place::Inside, context);
        Ok(Some(cubes))
    }

    /// The sum of the steps to bounds in each group.
    fn sums_at_bounds(&self) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for (v, step) in self.step.iter().enumerate() {
            sums[self.state.group(v)] += step;
        }
        sums
    }

    /// Adds (K + diag(r) + μI)d of the variables in some places to the gradient.
    fn add_steps<T: Real, M: InnerMatrix<T>>(
        &mut self,
        matrix: &M,
        chosen: impl Fn(Place) -> bool,
        context: &Context,
    ) {
        let moves = |v: &usize| chosen(self.places[*v]) && self.step[*v] != 0.0;
        let moved: Vec<usize> = (0..self.step.len()).filter(moves).collect();
        let by: Vec<f64> = moved.iter().map(|&v| self.step[v]).collect();
        add_rows(&mut self.gradient, &moved, &by, matrix, context);
        for (&v, by) in moved.iter().zip(&by) {
            let ridge = self.state.ridge.as_ref().map_or(0.0, |ridge| ridge[v]);
            self.gradient[v] += (ridge + self.damping) * by;
        }
    }

    /// Sees to a factor of the matrix over the variables inside; what it cost as the cube of an order.
    fn refactor<T: Real, M: InnerMatrix<T>>(
        &mut self,
        inside: &[u32],
        matrix: &M,
        memory: &mut Vec<f64>,
        context: &Context,
    ) -> Result<Option<f64>> {
        let (state, damping) = (self.state, self.damping);
        let entry = |v: u32, w: u32| match v == w {
            true => state.diagonal[v as usize] + damping,
            false => matrix.row(v as usize)[w as usize].to_f64(),
        };
        if let Some(mut factor) = self.factor.take() {
            if let Some(cost) = factor.update(inside, entry, context)? {
                self.factor = Some(factor);
                return Ok(Some(3.0 * cost));
            }
            *memory = factor.into_memory();
        }
        let fill = |inside: &[u32], values: &mut [f64]| {
            for (i, out) in values.chunks_exact_mut(inside.len()).enumerate() {
                let row = matrix.row(inside[i] as usize);
                for (out, &w) in out[..i].iter_mut().zip(inside) {
                    *out = row[w as usize].to_f64();
                }
                out[i] = state.diagonal[inside[i] as usize] + damping;
            }
        };
        self.factor = InsideFactor::new(inside.to_vec(), state.len(), fill, memory, context)?;
        let order = inside.len() as f64;
        Ok(self.factor.as_ref().map(|_| order * order * order))
    }

    /// The steps of the variables inside that make their gradients equal within each group, with
    /// `-sums` as the sums of their groups.
    fn steps_inside(&self, inside: &[u32], sums: [f64; 2]) -> Option<Vec<f64>> {
        let factor = self.factor.as_ref()?;
        let right: Vec<f64> = inside.iter().map(|&v| -self.gradient[v as usize]).collect();
        let mut steps = factor.solve(inside, &right);
        let groups: Vec<usize> = inside.iter().map(|&v| self.state.group(v as usize)).collect();
        let sum_of = |values: &[f64], g: usize| -> f64 {
            values.iter().zip(&groups).filter(|(_, group)| **group == g).map(|(v, _)| v).sum()
        };
        let shift = |values: &mut [f64], by: &[f64], g: usize, target: f64| {
            let multiple = (sum_of(values, g) - target) / sum_of(by, g);
            values.iter_mut().zip(by).for_each(|(value, by)| *value -= multiple * by);
        };
        // A⁻¹e for the indicator e of every group, each made to leave the sums of the others alone.
        let mut indicators: Vec<(usize, Vec<f64>)> = Vec::with_capacity(2);
        for (g, sum) in sums.iter().enumerate().take(self.state.group_count) {
            if !groups.contains(&g) {
                if *sum != 0.0 {
                    return None;
                }
                continue;
            }
            let own: Vec<f64> = groups.iter().map(|group| f64::from(*group == g)).collect();
            let mut own = factor.solve(inside, &own);
            for (other, indicator) in &mut indicators {
                shift(&mut own, indicator, *other, 0.0);
                shift(indicator, &own, g, 0.0);
            }
            indicators.push((g, own));
        }
        // Twice: entries of A⁻¹e are as large as one over the damping, and the first round leaves their
        // rounding in the sums.
        for (g, indicator) in indicators.iter().chain(&indicators) {
            shift(&mut steps, indicator, *g, -sums[*g]);
        }
        steps.iter().all(|step| step.is_finite()).then_some(steps)
    }

    /// Moves variables that a guess had in the wrong place; returns how many.
    fn correct(&mut self, tol: f64) -> usize {
        let multipliers = self.multipliers();
        let mut changed = 0;
        for v in 0..self.places.len() {
            let to = self.state.beta[v] + self.step[v];
            let place = match self.places[v] {
                Place::Inside if to < self.state.lower[v] => Some(Place::AtLower),
                Place::Inside if to > self.state.upper[v] => Some(Place::AtUpper),
                Place::Inside => None,
                _ => {
                    changed += usize::from(self.release(v, &multipliers, tol));
                    continue;
                }
            };
            if let Some(place) = place {
                self.places[v] = place;
                changed += 1;
            }
        }
        changed
    }

    /// The point of the last guess, inside the boxes and with the sums it must have.
    fn point(&self, is_solved: bool) -> Vec<f64> {
        let state = self.state;
        let mut to: Vec<f64> = (0..state.len()).map(|v| state.beta[v] + self.step[v]).collect();
        if is_solved {
            for (v, to) in to.iter_mut().enumerate() {
                match self.places[v] {
                    Place::Inside => {}
                    Place::AtLower => *to = state.lower[v],
                    Place::AtUpper => *to = state.upper[v],
                }
            }
            return to;
        }
        for g in 0..state.group_count {
            let members: Vec<usize> = (0..state.len()).filter(|&v| state.group(v) == g).collect();
            let of = |values: &[f64]| -> Vec<f64> { members.iter().map(|&v| values[v]).collect() };
            let (lower, upper, beta) = (of(&state.lower), of(&state.upper), of(&state.beta));
            let mut point = of(&to);
            Slice { lower: &lower, upper: &upper }.project(&mut point, &beta);
            members.iter().zip(point).for_each(|(&v, value)| to[v] = value);
        }
        to
    }
}

/// gradient += Σ byᵥ rowᵥ.
fn add_rows<T: Real, M: InnerMatrix<T>>(
    gradient: &mut Vec<f64>,
    moved: &[usize],
    by: &[f64],
    matrix: &M,
    context: &Context,
) {
    let Some(&first) = moved.first() else { return };
    let len = gradient.len();
    gradient.resize(matrix.row(first).len(), 0.0);
    let rows: Vec<&[T]> = moved.iter().map(|&v| matrix.row(v)).collect();
    accumulate(context.instruction_set(), gradient, &rows, by);
    gradient.truncate(len);
}

/// Moves the state to a point, unless that raises the objective.
fn move_to<T: Real, M: InnerMatrix<T>>(
    state: &mut State,
    to: &[f64],
    matrix: &M,
    context: &Context,
) {
    let moved: Vec<usize> = (0..to.len()).filter(|&v| to[v] != state.beta[v]).collect();
    let by: Vec<f64> = moved.iter().map(|&v| to[v] - state.beta[v]).collect();
    let mut change = vec![0.0; state.len()];
    add_rows(&mut change, &moved, &by, matrix, context);
    let mut decrease = 0.0;
    for (&v, by) in moved.iter().zip(&by) {
        if let Some(ridge) = &state.ridge {
            change[v] += ridge[v] * by;
        }
        decrease -= by * (state.gradient[v] + 0.5 * change[v]);
    }
    if decrease > 0.0 {
        moved.iter().for_each(|&v| state.beta[v] = to[v]);
        state.gradient.iter_mut().zip(&change).for_each(|(gradient, by)| *gradient += by);
    }
}
