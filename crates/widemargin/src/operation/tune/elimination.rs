//! Which candidates of a search go on: successive halving and races.
//!
//! Halving gives the best 1/f of the candidates f times more rows (Jamieson and Talwalkar 2016); a race
//! eliminates a candidate t with mean(d) > 3 sd(d)/√n for its differences d = s(leader) − s(t) on n
//! splits (Maron and Moore 1997, with a paired t-statistic in the place of Hoeffding's bound).

/// Splits that a race waits for before it eliminates candidates.
const RACE_FROM: usize = 3;

/// Standard errors of the difference from the leader at which a race eliminates a candidate.
const RACE_ERRORS: f64 = 3.0;

/// The candidates that go on after a round of halving on `rows` of `largest` rows, ascending, and the
/// rows of their round; no candidates after the last round.
///
/// Of n candidates the best ⌈n / `factor`⌉ go on, the first of equals, those without a score (NaN)
/// last. A candidate that is left alone is given all rows.
pub(super) fn survivors(
    means: &[f64],
    factor: usize,
    rows: usize,
    largest: usize,
) -> (Vec<usize>, usize) {
    if rows >= largest {
        return (Vec::new(), largest);
    }
    let mean = |t: usize| if means[t].is_nan() { f64::NEG_INFINITY } else { means[t] };
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|&a, &b| mean(b).total_cmp(&mean(a)));
    order.truncate(order.len().div_ceil(factor));
    order.sort_unstable();
    let more = rows.saturating_mul(factor).min(largest);
    let next = if order.len() == 1 { largest } else { more };
    (order, next)
}

/// `count` of the rows `train`, evenly spread over each class, ascending; all of them if they are no
/// more. `classes` holds the class of every row of the data set.
pub(in crate::operation) fn subsample(
    train: &[usize],
    count: usize,
    classes: Option<&[u32]>,
) -> Vec<usize> {
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

/// The scores of the candidates that are still in a race.
pub(super) struct RaceScores {
    running: Vec<usize>,
    /// Of every running candidate, split after split.
    scores: Vec<Vec<f64>>,
}

impl RaceScores {
    /// A race of so many candidates.
    pub(super) fn new(candidates: usize) -> Self {
        Self { running: (0..candidates).collect(), scores: vec![Vec::new(); candidates] }
    }

    /// The candidates that are not eliminated, ascending.
    pub(super) fn running(&self) -> &[usize] {
        &self.running
    }

    /// Adds the scores of the running candidates on one more split and eliminates those that are
    /// clearly worse than the leader.
    pub(super) fn add(&mut self, scores: impl Iterator<Item = f64>) {
        self.scores.iter_mut().zip(scores).for_each(|(own, score)| own.push(score));
        let eliminated = eliminated(&self.scores);
        let mut place = 0..;
        self.running.retain(|_| place.next().is_some_and(|k| !eliminated.contains(&k)));
        let mut place = 0..;
        self.scores.retain(|_| place.next().is_some_and(|k| !eliminated.contains(&k)));
    }
}

/// The candidates that are clearly worse than the leader on the splits so far, or have failed on one.
///
/// `scores` holds a list of as many scores for every candidate, NaN where it failed; more is better.
fn eliminated(scores: &[Vec<f64>]) -> Vec<usize> {
    let mean = |t: usize| scores[t].iter().sum::<f64>() / scores[t].len() as f64;
    let scored: Vec<usize> = (0..scores.len()).filter(|&t| !mean(t).is_nan()).collect();
    let better = |best: usize, t: usize| if mean(t) > mean(best) { t } else { best };
    let leader = scored.iter().copied().reduce(better);
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
        lead > RACE_ERRORS * error && lead > 0.0
    };
    (0..scores.len()).filter(|&t| lost(t)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_a_round_survive() {
        assert_eq!(survivors(&[0.7, 0.9, f64::NAN, 0.8], 2, 50, 1000), (vec![1, 3], 100));
        assert_eq!(survivors(&[0.9, 0.8], 2, 100, 1000), (vec![0], 1000));
        assert_eq!(survivors(&[0.9], 2, 1000, 1000), (vec![], 1000));
    }

    #[test]
    fn subsamples_keep_the_shares_of_classes() {
        let classes: Vec<u32> = (0..90).map(|row| u32::from(row % 3 == 0)).collect();
        let train: Vec<usize> = (0..90).filter(|row| row % 5 != 0).collect();
        let few = subsample(&train, 24, Some(&classes));
        assert_eq!(few.len(), 24);
        assert!(few.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(few.iter().all(|row| train.contains(row)));
        assert_eq!(few.iter().filter(|&&row| classes[row] == 1).count(), 8);
        assert_eq!(subsample(&train, 500, Some(&classes)), train);
    }

    #[test]
    fn a_race_goes_by_the_paired_statistic() {
        // Differences 0.01, 0.02, 0.03 have mean 0.02 and standard error 0.01/√3: 3.46 of them.
        let leader = vec![0.50, 0.70, 0.90];
        let out = vec![0.49, 0.68, 0.87];
        // Differences 0, 0.03, 0.03 have mean 0.02 and standard error 0.01: two of them.
        let stays = vec![0.50, 0.67, 0.87];
        let failed = vec![0.99, f64::NAN, 0.99];
        assert_eq!(eliminated(&[stays.clone(), out.clone(), leader.clone(), failed]), [1, 3]);
        let early: Vec<Vec<f64>> = [&leader, &out, &stays].map(|own| own[..2].to_vec()).into();
        assert!(eliminated(&early).is_empty());
        assert_eq!(eliminated(&[vec![f64::NAN]]), [0]);
        let mut race = RaceScores::new(3);
        for split in 0..3 {
            assert_eq!(race.running(), [0, 1, 2]);
            race.add([&leader, &out, &stays].map(|own| own[split]).into_iter());
        }
        assert_eq!(race.running(), [0, 2]);
    }
}
