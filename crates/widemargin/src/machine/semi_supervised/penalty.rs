//! The penalty C of the labelled rows where none is given: that with the least squared hinge loss of predictions for
//! rows that are left out, by the least-squares machine, for which leaving a row out has a closed form:
//! y − f₋ᵢ(xᵢ) = ((K + I/2C)⁻¹y)ᵢ / ((K + I/2C)⁻¹)ᵢᵢ (Cawley and Talbot 2003).

use crate::context::Context;
use crate::numeric::algebra::Cholesky;
use crate::solver::linear::rows::LinearRows;

/// Penalties tried: 2C times the mean squared distance of the rows from their mean. The first is that of the best.
const PENALTIES: [f64; 4] = [10.0, 10.0 / 3.0, 1.0, 1.0 / 3.0];

/// Most labelled rows that are used.
const MOST_ROWS: usize = 200;

/// The penalty of rows of known group; `scale` is their mean squared distance from the mean.
pub(super) fn choose<R: LinearRows>(
    rows: &R,
    known: &[Option<u32>],
    count: usize,
    scale: f64,
    context: &Context,
) -> f64 {
    let all: Vec<(usize, u32)> =
        known.iter().enumerate().filter_map(|(i, group)| group.map(|g| (i, g))).collect();
    let stride = all.len().div_ceil(MOST_ROWS);
    let sample: Vec<(usize, u32)> = all.into_iter().step_by(stride.max(1)).collect();
    let n = sample.len();
    let mut gram = vec![0.0; n * n];
    let mut dense = vec![0.0; rows.width()];
    for (a, &(i, _)) in sample.iter().enumerate() {
        dense.fill(0.0);
        rows.add(i, 1.0 / scale, &mut dense);
        for (b, &(j, _)) in sample[..=a].iter().enumerate() {
            let value = rows.dot(j, &dense);
            (gram[a * n + b], gram[b * n + a]) = (value, value);
        }
    }
    let functions = if count == 2 { 1 } else { count };
    let mut best = (f64::INFINITY, PENALTIES[0]);
    for penalty in PENALTIES {
        let mut matrix = gram.clone();
        (0..n).for_each(|i| matrix[i * n + i] += 1.0 / penalty);
        let Some(factor) = Cholesky::new(matrix, n, context) else { continue };
        let Ok(lower) = factor.inverse_lower(context) else { break };
        let diagonal: Vec<f64> =
            (0..n).map(|i| (i..n).map(|k| lower[k * n + i].powi(2)).sum()).collect();
        let mut loss = 0.0;
        for function in 0..functions {
            let side = |g: u32| if g as usize == function { 1.0 } else { -1.0 };
            let mut solved: Vec<f64> = sample.iter().map(|&(_, g)| side(g)).collect();
            factor.solve(&mut solved);
            for ((value, own), &(_, g)) in solved.iter().zip(&diagonal).zip(&sample) {
                loss += (side(g) * value / own).max(0.0).powi(2);
            }
        }
        if loss < best.0 {
            best = (loss, penalty);
        }
    }
    0.5 * best.1 / scale
}
