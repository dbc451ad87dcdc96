//! One vector in the place of two under the polynomial kernel (γ⟨x, z⟩ + c₀)^p.
//!
//! With products a, b of the vectors with themselves and c of one with the other (γ⟨·,·⟩ + c₀ each)
//! the best z = k x₁ + (1 − k) x₂ maximises v(k)² / (z·z)^p with v(k) = w₁(ak + c(1−k))^p +
//! w₂(ck + b(1−k))^p (Nguyen 2006, Proposition 3). There may be several maxima, so a grid is searched
//! before the best cell is refined. A z of another length may not be chosen when c₀ ≠ 0; when c₀ = 0
//! the weight makes up for the length.

use super::gaussian::Merged;

/// Points of the grid over the segment between the vectors.
const GRID: usize = 16;

/// How far beyond either vector an obtuse pair is searched.
const SEARCH_MARGIN: f64 = 2.0;

/// Steps of the golden-section search.
const STEPS: usize = 60;

/// Products of the two vectors, γ⟨·,·⟩ + c₀.
#[derive(Clone, Copy, Debug)]
pub(super) struct Products {
    /// Of the first with itself.
    pub(super) first: f64,
    /// Of the second with itself.
    pub(super) second: f64,
    /// Of one with the other.
    pub(super) both: f64,
}

/// Merges two vectors of weights `a` and `b`, of the same sign.
pub(super) fn merge(a: f64, b: f64, products: Products, degree: u32) -> Merged {
    let power = |x: f64| x.powi(degree as i32);
    let Products { first, second, both } = products;
    let norm = a * a * power(first) + b * b * power(second) + 2.0 * a * b * power(both);
    let numerator = |k: f64| {
        let l = 1.0 - k;
        a * power(first * k + both * l) + b * power(both * k + second * l)
    };
    let own = |k: f64| {
        let l = 1.0 - k;
        power((first * k * k + 2.0 * both * k * l + second * l * l).max(0.0))
    };
    let gain = |k: f64| {
        let (numerator, own) = (numerator(k), own(k));
        if own > 0.0 { numerator * numerator / own } else { 0.0 }
    };
    let (low, high) = if both < 0.0 { (-SEARCH_MARGIN, 1.0 + SEARCH_MARGIN) } else { (0.0, 1.0) };
    let at = |i: usize| low + (high - low) * i as f64 / GRID as f64;
    let mut best = 0;
    for i in 1..=GRID {
        if gain(at(i)) > gain(at(best)) {
            best = i;
        }
    }
    let k = golden_section(gain, at(best.saturating_sub(1)), at((best + 1).min(GRID)));
    let k = if gain(at(best)) > gain(k) { at(best) } else { k };
    let own = own(k);
    let weight = if own > 0.0 { numerator(k) / own } else { 0.0 };
    Merged { position: k, weight, cost: (norm - gain(k)).max(0.0) }
}

/// The maximiser of a function with one maximum between `low` and `high`.
fn golden_section(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 0..STEPS {
        if at_left >= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = f(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = f(right);
        }
        if high - low <= 1e-12 {
            break;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fixture(degree: u32) -> Merged {
        let (cos, sin) = (40_f64.to_radians().cos(), 40_f64.to_radians().sin());
        let (x, y) = ([1.0, 0.0], [2.0 * cos, 2.0 * sin]);
        let dot = |u: [f64; 2], v: [f64; 2]| u[0] * v[0] + u[1] * v[1];
        let products = Products { first: dot(x, x), second: dot(y, y), both: dot(x, y) };
        merge(0.6, 0.4, products, degree)
    }

    #[test]
    fn the_fixtures() {
        for (degree, k, cost) in [
            (2, 0.396_039_862_672, 0.039_259_533_051),
            (3, 0.198_547_183_280, 0.115_284_871_778),
            (5, 0.032_366_946_955, 0.243_604_188_659),
        ] {
            let merged = fixture(degree);
            assert!((merged.position - k).abs() < 1e-6, "{degree}: {}", merged.position);
            assert!((merged.cost - cost).abs() < 1e-10, "{degree}: {}", merged.cost);
        }
    }

    #[test]
    fn degree_one_and_parallel_vectors_lose_nothing() {
        let products = Products { first: 1.0, second: 4.0, both: 0.7 };
        assert!(merge(0.3, 0.9, products, 1).cost < 1e-12);
        let parallel = Products { first: 1.0, second: 4.0, both: 2.0 };
        for degree in 1..6 {
            assert!(merge(0.3, 0.9, parallel, degree).cost < 1e-9);
        }
    }

    proptest! {
        #[test]
        fn no_point_of_a_fine_grid_is_better(
            a in 0.01_f64..3.0, b in 0.01_f64..3.0, first in 0.1_f64..4.0, second in 0.1_f64..4.0,
            cosine in 0.0_f64..0.999, degree in 1_u32..6,
        ) {
            let both = cosine * (first * second).sqrt();
            let products = Products { first, second, both };
            let power = |x: f64| x.powi(degree as i32);
            let norm = a * a * power(first) + b * b * power(second) + 2.0 * a * b * power(both);
            let merged = merge(a, b, products, degree);
            for i in 0..=2000 {
                let k = f64::from(i) / 2000.0;
                let l = 1.0 - k;
                let top = a * power(first * k + both * l) + b * power(both * k + second * l);
                let own = power(first * k * k + 2.0 * both * k * l + second * l * l);
                prop_assert!(merged.cost <= norm - top * top / own + 1e-9 * norm);
            }
        }
    }
}
