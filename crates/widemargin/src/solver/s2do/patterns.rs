//! Support patterns that come and go, and steps of two variables on them.
//!
//! Keeps dual variables and scores of the patterns at hand; a step chooses a working set by the
//! largest violation and the largest gain without bounds, solves it exactly, and brings all scores up
//! to date (Trinh 2012, chapters 3 to 5; first indices by violation of the optimality conditions, not
//! by raw gradient, which would stall).

use super::example::Example;
use super::pair::{Pair, gain_one, solve_one};
use super::rule::{Aggregation, Rule};
use super::table::add_coefficient;
use crate::kernel::{InstructionSet, PlainLoop, Real, run_plain};

/// Values closer to a bound than this share of it are set to the bound.
const SNAP: f64 = 1e-12;

/// A dual variable: a pattern and one of its classes.
pub type Variable = (usize, usize);

/// Which variables a step may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// All variables of the patterns.
    Patterns,
    /// Those that are not zero.
    Supports,
}

/// A working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WorkingSet {
    /// One variable.
    One(Variable),
    /// Two variables.
    Two(Variable, Variable),
}

/// The patterns with their variables and scores.
#[derive(Clone, Debug)]
pub struct Patterns {
    rule: Rule,
    classes: usize,
    columns: usize,
    codes: Vec<u32>,
    upper: Vec<f64>,
    diagonal: Vec<f64>,
    alpha: Vec<f64>,
    /// Unprojected scores, pattern after pattern, their mean behind them where scores are centred.
    score: Vec<f64>,
    sum: Vec<f64>,
    dual: f64,
    gains: u64,
}

impl Patterns {
    /// No patterns.
    pub fn new(rule: Rule, classes: usize) -> Self {
        let columns = classes + usize::from(rule.is_centred());
        Self {
            rule,
            classes,
            columns,
            codes: Vec::new(),
            upper: Vec::new(),
            diagonal: Vec::new(),
            alpha: Vec::new(),
            score: Vec::new(),
            sum: Vec::new(),
            dual: 0.0,
            gains: 0,
        }
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Dual objective, the sum of all gains.
    pub fn dual(&self) -> f64 {
        self.dual
    }

    /// Pairs whose gain was computed so far.
    pub fn gains(&self) -> u64 {
        self.gains
    }

    /// The machine.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Columns of a row of scores: the classes, and their mean where scores are centred.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Class of pattern `i`.
    pub fn code(&self, i: usize) -> usize {
        self.codes[i] as usize
    }

    /// Bound of pattern `i`.
    pub fn upper(&self, i: usize) -> f64 {
        self.upper[i]
    }

    /// Variables of pattern `i`, one per class.
    pub fn alpha(&self, i: usize) -> &[f64] {
        &self.alpha[i * self.classes..(i + 1) * self.classes]
    }

    /// Whether pattern `i` has a variable that is not zero.
    pub fn is_support(&self, i: usize) -> bool {
        self.alpha(i).iter().any(|a| *a != 0.0)
    }

    /// Unprojected coefficients of pattern `i`, one per column.
    pub fn coefficients(&self, i: usize, out: &mut Vec<f64>) {
        self.coefficients_of(self.code(i), self.alpha(i), out);
    }

    fn coefficients_of(&self, y: usize, alpha: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.resize(self.columns, 0.0);
        for (p, &a) in alpha.iter().enumerate().filter(|(_, a)| **a != 0.0) {
            add_coefficient(&self.rule, y, p, a, out);
        }
        if self.columns > self.classes {
            let total: f64 = out.iter().sum();
            out[self.classes] = total / self.classes as f64;
        }
    }

    /// The gradient that scores mean for component `p` of class `y`.
    #[inline(always)]
    pub fn gradient_of(&self, y: usize, p: usize, score: &[f64]) -> f64 {
        use super::rule::{Margin, sign};
        let target = self.rule.target(y, p);
        match self.rule.margin {
            Margin::Relative => target + 0.5 * (score[p] - score[y]),
            Margin::Absolute => {
                let mean = if self.columns > self.classes { score[self.classes] } else { 0.0 };
                target - sign(y, p) * (score[p] - mean)
            }
        }
    }

    /// Gradient of a variable.
    #[inline(always)]
    pub fn gradient(&self, (i, p): Variable) -> f64 {
        let score = &self.score[i * self.columns..(i + 1) * self.columns];
        self.gradient_of(self.codes[i] as usize, p, score)
    }

    /// Adds a pattern with all variables zero.
    pub fn push(&mut self, code: u32, upper: f64, diagonal: f64, score: &[f64]) -> usize {
        self.codes.push(code);
        self.upper.push(upper);
        self.diagonal.push(diagonal);
        self.alpha.resize(self.alpha.len() + self.classes, 0.0);
        self.score.extend_from_slice(&score[..self.columns]);
        self.sum.push(0.0);
        self.len() - 1
    }

    /// Puts another pattern in the place of `i`, with all variables zero.
    pub fn replace(&mut self, i: usize, code: u32, upper: f64, diagonal: f64, score: &[f64]) {
        self.codes[i] = code;
        self.upper[i] = upper;
        self.diagonal[i] = diagonal;
        self.sum[i] = 0.0;
        self.alpha[i * self.classes..(i + 1) * self.classes].fill(0.0);
        let columns = self.columns;
        self.score[i * columns..(i + 1) * columns].copy_from_slice(&score[..columns]);
    }

    /// Takes pattern `i`, all of whose variables are zero, out of the game; its place stays.
    pub fn retire(&mut self, i: usize) {
        self.upper[i] = 0.0;
    }

    /// The same patterns under a machine with one class more, which none of them is of.
    pub fn grow(&mut self, rule: Rule) {
        let (classes, columns) = (self.classes, self.columns);
        let mut next = Self::new(rule, classes + 1);
        for i in 0..self.len() {
            let mut score = self.score[i * columns..i * columns + classes].to_vec();
            score.push(0.0);
            let mean = score.iter().sum::<f64>() / (classes + 1) as f64;
            score.push(mean);
            next.push(self.codes[i], self.upper[i], self.diagonal[i], &score);
            next.alpha[i * (classes + 1)..][..classes].copy_from_slice(self.alpha(i));
            next.sum[i] = self.sum[i];
        }
        next.gains = self.gains;
        next.dual = next.objective_and_gap().0;
        *self = next;
    }

    /// Sets all variables of pattern `i` to zero; returns the change of its coefficients, which has
    /// to be applied with the kernel row.
    pub fn clear(&mut self, i: usize) -> Vec<f64> {
        let mut change = Vec::new();
        self.coefficients(i, &mut change);
        change.iter_mut().for_each(|c| *c = -*c);
        let (mut linear, mut quadratic) = (0.0, 0.0);
        for p in (0..self.classes).filter(|&p| self.rule.uses(self.code(i), p)) {
            let a = self.alpha(i)[p];
            linear += a * self.gradient((i, p));
            for q in (0..self.classes).filter(|&q| self.rule.uses(self.code(i), q)) {
                quadratic += a * self.alpha(i)[q] * self.coupling((i, p), (i, q));
            }
        }
        self.dual -= linear + 0.5 * quadratic * self.diagonal[i];
        let classes = self.classes;
        self.alpha[i * classes..(i + 1) * classes].fill(0.0);
        self.sum[i] = 0.0;
        change
    }

    #[inline(always)]
    fn coupling(&self, (i, p): Variable, (j, q): Variable) -> f64 {
        let (y, z) = (self.codes[i] as usize, self.codes[j] as usize);
        self.rule.coupling(self.classes, (y, p), (z, q))
    }

    fn is_simplex(&self) -> bool {
        self.rule.aggregation == Aggregation::Max
    }

    /// How far a variable alone violates the optimality conditions.
    #[inline(always)]
    fn violation_of(&self, i: usize, p: usize, gradient: f64) -> f64 {
        let a = self.alpha[i * self.classes + p];
        let room = if self.is_simplex() { self.sum[i] } else { a };
        if gradient > 0.0 && room < self.upper[i] {
            gradient
        } else if gradient < 0.0 && a > 0.0 {
            -gradient
        } else {
            0.0
        }
    }

    #[inline(always)]
    fn may_take(&self, i: usize, p: usize, pool: Pool) -> bool {
        self.rule.uses(self.codes[i] as usize, p)
            && (pool == Pool::Patterns || self.alpha[i * self.classes + p] != 0.0)
    }

    /// The worst variable of pattern `i`, and for a full simplex the worst pair in it.
    #[inline(always)]
    fn worst_of(&self, i: usize, pool: Pool) -> (f64, usize, f64, (usize, usize)) {
        let mut one = (0.0, 0);
        let (mut up, mut down) = ((f64::NEG_INFINITY, 0), (f64::INFINITY, 0));
        for p in (0..self.classes).filter(|&p| self.may_take(i, p, pool)) {
            let g = self.gradient((i, p));
            let violation = self.violation_of(i, p, g);
            if violation > one.0 {
                one = (violation, p);
            }
            if g > up.0 {
                up = (g, p);
            }
            if g < down.0 && self.alpha[i * self.classes + p] > 0.0 {
                down = (g, p);
            }
        }
        let full = self.is_simplex() && self.sum[i] >= self.upper[i];
        let pair = if full { up.0 - down.0 } else { 0.0 };
        (one.0, one.1, pair, (up.1, down.1))
    }

    /// The largest violation over all patterns.
    pub fn violation(&self) -> f64 {
        (0..self.len()).map(|i| self.violation_at(i)).fold(0.0, f64::max)
    }

    /// The violation of pattern `i`.
    pub fn violation_at(&self, i: usize) -> f64 {
        let (one, _, pair, _) = self.worst_of(i, Pool::Patterns);
        one.max(pair)
    }

    /// The first variable over `patterns`, or the pair that goes before it; `None` below `tol`.
    pub fn first(
        &self,
        patterns: std::ops::Range<usize>,
        pool: Pool,
        tol: f64,
        set: InstructionSet,
    ) -> Option<WorkingSet> {
        run_plain(set, First { state: self, patterns, pool, tol })
    }

    /// The best partner of a variable among `patterns`, whose kernel row is `row`.
    pub fn partner<T: Real>(
        &mut self,
        first: Variable,
        patterns: std::ops::Range<usize>,
        pool: Pool,
        row: &[T],
        set: InstructionSet,
    ) -> WorkingSet {
        self.gains += (patterns.len() * self.classes) as u64;
        run_plain(set, Partner { state: self, first, patterns, pool, row })
    }

    /// The pair inside pattern `i`, all of whose variables are zero, that gains most.
    pub fn fresh_pair(&self, i: usize, p: usize, set: InstructionSet) -> WorkingSet {
        let row = vec![self.diagonal[i]; i + 1];
        run_plain(
            set,
            Partner {
                state: self,
                first: (i, p),
                patterns: i..i + 1,
                pool: Pool::Patterns,
                row: &row,
            },
        )
    }

    /// Moves the variables of a working set to their best values; `k` is the kernel value between
    /// the patterns of a pair. Returns the gain and the changes, (pattern, change of coefficients),
    /// that [`update`](Self::update) has to bring into the scores.
    pub fn solve(&mut self, set: WorkingSet, k: f64) -> (f64, Vec<(usize, Vec<f64>)>) {
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
        if value <= SNAP * upper {
            0.0
        } else if value >= (1.0 - SNAP) * upper {
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
                Some((_, change)) => add_coefficient(&self.rule, y, p, step, change),
                None => {
                    let mut change = vec![0.0; self.columns];
                    add_coefficient(&self.rule, y, p, step, &mut change);
                    changes.push((i, change));
                }
            }
        }
        for (i, change) in &mut changes {
            let sum: f64 = self.alpha(*i).iter().sum();
            let upper = self.upper[*i];
            self.sum[*i] =
                if sum >= (1.0 - SNAP) * upper && self.is_simplex() { upper } else { sum };
            if self.columns > self.classes {
                let total: f64 = change.iter().sum();
                change[self.classes] = total / self.classes as f64;
            }
        }
        changes
    }

    /// Moves all variables of pattern `i` to their best values; as [`solve`](Self::solve).
    pub fn solve_pattern(&mut self, i: usize) -> (f64, Vec<(usize, Vec<f64>)>) {
        use super::rule::{Margin, sign};
        let y = self.code(i);
        let mut example = Example::default();
        for p in (0..self.classes).filter(|&p| self.rule.uses(y, p)) {
            let s = if self.rule.margin == Margin::Absolute { sign(y, p) } else { 1.0 };
            example.push(p, self.gradient((i, p)), s, self.alpha(i)[p]);
        }
        let gradients = example.linear.clone();
        let curvature = self.rule.curvature(self.classes);
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
    pub fn solve_labels(
        &mut self,
        i: usize,
        pool: Pool,
        tol: f64,
    ) -> (f64, Vec<(usize, Vec<f64>)>) {
        let y = self.code(i);
        // β of label p is −α/4, of the own label Σα/4; gradients are halved scores, 1 for the own.
        let score = |p: usize| -0.5 * self.score[i * self.columns + p];
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

    /// Adds `change` times the kernel row of a pattern to all scores.
    pub fn update<T: Real>(&mut self, row: &[T], change: &[f64], set: InstructionSet) {
        let columns = self.columns;
        run_plain(set, Update { score: &mut self.score, row, change, columns });
    }

    /// Dual objective and duality gap, from the scores alone.
    pub fn objective_and_gap(&self) -> (f64, f64) {
        let (mut objective, mut gap) = (0.0, 0.0);
        for i in 0..self.len() {
            let y = self.code(i);
            let (mut total, mut largest, mut product) = (0.0, 0.0_f64, 0.0);
            for p in (0..self.classes).filter(|&p| self.rule.uses(y, p)) {
                let (g, a) = (self.gradient((i, p)), self.alpha(i)[p]);
                objective += 0.5 * (self.rule.target(y, p) + g) * a;
                product += g * a;
                total += g.max(0.0);
                largest = largest.max(g);
            }
            let loss = if self.is_simplex() { largest } else { total };
            gap += self.upper[i] * loss - product;
        }
        (objective, gap)
    }
}

struct First<'a> {
    state: &'a Patterns,
    patterns: std::ops::Range<usize>,
    pool: Pool,
    tol: f64,
}

impl PlainLoop for First<'_> {
    type Output = Option<WorkingSet>;

    #[inline(always)]
    fn run(self) -> Option<WorkingSet> {
        let (mut one, mut two) = ((0.0, (0, 0)), (0.0, (0, 0, 0)));
        for i in self.patterns {
            let (violation, p, pair, (up, down)) = self.state.worst_of(i, self.pool);
            if violation > one.0 {
                one = (violation, (i, p));
            }
            if pair > two.0 {
                two = (pair, (i, up, down));
            }
        }
        if one.0.max(two.0) < self.tol {
            return None;
        }
        let (i, up, down) = two.1;
        Some(if two.0 > one.0 {
            WorkingSet::Two((i, up), (i, down))
        } else {
            WorkingSet::One(one.1)
        })
    }
}

struct Partner<'a, T> {
    state: &'a Patterns,
    first: Variable,
    patterns: std::ops::Range<usize>,
    pool: Pool,
    row: &'a [T],
}

impl<T: Real> PlainLoop for Partner<'_, T> {
    type Output = WorkingSet;

    #[inline(always)]
    fn run(self) -> WorkingSet {
        let state = self.state;
        let (i, p) = self.first;
        let g = state.gradient(self.first);
        let q_first = state.coupling(self.first, self.first) * state.diagonal[i];
        let mut best = (gain_one(g, q_first), None);
        for j in self.patterns {
            let k = self.row[j].to_f64();
            for q in 0..state.classes {
                if (j, q) == (i, p) || !state.may_take(j, q, self.pool) {
                    continue;
                }
                let second = state.gradient((j, q));
                if state.violation_of(j, q, second) == 0.0 {
                    continue;
                }
                let pair = Pair {
                    first: g,
                    second,
                    q_first,
                    q_both: state.coupling((i, p), (j, q)) * k,
                    q_second: state.coupling((j, q), (j, q)) * state.diagonal[j],
                };
                let gain = pair.gain();
                if gain > best.0 {
                    best = (gain, Some((j, q)));
                }
            }
        }
        match best.1 {
            Some(second) => WorkingSet::Two(self.first, second),
            None => WorkingSet::One(self.first),
        }
    }
}

struct Update<'a, T> {
    score: &'a mut [f64],
    row: &'a [T],
    change: &'a [f64],
    columns: usize,
}

impl<T: Real> PlainLoop for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (score, k) in self.score.chunks_exact_mut(self.columns).zip(self.row) {
            let k = k.to_f64();
            for (score, change) in score.iter_mut().zip(self.change) {
                *score += k * change;
            }
        }
    }
}
