//! Support patterns that come and go, and steps of two variables on them.
//!
//! Keeps dual variables and scores of the patterns at hand; a step chooses a working set by the
//! largest violation and the largest gain without bounds, solves it exactly, and brings all scores up
//! to date (Trinh 2012, chapters 3 to 5; first indices by violation of the optimality conditions, not
//! by raw gradient, which would stall).

use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, Real, run_plain};
use crate::solver::s2do::shared::multiclass_loss::{Aggregation, Margin, MulticlassLoss, sign};
use crate::solver::s2do::shared::table::add_coefficient;

/// A dual variable: a pattern and one of its classes.
pub(crate) type Variable = (usize, usize);

/// Which variables a step may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// All variables of the patterns.
    Patterns,
    /// Those that are not zero.
    Supports,
}

/// The patterns with their variables and scores.
#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    pub(super) loss: MulticlassLoss,
    pub(super) classes: usize,
    pub(super) columns: usize,
    pub(super) codes: Vec<u32>,
    pub(super) upper: Vec<f64>,
    pub(super) diagonal: Vec<f64>,
    pub(super) alpha: Vec<f64>,
    /// Unprojected scores, one column per class, behind them their mean where scores are centred: a
    /// step changes few columns.
    pub(super) score: Vec<Vec<f64>>,
    pub(super) sum: Vec<f64>,
    pub(super) dual: f64,
    pub(super) gains: u64,
}

impl Patterns {
    /// No patterns.
    pub(crate) fn new(loss: MulticlassLoss, classes: usize) -> Self {
        let columns = classes + usize::from(loss.is_centred());
        Self {
            loss,
            classes,
            columns,
            codes: Vec::new(),
            upper: Vec::new(),
            diagonal: Vec::new(),
            alpha: Vec::new(),
            score: vec![Vec::new(); columns],
            sum: Vec::new(),
            dual: 0.0,
            gains: 0,
        }
    }

    /// Number of patterns.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Dual objective, the sum of all gains.
    pub(crate) fn dual(&self) -> f64 {
        self.dual
    }

    /// Pairs whose gain was computed so far.
    pub(crate) fn gains(&self) -> u64 {
        self.gains
    }

    /// The multi-class loss.
    pub(crate) fn loss(&self) -> &MulticlassLoss {
        &self.loss
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// Columns of a row of scores: the classes, and their mean where scores are centred.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Class of pattern `i`.
    pub(crate) fn code(&self, i: usize) -> usize {
        self.codes[i] as usize
    }

    /// Bound of pattern `i`.
    pub(crate) fn upper(&self, i: usize) -> f64 {
        self.upper[i]
    }

    /// Variables of pattern `i`, one per class.
    pub(crate) fn alpha(&self, i: usize) -> &[f64] {
        &self.alpha[i * self.classes..(i + 1) * self.classes]
    }

    /// Whether pattern `i` has a variable that is not zero.
    pub(crate) fn is_support(&self, i: usize) -> bool {
        self.alpha(i).iter().any(|a| *a != 0.0)
    }

    /// Unprojected coefficients of pattern `i`, one per column.
    pub(crate) fn coefficients(&self, i: usize, out: &mut Vec<f64>) {
        self.coefficients_of(self.code(i), self.alpha(i), out);
    }

    fn coefficients_of(&self, y: usize, alpha: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.resize(self.columns, 0.0);
        for (p, &a) in alpha.iter().enumerate().filter(|(_, a)| **a != 0.0) {
            add_coefficient(&self.loss, y, p, a, out);
        }
        if self.columns > self.classes {
            let total: f64 = out.iter().sum();
            out[self.classes] = total / self.classes as f64;
        }
    }

    /// The gradient that scores mean for component `p` of class `y`.
    #[inline(always)]
    pub(crate) fn gradient_of(&self, y: usize, p: usize, score: &[f64]) -> f64 {
        let target = self.loss.target(y, p);
        match self.loss.margin {
            Margin::Relative => target + 0.5 * (score[p] - score[y]),
            Margin::Absolute => {
                let mean = if self.columns > self.classes { score[self.classes] } else { 0.0 };
                target - sign(y, p) * (score[p] - mean)
            }
        }
    }

    /// Gradient of a variable.
    #[inline(always)]
    pub(crate) fn gradient(&self, (i, p): Variable) -> f64 {
        let y = self.codes[i] as usize;
        let target = self.loss.target(y, p);
        match self.loss.margin {
            Margin::Relative => target + 0.5 * (self.score[p][i] - self.score[y][i]),
            Margin::Absolute => {
                let mean = self.score.get(self.classes).map_or(0.0, |mean| mean[i]);
                target - sign(y, p) * (self.score[p][i] - mean)
            }
        }
    }

    /// Adds a pattern with all variables zero.
    pub(crate) fn push(&mut self, code: u32, upper: f64, diagonal: f64, score: &[f64]) -> usize {
        self.codes.push(code);
        self.upper.push(upper);
        self.diagonal.push(diagonal);
        self.alpha.resize(self.alpha.len() + self.classes, 0.0);
        self.score.iter_mut().zip(score).for_each(|(column, &score)| column.push(score));
        self.sum.push(0.0);
        self.len() - 1
    }

    /// Puts another pattern in the place of `i`, with all variables zero.
    pub(crate) fn replace(
        &mut self,
        i: usize,
        code: u32,
        upper: f64,
        diagonal: f64,
        score: &[f64],
    ) {
        self.codes[i] = code;
        self.upper[i] = upper;
        self.diagonal[i] = diagonal;
        self.sum[i] = 0.0;
        self.alpha[i * self.classes..(i + 1) * self.classes].fill(0.0);
        self.score.iter_mut().zip(score).for_each(|(column, &score)| column[i] = score);
    }

    /// Gives pattern `i` other variables; scores and the dual objective stay as they are.
    pub(crate) fn set(&mut self, i: usize, alpha: &[f64]) {
        self.alpha[i * self.classes..(i + 1) * self.classes].copy_from_slice(alpha);
        self.sum[i] = alpha.iter().sum::<f64>();
        if self.is_simplex() {
            self.upper[i] = self.upper[i].max(self.sum[i]);
        }
    }

    /// Sets all scores to zero, for them to be computed afresh.
    pub(crate) fn clear_scores(&mut self) {
        self.score.iter_mut().for_each(|column| column.fill(0.0));
    }

    /// Computes the dual objective from variables and scores.
    pub(crate) fn recount(&mut self) {
        self.dual = self.objective_and_gap().0;
    }

    /// Takes pattern `i`, all of whose variables are zero, out of use; its place stays.
    pub(crate) fn retire(&mut self, i: usize) {
        self.upper[i] = 0.0;
    }

    /// The same patterns under the loss with one class more, which none of them is of.
    pub(crate) fn grow(&mut self, loss: MulticlassLoss) {
        let classes = self.classes;
        let mut next = Self::new(loss, classes + 1);
        for i in 0..self.len() {
            let columns = &self.score[..classes];
            let mut score: Vec<f64> = columns.iter().map(|column| column[i]).collect();
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
    pub(crate) fn clear(&mut self, i: usize) -> Vec<f64> {
        let mut change = Vec::new();
        self.coefficients(i, &mut change);
        change.iter_mut().for_each(|c| *c = -*c);
        let (mut linear, mut quadratic) = (0.0, 0.0);
        for p in (0..self.classes).filter(|&p| self.loss.uses(self.code(i), p)) {
            let a = self.alpha(i)[p];
            linear += a * self.gradient((i, p));
            for q in (0..self.classes).filter(|&q| self.loss.uses(self.code(i), q)) {
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
    pub(super) fn coupling(&self, (i, p): Variable, (j, q): Variable) -> f64 {
        let (y, z) = (self.codes[i] as usize, self.codes[j] as usize);
        self.loss.coupling(self.classes, (y, p), (z, q))
    }

    pub(super) fn is_simplex(&self) -> bool {
        self.loss.aggregation == Aggregation::Max
    }

    /// Adds `change` times the kernel row of a pattern to all scores.
    pub(crate) fn update<T: Real>(&mut self, row: &[T], change: &[f64], set: InstructionSet) {
        run_plain(set, Update { score: &mut self.score, row, change });
    }

    /// Dual objective and duality gap, from the scores alone.
    pub(crate) fn objective_and_gap(&self) -> (f64, f64) {
        let (mut objective, mut gap) = (0.0, 0.0);
        for i in 0..self.len() {
            let y = self.code(i);
            let (mut total, mut largest, mut product) = (0.0, 0.0_f64, 0.0);
            for p in (0..self.classes).filter(|&p| self.loss.uses(y, p)) {
                let (g, a) = (self.gradient((i, p)), self.alpha(i)[p]);
                objective += 0.5 * (self.loss.target(y, p) + g) * a;
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

struct Update<'a, T> {
    score: &'a mut [Vec<f64>],
    row: &'a [T],
    change: &'a [f64],
}

impl<T: Real> PlainLoop for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for c in 0..self.change.len() {
            let amount = self.change[c];
            if amount != 0.0 {
                let column = &mut self.score[c][..];
                let n = column.len().min(self.row.len());
                let (column, row) = (&mut column[..n], &self.row[..n]);
                for i in 0..n {
                    column[i] += amount * row[i].to_f64();
                }
            }
        }
    }
}
