//! The variables of a dual, how far they are from optimal, and when that is near enough.

use super::tuning::dual::TIGHTER;

/// One variable of the dual and its piece of the problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) beta: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) target: f64,
    pub(super) ridge: f64,
    /// 1 / (‖x‖² + r), or 0 for a row of zeros without a ridge.
    pub(super) inverse_curvature: f64,
    pub(super) row: u32,
    /// For how many passes it was skipped last, 0 since it could move.
    pub(super) skip_passes: u8,
}

impl Variable {
    /// +1 when it can only be positive, −1 when only negative.
    #[inline(always)]
    pub(super) fn side(&self) -> f64 {
        if self.upper > 0.0 { 1.0 } else { -1.0 }
    }
}

/// How far a pass found the optimality conditions violated, before it moved the variables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Violation {
    /// Largest projected gradient, at least 0.
    pub highest: f64,
    /// Smallest projected gradient, at most 0.
    pub lowest: f64,
    /// Sum of absolute projected gradients.
    pub sum: f64,
    /// Variables visited.
    pub steps: u64,
}

impl Violation {
    #[inline(always)]
    pub(super) fn see(&mut self, gradient: f64) {
        self.highest = self.highest.max(gradient);
        self.lowest = self.lowest.min(gradient);
        self.sum += gradient.abs();
    }

    /// That of `variables` where the rows have these values ⟨w, x⟩.
    pub(super) fn of<'a>(
        variables: impl Iterator<Item = &'a Variable>,
        values: &[f64],
        epsilon: f64,
    ) -> Self {
        let mut violation = Self::default();
        for v in variables.filter(|v| v.lower < v.upper) {
            let gradient = values[v.row as usize] + v.ridge * v.beta - v.target;
            violation.see(projected(v, gradient, epsilon));
        }
        violation
    }

    /// That of two lists of variables together.
    #[must_use]
    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            sum: self.sum + other.sum,
            steps: self.steps + other.steps,
        }
    }

    /// The range of projected gradients, not a number if one of them was not.
    pub(crate) fn range(&self) -> f64 {
        if self.sum.is_nan() { f64::NAN } else { self.highest - self.lowest }
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

    /// A goal of a smaller tolerance.
    pub(super) fn tightened(self) -> Self {
        match self {
            Self::Range(tol) => Self::Range(TIGHTER * tol),
            Self::Share(tol) => Self::Share(TIGHTER * tol),
            Self::Sum(tol) => Self::Sum(TIGHTER * tol),
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

/// Gradients beyond which a variable at its bound becomes inactive (shrinking).
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
