//! The constants that make a multi-class machine out of the one quadratic program.
//!
//! A margin component is μ_p = ν_{y,p} · f, its violation [γ_{y,p} − μ_p]₊, and the loss of an
//! example the sum or the largest of its violations (Doğan, Glasmachers and Igel, 2016).

/// What a margin compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Margin {
    /// ν_{y,p} = ½(e_y − e_p): the score of the own class against another.
    Relative,
    /// ν_{y,p} = e_p for p = y and −e_p otherwise: every score against zero.
    Absolute,
}

/// Which margin components enter the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Components {
    /// Those of the other classes.
    Others,
    /// Those of all classes.
    All,
    /// That of the own class.
    Own,
}

/// How the violations of an example become its loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregation {
    /// Their sum: every dual variable has a box 0 ≤ α ≤ C of its own.
    Sum,
    /// The largest: the dual variables of an example share Σ α ≤ C.
    Max,
}

/// The loss of a multi-class machine, all that the solver knows of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MulticlassLoss {
    /// What a margin compares.
    pub margin: Margin,
    /// Which components enter the loss.
    pub components: Components,
    /// How they are joined.
    pub aggregation: Aggregation,
    /// Whether the scores of all classes have to sum to zero; relative margins see to it alone.
    pub sum_to_zero: bool,
    /// Target γ of the own class's component.
    pub own_target: f64,
    /// Target γ of every other component.
    pub other_target: f64,
}

/// M = `identity` δ_pq + `common` s_p s_q between the components of one example; s is +1, or for
/// absolute margins the sign of the component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curvature {
    pub(crate) identity: f64,
    pub(crate) common: f64,
}

impl MulticlassLoss {
    /// Whether component `p` belongs to the loss of an example of class `y`.
    #[inline(always)]
    pub(crate) fn uses(&self, y: usize, p: usize) -> bool {
        match self.components {
            Components::Others => p != y,
            Components::All => true,
            Components::Own => p == y,
        }
    }

    /// Target of component `p` of class `y`.
    #[inline(always)]
    pub(crate) fn target(&self, y: usize, p: usize) -> f64 {
        if p == y { self.own_target } else { self.other_target }
    }

    /// Slacks per example.
    pub(crate) fn slacks(&self, classes: usize) -> usize {
        match (self.aggregation, self.components) {
            (Aggregation::Max, _) | (_, Components::Own) => 1,
            (Aggregation::Sum, Components::Others) => classes - 1,
            (Aggregation::Sum, Components::All) => classes,
        }
    }

    /// Whether the mean of all scores has to be taken off them.
    #[inline(always)]
    pub(crate) fn is_centred(&self) -> bool {
        self.sum_to_zero && self.margin == Margin::Absolute
    }

    /// The variables, bounded by `upper`, of an example of class `y` that has the projected
    /// coefficients `b`.
    ///
    /// Where a shift of all variables leaves the coefficients as they are, the one that charges
    /// least is taken.
    pub(crate) fn variables(&self, y: usize, b: &[f64], upper: f64) -> Vec<f64> {
        let d = b.len() as f64;
        let mean = match (self.is_centred(), self.components) {
            (false, _) => 0.0,
            (true, Components::Own) => b[y] / (d - 1.0),
            (true, Components::Others) => -b[y],
            (true, Components::All) => {
                let others = b.iter().enumerate().filter(|(c, _)| *c != y);
                let least = others.fold(-b[y], |least, (_, b)| least.max(-b - upper));
                match self.aggregation {
                    Aggregation::Max if d > 2.0 => least.max((2.0 * b[y] - upper) / (d - 2.0)),
                    _ => least,
                }
            }
        };
        let variable = |p: usize| match self.margin {
            Margin::Relative => -2.0 * b[p],
            Margin::Absolute => sign(y, p) * (b[p] + mean),
        };
        (0..b.len()).map(|p| if self.uses(y, p) { variable(p).max(0.0) } else { 0.0 }).collect()
    }

    /// M_{y,p,z,q} = ν_{y,p} · Π ν_{z,q}.
    pub(crate) fn coupling(
        &self,
        classes: usize,
        (y, p): (usize, usize),
        (z, q): (usize, usize),
    ) -> f64 {
        let same = |a: usize, b: usize| if a == b { 1.0 } else { 0.0 };
        match self.margin {
            Margin::Relative => 0.25 * (same(y, z) - same(y, q) - same(p, z) + same(p, q)),
            Margin::Absolute => {
                let mean = if self.sum_to_zero { 1.0 / classes as f64 } else { 0.0 };
                sign(y, p) * sign(z, q) * (same(p, q) - mean)
            }
        }
    }

    /// M within one example.
    pub(crate) fn curvature(&self, classes: usize) -> Curvature {
        match self.margin {
            Margin::Relative => Curvature { identity: 0.25, common: 0.25 },
            Margin::Absolute if self.sum_to_zero => {
                Curvature { identity: 1.0, common: -1.0 / classes as f64 }
            }
            Margin::Absolute => Curvature { identity: 1.0, common: 0.0 },
        }
    }
}

/// σ_{y,p}: +1 for the own class, −1 for others.
#[inline(always)]
pub(crate) fn sign(y: usize, p: usize) -> f64 {
    if p == y { 1.0 } else { -1.0 }
}
