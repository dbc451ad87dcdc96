//! Eigenvalues and eigenvectors of a small symmetric matrix by Jacobi's rotations.

use super::dot;

/// Sweeps over all pairs before the rest is left as it is; ten are plenty for any matrix.
const MAX_SWEEPS: usize = 60;

/// Eigenvalues, the largest first, and their eigenvectors.
pub(crate) struct Eigen {
    /// The eigenvalues, descending.
    pub(crate) values: Vec<f64>,
    /// Row i is the unit eigenvector of value i.
    pub(crate) vectors: Vec<f64>,
}

impl Eigen {
    /// Eigenvector of value i.
    pub(crate) fn vector(&self, i: usize) -> &[f64] {
        let order = self.values.len();
        &self.vectors[i * order..(i + 1) * order]
    }
}

/// The eigenvalues of a symmetric row-major matrix (Jacobi 1846, cyclic by rows).
pub(crate) fn eigen_symmetric(mut a: Vec<f64>, order: usize) -> Eigen {
    assert_eq!(a.len(), order * order, "a square matrix");
    // Row i of `vectors` becomes the eigenvector of a[i][i].
    let mut vectors = vec![0.0; order * order];
    for i in 0..order {
        vectors[i * order + i] = 1.0;
    }
    for _ in 0..MAX_SWEEPS {
        let mut rotated = false;
        for p in 0..order {
            for q in p + 1..order {
                let off = a[p * order + q];
                let (x, y) = (a[p * order + p], a[q * order + q]);
                if off.abs() <= f64::EPSILON * 0.5 * (x.abs() * y.abs()).sqrt()
                    || off.abs() < f64::MIN_POSITIVE
                {
                    continue;
                }
                rotated = true;
                let theta = (y - x) / (2.0 * off);
                let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let sine = tangent * cosine;
                rotate_rows(&mut a, order, p, q, cosine, sine);
                for row in a.chunks_exact_mut(order) {
                    (row[p], row[q]) =
                        (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
                }
                a[p * order + q] = 0.0;
                a[q * order + p] = 0.0;
                rotate_rows(&mut vectors, order, p, q, cosine, sine);
            }
        }
        if !rotated {
            break;
        }
    }
    let mut places: Vec<usize> = (0..order).collect();
    places.sort_by(|&i, &j| a[j * order + j].total_cmp(&a[i * order + i]));
    Eigen {
        values: places.iter().map(|&i| a[i * order + i]).collect(),
        vectors: places.iter().flat_map(|&i| signed(&vectors[i * order..][..order])).collect(),
    }
}

/// Rows p < q turned by the angle of the given cosine and sine.
fn rotate_rows(a: &mut [f64], order: usize, p: usize, q: usize, cosine: f64, sine: f64) {
    let (head, tail) = a.split_at_mut(q * order);
    let (first, second) = (&mut head[p * order..][..order], &mut tail[..order]);
    for (x, y) in first.iter_mut().zip(second) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
}

/// The vector with its largest entry positive, so that it is one and the same every time.
fn signed(vector: &[f64]) -> Vec<f64> {
    let largest =
        vector.iter().fold(0.0_f64, |best, v| if v.abs() > best.abs() { *v } else { best });
    let scale = if largest < 0.0 { -1.0 } else { 1.0 } / dot(vector, vector).sqrt();
    vector.iter().map(|v| v * scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn vectors_are_orthonormal_and_reproduce_the_matrix() {
        for order in [1, 2, 5, 40] {
            let mut generator = Generator::new(order as u64);
            let mut a = vec![0.0; order * order];
            for i in 0..order {
                for j in 0..=i {
                    let value = generator.normal();
                    a[i * order + j] = value;
                    a[j * order + i] = value;
                }
            }
            let eigen = eigen_symmetric(a.clone(), order);
            assert!(eigen.values.windows(2).all(|pair| pair[0] >= pair[1]));
            for i in 0..order {
                for j in 0..order {
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((dot(eigen.vector(i), eigen.vector(j)) - expected).abs() < 1e-12);
                    let product: f64 = (0..order)
                        .map(|k| eigen.values[k] * eigen.vector(k)[i] * eigen.vector(k)[j])
                        .sum();
                    assert!((product - a[i * order + j]).abs() < 1e-11);
                }
            }
        }
    }

    #[test]
    fn repeated_and_zero_eigenvalues_are_fine() {
        let eigen = eigen_symmetric(vec![1.0; 9], 3);
        assert!((eigen.values[0] - 3.0).abs() < 1e-14);
        assert!(eigen.values[1].abs() < 1e-14 && eigen.values[2].abs() < 1e-14);
    }
}
