//! The nearest point of a box whose entries have a given sum.
//!
//! minimise ½‖x − y‖² over l ≤ x ≤ u, Σx = s: x = clip(y − λ, l, u), where λ is the root of a
//! decreasing piecewise linear function (Pardalos and Kovoor, 1990). Newton's method on it, kept
//! inside a bracket, ends after finitely many passes.

/// Passes after which the bracket is as narrow as double precision lets it be.
const PASSES: usize = 100;

/// A box and the sum that points of it must have.
pub(super) struct Slice<'a> {
    pub(super) lower: &'a [f64],
    pub(super) upper: &'a [f64],
}

impl Slice<'_> {
    /// Moves `y` to the nearest point of the box whose sum is that of `feasible`, a point of the box.
    pub(super) fn project(&self, y: &mut [f64], feasible: &[f64]) {
        if y.is_empty() {
            return;
        }
        let sum: f64 = feasible.iter().sum();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (y, feasible) in y.iter().zip(feasible) {
            low = low.min(y - feasible);
            high = high.max(y - feasible);
        }
        let mut shift = 0.0_f64.clamp(low, high);
        for _ in 0..PASSES {
            let (excess, inside) = self.excess(y, shift, sum);
            if excess > 0.0 {
                low = shift;
            } else if excess < 0.0 {
                high = shift;
            } else {
                break;
            }
            let newton = shift + excess / inside as f64;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if next == shift {
                break;
            }
            shift = next;
        }
        let (excess, inside) = self.excess(y, shift, sum);
        let rest = if inside > 0 { excess / inside as f64 } else { 0.0 };
        for ((y, &lower), &upper) in y.iter_mut().zip(self.lower).zip(self.upper) {
            *y = (*y - shift - rest).clamp(lower, upper);
        }
    }

    /// By how much the sum of the clipped point is too large, and how many entries are inside.
    fn excess(&self, y: &[f64], shift: f64, sum: f64) -> (f64, usize) {
        let (mut total, mut inside) = (0.0, 0);
        for ((y, &lower), &upper) in y.iter().zip(self.lower).zip(self.upper) {
            let value = y - shift;
            total += value.clamp(lower, upper);
            inside += usize::from(value > lower && value < upper);
        }
        (total - sum, inside)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_projection_is_feasible_and_nearer_than_any_pair_shift(
            entries in prop::collection::vec((-2.0..2.0, 0.0..1.0, 0.01..3.0), 0..12),
            open in 0..3_usize,
        ) {
            let y: Vec<f64> = entries.iter().map(|e| e.0).collect();
            let lower = vec![0.0; y.len()];
            let mut upper: Vec<f64> = entries.iter().map(|e| e.2).collect();
            upper.iter_mut().take(open).for_each(|upper| *upper = f64::INFINITY);
            let feasible: Vec<f64> = entries.iter().map(|e| e.1 * e.2).collect();
            let sum: f64 = feasible.iter().sum();
            let mut x = y.clone();
            Slice { lower: &lower, upper: &upper }.project(&mut x, &feasible);
            prop_assert!((x.iter().sum::<f64>() - sum).abs() < 1e-9);
            prop_assert!(x.iter().zip(&upper).all(|(x, upper)| *x >= 0.0 && x <= upper));
            // Optimality: no pair can exchange a little and come nearer to y.
            for i in 0..x.len() {
                for j in 0..x.len() {
                    if x[i] < upper[i] - 1e-9 && x[j] > 1e-9 {
                        prop_assert!((x[i] - y[i]) - (x[j] - y[j]) > -1e-8);
                    }
                }
            }
        }
    }
}
