//! The shares of the classes among rows without labels, where they are not given: those of the labelled rows and
//! those of the supervised machine's predictions, each weighted by how certain it is. A share r of L labelled rows
//! has the variance r(1 − r)/L; that of the predictions changes by some three quarters of the rows near the boundary.
//!
//! Very few labelled rows leave a wide range of shares. Of two classes those in the range are tried, and the one is taken
//! with the least objective over the square of 4q(1 − q), the loss of the best constant in a row for a share q of all
//! rows: the margin decides, as it does on the labels. (The objective alone prefers shares near 0 and 1, and so it still
//! does over the loss of the constant itself.) More labels say more than the margin does.

/// Distance of the largest two values of a row, in margins, below which its prediction is uncertain.
const NEAR: f64 = 0.5;

/// Standard deviation of a predicted share, as a share of the rows near the boundary, and its least variance.
const UNCERTAIN: f64 = 0.75;
const LEAST_VARIANCE: f64 = 1e-4;

/// Standard deviations of the labelled share within which shares are tried.
const DEVIATIONS: f64 = 1.96;

/// Distance of shares that are tried; a range no wider than this is not searched.
const STEP: f64 = 0.1;

/// How often the distance is halved around the best share.
pub(super) const REFINEMENTS: usize = 2;

/// The least share that is tried.
const LEAST: f64 = 0.02;

/// Most labelled rows whose shares are searched: of ten labels the search has fewer errors than the estimate, of fifty
/// (news groups) more.
const MOST_LABELLED: f64 = 30.0;

/// Shares of the first of two classes that the labelled rows leave possible; none where they say enough.
pub(super) fn possible(known: &[Option<u32>]) -> Vec<f64> {
    let share = of_labels(known, 2)[0];
    let labelled = known.iter().flatten().count() as f64;
    let deviation = (share * (1.0 - share) / (labelled + 3.0)).sqrt();
    let low = (share - DEVIATIONS * deviation).max(LEAST);
    let high = (share + DEVIATIONS * deviation).min(1.0 - LEAST);
    let steps = ((high - low) / STEP).ceil();
    if steps < 2.0 || labelled > MOST_LABELLED || known.len() == known.iter().flatten().count() {
        return Vec::new();
    }
    (0..=steps as usize).map(|k| low + (high - low) * k as f64 / steps).collect()
}

/// The mean squared loss 4q(1 − q) of the best constant where the first of two classes has a share of the rows without
/// labels: `first` and `labelled` are the weights of the labelled rows of the first class and of all, `unlabelled` that
/// of the others.
pub(super) fn loss_of_constant(share: f64, first: f64, labelled: f64, unlabelled: f64) -> f64 {
    let q = (first + share * unlabelled) / (labelled + unlabelled);
    4.0 * q * (1.0 - q)
}

/// Shares of the labelled rows, each class with one row more (Laplace's rule), so that none is 0 or 1.
pub(super) fn of_labels(known: &[Option<u32>], count: usize) -> Vec<f64> {
    let mut rows = vec![1.0; count];
    known.iter().flatten().for_each(|&group| rows[group as usize] += 1.0);
    let total: f64 = rows.iter().sum();
    rows.iter().map(|own| own / total).collect()
}

/// Shares estimated from labels and from the values of the supervised functions.
pub(super) fn estimated(known: &[Option<u32>], count: usize, values: &[Vec<f64>]) -> Vec<f64> {
    let labelled = known.iter().flatten().count() as f64;
    let unknown = (known.len() as f64 - labelled).max(1.0);
    let (mut predicted, mut near) = (vec![0.0; count], vec![0.0; count]);
    for i in (0..known.len()).filter(|&i| known[i].is_none()) {
        let value = |g: usize| match values.get(g) {
            Some(values) => values[i],
            None => -values[0][i],
        };
        let best = (1..count).fold(0, |best, g| if value(g) > value(best) { g } else { best });
        let others = (0..count).filter(|&g| g != best);
        let second = others.map(value).fold(f64::NEG_INFINITY, f64::max);
        predicted[best] += 1.0 / unknown;
        for (g, near) in near.iter_mut().enumerate() {
            let other = if g == best { second } else { value(best) };
            if (value(g) - other).abs() < NEAR {
                *near += 1.0 / unknown;
            }
        }
    }
    let combined = of_labels(known, count).into_iter().enumerate().map(|(g, share)| {
        let of_labels = share * (1.0 - share) / labelled;
        let of_values = (UNCERTAIN * near[g]).powi(2) + LEAST_VARIANCE;
        let share = share * of_values + predicted[g] * of_labels;
        (share / (of_values + of_labels)).max(0.5 / unknown)
    });
    let shares: Vec<f64> = combined.collect();
    let total: f64 = shares.iter().sum();
    shares.iter().map(|share| share / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_tried_where_few_labels_leave_a_range() {
        let known = |first: usize, second: usize| -> Vec<Option<u32>> {
            let labelled = [vec![Some(0); first], vec![Some(1); second]].concat();
            [labelled, vec![None; 100]].concat()
        };
        let few = possible(&known(5, 5));
        assert!(few.len() >= 5 && few[0] < 0.3 && few[few.len() - 1] > 0.7, "{few:?}");
        assert!(few.windows(2).all(|pair| pair[1] > pair[0] && pair[1] - pair[0] <= STEP));
        assert!(possible(&known(300, 300)).is_empty());
        assert!(possible(&known(5, 5)[..10]).is_empty());
        // Of ten rows in all, four of them first: squared losses of the constant −0.2 are 0.96 a row.
        assert!((loss_of_constant(0.5, 1.0, 4.0, 6.0) - 0.96).abs() < 1e-12);
    }

    #[test]
    fn clear_predictions_outweigh_few_labels_and_unclear_ones_do_not() {
        let mut known = vec![Some(0), Some(0), Some(0), Some(1)];
        known.extend([None; 100]);
        for (size, low, high) in [(1.0, 0.28, 0.34), (0.01, 0.60, 0.67)] {
            let values: Vec<f64> =
                (0..104).map(|i| if i % 10 < 3 { size } else { -size }).collect();
            let shares = estimated(&known, 2, &[values]);
            assert!((shares[0] + shares[1] - 1.0).abs() < 1e-12);
            assert!(low < shares[0] && shares[0] < high, "{shares:?}");
        }
    }
}
