//! The sub-problem of a block: steps on single examples, the worst first.
//!
//! Scores of the block are kept in the precision of the kernel values or in double; variables are
//! always double and feasible after every step.

use super::block_rows::BlockRows;
use super::example::Example;
use super::table::{Table, largest};
use crate::numeric::simd::{PlainLoop, Real};

/// Examples whose violation is at least this share of the worst take a step before the next look at
/// all of them.
const STEP_SHARE: f64 = 0.4;

/// Most rows that are fetched together.
const MOST_FETCHED: usize = 16;

/// A block and how far to go; `S` is the precision of its scores.
pub(in crate::solver::s2do) struct Block<'a, S, T, V> {
    pub(in crate::solver::s2do) table: &'a mut Table,
    pub(in crate::solver::s2do) rows: V,
    /// Added to every kernel value.
    pub(in crate::solver::s2do) constant: f64,
    pub(in crate::solver::s2do) tol: f64,
    pub(in crate::solver::s2do) max_steps: u64,
    pub(in crate::solver::s2do) precision: std::marker::PhantomData<(S, T)>,
}

impl<S: Real, T: Real, V: BlockRows<T>> PlainLoop for Block<'_, S, T, V> {
    /// The steps taken, which examples changed, and the scores, class by class.
    type Output = (u64, Vec<bool>, Vec<S>);

    #[inline(always)]
    fn run(mut self) -> Self::Output {
        let q = self.table.len();
        let mut scores = Scores::<S>::new(self.table);
        let mut touched = vec![false; q];
        let (mut violations, mut spare, mut change) = (Vec::new(), Vec::new(), Vec::new());
        let (mut violators, mut next) = (Vec::new(), Vec::new());
        let mut example = Example::default();
        let constant = S::from_f64(self.constant);
        let mut steps = 0;
        while steps < self.max_steps {
            scores.violations(self.table, &mut violations, &mut spare);
            let worst = largest(&violations).to_f64();
            if worst <= self.tol {
                break;
            }
            let least = (STEP_SHARE * worst).max(self.tol);
            let bound = S::from_f64(least);
            violators.clear();
            violators.extend((0..q as u32).filter(|&i| violations[i as usize] >= bound));
            violators.sort_by(|&a, &b| {
                let of = |i: u32| violations[i as usize].to_f64();
                of(b).total_cmp(&of(a))
            });
            let mut moved = false;
            for at in 0..violators.len() {
                if steps == self.max_steps {
                    break;
                }
                let i = violators[at] as usize;
                // Steps of others may have removed its violation.
                if self.table.visit(i, |c| scores.at(c, i), &mut example) < least {
                    continue;
                }
                if !self.rows.holds(i) {
                    next.clear();
                    next.push(i as u32);
                    for &later in &violators[at + 1..] {
                        let j = later as usize;
                        if next.len() == MOST_FETCHED {
                            break;
                        }
                        if !self.rows.holds(j)
                            && self.table.visit(j, |c| scores.at(c, j), &mut example) >= least
                        {
                            next.push(later);
                        }
                    }
                    self.rows.fetch(&next);
                    self.table.visit(i, |c| scores.at(c, i), &mut example);
                }
                steps += 1;
                if !self.table.improve(i, &mut example, &mut change) {
                    continue;
                }
                (moved, touched[i]) = (true, true);
                scores.note(self.table, i);
                let row = &self.rows.row(i)[..q];
                for (column, &amount) in scores.values.chunks_exact_mut(q).zip(&change) {
                    if amount != 0.0 {
                        let amount = S::from_f64(amount);
                        for (score, &k) in column.iter_mut().zip(row) {
                            *score += amount * (S::from_f64(k.to_f64()) + constant);
                        }
                    }
                }
            }
            if !moved {
                break;
            }
        }
        (steps, touched, scores.values)
    }
}

/// Scores of a block, column after column, and which variables may move.
struct Scores<S> {
    examples: usize,
    values: Vec<S>,
    /// 0 where a variable may rise, −∞ where it may not; one entry for a simplex, all of whose
    /// variables may rise or none.
    rise: Vec<S>,
    /// 0 where it may fall, −∞ where it may not.
    fall: Vec<S>,
}

impl<S: Real> Scores<S> {
    #[inline(always)]
    fn new(table: &Table) -> Self {
        let q = table.len();
        let values = table.score.iter().flatten().map(|&score| S::from_f64(score)).collect();
        let fall = vec![S::ZERO; table.classes * q];
        let rise = if table.sum.is_empty() { fall.clone() } else { vec![S::ZERO; q] };
        let mut scores = Self { examples: q, values, rise, fall };
        (0..q).for_each(|i| scores.note(table, i));
        scores
    }

    /// The score of class `c` of example `i`.
    #[inline(always)]
    fn at(&self, c: usize, i: usize) -> f64 {
        self.values[c * self.examples + i].to_f64()
    }

    /// Takes over which variables of example `i` may move.
    #[inline(always)]
    fn note(&mut self, table: &Table, i: usize) {
        let never = S::from_f64(f64::NEG_INFINITY);
        let (q, upper) = (table.len(), table.upper[i]);
        let simplex = !table.sum.is_empty();
        if simplex {
            self.rise[i] = if table.sum[i] < upper { S::ZERO } else { never };
        }
        for (c, column) in table.alpha.iter().enumerate() {
            if !simplex {
                self.rise[c * q + i] = if column[i] < upper { S::ZERO } else { never };
            }
            self.fall[c * q + i] = if column[i] > 0.0 { S::ZERO } else { never };
        }
    }

    /// Puts the violation of the optimality conditions of every example into `out`.
    #[inline(always)]
    fn violations(&self, table: &Table, out: &mut Vec<S>, spare: &mut Vec<S>) {
        let q = table.len();
        let simplex = !table.sum.is_empty();
        let (never, always) = (S::from_f64(f64::NEG_INFINITY), S::from_f64(f64::INFINITY));
        out.clear();
        out.resize(q, if simplex { never } else { S::ZERO });
        spare.clear();
        spare.resize(q, always);
        for (y, run) in &table.runs {
            let (out, low) = (&mut out[run.clone()], &mut spare[run.clone()]);
            let n = out.len();
            let column = |c: usize| &self.values[c * q + run.start..c * q + run.end][..n];
            for c in (0..table.classes).filter(|&c| table.loss.uses(*y, c)) {
                let form = table.form(*y, c);
                let (target, factor) = (S::from_f64(form.target), S::from_f64(form.factor));
                let score = column(c);
                let of_class = if simplex { 0 } else { c * q };
                let rise = &self.rise[of_class + run.start..of_class + run.end][..n];
                let fall = &self.fall[c * q + run.start..c * q + run.end][..n];
                let mut each = |i: usize, g: S| {
                    if simplex {
                        out[i] = if g > out[i] { g } else { out[i] };
                        let used = g - fall[i];
                        low[i] = if used < low[i] { used } else { low[i] };
                    } else {
                        let (up, down) = (g + rise[i], fall[i] - g);
                        let worst = if up > down { up } else { down };
                        out[i] = if worst > out[i] { worst } else { out[i] };
                    }
                };
                match form.other {
                    Some(other) => {
                        let other = column(other);
                        for i in 0..n {
                            each(i, target + factor * (score[i] - other[i]));
                        }
                    }
                    None => {
                        for i in 0..n {
                            each(i, target + factor * score[i]);
                        }
                    }
                }
            }
            if simplex {
                let rise = &self.rise[run.start..run.end][..n];
                let low = &low[..n];
                for i in 0..n {
                    let up = if rise[i] < S::ZERO { out[i] - low[i] } else { out[i] };
                    let worst = if up > -low[i] { up } else { -low[i] };
                    out[i] = if worst > S::ZERO { worst } else { S::ZERO };
                }
            }
        }
    }
}
