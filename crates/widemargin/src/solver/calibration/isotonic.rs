//! Isotonic regression: the non-decreasing function closest to weighted targets.
//!
//! Minimises Σ wᵢ (g(fᵢ) − tᵢ)² over non-decreasing g by pooling adjacent violators, which is exact
//! and linear in the number of rows after sorting (Ayer et al., "An empirical distribution function
//! for sampling with incomplete information", 1955; for SVM probabilities Zadrozny & Elkan 2002).

/// A run of values that share one level.
struct Block {
    first: f64,
    last: f64,
    sum: f64,
    weight: f64,
}

impl Block {
    fn level(&self) -> f64 {
        self.sum / self.weight
    }
}

/// Fits the function and returns its knots (value, level), values strictly and levels weakly
/// ascending; between knots it is linear, beyond them constant.
///
/// The three lists run in step; rows of weight 0 or with a value that is not finite count for
/// nothing. Without rows that count there are no knots.
pub(crate) fn fit_isotonic(values: &[f64], targets: &[f64], weights: &[f64]) -> Vec<(f64, f64)> {
    let mut rows: Vec<(f64, f64, f64)> = values
        .iter()
        .zip(targets)
        .zip(weights)
        .map(|((&value, &target), &weight)| (value + 0.0, target, weight))
        .filter(|(value, _, weight)| value.is_finite() && *weight > 0.0)
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut blocks: Vec<Block> = Vec::new();
    for same in rows.chunk_by(|a, b| a.0 == b.0) {
        let weight = same.iter().map(|row| row.2).sum();
        let sum = same.iter().map(|row| row.1 * row.2).sum();
        let mut block = Block { first: same[0].0, last: same[0].0, sum, weight };
        while let Some(before) = blocks.pop_if(|before| before.level() >= block.level()) {
            block.first = before.first;
            block.sum += before.sum;
            block.weight += before.weight;
        }
        blocks.push(block);
    }
    let mut knots: Vec<(f64, f64)> = Vec::new();
    for block in &blocks {
        // Rounding must not make the levels descend.
        let level = knots.last().map_or(block.level(), |knot| knot.1.max(block.level()));
        knots.push((block.first, level));
        if block.last > block.first {
            knots.push((block.last, level));
        }
    }
    knots
}

/// The value at `f` of the function with these knots; ½ when there are none.
pub(crate) fn isotonic_value(knots: &[(f64, f64)], f: f64) -> f64 {
    let after = knots.partition_point(|knot| knot.0 <= f);
    match (after.checked_sub(1).map(|before| knots[before]), knots.get(after)) {
        (Some((x, y)), Some(&(next_x, next_y))) => {
            let share = (f - x) / (next_x - x);
            if share.is_finite() { y + share * (next_y - y) } else { y }
        }
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pools_meet_the_textbook_example() {
        let knots = fit_isotonic(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0], &[1.0; 4]);
        assert_eq!(knots, [(1.0, 1.0), (2.0, 2.5), (3.0, 2.5), (4.0, 4.0)]);
        assert_eq!(isotonic_value(&knots, 0.0), 1.0);
        assert_eq!(isotonic_value(&knots, 1.5), 1.75);
        assert_eq!(isotonic_value(&knots, 2.2), 2.5);
        assert_eq!(isotonic_value(&knots, 9.0), 4.0);
        assert_eq!(isotonic_value(&[], 9.0), 0.5);
    }

    /// The min-max formula: g(i) = max over a ≤ i of min over b ≥ i of the mean of a..=b.
    fn by_min_max(rows: &[(f64, f64, f64)]) -> Vec<f64> {
        let mean = |a: usize, b: usize| {
            let part = &rows[a..=b];
            let weight: f64 = part.iter().map(|r| r.2).sum();
            part.iter().map(|r| r.1 * r.2).sum::<f64>() / weight
        };
        (0..rows.len())
            .map(|i| {
                let lowest = |a| (i..rows.len()).map(|b| mean(a, b)).fold(f64::INFINITY, f64::min);
                (0..=i).map(lowest).fold(f64::NEG_INFINITY, f64::max)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn pooling_equals_the_min_max_formula(
            rows in prop::collection::vec((0.0..1.0_f64, 0.1..3.0_f64), 1..25)
        ) {
            let rows: Vec<(f64, f64, f64)> =
                rows.into_iter().enumerate().map(|(i, (t, w))| (i as f64, t, w)).collect();
            let expected = by_min_max(&rows);
            // The order of the rows must not matter.
            let list = |f: fn(&(f64, f64, f64)) -> f64| rows.iter().rev().map(f).collect::<Vec<_>>();
            let knots = fit_isotonic(&list(|r| r.0), &list(|r| r.1), &list(|r| r.2));
            for (row, expected) in rows.iter().zip(expected) {
                prop_assert!((isotonic_value(&knots, row.0) - expected).abs() < 1e-12);
            }
            prop_assert!(knots.windows(2).all(|k| k[0].0 < k[1].0 && k[0].1 <= k[1].1));
        }

        #[test]
        fn equal_values_share_their_mean(
            targets in prop::collection::vec(prop::bool::ANY, 2..20)
        ) {
            let targets: Vec<f64> = targets.into_iter().map(|t| f64::from(u8::from(t))).collect();
            let knots = fit_isotonic(&vec![1.0; targets.len()], &targets, &vec![1.0; targets.len()]);
            let mean = targets.iter().sum::<f64>() / targets.len() as f64;
            prop_assert_eq!(knots, vec![(1.0, mean)]);
        }
    }
}
