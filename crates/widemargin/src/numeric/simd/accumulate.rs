//! The gradient update of the solvers: a few rows of kernel values times their coefficients, added
//! to a long vector in double precision.

use super::{InstructionSet, Lanes, Real, Task, VectorFamily, dispatch};

/// Rows that one pass over the gradient adds.
const GROUP: usize = 8;

/// Adds Σᵣ `coefficients[r]` · `rows[r][i]` to `gradient[i]`, in double precision and in the order
/// of r for every i, so that the result does not depend on how the vectors are cut into ranges.
///
/// # Panics
/// When a row is not as long as `gradient`, or there are not as many coefficients as rows.
pub(crate) fn accumulate<T: Real>(
    set: InstructionSet,
    gradient: &mut [f64],
    rows: &[&[T]],
    coefficients: &[f64],
) {
    assert_eq!(rows.len(), coefficients.len(), "one coefficient per row");
    assert!(rows.iter().all(|row| row.len() == gradient.len()), "rows as long as the gradient");
    dispatch(set, Accumulate { gradient, rows, coefficients });
}

struct Accumulate<'a, T> {
    gradient: &'a mut [f64],
    rows: &'a [&'a [T]],
    coefficients: &'a [f64],
}

impl<T: Real> Task for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<F: VectorFamily>(self) {
        let mut rest = self.rows;
        let mut coefficients = self.coefficients;
        while let Some((group, after)) = rest.split_first_chunk::<GROUP>() {
            // SAFETY: lengths were checked by `accumulate`, instructions by the caller.
            unsafe { add_rows::<T, F, GROUP>(self.gradient, group, coefficients) };
            (rest, coefficients) = (after, &coefficients[GROUP..]);
        }
        if let Some((group, after)) = rest.split_first_chunk::<4>() {
            // SAFETY: as above.
            unsafe { add_rows::<T, F, 4>(self.gradient, group, coefficients) };
            (rest, coefficients) = (after, &coefficients[4..]);
        }
        if let Some((group, after)) = rest.split_first_chunk::<2>() {
            // SAFETY: as above.
            unsafe { add_rows::<T, F, 2>(self.gradient, group, coefficients) };
            (rest, coefficients) = (after, &coefficients[2..]);
        }
        if let Some((group, _)) = rest.split_first_chunk::<1>() {
            // SAFETY: as above.
            unsafe { add_rows::<T, F, 1>(self.gradient, group, coefficients) };
        }
    }
}

#[inline(always)]
unsafe fn add_rows<T: Real, F: VectorFamily, const ROWS: usize>(
    gradient: &mut [f64],
    rows: &[&[T]; ROWS],
    coefficients: &[f64],
) {
    let width = F::Double::WIDTH;
    let whole = gradient.len() / width * width;
    let to = gradient.as_mut_ptr();
    // SAFETY: every row is as long as the gradient; vectors stay below `whole`, the last partial
    // one goes through buffers of a full vector.
    unsafe {
        let weights: [F::Double; ROWS] = std::array::from_fn(|r| F::Double::splat(coefficients[r]));
        for i in (0..whole).step_by(width) {
            let mut sum = F::Double::load(to.add(i));
            for r in 0..ROWS {
                sum = T::load_wide::<F>(rows[r].as_ptr().add(i)).mul_add(weights[r], sum);
            }
            sum.store(to.add(i));
        }
        let count = gradient.len() - whole;
        if count > 0 {
            let mut sum = F::Double::load_partial(to.add(whole), count);
            for r in 0..ROWS {
                let mut buffer = [T::ZERO; super::lanes::MAX_WIDTH];
                buffer[..count].copy_from_slice(&rows[r][whole..]);
                sum = T::load_wide::<F>(buffer.as_ptr()).mul_add(weights[r], sum);
            }
            sum.store_partial(to.add(whole), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::available;
    use super::*;

    fn example<T: Real>(rows: usize, length: usize) -> (Vec<Vec<T>>, Vec<f64>, Vec<f64>) {
        let value = |i: usize| ((i * 7919 % 1009) as f64 / 1009.0 - 0.5) * 3.0;
        let table = (0..rows)
            .map(|r| (0..length).map(|i| T::from_f64(value(r * length + i))).collect())
            .collect();
        let coefficients = (0..rows).map(|r| value(r + 17)).collect();
        let gradient = (0..length).map(|i| value(i + 5)).collect();
        (table, coefficients, gradient)
    }

    fn matches_a_double_loop<T: Real>() {
        for set in available() {
            for (rows, length) in [(0, 5), (1, 1), (2, 3), (3, 31), (7, 64), (19, 77)] {
                let (table, coefficients, start) = example::<T>(rows, length);
                let slices: Vec<&[T]> = table.iter().map(Vec::as_slice).collect();
                let mut gradient = start.clone();
                accumulate(set, &mut gradient, &slices, &coefficients);
                for i in 0..length {
                    let mut exact = start[i];
                    for r in 0..rows {
                        exact += coefficients[r] * table[r][i].to_f64();
                    }
                    assert!((gradient[i] - exact).abs() < 1e-13, "{set} {rows} {length} {i}");
                }
            }
        }
    }

    #[test]
    fn single_rows_match_a_double_loop() {
        matches_a_double_loop::<f32>();
    }

    #[test]
    fn double_rows_match_a_double_loop() {
        matches_a_double_loop::<f64>();
    }

    #[test]
    fn cutting_the_vectors_changes_no_bit() {
        for set in available() {
            let (table, coefficients, start) = example::<f32>(13, 101);
            let slices: Vec<&[f32]> = table.iter().map(Vec::as_slice).collect();
            let mut whole = start.clone();
            accumulate(set, &mut whole, &slices, &coefficients);
            for cut in [1, 8, 50, 99] {
                let mut parts = start.clone();
                let (low, high) = parts.split_at_mut(cut);
                let left: Vec<&[f32]> = slices.iter().map(|row| &row[..cut]).collect();
                let right: Vec<&[f32]> = slices.iter().map(|row| &row[cut..]).collect();
                accumulate(set, low, &left, &coefficients);
                accumulate(set, high, &right, &coefficients);
                assert_eq!(whole, parts, "{set} cut at {cut}");
            }
        }
    }
}
