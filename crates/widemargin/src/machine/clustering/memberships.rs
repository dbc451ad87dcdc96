//! How much of every row is in which cluster, by the relaxation.
//!
//! With cᵣ the direction of the sum of the vectors of cluster r, row i is in it by max(0, 1 + (κ − 1)⟨uᵢ, cᵣ⟩) over the
//! sum of these: 1 and 0 where the products of the vectors are those of labels.

use crate::numeric::algebra::{add, dot};

/// Shares, rows × clusters, from unit vectors of the rows.
pub(super) fn memberships(
    vectors: &[f64],
    width: usize,
    labels: &[usize],
    clusters: usize,
) -> Vec<f64> {
    let mut centres = vec![0.0; clusters * width];
    for (vector, &label) in vectors.chunks_exact(width).zip(labels) {
        add(&mut centres[label * width..][..width], vector, 1.0);
    }
    for centre in centres.chunks_exact_mut(width) {
        let norm = dot(centre, centre).sqrt().max(f64::MIN_POSITIVE);
        centre.iter_mut().for_each(|value| *value /= norm);
    }
    let mut out = Vec::with_capacity(labels.len() * clusters);
    for (vector, &label) in vectors.chunks_exact(width).zip(labels) {
        let part = |centre| (1.0 + (clusters - 1) as f64 * dot(centre, vector)).max(0.0);
        let parts: Vec<f64> = centres.chunks_exact(width).map(part).collect();
        let total: f64 = parts.iter().sum();
        match total > 0.0 {
            true => out.extend(parts.iter().map(|part| part / total)),
            false => out.extend((0..clusters).map(|r| f64::from(u8::from(r == label)))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::label_regression::simplex;

    #[test]
    fn codes_are_whole_memberships_and_the_middle_is_even() {
        for clusters in 2..5 {
            let mut vectors = simplex(clusters);
            let labels: Vec<usize> = (0..clusters).collect();
            let whole = memberships(&vectors, clusters - 1, &labels, clusters);
            for (at, value) in whole.iter().enumerate() {
                let expected = f64::from(u8::from(at / clusters == at % clusters));
                assert!((value - expected).abs() < 1e-12, "{whole:?}");
            }
            // A vector orthogonal to all centres.
            let width = clusters;
            vectors =
                vectors.chunks_exact(clusters - 1).flat_map(|v| [v, &[0.0]].concat()).collect();
            vectors.extend((0..width).map(|k| f64::from(u8::from(k == width - 1))));
            vectors.extend((0..width).map(|k| -f64::from(u8::from(k == width - 1))));
            let labels: Vec<usize> = (0..clusters).chain([0, 0]).collect();
            let found = memberships(&vectors, width, &labels, clusters);
            let even = &found[clusters * clusters..][..clusters];
            assert!(even.iter().all(|v| (v - 1.0 / clusters as f64).abs() < 1e-12), "{even:?}");
        }
    }
}
