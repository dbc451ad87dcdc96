//! How well clusters agree with classes: indices that need no matching of their names.
//!
//! The adjusted Rand index counts pairs of rows that both put together, less what chance does (Hubert and Arabie
//! 1985). Homogeneity is the share of the classes' entropy that the clusters explain, completeness the reverse, and
//! the V-measure their harmonic mean (Rosenberg and Hirschberg 2007), which is mutual information over the mean
//! entropy.

use serde::Serialize;

use super::metrics::cluster_error;
use crate::data::{ClassOrder, Labels};
use crate::error::{Error, Result};

/// Agreement of clusters with classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClusterAgreement {
    /// Share of rows that the best matching of clusters with classes gets wrong.
    pub error: f64,
    /// Share of rows outside of the most frequent class of their cluster: 0 with a cluster for every row.
    pub many_to_one_error: f64,
    /// Adjusted Rand index: 1 for the same partition, about 0 for unrelated ones.
    pub adjusted_rand: f64,
    /// 1 when clusters hold rows of one class each.
    pub homogeneity: f64,
    /// 1 when classes lie in one cluster each.
    pub completeness: f64,
    /// Harmonic mean of the two: normalised mutual information.
    pub v_measure: f64,
}

impl ClusterAgreement {
    /// Compares clusters with classes.
    ///
    /// # Errors
    /// [`Error::Labels`] or [`Error::Length`] when there is not one true label per cluster.
    pub fn new(truth: &Labels, clusters: &Labels) -> Result<Self> {
        let error = cluster_error(truth, clusters)?;
        let classes = truth.classes(ClassOrder::Sorted)?;
        let groups = clusters.classes(ClassOrder::Sorted)?;
        let n = classes.codes.len() as f64;
        if n == 0.0 {
            return Err(Error::Empty { what: "row" });
        }
        let (rows, columns) = (classes.count(), groups.count());
        let mut table = vec![0.0; rows * columns];
        for (class, group) in classes.codes.iter().zip(&groups.codes) {
            table[*class as usize * columns + *group as usize] += 1.0;
        }
        let by_class: Vec<f64> = table.chunks_exact(columns).map(|row| row.iter().sum()).collect();
        let by_group: Vec<f64> =
            (0..columns).map(|j| table.iter().skip(j).step_by(columns).sum()).collect();
        let of_cluster = |j: usize| table.iter().skip(j).step_by(columns).copied();
        let most = (0..columns).map(|j| of_cluster(j).fold(0.0, f64::max));
        let many_to_one_error = 1.0 - most.sum::<f64>() / n;
        let (h_class, h_group) = (entropy(&by_class, n), entropy(&by_group, n));
        let mutual = (h_class + h_group - entropy(&table, n)).max(0.0);
        let share = |entropy: f64| if entropy > 0.0 { mutual / entropy } else { 1.0 };
        let total = h_class + h_group;
        Ok(Self {
            error,
            many_to_one_error,
            adjusted_rand: adjusted_rand(&table, &by_class, &by_group, n),
            homogeneity: share(h_class),
            completeness: share(h_group),
            v_measure: if total > 0.0 { 2.0 * mutual / total } else { 1.0 },
        })
    }
}

/// −Σ p ln p of counts.
fn entropy(counts: &[f64], n: f64) -> f64 {
    let terms = counts.iter().filter(|count| **count > 0.0);
    terms.map(|count| -(count / n) * (count / n).ln()).sum()
}

fn adjusted_rand(table: &[f64], by_class: &[f64], by_group: &[f64], n: f64) -> f64 {
    let pairs = |counts: &[f64]| counts.iter().map(|c| 0.5 * c * (c - 1.0)).sum::<f64>();
    let (both, classes, groups) = (pairs(table), pairs(by_class), pairs(by_group));
    let all = 0.5 * n * (n - 1.0);
    let expected = if all > 0.0 { classes * groups / all } else { 0.0 };
    let largest = 0.5 * (classes + groups);
    if largest == expected { 1.0 } else { (both - expected) / (largest - expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_those_of_scikit_learn() {
        // sklearn.metrics on the same labels: adjusted_rand_score, homogeneity_completeness_v_measure.
        let truth = Labels::Int(vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 2]);
        let clusters = Labels::Int(vec![0, 0, 1, 1, 1, 1, 2, 2, 0, 2]);
        let found = ClusterAgreement::new(&truth, &clusters).unwrap();
        let expected =
            [0.2, 0.431_818_181_818, 0.618_065_646_292, 0.618_065_646_292, 0.618_065_646_292];
        let found = [
            found.error,
            found.adjusted_rand,
            found.homogeneity,
            found.completeness,
            found.v_measure,
        ];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        // Two more clusters inside of class 2: the matching calls them wrong, their own class does not.
        let split = Labels::Int(vec![0, 0, 1, 1, 1, 1, 2, 2, 3, 4]);
        let found = ClusterAgreement::new(&truth, &split).unwrap();
        assert!((found.error - 0.3).abs() < 1e-12 && (found.many_to_one_error - 0.1).abs() < 1e-12);
        let same = ClusterAgreement::new(&truth, &truth).unwrap();
        assert_eq!([same.error, same.adjusted_rand, same.v_measure], [0.0, 1.0, 1.0]);
        let one = ClusterAgreement::new(&truth, &Labels::Int(vec![7; 10])).unwrap();
        assert!(one.adjusted_rand.abs() < 1e-12 && one.homogeneity.abs() < 1e-12);
        assert!(ClusterAgreement::new(&truth, &Labels::Int(vec![7])).is_err());
    }
}
