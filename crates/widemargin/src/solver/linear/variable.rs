//! The variables of a dual, how far they are from optimal, and when that is near enough.

use crate::solver::linear::rows::fetch;

/// One variable of the dual and its piece of the problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) beta: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) target: f64,
    pub(super) ridge: f64,
    /// 1 / (‖x‖² + r), or 0 for a row of zeros without a ridge.
    pub(super) reach: f64,
}

impl Variable {
    /// +1 when it can only be positive, −1 when only negative.
    #[inline(always)]
    pub(super) fn side(&self) -> f64 {
        if self.upper > 0.0 { 1.0 } else { -1.0 }
    }
}

/// Variables that a pass reads and moves, one for every row.
pub(super) trait Variables {
    fn get(&self, i: usize) -> Variable;
    fn set(&mut self, i: usize, beta: f64);
    /// For how many passes it rested last, 0 since it was not idle.
    fn nap(&self, i: usize) -> u8;
    fn set_nap(&mut self, i: usize, nap: u8);
    /// Asks the processor to fetch one.
    fn fetch(&self, i: usize);
}

/// Variables of one thread.
#[derive(Clone, Debug)]
pub(super) struct OwnVariables {
    pub(super) list: Vec<Variable>,
    naps: Vec<u8>,
}

impl OwnVariables {
    pub(super) fn new(list: Vec<Variable>) -> Self {
        Self { naps: vec![0; list.len()], list }
    }
}

impl Variables for OwnVariables {
    #[inline(always)]
    fn get(&self, i: usize) -> Variable {
        self.list[i]
    }

    #[inline(always)]
    fn set(&mut self, i: usize, beta: f64) {
        self.list[i].beta = beta;
    }

    #[inline(always)]
    fn nap(&self, i: usize) -> u8 {
        self.naps[i]
    }

    #[inline(always)]
    fn set_nap(&mut self, i: usize, nap: u8) {
        self.naps[i] = nap;
    }

    #[inline(always)]
    fn fetch(&self, i: usize) {
        fetch(&self.list, i);
    }
}

/// How far a pass found the optimality conditions violated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Violation {
    /// Largest projected gradient, at least 0 once anything was seen.
    pub(super) highest: f64,
    /// Smallest projected gradient.
    pub(super) lowest: f64,
    /// Sum of absolute projected gradients.
    pub(super) sum: f64,
}

impl Violation {
    pub(super) const NONE: Self = Self { highest: 0.0, lowest: 0.0, sum: 0.0 };

    #[inline(always)]
    pub(super) fn see(&mut self, gradient: f64) {
        self.highest = self.highest.max(gradient);
        self.lowest = self.lowest.min(gradient);
        self.sum += gradient.abs();
    }

    /// That of `variables` whose rows have these values ⟨w, x⟩.
    pub(super) fn of(
        variables: impl Iterator<Item = Variable>,
        values: &[f64],
        epsilon: f64,
    ) -> Self {
        let mut violation = Self::NONE;
        for (v, value) in variables.zip(values) {
            if v.lower < v.upper {
                let gradient = value + v.ridge * v.beta - v.target;
                violation.see(projected(&v, gradient, epsilon));
            }
        }
        violation
    }

    pub(super) fn join(self, other: Self) -> Self {
        Self {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            sum: self.sum + other.sum,
        }
    }

    /// The range of projected gradients.
    pub(super) fn range(&self) -> f64 {
        self.highest - self.lowest
    }
}

/// When a descent may stop: LIBLINEAR's rules, so that its tolerances mean the same.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The range of projected gradients.
    Range(f64),
    /// The sum of their sizes, relative to what the first pass from 0 meets.
    Share(f64),
    /// The sum of their sizes.
    Sum(f64),
}

impl Goal {
    /// The goal once the first pass has been made.
    pub(super) fn after_first(self, violation: &Violation) -> Self {
        match self {
            Self::Share(tol) => Self::Sum(tol * violation.sum),
            other => other,
        }
    }

    pub(super) fn is_met(self, violation: &Violation) -> bool {
        match self {
            Self::Range(tol) => violation.range() <= tol,
            Self::Share(_) => false,
            Self::Sum(tol) => violation.sum <= tol,
        }
    }
}

/// Gradients beyond which a variable at its bound is set aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub(super) above: f64,
    pub(super) below: f64,
}

impl Band {
    pub(super) const OPEN: Self = Self { above: f64::INFINITY, below: f64::NEG_INFINITY };

    /// The band that the violations of the last pass suggest.
    pub(super) fn after(violation: &Violation, shrinking: bool) -> Self {
        if !shrinking {
            return Self::OPEN;
        }
        let size = |v: f64| if v > 0.0 { v } else { f64::INFINITY };
        Self { above: size(violation.highest), below: -size(-violation.lowest) }
    }
}

/// What a pass over a block of rows met, before it moved them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockReport {
    /// Largest projected gradient.
    pub highest: f64,
    /// Smallest projected gradient.
    pub lowest: f64,
    /// Sum of absolute projected gradients.
    pub sum: f64,
    /// Steps made.
    pub steps: u64,
}

impl BlockReport {
    pub(super) fn see(&mut self, violation: &Violation) {
        (self.highest, self.lowest, self.sum) =
            (violation.highest, violation.lowest, violation.sum);
    }

    /// That of two blocks together.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            sum: self.sum + other.sum,
            steps: self.steps + other.steps,
        }
    }

    /// The range of projected gradients.
    pub fn range(&self) -> f64 {
        self.highest - self.lowest
    }
}

/// The part of the gradient that a variable can still follow.
pub(super) fn projected(v: &Variable, gradient: f64, epsilon: f64) -> f64 {
    if v.lower == 0.0 || v.upper == 0.0 {
        let slope = v.side() * gradient;
        return if v.beta == 0.0 {
            slope.min(0.0)
        } else if v.beta <= v.lower || v.beta >= v.upper {
            slope.max(0.0)
        } else {
            slope
        };
    }
    let (up, down) = (gradient + epsilon, gradient - epsilon);
    if v.beta == 0.0 {
        up.min(0.0) + down.max(0.0)
    } else if v.beta >= v.upper {
        up.max(0.0)
    } else if v.beta <= v.lower {
        down.min(0.0)
    } else if v.beta > 0.0 {
        up
    } else {
        down
    }
}
