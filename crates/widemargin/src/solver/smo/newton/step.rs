//! One proximal Newton step: a quadratic program over the members of a block, solved by guessing
//! which variables end at which bound.

use super::factor::{FactorMemory, InsideFactor};
use super::projection::Slice;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::simd::Real;
use crate::solver::smo::decompose::worst;
use crate::solver::smo::inner::InnerMatrix;
use crate::solver::smo::state::State;

/// Damping, as a share of the mean of the diagonal, below which rounding is larger than the smallest
/// eigenvalues: that of the entries, in units of their precision, or that of a factor in double precision
/// of a few thousand variables.
const ENTRY_ROUNDING: f64 = 8.0;
const FACTOR_ROUNDING: f64 = 1e-11;

/// Damping at the most, of a matrix that has no factor for less.
const MOST_DAMPING: f64 = 1.0;

/// Damping to begin with, in units of the violation over the room that variables have in their boxes.
const FIRST_SHARE: f64 = 0.05;

/// How much more damping a step is tried with whose guesses do not settle, and how often.
const MORE: f64 = 10.0;
const ATTEMPTS: usize = 3;

/// How much less the next step has after one whose guesses settled.
const LESS: f64 = 0.1;

/// Largest share of the damping.
const MOST_SHARE: f64 = 1e3;

/// A factor is used again where its damping is up to so many times as large as wanted.
const REUSED: f64 = 3.0;

/// Guesses that one step may take.
const GUESSES: usize = 15;

/// Variables that may leave their bounds at a time: so many, or one for so many inside.
const RELEASED: usize = 64;
const RELEASED_SHARE: usize = 4;

/// A guess must change this share less than the one two before, or the damping was too small.
const SHRINKS: f64 = 0.75;

/// Where a variable of the program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoundState {
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

/// Proximal Newton steps; keeps the share of the damping, the last factor and memory from step to step.
pub(in crate::solver::smo) struct Newton {
    share: f64,
    memory: FactorMemory,
    /// The last factor, and the damping in it.
    factor: Option<(InsideFactor, f64)>,
}

impl Default for Newton {
    fn default() -> Self {
        Self { share: FIRST_SHARE, memory: FactorMemory::default(), factor: None }
    }
}

impl Newton {
    /// Forgets the factor, as the next step is on other variables.
    pub(in crate::solver::smo) fn forget(&mut self) {
        if let Some((factor, _)) = self.factor.take() {
            self.memory = factor.into_memory();
        }
    }

    /// Moves the variables of `state` to the solution of the damped program, or towards the projection of
    /// the last guess as far as that lowers the objective. Multipliers are right to within `tol`; no guess
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
            self.attempt(state, matrix, most, tol, context, &mut outcome)?;
            if outcome.is_solved {
                self.share = (LESS * self.share).max(FIRST_SHARE);
                break;
            }
            self.share = (MORE * self.share).min(MOST_SHARE);
        }
        Ok(outcome)
    }

    /// A step with the present share of the damping.
    fn attempt<T: Real, M: InnerMatrix<T>>(
        &mut self,
        state: &mut State,
        matrix: &M,
        most: usize,
        tol: f64,
        context: &Context,
        outcome: &mut StepOutcome,
    ) -> Result<()> {
        let mean = state.mean_diagonal();
        if !(mean > 0.0 && mean.is_finite()) {
            return Ok(());
        }
        let wanted = self.share * worst(&state.extremes()) / state.room().max(f64::MIN_POSITIVE);
        let least = (ENTRY_ROUNDING * T::EPSILON.to_f64()).max(FACTOR_ROUNDING);
        let wanted = wanted.clamp(least * mean, MOST_DAMPING * mean);
        // A step with more damping goes less far, and costs next to nothing where its factor is known.
        let known =
            self.factor.take_if(|(_, damping)| (wanted..=REUSED * wanted).contains(damping));
        self.forget();
        let damping = known.as_ref().map_or(wanted, |(_, damping)| *damping);
        let mut program = Program::new(state, damping, known.map(|(factor, _)| factor));
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
        self.factor = program.factor.take().map(|factor| (factor, damping));
        if !changes.is_empty() {
            let to = program.point(changes.last() == Some(&0));
            move_to(state, &to, matrix, context);
        }
        Ok(())
    }
}

/// minimise ½dᵀ(K + diag(r) + μI)d + fᵀd over l ≤ β + d ≤ u, Σd = 0 in every group.
struct Program<'a> {
    state: &'a State,
    damping: f64,
    places: Vec<BoundState>,
    /// The step of the last guess.
    step: Vec<f64>,
    /// f + (K + diag(r) + μI)d of the last guess.
    gradient: Vec<f64>,
    factor: Option<InsideFactor>,
}

impl<'a> Program<'a> {
    /// Variables begin where they are.
    fn new(state: &'a State, damping: f64, factor: Option<InsideFactor>) -> Self {
        let n = state.len();
        let mut program = Self {
            state,
            damping,
            places: vec![BoundState::Inside; n],
            step: vec![0.0; n],
            gradient: state.gradient.clone(),
            factor,
        };
        for v in 0..n {
            if !state.can_fall(v) {
                program.places[v] = BoundState::AtLower;
            } else if !state.can_rise(v) {
                program.places[v] = BoundState::AtUpper;
            }
        }
        program
    }

    /// Variables of the program that are inside.
    fn inside(&self) -> Vec<u32> {
        let is_inside = |v: &u32| self.places[*v as usize] == BoundState::Inside;
        (0..self.places.len() as u32).filter(is_inside).collect()
    }

    fn order(&self) -> usize {
        self.places.iter().filter(|&&place| place == BoundState::Inside).count()
    }

    /// The mean gradient of each group's variables inside; `None` for a group without.
    fn multipliers(&self) -> [Option<f64>; 2] {
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        for (v, place) in self.places.iter().enumerate() {
            if *place == BoundState::Inside {
                let g = self.state.group(v);
                sums[g] += self.gradient[v];
                counts[g] += 1.0;
            }
        }
        std::array::from_fn(|g| (counts[g] > 0.0).then(|| sums[g] / counts[g]))
    }

    /// By how much more than `tol` its multiplier lets a variable at a bound leave that; `None` where it is
    /// held there or inside.
    fn pull(&self, v: usize, multipliers: &[Option<f64>; 2], tol: f64) -> Option<f64> {
        let reduced = self.gradient[v] - multipliers[self.state.group(v)]?;
        let pull = match self.places[v] {
            BoundState::Inside => return None,
            BoundState::AtLower => -reduced - tol,
            BoundState::AtUpper => reduced - tol,
        };
        (pull > 0.0 && self.state.upper[v] > self.state.lower[v]).then_some(pull)
    }

    /// The step that is optimal when every variable stays in its place, and its cost as the cube of an
    /// order; `None` when there is none.
    fn solve<T: Real, M: InnerMatrix<T>>(
        &mut self,
        matrix: &M,
        memory: &mut FactorMemory,
        context: &Context,
    ) -> Result<Option<f64>> {
        let (state, inside) = (self.state, self.inside());
        for v in 0..state.len() {
            self.step[v] = match self.places[v] {
                BoundState::Inside => 0.0,
                BoundState::AtLower => state.lower[v] - state.beta[v],
                BoundState::AtUpper => state.upper[v] - state.beta[v],
            };
        }
        let sums = self.sums_at_bounds();
        if inside.len() < 2 {
            return Ok(None);
        }
        self.gradient.clone_from(&state.gradient);
        self.add_steps(matrix, |place| place != BoundState::Inside, context);
        let Some(cubes) = self.refactor(&inside, matrix, memory, context)? else {
            return Ok(None);
        };
        let Some(steps) = self.steps_inside(&inside, sums, context) else { return Ok(None) };
        for (&v, step) in inside.iter().zip(steps) {
            self.step[v as usize] = step;
        }
        self.add_steps(matrix, |place| place == BoundState::Inside, context);
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
        chosen: impl Fn(BoundState) -> bool,
        context: &Context,
    ) {
        let moves = |v: &usize| chosen(self.places[*v]) && self.step[*v] != 0.0;
        let moved: Vec<usize> = (0..self.step.len()).filter(moves).collect();
        let by: Vec<f64> = moved.iter().map(|&v| self.step[v]).collect();
        matrix.add_rows(&mut self.gradient, &moved, &by, context);
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
        memory: &mut FactorMemory,
        context: &Context,
    ) -> Result<Option<f64>> {
        let (state, damping) = (self.state, self.damping);
        let entry = |v: u32, w: u32| match v == w {
            true => state.diagonal[v as usize] + damping,
            false => matrix.row(v as usize)[w as usize].to_f64(),
        };
        if let Some(mut factor) = self.factor.take() {
            if let Some(cost) = factor.update(inside, state.len(), entry, context)? {
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
        self.factor =
            InsideFactor::new(inside.to_vec(), state.len(), fill, std::mem::take(memory), context)?;
        let order = inside.len() as f64;
        Ok(self.factor.as_ref().map(|_| order * order * order))
    }

    /// The steps of the variables inside that make their gradients equal within each group, with
    /// `-sums` as the sums of their groups.
    fn steps_inside(&self, inside: &[u32], sums: [f64; 2], context: &Context) -> Option<Vec<f64>> {
        let factor = self.factor.as_ref()?;
        let groups: Vec<usize> = inside.iter().map(|&v| self.state.group(v as usize)).collect();
        let sum_of = |values: &[f64], g: usize| -> f64 {
            values.iter().zip(&groups).filter(|(_, group)| **group == g).map(|(v, _)| v).sum()
        };
        let shift = |values: &mut [f64], by: &[f64], g: usize, target: f64| {
            let multiple = (sum_of(values, g) - target) / sum_of(by, g);
            values.iter_mut().zip(by).for_each(|(value, by)| *value -= multiple * by);
        };
        let moves = |g: &usize| groups.contains(g);
        if (0..self.state.group_count).any(|g| !moves(&g) && sums[g] != 0.0) {
            return None;
        }
        let moving: Vec<usize> = (0..self.state.group_count).filter(moves).collect();
        let mut rights: Vec<Vec<f64>> =
            vec![inside.iter().map(|&v| -self.gradient[v as usize]).collect()];
        let indicator = |g: &usize| groups.iter().map(|group| f64::from(group == g)).collect();
        rights.extend(moving.iter().map(indicator));
        let mut solutions = factor.solve(inside, &rights, context);
        let mut steps = solutions.remove(0);
        // A⁻¹e for the indicator e of every group, each made to leave the sums of the others alone.
        let mut indicators: Vec<(usize, Vec<f64>)> = Vec::with_capacity(2);
        for (&g, mut own) in moving.iter().zip(solutions) {
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

    /// Moves variables that a guess had in the wrong place, of those that leave their bounds the worst if
    /// they are many; returns how many were in the wrong place.
    fn correct(&mut self, tol: f64) -> usize {
        let multipliers = self.multipliers();
        let most = RELEASED.max(self.order() / RELEASED_SHARE);
        let (mut changed, mut released) = (0, Vec::new());
        for v in 0..self.places.len() {
            let to = self.state.beta[v] + self.step[v];
            let place = match self.places[v] {
                BoundState::Inside if to < self.state.lower[v] => BoundState::AtLower,
                BoundState::Inside if to > self.state.upper[v] => BoundState::AtUpper,
                BoundState::Inside => continue,
                _ => {
                    released.extend(self.pull(v, &multipliers, tol).map(|pull| (pull, v)));
                    continue;
                }
            };
            self.places[v] = place;
            changed += 1;
        }
        changed += released.len();
        if released.len() > most {
            let worse =
                |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            released.select_nth_unstable_by(most, worse);
            released.truncate(most);
        }
        released.iter().for_each(|&(_, v)| self.places[v] = BoundState::Inside);
        changed
    }

    /// The point of the last guess, inside the boxes and with the sums it must have.
    fn point(&self, is_solved: bool) -> Vec<f64> {
        let state = self.state;
        let mut to: Vec<f64> = (0..state.len()).map(|v| state.beta[v] + self.step[v]).collect();
        if is_solved {
            for (v, to) in to.iter_mut().enumerate() {
                match self.places[v] {
                    BoundState::Inside => {}
                    BoundState::AtLower => *to = state.lower[v],
                    BoundState::AtUpper => *to = state.upper[v],
                }
            }
            return to;
        }
        let is_inside = |v: usize| state.can_rise(v) && state.can_fall(v);
        for g in 0..state.group_count {
            // Variables that stay at their bounds are not asked to share what is cut off from the others.
            let moves = |v: &usize| state.group(*v) == g && (self.step[*v] != 0.0 || is_inside(*v));
            let members: Vec<usize> = (0..state.len()).filter(moves).collect();
            let of = |values: &[f64]| -> Vec<f64> { members.iter().map(|&v| values[v]).collect() };
            let (lower, upper, beta) = (of(&state.lower), of(&state.upper), of(&state.beta));
            let mut point = of(&to);
            Slice { lower: &lower, upper: &upper }.project(&mut point, &beta);
            members.iter().zip(point).for_each(|(&v, value)| to[v] = value);
        }
        to
    }
}

/// Moves the state towards a point as far as that lowers the objective, at most to it.
fn move_to<T: Real, M: InnerMatrix<T>>(
    state: &mut State,
    to: &[f64],
    matrix: &M,
    context: &Context,
) {
    let moved: Vec<usize> = (0..to.len()).filter(|&v| to[v] != state.beta[v]).collect();
    let by: Vec<f64> = moved.iter().map(|&v| to[v] - state.beta[v]).collect();
    let mut change = vec![0.0; state.len()];
    matrix.add_rows(&mut change, &moved, &by, context);
    let (mut slope, mut curvature) = (0.0, 0.0);
    for (&v, by) in moved.iter().zip(&by) {
        if let Some(ridge) = &state.ridge {
            change[v] += ridge[v] * by;
        }
        slope -= by * state.gradient[v];
        curvature += by * change[v];
    }
    if slope.is_nan() || slope <= 0.0 {
        return;
    }
    if slope >= curvature {
        moved.iter().for_each(|&v| state.beta[v] = to[v]);
        state.gradient.iter_mut().zip(&change).for_each(|(gradient, by)| *gradient += by);
        return;
    }
    let share = slope / curvature;
    for (&v, by) in moved.iter().zip(&by) {
        state.beta[v] = (state.beta[v] + share * by).clamp(state.lower[v], state.upper[v]);
    }
    state.gradient.iter_mut().zip(&change).for_each(|(gradient, by)| *gradient += share * by);
}
