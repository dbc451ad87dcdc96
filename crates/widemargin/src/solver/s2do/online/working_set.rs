//! Which variables a step on support patterns moves: the worst, and the partner that gains most with
//! it.

use std::ops::Range;

use super::pair::{Pair, gain_one};
use super::patterns::{Patterns, Pool, Variable};
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, Real, run_plain};
use crate::solver::s2do::shared::multiclass_loss::{Components, Margin};

/// A working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WorkingSet {
    /// One variable.
    One(Variable),
    /// Two variables.
    Two(Variable, Variable),
}

impl Patterns {
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
        self.loss.uses(self.codes[i] as usize, p)
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
    pub(crate) fn violation(&self) -> f64 {
        (0..self.len()).map(|i| self.violation_at(i)).fold(0.0, f64::max)
    }

    /// The violation of pattern `i`.
    pub(crate) fn violation_at(&self, i: usize) -> f64 {
        let (one, _, pair, _) = self.worst_of(i, Pool::Patterns);
        one.max(pair)
    }

    /// The violations of `patterns`.
    pub(crate) fn violations(&self, patterns: Range<usize>, set: InstructionSet) -> Vec<f64> {
        run_plain(set, Violations { state: self, patterns })
    }

    /// The first variable over `patterns`, or the pair that goes before it; `None` below `tol`.
    pub(crate) fn first(
        &self,
        patterns: Range<usize>,
        pool: Pool,
        tol: f64,
        set: InstructionSet,
    ) -> Option<WorkingSet> {
        run_plain(set, First { state: self, patterns, pool, tol })
    }

    /// The best partner of a variable among `patterns`, whose kernel row is `row`.
    pub(crate) fn partner<T: Real>(
        &mut self,
        first: Variable,
        patterns: Range<usize>,
        pool: Pool,
        row: &[T],
        set: InstructionSet,
    ) -> WorkingSet {
        self.gains += (patterns.len() * self.classes) as u64;
        run_plain(set, Partner { state: self, first, patterns, pool, row })
    }

    /// The pair inside pattern `i`, all of whose variables are zero, that gains most.
    pub(crate) fn fresh_pair(&self, i: usize, p: usize, set: InstructionSet) -> WorkingSet {
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
}

struct Violations<'a> {
    state: &'a Patterns,
    patterns: Range<usize>,
}

impl PlainLoop for Violations<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run(self) -> Vec<f64> {
        let (state, range) = (self.state, self.patterns);
        let (n, d, loss) = (range.len(), state.classes, state.loss);
        let (codes, upper) = (&state.codes[range.clone()], &state.upper[range.clone()]);
        let relative = loss.margin == Margin::Relative;
        // What a score is compared with: that of the own class, or the mean.
        let origin: Vec<f64> = match state.score.get(d) {
            _ if relative => range.clone().map(|i| state.score[state.code(i)][i]).collect(),
            Some(mean) => mean[range.clone()].to_vec(),
            None => vec![0.0; n],
        };
        let (others, own) = match loss.components {
            Components::Others => (true, false),
            Components::All => (true, true),
            Components::Own => (false, true),
        };
        let (mut up, mut low) = (vec![f64::NEG_INFINITY; n], vec![f64::INFINITY; n]);
        let mut worst = vec![0.0_f64; n];
        let mut alpha = vec![0.0; n];
        for p in 0..d {
            for (alpha, i) in alpha.iter_mut().zip(range.clone()) {
                *alpha = state.alpha[i * d + p];
            }
            let score = &state.score[p][range.clone()];
            for i in 0..n {
                let same = codes[i] == p as u32;
                let used = if same { own } else { others };
                let target = if same { loss.own_target } else { loss.other_target };
                let factor = if relative {
                    0.5
                } else if same {
                    -1.0
                } else {
                    1.0
                };
                let g = target + factor * (score[i] - origin[i]);
                let held = used && alpha[i] > 0.0;
                let rise = if used { g } else { f64::NEG_INFINITY };
                let fall = if held { g } else { f64::INFINITY };
                up[i] = if rise > up[i] { rise } else { up[i] };
                low[i] = if fall < low[i] { fall } else { low[i] };
                let free = if alpha[i] < upper[i] { rise } else { 0.0 };
                worst[i] = if free > worst[i] { free } else { worst[i] };
            }
        }
        let (simplex, sum) = (state.is_simplex(), &state.sum[range]);
        for i in 0..n {
            let rise = match (simplex, sum[i] >= upper[i]) {
                (false, _) => worst[i],
                (true, false) => up[i],
                (true, true) => up[i] - low[i],
            };
            worst[i] = if upper[i] > 0.0 { rise.max(-low[i]).max(0.0) } else { 0.0 };
        }
        worst
    }
}

struct First<'a> {
    state: &'a Patterns,
    patterns: Range<usize>,
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
    patterns: Range<usize>,
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
        // The pattern of the first variable always takes part.
        let own = if self.patterns.contains(&i) { i..i } else { i..i + 1 };
        for q in 0..state.classes {
            for j in self.patterns.clone().chain(own.clone()) {
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
                    q_both: state.coupling((i, p), (j, q)) * self.row[j].to_f64(),
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
