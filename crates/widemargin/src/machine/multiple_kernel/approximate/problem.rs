//! The training problems over features: hinge and tube functions with a free constant, the problem of all classes,
//! and the half-space of the one-class machine.

use crate::solver::linear::{RowLoss, conjugate};

/// A problem over rows of the tables, with its last dual solution.
pub(in crate::machine::multiple_kernel) struct FeatureProblem {
    /// Its rows among all that were given.
    pub(in crate::machine::multiple_kernel) rows: Vec<usize>,
    pub(in crate::machine::multiple_kernel) kind: ProblemKind,
}

/// What is learnt over the rows.
pub(in crate::machine::multiple_kernel) enum ProblemKind {
    Function(Function),
    Classes(Classes),
    HalfSpace(HalfSpace),
}

/// One function ⟨w, φ(x)⟩ + b with a loss of kinks at most: `½‖w‖² + Σ Cᵢ ℓ`.
pub(in crate::machine::multiple_kernel) struct Function {
    pub(in crate::machine::multiple_kernel) loss: RowLoss,
    pub(in crate::machine::multiple_kernel) targets: Vec<f64>,
    pub(in crate::machine::multiple_kernel) costs: Vec<f64>,
    /// β of the last solution.
    pub(super) dual: Vec<f64>,
    /// b of the last solution.
    pub(super) constant: f64,
}

/// Crammer and Singer's problem of all classes.
pub(in crate::machine::multiple_kernel) struct Classes {
    pub(in crate::machine::multiple_kernel) count: usize,
    pub(in crate::machine::multiple_kernel) right: Vec<u32>,
    pub(in crate::machine::multiple_kernel) costs: Vec<f64>,
    /// α of the last solution, class by class for every row.
    pub(super) dual: Option<Vec<f64>>,
}

/// The one-class machine: 0 ≤ α ≤ u, Σα given.
pub(in crate::machine::multiple_kernel) struct HalfSpace {
    pub(in crate::machine::multiple_kernel) upper: Vec<f64>,
    pub(in crate::machine::multiple_kernel) total: f64,
}

impl Function {
    pub(in crate::machine::multiple_kernel) fn new(
        loss: RowLoss,
        targets: Vec<f64>,
        costs: Vec<f64>,
    ) -> Self {
        let dual = vec![0.0; targets.len()];
        Self { loss, targets, costs, dual, constant: 0.0 }
    }

    /// The dual solution with Σβ = 0, which makes the bound one of all constants: the larger of the two sides is
    /// made as small as the other, and nothing leaves its bounds.
    pub(super) fn balanced(&self) -> Vec<f64> {
        let side = |sign: f64| self.dual.iter().map(|beta| (sign * beta).max(0.0)).sum::<f64>();
        let (above, below) = (side(1.0), side(-1.0));
        let share = |own: f64, other: f64| if own > other { other / own } else { 1.0 };
        let (above, below) = (share(above, below), share(below, above));
        let scaled = |beta: &f64| beta * if *beta > 0.0 { above } else { below };
        self.dual.iter().map(scaled).collect()
    }

    /// What the dual adds to −½‖w‖².
    pub(super) fn linear(&self, dual: &[f64]) -> f64 {
        let rows = dual.iter().zip(&self.targets).zip(&self.costs);
        -rows.map(|((beta, target), cost)| conjugate(self.loss, *beta, *target, *cost)).sum::<f64>()
    }

    /// The constant b of the least Σ Cᵢ ℓ(zᵢ + b, tᵢ) for rows with these values z. That is convex and linear
    /// between the places where a loss has a kink, at each of which its slope rises by Cᵢ.
    pub(super) fn best_constant(&self, values: &[f64]) -> f64 {
        let mut kinks: Vec<(f64, f64)> = Vec::with_capacity(2 * values.len());
        let mut slope = 0.0;
        for ((value, target), cost) in values.iter().zip(&self.targets).zip(&self.costs) {
            match self.loss {
                RowLoss::Tube(epsilon) => {
                    slope -= cost;
                    kinks.push((target - epsilon - value, *cost));
                    kinks.push((target + epsilon - value, *cost));
                }
                _ => {
                    slope -= if *target > 0.0 { *cost } else { 0.0 };
                    kinks.push((target - value, *cost));
                }
            }
        }
        kinks.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        for (at, (place, rise)) in kinks.iter().enumerate() {
            slope += rise;
            if slope > 0.0 {
                return *place;
            }
            if slope == 0.0 {
                // Every constant up to the next kink is as good: the middle.
                return kinks.get(at + 1).map_or(*place, |next| 0.5 * (place + next.0));
            }
        }
        kinks.last().map_or(0.0, |last| last.0)
    }
}

impl Classes {
    pub(in crate::machine::multiple_kernel) fn new(
        count: usize,
        right: Vec<u32>,
        costs: Vec<f64>,
    ) -> Self {
        Self { count, right, costs, dual: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_constant_has_the_least_loss() {
        let targets: Vec<f64> = (0..30).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let costs: Vec<f64> = (0..30).map(|i| 0.5 + f64::from(i % 4)).collect();
        let values: Vec<f64> = (0..30).map(|i| (f64::from(i) * 1.7).sin() * 2.0).collect();
        for loss in [RowLoss::Hinge, RowLoss::Tube(0.3)] {
            let function = Function::new(loss, targets.clone(), costs.clone());
            let total = |constant: f64| -> f64 {
                let rows = values.iter().zip(&targets).zip(&costs);
                rows.map(|((z, t), c)| c * loss.value(z + constant, *t)).sum()
            };
            let found = total(function.best_constant(&values));
            let least = (-4000..=4000).map(|k| total(f64::from(k) / 1000.0));
            let least = least.fold(f64::INFINITY, f64::min);
            assert!(found <= least + 1e-12, "{loss:?}: {found} {least}");
        }
    }

    #[test]
    fn a_balanced_solution_sums_to_nothing_within_its_bounds() {
        let mut function = Function::new(RowLoss::Hinge, vec![1.0, 1.0, -1.0], vec![1.0; 3]);
        function.dual = vec![1.0, 0.5, -1.0];
        let balanced = function.balanced();
        assert!(balanced.iter().sum::<f64>().abs() < 1e-15, "{balanced:?}");
        assert!(
            balanced.iter().zip(&function.dual).all(|(b, d)| b.abs() <= d.abs() && b * d >= 0.0)
        );
    }
}
