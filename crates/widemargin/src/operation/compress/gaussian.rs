//! One vector in the place of two under the Gaussian kernel.
//!
//! With weights of the same sign, m the share of the first and L = γ‖x₁ − x₂‖², the best place is
//! z = k x₁ + (1 − k) x₂ where k maximises f(k) = m e^{−L(1−k)²} + (1 − m) e^{−Lk²} (Nguyen 2006,
//! Proposition 2). The proposition's search misses the maximum when L > 2, where there may be two;
//! the Newton iteration here starts right of both and converges monotonically to the larger.

use std::sync::LazyLock;

/// Newton steps; ten are enough away from the triple root m = ½, L = 2.
const STEPS: usize = 60;

/// Where the merged vector lies and what is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Merged {
    /// Share k of the first vector.
    pub(super) position: f64,
    /// Weight of the new vector.
    pub(super) weight: f64,
    /// ‖w₁Φ(x₁) + w₂Φ(x₂) − wΦ(z)‖²
    pub(super) cost: f64,
}

/// The global maximiser k of f for the share `m` of the first vector and L = `distance`.
pub(super) fn position(m: f64, distance: f64) -> f64 {
    if m < 0.5 {
        return 1.0 - position(1.0 - m, distance);
    }
    if distance == 0.0 {
        return m;
    }
    let t = (m / (1.0 - m)).ln();
    let mut s = t + distance;
    if !s.is_finite() {
        return 1.0;
    }
    for _ in 0..STEPS {
        let tanh = (0.5 * s).tanh();
        let slope = 1.0 - 0.5 * distance * (1.0 - tanh * tanh);
        if slope <= 0.0 {
            break;
        }
        let step = (s - distance * tanh - t) / slope;
        s -= step;
        if step.abs() <= 1e-13 * (1.0 + s.abs()) {
            break;
        }
    }
    1.0 / (1.0 + (-s).exp())
}

/// Merges two vectors of weights `a` and `b`, of the same sign, and similarity `kernel`.
pub(super) fn merge(a: f64, b: f64, kernel: f64) -> Merged {
    let total = a + b;
    let distance = -kernel.min(1.0).ln();
    if distance == f64::INFINITY {
        let (position, weight) = if a.abs() >= b.abs() { (1.0, a) } else { (0.0, b) };
        let lost = total - weight;
        return Merged { position, weight, cost: lost * lost };
    }
    let m = a / total;
    let k = position(m, distance);
    let (near, far) = ((1.0 - k) * (1.0 - k), k * k);
    let value = m * (-distance * near).exp() + (1.0 - m) * (-distance * far).exp();
    let weight = total * value;
    let cost = (a * a + b * b + 2.0 * a * b * kernel - weight * weight).max(0.0);
    Merged { position: k, weight, cost }
}

/// Smallest relative residuals 1 − f(k)²/‖M‖² over cells of (m, C), to rule pairs out without a
/// search: the residual, which falls with either argument, at the far corner of every cell.
static FLOOR: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let mut cells = Vec::with_capacity(SHARES * SIMILARITIES);
    for share in 1..=SHARES {
        let m = 0.5 + 0.5 * share as f64 / SHARES as f64;
        for similarity in 1..=SIMILARITIES {
            let kernel = similarity as f64 / SIMILARITIES as f64;
            let (a, b) = (m, 1.0 - m);
            let norm = a * a + b * b + 2.0 * a * b * kernel;
            let lost = if b == 0.0 { 0.0 } else { merge(a, b, kernel).cost };
            cells.push(lost / norm);
        }
    }
    cells
});

/// Cells of the share of the heavier vector, ½ to 1.
const SHARES: usize = 64;

/// Cells of the similarity, 0 to 1.
const SIMILARITIES: usize = 256;

/// A lower bound on the cost of merging.
pub(super) fn least_cost(a: f64, b: f64, kernel: f64) -> f64 {
    let share = a.abs().max(b.abs()) / (a + b).abs();
    let row = (((share - 0.5) * (2 * SHARES) as f64) as usize).min(SHARES - 1);
    let column = ((kernel * SIMILARITIES as f64) as usize).min(SIMILARITIES - 1);
    let norm = a * a + b * b + 2.0 * a * b * kernel;
    norm * FLOOR[row * SIMILARITIES + column]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fixtures of the specification: m, L, k, f, relative residual.
    const FIXTURES: [(f64, f64, f64, f64, f64); 9] = [
        (0.4, 0.356_674_943_939, 0.379_569_976_754, 0.918_631_213_289, 0.014_155_016_320),
        (0.5, 1.0, 0.5, 0.778_800_783_071, 0.113_181_116_030),
        (0.9, 1.0, 0.957_384_789_959, 0.938_355_238_287, 0.006_440_564_581),
        (0.7, 0.1, 0.708_691_218_232, 0.979_389_696_532, 0.000_861_990_171),
        (0.3, 1.5, 0.120_796_610_979, 0.778_938_133_165, 0.099_404_176_900),
        (0.5, 2.1, 0.685_352_866_285, 0.592_602_360_917, 0.374_269_594_213),
        (0.5, 3.0, 0.929_279_818_320, 0.530_038_395_289, 0.464_766_315_102),
        (0.6, 4.0, 0.986_588_982_754, 0.607_718_627_304, 0.301_573_634_757),
        (0.999, 0.5, 0.999_392_862_314, 0.999_606_714_784, 0.000_000_264_226),
    ];

    #[test]
    fn the_fixtures() {
        for (m, distance, k, value, residual) in FIXTURES {
            let kernel = (-distance).exp();
            let merged = merge(m, 1.0 - m, kernel);
            let norm = m * m + (1.0 - m) * (1.0 - m) + 2.0 * m * (1.0 - m) * kernel;
            assert!((merged.position - k).abs() < 1e-10, "{m} {distance}: {}", merged.position);
            assert!((merged.weight - value).abs() < 1e-11, "{m} {distance}: {}", merged.weight);
            assert!((merged.cost / norm - residual).abs() < 1e-11, "{m} {distance}");
        }
    }

    #[test]
    fn identical_and_far_vectors() {
        let same = merge(0.25, 0.75, 1.0);
        assert_eq!(same, Merged { position: 0.25, weight: 1.0, cost: 0.0 });
        let far = merge(-0.3, -0.7, 0.0);
        assert_eq!((far.position, far.weight), (0.0, -0.7));
        assert!((far.cost - 0.09).abs() < 1e-15);
        let hardly = merge(2.0, 1.0, 1e-304);
        assert!(hardly.position > 0.999_999 && (hardly.cost - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_point_of_a_grid_is_better(m in 0.001_f64..0.999, distance in 0.0_f64..30.0) {
            let f = |k: f64| {
                m * (-distance * (1.0 - k) * (1.0 - k)).exp()
                    + (1.0 - m) * (-distance * k * k).exp()
            };
            let best = (0..=4000).map(|i| f(f64::from(i) / 4000.0)).fold(0.0, f64::max);
            prop_assert!(f(position(m, distance)) >= best - 1e-12);
            prop_assert!((position(m, distance) + position(1.0 - m, distance) - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_floor_is_below_the_cost(a in 0.001_f64..10.0, b in 0.001_f64..10.0, kernel in 0.0_f64..=1.0) {
            prop_assert!(least_cost(a, b, kernel) <= merge(a, b, kernel).cost + 1e-12 * (a + b) * (a + b));
            prop_assert_eq!(least_cost(-a, -b, kernel), least_cost(a, b, kernel));
        }
    }
}
