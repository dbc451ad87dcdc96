//! How good an order is: normalised discounted cumulative gain, average precision and Kendall's τ.
//!
//! Rows of one score have no order among themselves: the gain of such rows is their mean (McSherry and
//! Najork, 2008), precision takes the worst order, and τ is τ-b, which leaves ties out (Kendall, 1945).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Error, Result};

/// Largest relevance for which gains 2ʸ − 1 are used; doubles count whole numbers up to 2⁵³.
const MOST_RELEVANT: f64 = 53.0;

/// Where the discounted gain is cut off in [`RankingQuality::ndcg_at_10`].
const CUT: usize = 10;

/// How good the order of scores within queries is: means over the queries that have one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankingQuality {
    /// Queries with different labels.
    pub queries: usize,
    /// Share of the pairs of different labels that are in order, over all queries; equal scores count half.
    pub pair_accuracy: f64,
    /// Normalised discounted cumulative gain; `None` where labels are no relevances from 0 to 53.
    pub ndcg: Option<f64>,
    /// The same of the first ten rows.
    pub ndcg_at_10: Option<f64>,
    /// Mean average precision, labels above 0 being relevant; `None` where labels can be below 0.
    pub mean_average_precision: Option<f64>,
    /// Kendall's τ-b.
    pub kendall_tau: f64,
}

impl RankingQuality {
    /// Compares scores with labels within the queries `groups` (all rows are one query without).
    ///
    /// # Errors
    /// [`Error::Length`] when there is not one of each, [`Error::Labels`] when no query has different
    /// labels.
    pub fn new(groups: Option<&[i64]>, truth: &[f64], scores: &[f64]) -> Result<Self> {
        if truth.len() != scores.len() {
            return Err(Error::length("true labels", scores.len(), truth.len()));
        }
        if let Some(groups) = groups
            && groups.len() != scores.len()
        {
            return Err(Error::length("groups", scores.len(), groups.len()));
        }
        let mut queries: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for i in 0..truth.len() {
            queries.entry(groups.map_or(0, |groups| groups[i])).or_default().push(i);
        }
        let (mut count, mut tau) = (0, 0.0);
        let (mut pairs, mut ordered) = (0.0, 0.0);
        let (mut whole, mut cut, mut precision) =
            (Mean::default(), Mean::default(), Mean::default());
        let graded = truth.iter().all(|y| (0.0..=MOST_RELEVANT).contains(y));
        let relevant = truth.iter().all(|y| *y >= 0.0);
        for rows in queries.values() {
            let own = |values: &[f64]| rows.iter().map(|&i| values[i]).collect::<Vec<f64>>();
            let (truth, scores) = (own(truth), own(scores));
            let concordance = Concordance::new(&truth, &scores);
            if concordance.different == 0.0 {
                continue;
            }
            count += 1;
            pairs += concordance.different;
            ordered += concordance.concordant + 0.5 * concordance.tied;
            tau += concordance.tau();
            whole.add(graded.then(|| ndcg(&truth, &scores, None)).flatten());
            cut.add(graded.then(|| ndcg(&truth, &scores, Some(CUT))).flatten());
            precision.add(relevant.then(|| average_precision(&truth, &scores)).flatten());
        }
        if count == 0 {
            return Err(Error::Labels {
                expected: "a query with two different labels".into(),
                found: format!("none among {} rows", truth.len()),
            });
        }
        Ok(Self {
            queries: count,
            pair_accuracy: ordered / pairs,
            ndcg: whole.value(),
            ndcg_at_10: cut.value(),
            mean_average_precision: precision.value(),
            kendall_tau: tau / count as f64,
        })
    }
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Σ (2^y − 1) / log₂(1 + rank) of the first `at` rows by score, divided by the largest such sum; `None`
/// where no row is relevant.
pub fn ndcg(truth: &[f64], scores: &[f64], at: Option<usize>) -> Option<f64> {
    let gain = |y: f64| y.exp2() - 1.0;
    let most = at.unwrap_or(truth.len());
    let discounts: Vec<f64> = (0..truth.len())
        .map(|rank| if rank < most { 1.0 / (rank as f64 + 2.0).log2() } else { 0.0 })
        .collect();
    let mut best = truth.to_vec();
    best.sort_by(|a, b| b.total_cmp(a));
    let ideal: f64 = best.iter().zip(&discounts).map(|(y, discount)| gain(*y) * discount).sum();
    if ideal <= 0.0 {
        return None;
    }
    let order = by_score(scores);
    let (mut rank, mut sum) = (0, 0.0);
    for tied in order.chunk_by(|&i, &j| scores[i] == scores[j]) {
        let discount: f64 = discounts[rank..rank + tied.len()].iter().sum();
        let gains: f64 = tied.iter().map(|&i| gain(truth[i])).sum();
        sum += gains * discount / tied.len() as f64;
        rank += tied.len();
    }
    Some(sum / ideal)
}

/// The mean, over the rows with a label above 0, of the share of such rows among those of at least its
/// score; `None` where there are none.
fn average_precision(truth: &[f64], scores: &[f64]) -> Option<f64> {
    let (mut seen, mut found, mut sum) = (0.0, 0.0, 0.0);
    for tied in by_score(scores).chunk_by(|&i, &j| scores[i] == scores[j]) {
        let relevant = tied.iter().filter(|&&i| truth[i] > 0.0).count() as f64;
        let others = tied.len() as f64 - relevant;
        seen += others;
        for _ in 0..relevant as usize {
            seen += 1.0;
            found += 1.0;
            sum += found / seen;
        }
    }
    (found > 0.0).then(|| sum / found)
}

/// Kendall's τ-b of two lists of equal length; 0 where either is constant.
pub fn kendall_tau(a: &[f64], b: &[f64]) -> f64 {
    Concordance::new(a, b).tau()
}

fn by_score(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&i, &j| scores[j].total_cmp(&scores[i]));
    order
}

/// Pairs of a query.
struct Concordance {
    /// Pairs of different labels.
    different: f64,
    /// Those of them with the same score, and those in order.
    tied: f64,
    concordant: f64,
    /// Pairs of different scores.
    separated: f64,
}

impl Concordance {
    /// Counts in O(n log n) (Knight, 1966).
    fn new(truth: &[f64], scores: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..truth.len()).collect();
        // −0 and 0 are equal.
        let compare = |a: f64, b: f64| (a + 0.0).total_cmp(&(b + 0.0));
        order.sort_by(|&i, &j| compare(truth[i], truth[j]).then(compare(scores[i], scores[j])));
        let all = pairs(order.len());
        let same = |equal: &dyn Fn(usize, usize) -> bool, order: &[usize]| -> f64 {
            order.chunk_by(|&i, &j| equal(i, j)).map(|run| pairs(run.len())).sum()
        };
        let same_truth = same(&|i, j| truth[i] == truth[j], &order);
        let same_both = same(&|i, j| truth[i] == truth[j] && scores[i] == scores[j], &order);
        let mut sorted: Vec<f64> = order.iter().map(|&i| scores[i]).collect();
        let discordant = inversions(&mut sorted, &mut Vec::new());
        let same_scores: f64 = sorted.chunk_by(|a, b| a == b).map(|run| pairs(run.len())).sum();
        let (different, tied) = (all - same_truth, same_scores - same_both);
        let concordant = different - tied - discordant;
        Self { different, tied, concordant, separated: all - same_scores }
    }

    fn tau(&self) -> f64 {
        let discordant = self.different - self.tied - self.concordant;
        let size = (self.different * self.separated).sqrt();
        if size > 0.0 { (self.concordant - discordant) / size } else { 0.0 }
    }
}

fn pairs(count: usize) -> f64 {
    count as f64 * (count as f64 - 1.0) / 2.0
}

/// Sorts a list and counts the pairs that were out of order.
fn inversions(list: &mut [f64], spare: &mut Vec<f64>) -> f64 {
    let middle = list.len() / 2;
    if middle == 0 {
        return 0.0;
    }
    let mut count = inversions(&mut list[..middle], spare) + inversions(&mut list[middle..], spare);
    spare.clear();
    let (mut left, mut right) = (0, middle);
    while left < middle && right < list.len() {
        if list[right] < list[left] {
            count += (middle - left) as f64;
            spare.push(list[right]);
            right += 1;
        } else {
            spare.push(list[left]);
            left += 1;
        }
    }
    spare.extend_from_slice(&list[left..middle]);
    list[..spare.len()].copy_from_slice(spare);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn tau_and_pair_accuracy_are_those_of_all_pairs() {
        let mut random = Generator::new(3);
        for _ in 0..50 {
            let n = 2 + random.below(20);
            let zero = |random: &mut Generator| if random.below(2) == 0 { -0.0 } else { 0.0 };
            let truth: Vec<f64> = (0..n)
                .map(|_| match random.below(4) {
                    0 => zero(&mut random),
                    level => level as f64,
                })
                .collect();
            let scores: Vec<f64> = (0..n).map(|_| random.below(8) as f64 - 4.0).collect();
            let (mut sum, mut by_truth, mut by_score, mut half) = (0.0, 0.0_f64, 0.0_f64, 0.0);
            for i in 0..n {
                for j in 0..i {
                    let sign = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
                    let (t, s) = (sign(truth[i], truth[j]), sign(scores[i], scores[j]));
                    sum += t * s;
                    by_truth += t.abs();
                    by_score += s.abs();
                    half += t.abs() * 0.5 * (1.0 + t * s);
                }
            }
            let size = (by_truth * by_score).sqrt();
            let expected = if size > 0.0 { sum / size } else { 0.0 };
            assert!((kendall_tau(&truth, &scores) - expected).abs() < 1e-12);
            match RankingQuality::new(None, &truth, &scores) {
                Ok(found) => assert!((found.pair_accuracy - half / by_truth).abs() < 1e-12),
                Err(_) => assert_eq!(by_truth, 0.0),
            }
        }
    }

    #[test]
    fn gains_and_precisions_are_those_of_worked_examples() {
        // Järvelin and Kekäläinen's example with gains 2^y − 1: ranks 3 2 3 0 1 2.
        let (truth, scores) = ([3.0, 2.0, 3.0, 0.0, 1.0, 2.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        let gain = 7.0 + 3.0 / 3f64.log2() + 7.0 / 2.0 + 1.0 / 6f64.log2() + 3.0 / 7f64.log2();
        let best = 7.0 + 7.0 / 3f64.log2() + 3.0 / 2.0 + 3.0 / 5f64.log2() + 1.0 / 6f64.log2();
        assert!((ndcg(&truth, &scores, None).unwrap() - gain / best).abs() < 1e-12);
        let first = (7.0 + 3.0 / 3f64.log2()) / (7.0 + 7.0 / 3f64.log2());
        assert!((ndcg(&truth, &scores, Some(2)).unwrap() - first).abs() < 1e-12);
        // Equal scores: the mean over both orders.
        let mean = 0.5 * (1.0 + 1.0 / 3f64.log2());
        assert!((ndcg(&[1.0, 0.0], &[2.0, 2.0], None).unwrap() - mean).abs() < 1e-12);
        let precision = average_precision(&[1.0, 0.0, 2.0, 0.0], &[4.0, 3.0, 2.0, 1.0]).unwrap();
        assert!((precision - (1.0 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
        assert_eq!(average_precision(&[0.0, 1.0], &[1.0, 1.0]), Some(0.5));
        assert_eq!(ndcg(&[0.0, 0.0], &[1.0, 2.0], None), None);
        assert_eq!(average_precision(&[0.0], &[1.0]), None);
    }
}
