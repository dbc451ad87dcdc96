//! Weights and groups in turn, from supervised weights or from shares alone.

use super::memberships::Memberships;
use crate::context::{Context, Event};
use crate::outcome::{Outcome, Status};
use crate::solver::linear::rows::LinearRows;
use crate::solver::linear::{
    MOST_PASSES, Norm, Options, Problem, Products, RowLoss, Solution, Table, solve_newton,
};

/// The first temperature, in units of the loss at the origin, and what it is divided by after a stage.
const FIRST_TEMPERATURE: f64 = 10.0;
const COOLING: f64 = 1.2;

/// Temperature below which, and mean entropy (in nats) below which groups count as certain.
const LAST_TEMPERATURE: f64 = 1e-3;
const LAST_ENTROPY: f64 = 1e-3;

/// Share of its cost with which label switching begins, and its factor after a stage.
const FIRST_COST: f64 = 1e-4;
const GROWTH: f64 = 2.0;

/// Mean change of a membership that ends a stage, and most steps of one.
const STAGE_TOLERANCE: f64 = 1e-2;
const MAX_STEPS: usize = 30;

/// Norm of the gradient, relative to that at 0, to which weights are trained before the last labels.
const TOLERANCE: f64 = 3e-3;

/// The rows' groups, costs and shares.
#[derive(Clone, Copy)]
pub(crate) struct Groups<'a> {
    /// Group of every row, none where it is to be found.
    pub known: &'a [Option<u32>],
    /// Number of groups.
    pub count: usize,
    /// Cost of every row.
    pub costs: &'a [f64],
    /// Share of every group among the rows whose group is to be found.
    pub shares: &'a [f64],
}

/// How the groups are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Probabilities that become certain while a temperature sinks.
    Annealing,
    /// Certain groups from the start, with costs that grow.
    Switching,
}

/// What was found.
pub(crate) struct Found {
    /// Weights of every function.
    pub weights: Vec<Vec<f64>>,
    /// Group of every row.
    pub groups: Vec<u32>,
    /// Objective as `primal`, and a lower bound on that of any groups as `dual`: the optimum of the rows whose
    /// group is known.
    pub outcome: Outcome,
}

/// Certain groups and their weights.
struct Best {
    weights: Vec<Vec<f64>>,
    memberships: Vec<f64>,
    objective: f64,
}

/// The state of a descent.
pub(crate) struct Descent<'a, R> {
    rows: &'a R,
    groups: Groups<'a>,
    /// Rows whose group is to be found.
    unknown: Vec<usize>,
    weights: Vec<Vec<f64>>,
    /// ⟨w, xᵢ⟩ of every function.
    values: Vec<Vec<f64>>,
    /// Probabilities of the groups, a row of them for every unknown row.
    memberships: Vec<f64>,
    objective: f64,
    bound: f64,
    steps: u64,
    rounds: u64,
    tolerance: f64,
    context: &'a Context,
}

impl<'a, R: LinearRows> Descent<'a, R> {
    /// With the weights that the rows of known groups have by themselves; `tolerance` is that of the last training.
    pub(crate) fn new(
        rows: &'a R,
        groups: Groups<'a>,
        tolerance: f64,
        context: &'a Context,
    ) -> Self {
        let functions = if groups.count == 2 { 1 } else { groups.count };
        let unknown = (0..rows.rows()).filter(|&i| groups.known[i].is_none()).collect();
        let mut descent = Self {
            rows,
            groups,
            unknown,
            weights: vec![vec![0.0; rows.width()]; functions],
            values: vec![vec![0.0; rows.rows()]; functions],
            memberships: Vec::new(),
            objective: 0.0,
            bound: 0.0,
            steps: 0,
            rounds: 0,
            tolerance,
            context,
        };
        descent.memberships = vec![0.0; descent.unknown.len() * groups.count];
        descent.bound = descent.train(0.0, tolerance).max(0.0);
        descent
    }

    /// ⟨w, xᵢ⟩ of every function.
    pub(crate) fn values(&self) -> &[Vec<f64>] {
        &self.values
    }

    /// The same weights with other shares.
    pub(crate) fn with_shares<'b>(&self, shares: &'b [f64]) -> Descent<'b, R>
    where
        'a: 'b,
    {
        Descent {
            rows: self.rows,
            groups: Groups { shares, ..self.groups },
            unknown: self.unknown.clone(),
            weights: self.weights.clone(),
            values: self.values.clone(),
            memberships: self.memberships.clone(),
            ..*self
        }
    }

    /// The shares that groups are to have from now on.
    pub(crate) fn set_shares(&mut self, shares: &'a [f64]) {
        self.groups.shares = shares;
    }

    /// Finds groups; the best so far where the context asks to stop.
    pub(crate) fn run(mut self, schedule: Schedule) -> Found {
        let costs: Vec<f64> = self.unknown.iter().map(|&i| self.groups.costs[i]).collect();
        let mut memberships = Memberships::new(self.groups.shares, &costs);
        match schedule {
            Schedule::Annealing => self.anneal(&mut memberships),
            Schedule::Switching => self.switch(&mut memberships),
        }
        self.harden(&mut memberships)
    }

    fn anneal(&mut self, memberships: &mut Memberships) {
        self.memberships = memberships.uniform();
        self.train(1.0, TOLERANCE);
        let mut temperature = FIRST_TEMPERATURE;
        while temperature > LAST_TEMPERATURE && !self.must_stop() {
            self.stage(memberships, temperature, 1.0);
            if self.entropy() < LAST_ENTROPY {
                break;
            }
            temperature /= COOLING;
        }
    }

    fn switch(&mut self, memberships: &mut Memberships) {
        let mut share = FIRST_COST;
        while share < 1.0 && !self.must_stop() {
            self.stage(memberships, 0.0, share);
            share *= GROWTH;
        }
    }

    /// Groups and weights in turn until the groups stay.
    fn stage(&mut self, memberships: &mut Memberships, temperature: f64, share: f64) {
        let least = if temperature > 0.0 { STAGE_TOLERANCE } else { 0.0 };
        for step in 0..MAX_STEPS {
            let next = memberships.at(&self.losses(), temperature);
            let change = self.change(&next);
            if change <= least && (step > 0 || temperature > 0.0) {
                break;
            }
            self.memberships = next;
            self.train(share, TOLERANCE);
            self.report(change);
            if self.must_stop() {
                break;
            }
        }
    }

    /// Certain groups at full costs until they stay, or, with prices that are not exact, gain nothing.
    fn harden(mut self, memberships: &mut Memberships) -> Found {
        let mut status = Status::IterationLimit;
        let mut best: Option<Best> = None;
        for _ in 0..MAX_STEPS {
            let next = memberships.at(&self.losses(), 0.0);
            let change = self.change(&next);
            let stays = best.as_ref().is_some_and(|best| best.memberships == next);
            if !stays {
                self.memberships = next;
                self.train(1.0, self.tolerance);
                self.report(change);
            }
            if stays || best.as_ref().is_some_and(|best| best.objective <= self.objective) {
                status = Status::Solved;
                break;
            }
            let (weights, memberships) = (self.weights.clone(), self.memberships.clone());
            best = Some(Best { weights, memberships, objective: self.objective });
            if self.must_stop() {
                break;
            }
        }
        if let Some(best) = best {
            (self.weights, self.memberships) = (best.weights, best.memberships);
            self.objective = best.objective;
        }
        let status = self.context.stop_request().unwrap_or(status);
        let mut groups: Vec<u32> = self.groups.known.iter().map(|g| g.unwrap_or(0)).collect();
        for (&i, row) in self.unknown.iter().zip(self.memberships.chunks_exact(self.groups.count)) {
            groups[i] = row.iter().position(|p| *p > 0.5).unwrap_or(0) as u32;
        }
        let (primal, dual) = (self.objective, self.bound.min(self.objective));
        // Of a descent that was stopped at once the bound is 0.
        let violation = ((primal - dual) / dual.abs().max(f64::MIN_POSITIVE)).min(f64::MAX);
        let (iterations, blocks) = (self.steps, self.rounds);
        let outcome =
            Outcome { status, primal, dual, violation, iterations, blocks, kernel_rows: 0 };
        Found { weights: self.weights, groups, outcome }
    }

    fn must_stop(&self) -> bool {
        self.context.stop_request().is_some()
    }

    fn report(&self, change: f64) {
        self.context.report(&Event::Iteration {
            iteration: self.rounds as usize,
            violation: change,
            objective: self.objective,
            active: self.unknown.len(),
        });
    }

    /// Mean change of a membership.
    fn change(&self, next: &[f64]) -> f64 {
        let each = next.iter().zip(&self.memberships).map(|(a, b)| (a - b).abs());
        each.sum::<f64>() / next.len().max(1) as f64
    }

    /// Mean entropy of a row's memberships.
    fn entropy(&self) -> f64 {
        let each = self.memberships.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln());
        each.sum::<f64>() / self.unknown.len().max(1) as f64
    }

    /// What every group would cost every unknown row, but for what it costs whatever the group.
    fn losses(&self) -> Vec<f64> {
        let own = |z: f64| (1.0 - z).max(0.0).powi(2) - (1.0 + z).max(0.0).powi(2);
        let count = self.groups.count;
        let loss = |i: usize, g: usize| match self.values.get(g) {
            Some(values) => own(values[i]),
            None => 0.0,
        };
        self.unknown.iter().flat_map(|&i| (0..count).map(move |g| loss(i, g))).collect()
    }

    /// Trains the weights with a share of the unknown rows' costs; a lower bound on their optimum.
    fn train(&mut self, share: f64, tol: f64) -> f64 {
        let functions = self.weights.len();
        let alone = functions == 1;
        let options =
            Options { tol, gap: f64::MAX, max_passes: MOST_PASSES, alone, ..Options::default() };
        let mut costs = self.groups.costs.to_vec();
        self.unknown.iter().for_each(|&i| costs[i] *= share);
        let (rows, context) = (self.rows, self.context);
        let solve = |f: usize| -> (Solution, Vec<f64>) {
            let targets = self.targets(f);
            let loss = RowLoss::ExpectedSquaredHinge;
            let problem = Problem { loss, targets: &targets, costs: &costs, shift: 0.0 };
            let start = Some(&self.weights[f][..]);
            let found =
                solve_newton(rows, None, &problem, Norm::L2, &options, start, false, context);
            let values = Products::new(rows, alone, context).values(&found.weights);
            (found, values)
        };
        let solved = context.map(0..functions, solve);
        self.rounds += 1;
        self.objective = 0.0;
        let mut bound = 0.0;
        for (f, (solution, values)) in solved.into_iter().enumerate() {
            self.objective += solution.outcome.primal;
            bound += solution.outcome.dual;
            self.steps += solution.outcome.iterations;
            self.weights[f] = solution.weights;
            self.values[f] = values;
        }
        bound
    }

    /// The expected side of every row for a function.
    fn targets(&self, function: usize) -> Vec<f64> {
        let side = |g: &Option<u32>| match g {
            Some(group) if *group as usize == function => 1.0,
            Some(_) => -1.0,
            None => 0.0,
        };
        let mut targets: Vec<f64> = self.groups.known.iter().map(side).collect();
        for (&i, row) in self.unknown.iter().zip(self.memberships.chunks_exact(self.groups.count)) {
            targets[i] = 2.0 * row[function] - 1.0;
        }
        targets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::numeric::random::Generator;
    use crate::solver::linear::rows::DenseRows;

    const SIZE: usize = 90;

    /// Overlapping groups of rows around points of a circle, and the group of each fifteenth row.
    fn groups_of_rows(count: usize) -> (Dense<f64>, Vec<Option<u32>>) {
        let mut generator = Generator::new(count as u64);
        let values = (0..SIZE).flat_map(|i| {
            let angle = std::f64::consts::TAU * (i % count) as f64 / count as f64;
            [angle.cos() + 0.7 * generator.normal(), angle.sin() + 0.7 * generator.normal()]
        });
        let table = Dense::new(SIZE, 2, values.collect()).unwrap();
        let known = (0..SIZE).map(|i| (i / count).is_multiple_of(7).then_some((i % count) as u32));
        (table, known.collect())
    }

    #[test]
    fn no_step_of_a_stage_raises_its_objective() {
        let context = Context::new();
        for (count, shares) in [(2, vec![0.4, 0.6]), (3, vec![0.2, 0.5, 0.3])] {
            let (table, known) = groups_of_rows(count);
            let rows = DenseRows::new(&table, Some(1.0), context.instruction_set());
            let costs: Vec<f64> = (0..SIZE).map(|i| 0.5 + (i % 3) as f64).collect();
            let groups = Groups { known: &known, count, costs: &costs, shares: &shares };
            let mut descent = Descent::new(&rows, groups, 1e-9, &context);
            let own: Vec<f64> = descent.unknown.iter().map(|&i| costs[i]).collect();
            let mut memberships = Memberships::new(&shares, &own);
            // Prices of several certain groups are those of a temperature, so that their shares are met by
            // approximation only: a step between other shares may raise the objective.
            let temperatures: &[f64] = if count == 2 { &[5.0, 0.5, 0.0] } else { &[5.0, 0.5] };
            let slack = if count == 2 { 1e-5 } else { 3e-3 };
            for &temperature in temperatures {
                let mut last = f64::INFINITY;
                for step in 0..12 {
                    descent.memberships = memberships.at(&descent.losses(), temperature);
                    descent.train(1.0, 1e-9);
                    let rows = descent.memberships.chunks_exact(count).zip(&own);
                    let entropy: f64 = rows
                        .map(|(row, cost)| {
                            let logs = row.iter().filter(|p| **p > 0.0).map(|p| p * p.ln());
                            cost * logs.sum::<f64>()
                        })
                        .sum();
                    let objective = descent.objective + temperature * entropy;
                    let case = format!("{count} groups at {temperature}, step {step}");
                    assert!(
                        objective <= last + slack * descent.objective,
                        "{case}: {objective} {last}"
                    );
                    last = objective;
                }
            }
        }
    }

    #[test]
    fn every_group_gets_its_share_of_the_unknown_rows() {
        let context = Context::new();
        for (count, shares) in [(2, vec![0.25, 0.75]), (3, vec![0.2, 0.5, 0.3])] {
            let (table, known) = groups_of_rows(count);
            let rows = DenseRows::new(&table, Some(1.0), context.instruction_set());
            let costs = [1.0; SIZE];
            for schedule in [Schedule::Annealing, Schedule::Switching] {
                let groups = Groups { known: &known, count, costs: &costs, shares: &shares };
                let found = Descent::new(&rows, groups, 1e-6, &context).run(schedule);
                let unknown = known.iter().filter(|group| group.is_none()).count() as f64;
                for (group, share) in shares.iter().enumerate() {
                    let own = found.groups.iter().zip(&known);
                    let own = own.filter(|(g, known)| known.is_none() && **g as usize == group);
                    let reached = own.count() as f64;
                    // To the row for two groups; those of several near a boundary are cut all together.
                    let allowed = if count == 2 { 0.5 } else { 4.0 };
                    assert!(
                        (reached - share * unknown).abs() <= allowed,
                        "{schedule:?}: {reached} of {unknown} rows in group {group} of {count}"
                    );
                }
                for (found, known) in found.groups.iter().zip(&known) {
                    assert!(known.is_none_or(|known| known == *found));
                }
            }
        }
    }
}
