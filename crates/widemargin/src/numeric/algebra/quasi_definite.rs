//! A = L D Lᵀ of a quasi-definite matrix: positive definite over some variables, negative definite over the
//! others. Such matrices have that factorisation in any order, without exchanges (Vanderbei, 1995).

use super::dot;
use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, run_plain};

/// The factors of a quasi-definite matrix.
pub(crate) struct QuasiDefinite {
    order: usize,
    /// L below the diagonal, row-major.
    lower: Vec<f64>,
    diagonal: Vec<f64>,
}

impl QuasiDefinite {
    /// Factors a row-major matrix of which only the lower triangle is read and which is positive definite
    /// over the variables that `is_positive` names; `None` when rounding leaves a pivot of another sign.
    pub(crate) fn new(
        mut a: Vec<f64>,
        order: usize,
        set: InstructionSet,
        is_positive: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let factorisation = Factorisation { a: &mut a, order, is_positive };
        let diagonal = run_plain(set, factorisation)?;
        Some(Self { order, lower: a, diagonal })
    }

    /// Replaces b by A⁻¹b.
    #[inline(always)]
    pub(crate) fn solve(&self, b: &mut [f64]) {
        for i in 0..self.order {
            b[i] -= dot(&self.lower[i * self.order..][..i], &b[..i]);
        }
        b.iter_mut().zip(&self.diagonal).for_each(|(b, d)| *b /= d);
        for i in (0..self.order).rev() {
            let value = b[i];
            for (b, l) in b[..i].iter_mut().zip(&self.lower[i * self.order..]) {
                *b -= value * l;
            }
        }
    }
}

/// A factorisation in place.
struct Factorisation<'a, P> {
    a: &'a mut [f64],
    order: usize,
    is_positive: P,
}

impl<P: Fn(usize) -> bool> PlainLoop for Factorisation<'_, P> {
    type Output = Option<Vec<f64>>;

    /// The diagonal of D, or nothing at a pivot of the wrong sign.
    #[inline(always)]
    fn run(self) -> Option<Vec<f64>> {
        let Self { a, order, is_positive } = self;
        let mut diagonal = vec![0.0; order];
        for i in 0..order {
            let (known, own) = a.split_at_mut(i * order);
            let own = &mut own[..=i];
            // First L D, of which row i of L follows.
            for j in 0..i {
                own[j] -= dot(&own[..j], &known[j * order..][..j]);
            }
            let mut pivot = own[i];
            for j in 0..i {
                let scaled = own[j] / diagonal[j];
                pivot -= own[j] * scaled;
                own[j] = scaled;
            }
            let signed = if is_positive(i) { pivot } else { -pivot };
            if !pivot.is_finite() || signed <= 0.0 {
                return None;
            }
            diagonal[i] = pivot;
        }
        Some(diagonal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    fn set() -> InstructionSet {
        InstructionSet::detect()
    }

    #[test]
    fn the_factors_solve_a_bordered_system() {
        for (positive, negative) in [(0, 1), (1, 0), (5, 3), (40, 30)] {
            let order = positive + negative;
            let mut generator = Generator::new(order as u64);
            let g: Vec<f64> = (0..order * order).map(|_| generator.unit() - 0.5).collect();
            let row = |i: usize| &g[i * order..][..order];
            // Positive and negative definite parts alternate as long as there are both.
            let sign = |i: usize| {
                if i.is_multiple_of(2) && i / 2 < positive || i / 2 >= negative {
                    1.0
                } else {
                    -1.0
                }
            };
            let entry = |i: usize, j: usize| {
                let ridge = if i == j { 0.1 } else { 0.0 };
                let value = dot(row(i), row(j)) + ridge;
                if sign(i) == sign(j) { sign(i) * value } else { g[i.max(j) * order + i.min(j)] }
            };
            let a: Vec<f64> = (0..order * order).map(|p| entry(p / order, p % order)).collect();
            let factors = QuasiDefinite::new(a.clone(), order, set(), |i| sign(i) > 0.0).unwrap();
            let x: Vec<f64> = (0..order).map(|i| i as f64 - 3.0).collect();
            let mut b: Vec<f64> = (0..order).map(|i| dot(&a[i * order..][..order], &x)).collect();
            factors.solve(&mut b);
            let worst = x.iter().zip(&b).map(|(x, b)| (x - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-8 * order as f64, "order {order}: {worst}");
        }
    }

    #[test]
    fn a_matrix_without_a_pivot_has_no_factors() {
        assert!(QuasiDefinite::new(vec![0.0], 1, set(), |_| true).is_none());
        assert!(QuasiDefinite::new(vec![1.0, 0.0, 1.0, 1.0], 2, set(), |_| true).is_none());
    }

    #[test]
    fn a_pivot_of_the_wrong_sign_is_refused() {
        assert!(QuasiDefinite::new(vec![1.0], 1, set(), |_| true).is_some());
        assert!(QuasiDefinite::new(vec![1.0], 1, set(), |_| false).is_none());
        assert!(QuasiDefinite::new(vec![1.0, 0.0, 2.0, 1.0], 2, set(), |_| true).is_none());
        assert!(QuasiDefinite::new(vec![1.0, 0.0, 2.0, 1.0], 2, set(), |i| i == 0).is_some());
    }
}
