//! Exact solutions of the quadratic programs of one and two variables, boundary cases included.
//!
//! Maximise g·μ − ½ μᵀQμ with α + μ inside an interval, a box or a triangle (Trinh 2012, algorithms
//! 4, 5 and 11, with their misprints corrected). Q may be singular: along a direction without
//! curvature the step goes to the bound.

/// Determinants below this share of the product of the diagonal count as zero.
const SINGULAR: f64 = 1e-12;

/// Curvatures up to this count as zero.
const FLAT: f64 = 1e-12;

/// A two-variable program: gradients and curvature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Gradient of the first variable.
    pub first: f64,
    /// Gradient of the second.
    pub second: f64,
    /// Curvature of the first.
    pub q_first: f64,
    /// Curvature between the two.
    pub q_both: f64,
    /// Curvature of the second.
    pub q_second: f64,
}

/// The best value of one variable now at `alpha` within [`low`, `high`].
pub(crate) fn solve_one(alpha: f64, gradient: f64, curvature: f64, low: f64, high: f64) -> f64 {
    if curvature > FLAT {
        (alpha + gradient / curvature).max(low).min(high)
    } else if gradient > 0.0 {
        high
    } else if gradient < 0.0 {
        low
    } else {
        alpha
    }
}

/// The gain g²/(2Q) of one variable without bounds.
#[inline(always)]
pub(crate) fn gain_one(gradient: f64, curvature: f64) -> f64 {
    if curvature > FLAT {
        0.5 * gradient * gradient / curvature
    } else if gradient == 0.0 {
        0.0
    } else {
        f64::INFINITY
    }
}

impl Pair {
    fn determinant(&self) -> Option<f64> {
        let product = self.q_first * self.q_second;
        let determinant = product - self.q_both * self.q_both;
        (determinant > SINGULAR * product && determinant > 0.0).then_some(determinant)
    }

    /// The gain of the step (a, b).
    pub(crate) fn gain_of(&self, a: f64, b: f64) -> f64 {
        a * (self.first - 0.5 * (self.q_first * a + self.q_both * b))
            + b * (self.second - 0.5 * (self.q_both * a + self.q_second * b))
    }

    /// The largest gain without bounds; infinite when some ascent direction has no curvature.
    #[inline(always)]
    pub(crate) fn gain(&self) -> f64 {
        let (g, h) = (self.first, self.second);
        let product = self.q_first * self.q_second;
        let determinant = product - self.q_both * self.q_both;
        if determinant > SINGULAR * product && determinant > 0.0 {
            let numerator =
                g * g * self.q_second - 2.0 * g * h * self.q_both + h * h * self.q_first;
            return 0.5 * numerator / determinant;
        }
        if self.q_first <= FLAT && self.q_second <= FLAT {
            return if g == 0.0 && h == 0.0 { 0.0 } else { f64::INFINITY };
        }
        // Rank one: the gradient has to lie in the range of Q.
        let scale = (self.q_first + self.q_second) * (g.abs() + h.abs());
        let off = (g * self.q_both - h * self.q_first)
            .abs()
            .max((h * self.q_both - g * self.q_second).abs());
        if off > 1e-9 * scale {
            return f64::INFINITY;
        }
        if self.q_first >= self.q_second {
            gain_one(g, self.q_first)
        } else {
            gain_one(h, self.q_second)
        }
    }

    fn free(&self, alpha: (f64, f64)) -> Option<(f64, f64)> {
        let determinant = self.determinant()?;
        let a = (self.q_second * self.first - self.q_both * self.second) / determinant;
        let b = (self.q_first * self.second - self.q_both * self.first) / determinant;
        Some((alpha.0 + a, alpha.1 + b))
    }

    fn best(
        &self,
        alpha: (f64, f64),
        candidates: impl IntoIterator<Item = (f64, f64)>,
    ) -> (f64, f64) {
        let mut best = (0.0, alpha);
        for point in candidates {
            let gain = self.gain_of(point.0 - alpha.0, point.1 - alpha.1);
            if gain > best.0 {
                best = (gain, point);
            }
        }
        best.1
    }

    /// The best point of the box `first` × `second`, from `alpha`.
    pub(crate) fn solve_box(
        &self,
        alpha: (f64, f64),
        first: (f64, f64),
        second: (f64, f64),
    ) -> (f64, f64) {
        if let Some((a, b)) = self.free(alpha)
            && (first.0..=first.1).contains(&a)
            && (second.0..=second.1).contains(&b)
        {
            return (a, b);
        }
        let on_first = |bound: f64| {
            let gradient = self.second - self.q_both * (bound - alpha.0);
            (bound, solve_one(alpha.1, gradient, self.q_second, second.0, second.1))
        };
        let on_second = |bound: f64| {
            let gradient = self.first - self.q_both * (bound - alpha.1);
            (solve_one(alpha.0, gradient, self.q_first, first.0, first.1), bound)
        };
        let edges =
            [on_first(first.0), on_first(first.1), on_second(second.0), on_second(second.1)];
        self.best(alpha, edges)
    }

    /// The best point of the triangle x, y ≥ 0, x + y ≤ `sum`, from `alpha`.
    pub(crate) fn solve_triangle(&self, alpha: (f64, f64), sum: f64) -> (f64, f64) {
        if let Some((a, b)) = self.free(alpha)
            && a >= 0.0
            && b >= 0.0
            && a + b <= sum
        {
            return (a, b);
        }
        let left = solve_one(alpha.1, self.second + self.q_both * alpha.0, self.q_second, 0.0, sum);
        let lower = solve_one(alpha.0, self.first + self.q_both * alpha.1, self.q_first, 0.0, sum);
        let slack = sum - alpha.0 - alpha.1;
        let slope = self.first - self.second + (self.q_second - self.q_both) * slack;
        let curvature = self.q_first + self.q_second - 2.0 * self.q_both;
        let face = solve_one(alpha.0, slope, curvature, 0.0, sum);
        self.best(alpha, [(0.0, left), (lower, 0.0), (face, (sum - face).max(0.0))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Positive semidefinite, singular and zero matrices.
    fn pair() -> impl Strategy<Value = Pair> {
        let entry = prop_oneof![3 => -2.0..2.0_f64, 1 => Just(0.0), 1 => Just(1.0)];
        let factor = prop::array::uniform4(entry.clone());
        (factor, entry.clone(), entry, 0..4_u8).prop_map(|(f, first, second, kind)| {
            let [a, b, c, d] = match kind {
                0 => [f[0], f[1], f[2], f[3]],
                1 => [f[0], 0.0, f[2], 0.0],
                2 => [f[0], 0.0, f[0], 0.0],
                _ => [0.0, 0.0, f[2], f[3]],
            };
            Pair {
                first,
                second,
                q_first: a * a + b * b,
                q_both: a * c + b * d,
                q_second: c * c + d * d,
            }
        })
    }

    fn corner(inside: f64, kind: u8, limit: f64) -> f64 {
        match kind {
            0 => 0.0,
            1 => limit,
            _ => inside * limit,
        }
    }

    /// Largest gain over a fine grid of allowed points.
    fn grid(
        pair: &Pair,
        alpha: (f64, f64),
        size: (f64, f64),
        allowed: impl Fn(f64, f64) -> bool,
    ) -> f64 {
        let mut best = 0.0_f64;
        for i in 0..=60 {
            for j in 0..=60 {
                let (x, y) = (size.0 * f64::from(i) / 60.0, size.1 * f64::from(j) / 60.0);
                if allowed(x, y) {
                    best = best.max(pair.gain_of(x - alpha.0, y - alpha.1));
                }
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

        #[test]
        fn boxes(pair in pair(), inside in (0.0..1.0_f64, 0.0..1.0_f64), kinds in (0..3_u8, 0..3_u8),
                 size in (0.0..3.0_f64, 0.0..3.0_f64)) {
            let alpha = (corner(inside.0, kinds.0, size.0), corner(inside.1, kinds.1, size.1));
            let point = pair.solve_box(alpha, (0.0, size.0), (0.0, size.1));
            prop_assert!((0.0..=size.0).contains(&point.0) && (0.0..=size.1).contains(&point.1));
            let gain = pair.gain_of(point.0 - alpha.0, point.1 - alpha.1);
            prop_assert!(gain >= 0.0 && pair.gain() >= gain * (1.0 - 1e-9) - 1e-9);
            prop_assert!(gain >= grid(&pair, alpha, size, |_, _| true) - 1e-9);
            let again = Pair {
                first: pair.first - pair.q_first * (point.0 - alpha.0) - pair.q_both * (point.1 - alpha.1),
                second: pair.second - pair.q_both * (point.0 - alpha.0) - pair.q_second * (point.1 - alpha.1),
                ..pair
            };
            let next = again.solve_box(point, (0.0, size.0), (0.0, size.1));
            prop_assert!(again.gain_of(next.0 - point.0, next.1 - point.1) <= 1e-9);
        }

        #[test]
        fn triangles(pair in pair(), inside in (0.0..1.0_f64, 0.0..1.0_f64), kind in 0..4_u8,
                     sum in 0.0..3.0_f64) {
            let alpha = match kind {
                0 => (0.0, 0.0),
                1 => (inside.0 * sum, sum - inside.0 * sum),
                2 => (0.0, inside.1 * sum),
                _ => (inside.0 * sum, inside.1 * (sum - inside.0 * sum)),
            };
            let (x, y) = pair.solve_triangle(alpha, sum);
            prop_assert!(x >= 0.0 && y >= 0.0 && x + y <= sum * (1.0 + 1e-15));
            let gain = pair.gain_of(x - alpha.0, y - alpha.1);
            prop_assert!(gain >= 0.0 && pair.gain() >= gain * (1.0 - 1e-9) - 1e-9);
            prop_assert!(gain >= grid(&pair, alpha, (sum, sum), |x, y| x + y <= sum) - 1e-9);
        }

        #[test]
        fn the_gain_is_symmetric(pair in pair()) {
            let turned = Pair {
                first: pair.second,
                second: pair.first,
                q_first: pair.q_second,
                q_both: pair.q_both,
                q_second: pair.q_first,
            };
            let (a, b) = (pair.gain(), turned.gain());
            prop_assert!(a == b || (a - b).abs() <= 1e-6 * a.abs().max(1e-6));
        }
    }
}
