//! The minimum over the variables strictly inside their boxes, all others held fixed.
//!
//! Pair steps need many rounds for variables that depend on each other; where few are inside,
//! Newton's step is cheaper. It minimises ½dᵀ(K + εI)d + fᵀd over Σd = 0 and goes as far along d as
//! the boxes let it, which never raises the objective.

use super::state::State;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::Cholesky;
use crate::numeric::simd::{Real, accumulate};

/// ε as a share of the mean of the diagonal: more than rounding in single precision takes away from
/// the smallest eigenvalues.
const REGULAR: f64 = 1e-6;

/// Moves the variables of `state` (of one group) that are inside their boxes, if there are at least
/// two and at most `most`; `row` gives the padded matrix rows. Returns how many moved.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted) when it was stopped; the state is as it was.
pub(super) fn descend_face<'a, T: Real>(
    state: &mut State,
    row: impl Fn(usize) -> &'a [T],
    most: usize,
    context: &Context,
) -> Result<usize> {
    let free: Vec<usize> = state.inside().into_iter().map(|v| v as usize).collect();
    let order = free.len();
    if order < 2 || order > most || state.group_count > 1 {
        return Ok(0);
    }
    let more = REGULAR * free.iter().map(|&v| state.diagonal[v]).sum::<f64>() / order as f64;
    let mut matrix = vec![0.0; order * order];
    for (i, &v) in free.iter().enumerate() {
        let values = row(v);
        for (j, &w) in free[..i].iter().enumerate() {
            matrix[i * order + j] = values[w].to_f64();
        }
        matrix[i * order + i] = state.diagonal[v] + more;
    }
    let Some(factor) = Cholesky::new(matrix, order, context) else { return Ok(0) };
    let mut step: Vec<f64> = free.iter().map(|&v| -state.gradient[v]).collect();
    let mut ones = vec![1.0; order];
    factor.solve(&mut step);
    factor.solve(&mut ones);
    let excess = step.iter().sum::<f64>() / ones.iter().sum::<f64>();
    let (mut share, mut ends) = (1.0, None);
    for (i, &v) in free.iter().enumerate() {
        step[i] -= excess * ones[i];
        let room = if step[i] > 0.0 { state.upper[v] } else { state.lower[v] } - state.beta[v];
        if room.abs() < share * step[i].abs() {
            (share, ends) = (room / step[i], Some(i));
        }
    }
    if !share.is_finite() || share <= 0.0 {
        return Ok(0);
    }
    step.iter_mut().for_each(|step| *step *= share);
    for (i, &v) in free.iter().enumerate() {
        let to = (state.beta[v] + step[i]).clamp(state.lower[v], state.upper[v]);
        let bound = if step[i] > 0.0 { state.upper[v] } else { state.lower[v] };
        let to = if ends == Some(i) { bound } else { to };
        step[i] = to - state.beta[v];
        state.beta[v] = to;
    }
    let rows: Vec<&[T]> = free.iter().map(|&v| row(v)).collect();
    let mut sums = vec![0.0; rows[0].len()];
    accumulate(context.instruction_set(), &mut sums, &rows, &step);
    for (gradient, sum) in state.gradient.iter_mut().zip(&sums) {
        *gradient += sum;
    }
    if let Some(ridge) = &state.ridge {
        for (&v, step) in free.iter().zip(&step) {
            state.gradient[v] += ridge[v] * step;
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::solver::smo::Problem;

    fn objective(problem: &Problem, matrix: &[Vec<f64>], beta: &[f64]) -> f64 {
        let row = |i: usize| matrix[i].iter().zip(beta).map(|(k, b)| k * b).sum::<f64>();
        (0..beta.len()).map(|i| beta[i] * (0.5 * row(i) + problem.linear[i])).sum()
    }

    proptest! {
        #[test]
        fn a_step_keeps_the_sum_and_the_boxes_and_never_climbs(
            factors in prop::collection::vec(prop::collection::vec(-1.0..1.0, 4), 7),
            linear in prop::collection::vec(-1.0..1.0, 7),
            start in prop::collection::vec(0.0..1.0, 7),
        ) {
            let n = start.len();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let matrix: Vec<Vec<f64>> =
                factors.iter().map(|a| factors.iter().map(|b| dot(a, b)).collect()).collect();
            let problem = Problem {
                linear,
                lower: vec![0.0; n],
                upper: vec![1.0; n],
                ridge: None,
                groups: None,
                start: start.clone(),
                bound_tolerance: 0.0,
                initial_working_set: Vec::new(),
            };
            let gradient = (0..n).map(|i| dot(&matrix[i], &start) + problem.linear[i]).collect();
            let diagonal = (0..n).map(|i| matrix[i][i]).collect();
            let mut state = State::new(&problem, gradient, diagonal);
            let context = Context::new();
            let moved = descend_face(&mut state, |v| &matrix[v][..], n, &context).unwrap();
            prop_assert!(moved == n || start.contains(&0.0));
            let sum: f64 = state.beta.iter().sum();
            prop_assert!((sum - start.iter().sum::<f64>()).abs() < 1e-9);
            prop_assert!(state.beta.iter().all(|b| (0.0..=1.0).contains(b)));
            let (before, after) =
                (objective(&problem, &matrix, &start), objective(&problem, &matrix, &state.beta));
            prop_assert!(after <= before + 1e-9, "{after} above {before}");
            for i in 0..n {
                let fresh = dot(&matrix[i], &state.beta) + problem.linear[i];
                prop_assert!((state.gradient[i] - fresh).abs() < 1e-9);
            }
            // A minimum along the whole face where no bound was in the way.
            if state.beta.iter().all(|b| *b > 0.0 && *b < 1.0) {
                let worst = crate::solver::smo::decompose::worst(&state.extremes());
                prop_assert!(after < before || worst < 1e-6);
            }
        }
    }
}
