//! Dual variables and scores of many examples, class by class.
//!
//! Examples stand in the order of their classes, so that in a run of examples every loop over one
//! class is the same plain vector loop. Scores f_c(xᵢ) = Σⱼ b_{j,c} kᵢⱼ are those of the projected
//! coefficients b, so that they stay of the size of the targets however large the variables become.

use std::ops::Range;

use super::example::Example;
use super::multiclass_loss::{Aggregation, Margin, MulticlassLoss, sign};
use crate::numeric::simd::Real;

/// Elements of independent maxima.
const LANES: usize = 16;

/// State of a set of examples.
#[derive(Clone, Debug)]
pub(in crate::solver::s2do) struct Table {
    pub(in crate::solver::s2do) loss: MulticlassLoss,
    pub(in crate::solver::s2do) classes: usize,
    /// Class of every example, ascending.
    pub(in crate::solver::s2do) codes: Vec<u32>,
    /// Examples of one class each: (class, examples).
    pub(in crate::solver::s2do) runs: Vec<(usize, Range<usize>)>,
    /// Bound of every example's variables or of their sum.
    pub(in crate::solver::s2do) upper: Vec<f64>,
    /// k(x, x).
    pub(in crate::solver::s2do) diagonal: Vec<f64>,
    /// α, one column per class.
    pub(in crate::solver::s2do) alpha: Vec<Vec<f64>>,
    /// Scores, one column per class.
    pub(in crate::solver::s2do) score: Vec<Vec<f64>>,
    /// Σα of every example where variables share a bound, else empty.
    pub(in crate::solver::s2do) sum: Vec<f64>,
}

impl Table {
    /// Examples of the classes `codes` (ascending) with all variables and scores zero.
    pub(in crate::solver::s2do) fn new(
        loss: MulticlassLoss,
        classes: usize,
        codes: Vec<u32>,
        upper: Vec<f64>,
        diagonal: Vec<f64>,
    ) -> Self {
        let n = codes.len();
        let sums = if loss.aggregation == Aggregation::Max { n } else { 0 };
        Self {
            loss,
            classes,
            runs: runs(&codes),
            codes,
            upper,
            diagonal,
            alpha: vec![vec![0.0; n]; classes],
            score: vec![vec![0.0; n]; classes],
            sum: vec![0.0; sums],
        }
    }

    /// Number of examples.
    #[inline(always)]
    pub(in crate::solver::s2do) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The examples named by `keep`, ascending.
    pub(in crate::solver::s2do) fn select(&self, keep: &[u32]) -> Self {
        let pick = |values: &Vec<f64>| keep.iter().map(|&v| values[v as usize]).collect::<Vec<_>>();
        let codes: Vec<u32> = keep.iter().map(|&v| self.codes[v as usize]).collect();
        Self {
            loss: self.loss,
            classes: self.classes,
            runs: runs(&codes),
            codes,
            upper: pick(&self.upper),
            diagonal: pick(&self.diagonal),
            alpha: self.alpha.iter().map(pick).collect(),
            score: self.score.iter().map(pick).collect(),
            sum: if self.sum.is_empty() { Vec::new() } else { pick(&self.sum) },
        }
    }

    /// Puts the violation of the optimality conditions of every example into `out`.
    #[inline(always)]
    pub(in crate::solver::s2do) fn violations(&self, out: &mut Vec<f64>, spare: &mut Vec<f64>) {
        out.clear();
        out.resize(self.len(), 0.0);
        match self.loss.aggregation {
            Aggregation::Sum => self.box_violations(out),
            Aggregation::Max => self.simplex_violations(out, spare),
        }
    }

    #[inline(always)]
    fn box_violations(&self, out: &mut [f64]) {
        for (y, run) in &self.runs {
            let upper = &self.upper[run.clone()];
            for c in (0..self.classes).filter(|&c| self.loss.uses(*y, c)) {
                let gradient = self.gradient(*y, c, run);
                let alpha = &self.alpha[c][run.clone()];
                let out = &mut out[run.clone()];
                gradient.each(|i, g| {
                    let up = if alpha[i] < upper[i] { g } else { 0.0 };
                    let down = if alpha[i] > 0.0 { -g } else { 0.0 };
                    let worst = if up > down { up } else { down };
                    out[i] = if worst > out[i] { worst } else { out[i] };
                });
            }
        }
    }

    #[inline(always)]
    fn simplex_violations(&self, out: &mut [f64], spare: &mut Vec<f64>) {
        spare.clear();
        spare.resize(self.len(), f64::INFINITY);
        out.fill(f64::NEG_INFINITY);
        for (y, run) in &self.runs {
            let (out, down) = (&mut out[run.clone()], &mut spare[run.clone()]);
            for c in (0..self.classes).filter(|&c| self.loss.uses(*y, c)) {
                let alpha = &self.alpha[c][run.clone()];
                self.gradient(*y, c, run).each(|i, g| {
                    out[i] = if g > out[i] { g } else { out[i] };
                    let used = if alpha[i] > 0.0 { g } else { f64::INFINITY };
                    down[i] = if used < down[i] { used } else { down[i] };
                });
            }
            let (upper, sum) = (&self.upper[run.clone()], &self.sum[run.clone()]);
            for i in 0..out.len() {
                let up = if sum[i] < upper[i] { out[i] } else { out[i] - down[i] };
                let fall = -down[i];
                let worst = if up > fall { up } else { fall };
                out[i] = if worst > 0.0 { worst } else { 0.0 };
            }
        }
    }

    /// How the gradient of component `c` of class `y` follows from the scores.
    #[inline(always)]
    pub(in crate::solver::s2do) fn form(&self, y: usize, c: usize) -> Form {
        let target = self.loss.target(y, c);
        match self.loss.margin {
            Margin::Relative => Form { target, factor: 0.5, other: Some(y) },
            Margin::Absolute => Form { target, factor: -sign(y, c), other: None },
        }
    }

    /// The gradient of component `c` over a run of examples of class `y`.
    #[inline(always)]
    fn gradient<'a>(&'a self, y: usize, c: usize, run: &Range<usize>) -> Gradient<'a> {
        let Form { target, factor, other } = self.form(y, c);
        let column = |c: usize| &self.score[c][run.clone()];
        Gradient { target, factor, score: column(c), other: other.map(column) }
    }

    /// Gradient of component `c` of class `y`, given the scores by column.
    #[inline(always)]
    pub(in crate::solver::s2do) fn gradient_of(
        &self,
        y: usize,
        c: usize,
        score: impl Fn(usize) -> f64,
    ) -> f64 {
        let Form { target, factor, other } = self.form(y, c);
        target + factor * (score(c) - other.map_or(0.0, score))
    }

    /// Gradient of component `c` of example `i`.
    #[inline(always)]
    pub(in crate::solver::s2do) fn gradient_at(&self, i: usize, c: usize) -> f64 {
        self.gradient_of(self.codes[i] as usize, c, |column| self.score[column][i])
    }

    /// Puts the components of example `i`, given its scores by class, into `example`; returns how
    /// far they violate the optimality conditions.
    #[inline(always)]
    pub(in crate::solver::s2do) fn visit(
        &self,
        i: usize,
        score: impl Fn(usize) -> f64,
        example: &mut Example,
    ) -> f64 {
        let y = self.codes[i] as usize;
        let absolute = self.loss.margin == Margin::Absolute;
        example.fill(self.classes, |c| {
            let s = if absolute { sign(y, c) } else { 1.0 };
            (self.loss.uses(y, c), self.gradient_of(y, c, &score), s, self.alpha[c][i])
        });
        example.violation(self.upper[i], self.sum.get(i).copied())
    }

    /// Moves the variables of example `i`, just put into `example` by [`visit`](Self::visit), to
    /// their best values while all others stay; puts the change of its coefficients into `change`,
    /// one per class. The scores stay as they are. Returns whether anything changed.
    #[inline(always)]
    pub(in crate::solver::s2do) fn improve(
        &mut self,
        i: usize,
        example: &mut Example,
        change: &mut Vec<f64>,
    ) -> bool {
        let y = self.codes[i] as usize;
        let simplex = !self.sum.is_empty();
        let (k, upper) = (self.diagonal[i], self.upper[i]);
        let on_face = example.solve(k, self.loss.curvature(self.classes), upper, simplex);
        change.clear();
        change.resize(self.score.len(), 0.0);
        let (mut sum, mut moved) = (0.0, false);
        for p in 0..example.classes.len() {
            let c = example.classes[p] as usize;
            let (now, best) = (example.now[p], example.best[p]);
            sum += best;
            if best != now {
                moved = true;
                self.alpha[c][i] = best;
                add_coefficient(&self.loss, y, c, best - now, change);
            }
        }
        if simplex {
            let sum = if on_face { upper } else { sum };
            moved |= sum != self.sum[i];
            self.sum[i] = sum;
        }
        self.project(change);
        moved
    }

    /// Coefficients of example `i`, one per class.
    pub(in crate::solver::s2do) fn coefficients(&self, i: usize, out: &mut Vec<f64>) {
        let y = self.codes[i] as usize;
        out.clear();
        out.resize(self.score.len(), 0.0);
        for c in 0..self.classes {
            if self.alpha[c][i] != 0.0 {
                add_coefficient(&self.loss, y, c, self.alpha[c][i], out);
            }
        }
        self.project(out);
    }

    /// Takes the mean off coefficients where scores have to sum to zero.
    #[inline(always)]
    fn project(&self, coefficients: &mut [f64]) {
        if self.loss.is_centred() {
            let mean = coefficients.iter().sum::<f64>() / self.classes as f64;
            coefficients.iter_mut().for_each(|b| *b -= mean);
        }
    }

    /// Takes the variables of example `i` from example `w` of `part`; returns how its coefficients
    /// changed.
    pub(in crate::solver::s2do) fn adopt(&mut self, i: usize, part: &Self, w: usize) -> Vec<f64> {
        let (mut before, mut change) = (Vec::new(), Vec::new());
        self.coefficients(i, &mut before);
        part.coefficients(w, &mut change);
        for (column, of_part) in self.alpha.iter_mut().zip(&part.alpha) {
            column[i] = of_part[w];
        }
        if !self.sum.is_empty() {
            self.sum[i] = part.sum[w];
        }
        for (after, before) in change.iter_mut().zip(&before) {
            *after -= before;
        }
        change
    }

    /// Whether example `i` has a variable that is not zero.
    pub(in crate::solver::s2do) fn is_support(&self, i: usize) -> bool {
        self.alpha.iter().any(|column| column[i] != 0.0)
    }

    /// ½Σ(γ + g)α and the duality gap Σᵢ(Uᵢ loss − Σ α g).
    pub(in crate::solver::s2do) fn objective_and_gap(&self) -> (f64, f64) {
        let (mut objective, mut gap) = (0.0, 0.0);
        for i in 0..self.len() {
            let y = self.codes[i] as usize;
            let (mut total, mut largest, mut product) = (0.0, 0.0_f64, 0.0);
            for c in (0..self.classes).filter(|&c| self.loss.uses(y, c)) {
                let (g, alpha) = (self.gradient_at(i, c), self.alpha[c][i]);
                objective += 0.5 * (self.loss.target(y, c) + g) * alpha;
                product += g * alpha;
                total += g.max(0.0);
                largest = largest.max(g);
            }
            let loss = if self.sum.is_empty() { total } else { largest };
            gap += self.upper[i] * loss - product;
        }
        (objective, gap)
    }
}

/// Adds `amount` of variable (y, p) to unprojected coefficients.
#[inline(always)]
pub(in crate::solver::s2do) fn add_coefficient(
    loss: &MulticlassLoss,
    y: usize,
    p: usize,
    amount: f64,
    out: &mut [f64],
) {
    match loss.margin {
        Margin::Relative => {
            out[y] += 0.5 * amount;
            out[p] -= 0.5 * amount;
        }
        Margin::Absolute => out[p] += sign(y, p) * amount,
    }
}

/// The gradient of a component: target + factor (score of its class − score of column `other`).
pub(in crate::solver::s2do) struct Form {
    pub(in crate::solver::s2do) target: f64,
    pub(in crate::solver::s2do) factor: f64,
    pub(in crate::solver::s2do) other: Option<usize>,
}

/// target + factor (score − other).
struct Gradient<'a> {
    target: f64,
    factor: f64,
    score: &'a [f64],
    other: Option<&'a [f64]>,
}

impl Gradient<'_> {
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(usize, f64)) {
        match self.other {
            Some(other) => {
                for i in 0..self.score.len().min(other.len()) {
                    visit(i, self.target + self.factor * (self.score[i] - other[i]));
                }
            }
            None => {
                for i in 0..self.score.len() {
                    visit(i, self.target + self.factor * self.score[i]);
                }
            }
        }
    }
}

fn runs(codes: &[u32]) -> Vec<(usize, Range<usize>)> {
    let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
    for (i, &code) in codes.iter().enumerate() {
        match runs.last_mut() {
            Some((class, run)) if *class == code as usize => run.end = i + 1,
            _ => runs.push((code as usize, i..i + 1)),
        }
    }
    runs
}

/// The largest value.
#[inline(always)]
pub(in crate::solver::s2do) fn largest<S: Real>(values: &[S]) -> S {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let least = S::from_f64(f64::NEG_INFINITY);
    let mut lanes = [least; LANES];
    for chunk in chunks {
        for l in 0..LANES {
            lanes[l] = if chunk[l] > lanes[l] { chunk[l] } else { lanes[l] };
        }
    }
    lanes.iter().chain(rest).copied().fold(least, |a, b| if b > a { b } else { a })
}
