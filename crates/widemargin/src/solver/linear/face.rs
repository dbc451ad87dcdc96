//! The minimum of the quadratic model of an ℓ1 problem over the weights that are not 0.
//!
//! With the signs s of those weights kept, ⟨g, d⟩ + ½dᵀHd + ⟨s, w + d⟩ is a quadratic function, whose minimum
//! solves Hd = −(g + s). Coordinate descent finds the signs in few passes and needs thousands for that minimum
//! where features are correlated; a factor of H finds it at once (the subspace phase of Keskar, Nocedal,
//! Öztoprak and Wächter, 2016). Weights that would change their sign end at 0.

use super::columns::Columns;
use super::problem::inner;
use super::tuning::newton::FACE_RIDGE;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::Cholesky;

/// The Hessian of some weights.
#[derive(Default)]
pub(super) struct FaceHessian {
    places: Vec<usize>,
    /// Row-major and symmetric, in the order of `places`.
    matrix: Vec<f64>,
}

/// A weight of the face: its place among all, its value and the slope of the model and the penalty there.
#[derive(Clone, Copy)]
pub(super) struct FaceWeight {
    pub(super) place: usize,
    pub(super) value: f64,
    pub(super) slope: f64,
}

impl FaceHessian {
    /// The moves of the weights of `face` to the minimum, or as far as their signs allow; none where the
    /// Hessian is singular. `rows` hold the curvature of every row.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn minimise(
        &mut self,
        face: &[FaceWeight],
        columns: &Columns,
        rows: &[[f64; 2]],
        context: &Context,
    ) -> Result<Option<Vec<f64>>> {
        let matrix = self.part(face, columns, rows, context)?;
        let order = face.len();
        let mut ridged = matrix.clone();
        for i in 0..order {
            ridged[i * order + i] *= 1.0 + FACE_RIDGE;
        }
        let Some(factor) = Cholesky::interruptible(ridged, order, context)? else {
            return Ok(None);
        };
        let mut whole: Vec<f64> = face.iter().map(|weight| -weight.slope).collect();
        factor.solve(&mut whole);
        let projected: Vec<f64> =
            face.iter().zip(&whole).map(|(weight, d)| clip(weight, *d)).collect();
        let product = |row: usize| inner(&matrix[row * order..][..order], &projected);
        let gain = |row: usize| projected[row] * (face[row].slope + 0.5 * product(row));
        if (0..order).map(gain).sum::<f64>() < 0.0 {
            return Ok(Some(projected));
        }
        let crossing = |(weight, d): (&FaceWeight, &f64)| match clip(weight, *d) == *d {
            true => 1.0,
            false => -weight.value / d,
        };
        let share = face.iter().zip(&whole).map(crossing).fold(1.0, f64::min);
        let shortened = face.iter().zip(&whole);
        Ok(Some(shortened.map(|(weight, d)| clip(weight, share * d)).collect()))
    }

    /// The Hessian of the weights of `face`, from that of the last face where this has them all.
    fn part(
        &mut self,
        face: &[FaceWeight],
        columns: &Columns,
        rows: &[[f64; 2]],
        context: &Context,
    ) -> Result<Vec<f64>> {
        let find = |weight: &FaceWeight| self.places.binary_search(&weight.place).ok();
        let known: Option<Vec<usize>> = face.iter().map(find).collect();
        let Some(known) = known else {
            self.places = face.iter().map(|weight| weight.place).collect();
            self.matrix = hessian(&self.places, columns, rows, context)?;
            return Ok(self.matrix.clone());
        };
        let order = self.places.len();
        let row = |&i: &usize| known.iter().map(move |&j| (i, j));
        Ok(known.iter().flat_map(row).map(|(i, j)| self.matrix[i * order + j]).collect())
    }
}

/// The move of a weight, to 0 where it would change the weight's sign.
fn clip(weight: &FaceWeight, step: f64) -> f64 {
    let keeps_sign = (weight.value + step) * weight.value > 0.0;
    if keeps_sign { step } else { -weight.value }
}

fn hessian(
    places: &[usize],
    columns: &Columns,
    rows: &[[f64; 2]],
    context: &Context,
) -> Result<Vec<f64>> {
    let order = places.len();
    let mut matrix = vec![0.0; order * order];
    let mut column = vec![0.0; rows.len()];
    for (i, &place) in places.iter().enumerate() {
        context.checkpoint()?;
        columns.visit(place, |row, x| column[row] = x * rows[row][1]);
        for (j, &other) in places[..=i].iter().enumerate() {
            let mut sum = 0.0;
            columns.visit(other, |row, x| sum += x * column[row]);
            matrix[i * order + j] = sum;
            matrix[j * order + i] = sum;
        }
        columns.visit(place, |row, _| column[row] = 0.0);
    }
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::solver::linear::rows::SparseRows;

    /// H = [[5, 2], [2, 4]] from the rows (2, 0), (1, 2) and curvature 1.
    fn problem() -> (Csr<f64>, Vec<[f64; 2]>) {
        let csr = Csr::new(2, vec![0, 1, 3], vec![0, 0, 1], vec![2.0, 1.0, 2.0]).unwrap();
        (csr, vec![[0.0, 1.0]; 2])
    }

    #[test]
    fn the_minimum_of_a_face_keeps_all_signs() {
        let (csr, rows) = problem();
        let columns = Columns::new(&SparseRows::new(&csr, csr.values(), None));
        let mut hessian = FaceHessian::default();
        let mut minimise = |values: [f64; 2], slopes: [f64; 2]| {
            let face: Vec<FaceWeight> = (0..2)
                .map(|j| FaceWeight { place: j, value: values[j], slope: slopes[j] })
                .collect();
            hessian.minimise(&face, &columns, &rows, &Context::new()).unwrap().unwrap()
        };
        // H⁻¹ = [[4, −2], [−2, 5]] / 16
        let inside = minimise([1.0, 1.0], [1.6, 0.8]);
        assert!((inside[0] + 0.3).abs() < 1e-8 && (inside[1] + 0.05).abs() < 1e-8, "{inside:?}");
        let crossing = minimise([0.1, 1.0], [1.6, 0.8]);
        assert_eq!(crossing[0], -0.1);
    }
}
