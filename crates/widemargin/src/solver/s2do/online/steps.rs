//! Steps on support patterns: two variables, all of a pattern, or an exchange of labels, each solved
//! exactly.

use super::pair::{Pair, solve_one};
use super::patterns::{Patterns, Pool, Variable};
use super::working_set::WorkingSet;
use crate::solver::s2do::shared::example::Example;
use crate::solver::s2do::shared::multiclass_loss::{Margin, sign};
use crate::solver::s2do::shared::table::add_coefficient;

/// Values closer to a bound than this share of it are set to the bound.
const BOUND_TOLERANCE: f64 = 1e-12;

impl Patterns {
    /// Moves the variables of a working set to their best values; `k` is the kernel value between
    /// the patterns of a pair. Returns the gain and the changes, (pattern, change of coefficients),
    /// that [`update`](Self::update) has to bring into the scores.
    pub(crate) fn solve(&mut self, set: WorkingSet, k: f64) -> (f64, Vec<(usize, Vec<f64>)>) {
        let at = |(i, p): Variable| i * self.classes + p;
        match set {
            WorkingSet::One((i, p)) => {
                let (a, g) = (self.alpha[at((i, p))], self.gradient((i, p)));
                let q = self.coupling((i, p), (i, p)) * self.diagonal[i];
                let best = self.snap(i, solve_one(a, g, q, 0.0, self.room((i, p))));
                let step = best - a;
                let gain = step * (g - 0.5 * q * step);
                (gain, self.apply(gain, &[((i, p), best)]))
            }
            WorkingSet::Two(first, second) => {
                let (i, j) = (first.0, second.0);
                let pair = self.pair(first, second, k);
                let alpha = (self.alpha[at(first)], self.alpha[at(second)]);
                let (a, b) = if i == j && self.is_simplex() {
                    let rest = self.upper[i] - (self.sum[i] - alpha.0 - alpha.1);
                    pair.solve_triangle(alpha, rest.max(alpha.0 + alpha.1).min(self.upper[i]))
                } else {
                    pair.solve_box(alpha, (0.0, self.room(first)), (0.0, self.room(second)))
                };
                let (a, b) = (self.snap(i, a), self.snap(j, b));
                let gain = pair.gain_of(a - alpha.0, b - alpha.1);
                (gain, self.apply(gain, &[(first, a), (second, b)]))
            }
        }
    }

    fn pair(&self, first: Variable, second: Variable, k: f64) -> Pair {
        Pair {
            first: self.gradient(first),
            second: self.gradient(second),
            q_first: self.coupling(first, first) * self.diagonal[first.0],
            q_both: self.coupling(first, second) * k,
            q_second: self.coupling(second, second) * self.diagonal[second.0],
        }
    }

    /// Largest value a variable may take while the others stay.
    fn room(&self, (i, p): Variable) -> f64 {
        if self.is_simplex() {
            let a = self.alpha[i * self.classes + p];
            (self.upper[i] - (self.sum[i] - a)).max(a).min(self.upper[i])
        } else {
            self.upper[i]
        }
    }

    fn snap(&self, i: usize, value: f64) -> f64 {
        let upper = self.upper[i];
        if value <= BOUND_TOLERANCE * upper {
            0.0
        } else if value >= (1.0 - BOUND_TOLERANCE) * upper {
            upper
        } else {
            value
        }
    }

    /// Sets variables and counts the gain; a step that gains nothing changes nothing.
    fn apply(&mut self, gain: f64, values: &[(Variable, f64)]) -> Vec<(usize, Vec<f64>)> {
        if gain <= 0.0 {
            return Vec::new();
        }
        self.dual += gain;
        let mut changes: Vec<(usize, Vec<f64>)> = Vec::new();
        for &((i, p), value) in values {
            let at = i * self.classes + p;
            let step = value - self.alpha[at];
            self.alpha[at] = value;
            let y = self.code(i);
            match changes.iter_mut().find(|(pattern, _)| *pattern == i) {
                Some((_, change)) => add_coefficient(&self.loss, y, p, step, change),
                None => {
                    let mut change = vec![0.0; self.columns];
                    add_coefficient(&self.loss, y, p, step, &mut change);
                    changes.push((i, change));
                }
            }
        }
        for (i, change) in &mut changes {
            self.sum[*i] = self.rounded_sum(*i);
            if self.columns > self.classes {
                let total: f64 = change.iter().sum();
                change[self.classes] = total / self.classes as f64;
            }
        }
        changes
    }

    /// Σα of pattern `i`, the bound where only rounding keeps it away.
    pub(super) fn rounded_sum(&self, i: usize) -> f64 {
        let (sum, upper) = (self.alpha(i).iter().sum::<f64>(), self.upper[i]);
        if sum >= (1.0 - BOUND_TOLERANCE) * upper && self.is_simplex() { upper } else { sum }
    }

    /// Moves all variables of pattern `i` to their best values; as [`solve`](Self::solve).
    pub(crate) fn solve_pattern(&mut self, i: usize) -> (f64, Vec<(usize, Vec<f64>)>) {
        let y = self.code(i);
        let mut example = Example::default();
        example.fill(self.classes, |p| {
            let s = if self.loss.margin == Margin::Absolute { sign(y, p) } else { 1.0 };
            (self.loss.uses(y, p), self.gradient((i, p)), s, self.alpha(i)[p])
        });
        let gradients = example.linear.clone();
        let curvature = self.loss.curvature(self.classes);
        example.solve(self.diagonal[i], curvature, self.upper[i], self.is_simplex());
        let (mut gain, mut squares, mut common) = (0.0, 0.0, 0.0);
        for p in 0..gradients.len() {
            let step = example.best[p] - example.now[p];
            gain += step * gradients[p];
            squares += step * step;
            common += example.signs[p] * step;
        }
        let form = curvature.identity * squares + curvature.common * common * common;
        gain -= 0.5 * self.diagonal[i] * form;
        let values: Vec<(Variable, f64)> = example
            .classes
            .iter()
            .zip(&example.best)
            .map(|(&p, &value)| ((i, p as usize), value))
            .collect();
        (gain, self.apply(gain, &values))
    }

    /// The step of LaRank on pattern `i`, whose machine has to be Crammer and Singer's: the labels
    /// with the largest and the smallest gradient of the β form exchange mass. Returns the gain and
    /// the changes, as [`solve`](Self::solve).
    pub(crate) fn solve_labels(
        &mut self,
        i: usize,
        pool: Pool,
        tol: f64,
    ) -> (f64, Vec<(usize, Vec<f64>)>) {
        let y = self.code(i);
        // β of label p is −α/4, of the own label Σα/4; gradients are halved scores, 1 for the own.
        let score = |p: usize| -0.5 * self.score[p][i];
        let gradient = |p: usize| score(p) + if p == y { 1.0 } else { 0.0 };
        let alpha = |p: usize| self.alpha[i * self.classes + p];
        let taken = |p: usize| match pool {
            Pool::Patterns => true,
            Pool::Supports => alpha(p) != 0.0 || (p == y && self.sum[i] > 0.0),
        };
        let up = (0..self.classes)
            .filter(|&p| taken(p))
            .filter(|&p| if p == y { self.sum[i] < self.upper[i] } else { alpha(p) > 0.0 })
            .max_by(|&a, &b| gradient(a).total_cmp(&gradient(b)));
        let down = (0..self.classes)
            .filter(|&p| taken(p) && (p != y || self.sum[i] > 0.0))
            .min_by(|&a, &b| gradient(a).total_cmp(&gradient(b)));
        let (Some(up), Some(down)) = (up, down) else { return (0.0, Vec::new()) };
        let slope = gradient(up) - gradient(down);
        if up == down || slope < tol {
            return (0.0, Vec::new());
        }
        let room = if up == y { self.upper[i] - self.sum[i] } else { alpha(up) };
        let room = 0.25 * room;
        let free = if self.diagonal[i] > 0.0 { 0.5 * slope / self.diagonal[i] } else { room };
        let step = free.min(room);
        // Four times the gain of the β form, as the objective is four times its objective.
        let gain = 4.0 * step * (slope - step * self.diagonal[i]);
        let mut values = Vec::new();
        if up != y {
            values.push(((i, up), self.snap(i, (alpha(up) - 4.0 * step).max(0.0))));
        }
        if down != y {
            values.push(((i, down), self.snap(i, (alpha(down) + 4.0 * step).min(self.upper[i]))));
        }
        (gain, self.apply(gain, &values))
    }
}
