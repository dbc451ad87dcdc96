//! Which points of a search go on: successive halving and races.
//!
//! Halving gives the best 1/f of the points f times more rows (Jamieson and Talwalkar 2016); a race
//! takes out a point t with mean(d) > 3 sd(d)/√n for its differences d = s(leader) − s(t) on n splits
//! (Maron and Moore 1997, with a paired t-statistic in the place of Hoeffding's bound). They decide by
//! scores alone, whoever computed them, so that every front eliminates alike.

/// Splits that a race waits for before it takes points out.
const RACE_FROM: usize = 3;

/// Standard errors of the difference to the leader at which a race takes a point out.
const RACE_BEHIND: f64 = 3.0;

/// The points that go on after a round of halving on `rows` of `largest` rows, ascending, and the rows
/// of their round; no points after the last round.
///
/// Of n points the best ⌈n / `factor`⌉ go on, the first of equals, those without a score (NaN) last.
/// A point that is left alone is given all rows.
///
/// ```
/// use widemargin::operation::tune::halve;
///
/// assert_eq!(halve(&[0.7, 0.9, f64::NAN, 0.8], 2, 50, 1000), (vec![1, 3], 100));
/// assert_eq!(halve(&[0.9, 0.8], 2, 100, 1000), (vec![0], 1000));
/// assert_eq!(halve(&[0.9], 2, 1000, 1000), (vec![], 1000));
/// ```
pub fn halve(means: &[f64], factor: usize, rows: usize, largest: usize) -> (Vec<usize>, usize) {
    if rows >= largest {
        return (Vec::new(), largest);
    }
    let mean = |t: usize| if means[t].is_nan() { f64::NEG_INFINITY } else { means[t] };
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|&a, &b| mean(b).total_cmp(&mean(a)));
    order.truncate(order.len().div_ceil(factor.max(1)));
    order.sort_unstable();
    let more = rows.saturating_mul(factor.max(2)).min(largest);
    let next = if order.len() == 1 { largest } else { more };
    (order, next)
}

/// `count` of the rows `train`, evenly spread over each class, ascending; all of them if they are no
/// more. `classes` holds the class of every row of the data set.
pub fn thinned(train: &[usize], count: usize, classes: Option<&[u32]>) -> Vec<usize> {
    let all = train.len();
    let mut order = train.to_vec();
    if count < all {
        if let Some(classes) = classes {
            order.sort_by_key(|&row| (classes.get(row), row));
        }
        order = (0..count).map(|i| order[i * all / count]).collect();
    }
    order.sort_unstable();
    order
}

/// The points that are clearly behind the leader on the splits so far, or have failed on one.
///
/// `scores` holds a list of as many scores for every point, NaN where it failed; more is better.
///
/// ```
/// use widemargin::operation::tune::behind;
///
/// let scores = [vec![0.9, 0.8, 0.9], vec![0.8, 0.9, 0.8], vec![0.5, 0.4, 0.6]];
/// assert_eq!(behind(&scores), [2]);
/// ```
pub fn behind(scores: &[Vec<f64>]) -> Vec<usize> {
    let mean = |t: usize| scores[t].iter().sum::<f64>() / scores[t].len() as f64;
    let alive: Vec<usize> = (0..scores.len()).filter(|&t| !mean(t).is_nan()).collect();
    let better = |best: usize, t: usize| if mean(t) > mean(best) { t } else { best };
    let leader = alive.iter().copied().reduce(better);
    let lost = |t: usize| {
        let Some(leader) = leader.filter(|_| !mean(t).is_nan()) else { return true };
        let done = scores[t].len();
        if done < RACE_FROM || t == leader {
            return false;
        }
        let lead = mean(leader) - mean(t);
        let differences = scores[leader].iter().zip(&scores[t]).map(|(first, own)| first - own);
        let squares: f64 = differences.map(|d| (d - lead).powi(2)).sum();
        let error = (squares / ((done - 1) * done) as f64).sqrt();
        lead > RACE_BEHIND * error && lead > 0.0
    };
    (0..scores.len()).filter(|&t| lost(t)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_shares_of_classes() {
        let classes: Vec<u32> = (0..90).map(|row| u32::from(row % 3 == 0)).collect();
        let train: Vec<usize> = (0..90).filter(|row| row % 5 != 0).collect();
        let thin = thinned(&train, 24, Some(&classes));
        assert_eq!(thin.len(), 24);
        assert!(thin.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(thin.iter().all(|row| train.contains(row)));
        assert_eq!(thin.iter().filter(|&&row| classes[row] == 1).count(), 8);
        assert_eq!(thinned(&train, 500, Some(&classes)), train);
    }

    #[test]
    fn a_race_goes_by_the_paired_statistic() {
        // Differences 0.01, 0.02, 0.03 have mean 0.02 and standard error 0.01/√3: 3.46 of them.
        let leader = vec![0.50, 0.70, 0.90];
        let out = vec![0.49, 0.68, 0.87];
        // Differences 0, 0.03, 0.03 have mean 0.02 and standard error 0.01: two of them.
        let stays = vec![0.50, 0.67, 0.87];
        let failed = vec![0.99, f64::NAN, 0.99];
        assert_eq!(behind(&[stays.clone(), out.clone(), leader.clone(), failed]), [1, 3]);
        let early: Vec<Vec<f64>> = [leader, out, stays].map(|own| own[..2].to_vec()).into();
        assert!(behind(&early).is_empty());
        assert_eq!(behind(&[vec![f64::NAN]]), [0]);
    }
}
