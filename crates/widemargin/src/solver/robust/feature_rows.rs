//! Rows of features in the place of their matrix: dual coordinate descent (Hsieh, Chang, Lin, Keerthi and
//! Sundararajan 2008) over w = Σ λᵢyᵢxᵢ, z = c y⟨w, x⟩, with a linear term of its own for every row.

use super::SignedRows;
use crate::context::Context;
use crate::numeric::random::Generator;
use crate::solver::linear::rows::LinearRows;

/// Relative gap that ends the descent, and up to which it counts as solved.
const GAP: f64 = 1e-4;
const SOLVED: f64 = 1e-3;

/// Passes between two looks at the gap, which costs a pass.
const PASSES: usize = 8;

/// Most passes; some twenty to a hundred are usual.
const MOST_PASSES: usize = 2000;

/// Some rows of a table with signs.
pub(crate) struct FeatureRows<'a, R> {
    /// The table.
    pub table: &'a R,
    /// The rows and their signs.
    pub members: Vec<(usize, f64)>,
    /// The factor c of Qᵢⱼ = c yᵢyⱼ⟨xᵢ, xⱼ⟩.
    pub c: f64,
}

impl<R: LinearRows> FeatureRows<'_, R> {
    /// Qᵢⱼ of some of the rows.
    pub(crate) fn matrix(&self, rows: &[usize]) -> Vec<f64> {
        let mut line = vec![0.0; self.table.width()];
        let mut q = Vec::with_capacity(rows.len() * rows.len());
        for &i in rows {
            let (row, sign) = self.members[i];
            line.fill(0.0);
            self.table.add(row, self.c * sign, &mut line);
            q.extend(rows.iter().map(|&j| {
                let (other, sign) = self.members[j];
                sign * self.table.dot(other, &line)
            }));
        }
        q
    }

    /// Σ aᵢyᵢxᵢ
    fn weights(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut weights = vec![0.0; self.table.width()];
        for (&(row, sign), a) in self.members.iter().zip(coefficients) {
            if *a != 0.0 {
                self.table.add(row, a * sign, &mut weights);
            }
        }
        weights
    }

    /// c yᵢ⟨w, xᵢ⟩ of all rows.
    fn margins(&self, weights: &[f64], context: &Context) -> Vec<f64> {
        let one = |&(row, sign): &(usize, f64)| self.c * sign * self.table.dot(row, weights);
        let tasks = self.members.chunks(TASK_ROWS);
        context.map(tasks, |rows| rows.iter().map(one).collect::<Vec<f64>>()).concat()
    }

    fn squared_norm(&self, weights: &[f64]) -> f64 {
        self.c * weights.iter().map(|w| w * w).sum::<f64>()
    }
}

/// Rows of one task.
const TASK_ROWS: usize = 2048;

impl<R: LinearRows> SignedRows for FeatureRows<'_, R> {
    fn decision(&self, coefficients: &[f64], context: &Context) -> (Vec<f64>, f64) {
        let weights = self.weights(coefficients);
        (self.margins(&weights, context), self.squared_norm(&weights))
    }

    fn solve(
        &self,
        linear: &[f64],
        upper: &[f64],
        start: &[f64],
        offset: f64,
        context: &Context,
    ) -> (Vec<f64>, bool) {
        let mut lambda: Vec<f64> =
            start.iter().zip(upper).map(|(value, upper)| value.clamp(0.0, *upper)).collect();
        let mut weights = self.weights(&lambda);
        let curvature = |&(row, _): &(usize, f64)| self.c * self.table.squared_norm(row);
        let curvatures: Vec<f64> = self.members.iter().map(curvature).collect();
        let movable: Vec<u32> =
            (0..).zip(upper).filter(|(_, u)| **u > 0.0).map(|(i, _)| i).collect();
        let mut generator = Generator::new(context.seed());
        let mut active = movable.clone();
        for pass in 1..=MOST_PASSES {
            generator.shuffle(&mut active);
            active.retain(|&i| {
                let i = i as usize;
                let (row, sign) = self.members[i];
                let gradient = linear[i] - self.c * sign * self.table.dot(row, &weights);
                let before = lambda[i];
                let next = match curvatures[i] > 0.0 {
                    true => (before + gradient / curvatures[i]).clamp(0.0, upper[i]),
                    false if gradient > 0.0 => upper[i],
                    false => 0.0,
                };
                if next != before {
                    lambda[i] = next;
                    self.table.add(row, sign * (next - before), &mut weights);
                }
                // Rows that their gradient holds at a bound wait for the next look at the gap.
                next != before || (next > 0.0 && next < upper[i])
            });
            let stop = context.stop_request();
            if active.is_empty() || pass % PASSES == 0 || stop.is_some() {
                let gap = self.gap(linear, upper, &lambda, offset, &weights, context);
                if gap <= GAP || stop.is_some() {
                    return (lambda, gap <= SOLVED);
                }
                active.clone_from(&movable);
            }
        }
        let gap = self.gap(linear, upper, &lambda, offset, &weights, context);
        (lambda, gap <= SOLVED)
    }
}

impl<R: LinearRows> FeatureRows<'_, R> {
    /// The relative duality gap.
    fn gap(
        &self,
        linear: &[f64],
        upper: &[f64],
        lambda: &[f64],
        offset: f64,
        weights: &[f64],
        context: &Context,
    ) -> f64 {
        let margins = self.margins(weights, context);
        let half = 0.5 * self.squared_norm(weights);
        let rows = linear.iter().zip(&margins).zip(upper);
        let primal = half + rows.map(|((p, z), u)| u * (p - z).max(0.0)).sum::<f64>();
        let dual = linear.iter().zip(lambda).map(|(p, l)| p * l).sum::<f64>() - half;
        (primal - dual) / (primal - offset).abs().max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MatrixRows;
    use super::*;
    use crate::data::Dense;
    use crate::numeric::InstructionSet;
    use crate::solver::linear::rows::DenseRows;

    #[test]
    fn both_kinds_of_rows_have_the_same_optima() {
        let mut generator = Generator::new(11);
        let n = 60;
        let values: Vec<f64> = (0..3 * n).map(|_| generator.normal()).collect();
        let table = Dense::new(n, 3, values).unwrap();
        let rows = DenseRows::new(&table, Some(1.0), InstructionSet::detect());
        let signs = |i: usize| if i.is_multiple_of(3) { 1.0 } else { -1.0 };
        let members = (0..n).map(|i| (i, signs(i))).collect();
        let features = FeatureRows { table: &rows, members, c: 0.7 };
        let q = features.matrix(&(0..n).collect::<Vec<_>>());
        let matrix = MatrixRows { q: &q };
        let context = Context::new();
        let a: Vec<f64> = (0..n).map(|_| generator.unit()).collect();
        let (z, square) = features.decision(&a, &context);
        let (expected, expected_square) = matrix.decision(&a, &context);
        assert!((square - expected_square).abs() < 1e-10 * square);
        z.iter().zip(&expected).for_each(|(z, e)| assert!((z - e).abs() < 1e-10));
        let linear: Vec<f64> = (0..n).map(|_| 1.0 + generator.normal()).collect();
        let upper: Vec<f64> = (0..n).map(|i| (i % 4) as f64).collect();
        let value = |l: &[f64]| -> f64 {
            let (z, _) = matrix.decision(l, &context);
            l.iter().zip(&linear).zip(&z).map(|((l, p), z)| l * (p - 0.5 * z)).sum()
        };
        let (best, _) = matrix.solve(&linear, &upper, &vec![0.0; n], 0.0, &context);
        let (found, solved) = features.solve(&linear, &upper, &a, 0.0, &context);
        assert!(solved);
        assert!(found.iter().zip(&upper).all(|(l, u)| (0.0..=*u).contains(l)));
        let (found, best) = (value(&found), value(&best));
        assert!(
            found <= best * (1.0 + 1e-9) && found >= best * (1.0 - 2.0 * GAP),
            "{found} {best}"
        );
    }
}
