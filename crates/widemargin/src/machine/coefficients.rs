//! A model's coefficients as other programs lay them out.

use super::model::{Model, Scheme};
use crate::data::Dense;
use crate::error::{Error, Result};
use crate::kernel::Kernel;

impl Model {
    /// The coefficients of all support vectors, row by row, with the number of rows.
    ///
    /// With a function per pair of k classes this is LIBSVM's `sv_coef`: k − 1 rows, a support
    /// vector of class i holding its coefficient against class j in row j (j < i) or j − 1 (j > i).
    /// Otherwise there is a row per function.
    pub fn dual_coefficients(&self) -> (usize, Vec<f64>) {
        let count = self.support_count();
        match &self.classes {
            Some(table) if matches!(table.scheme, Scheme::OneVsOne | Scheme::Dag) => {
                let classes = table.names.len();
                let mut starts = vec![0];
                for support in &table.support {
                    starts.push(starts[starts.len() - 1] + support);
                }
                let rows = classes.saturating_sub(1);
                let mut values = vec![0.0; rows * count];
                let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
                for ((i, j), function) in pairs.zip(&self.functions) {
                    for part in &function.parts {
                        for (s, &coefficient) in part.support.clone().zip(&part.coefficients) {
                            let row = if s < starts[i + 1] { j - 1 } else { i };
                            values[row * count + s] = coefficient;
                        }
                    }
                }
                (rows, values)
            }
            _ => {
                let mut values = vec![0.0; self.functions.len() * count];
                for (f, function) in self.functions.iter().enumerate() {
                    for part in &function.parts {
                        let start = f * count + part.support.start;
                        values[start..start + part.coefficients.len()]
                            .copy_from_slice(&part.coefficients);
                    }
                }
                (self.functions.len(), values)
            }
        }
    }

    /// The weight of every feature in every function, w = Σ cₛ xₛ, one row per function.
    ///
    /// # Errors
    /// [`Error::Model`] unless the kernel is linear.
    pub fn linear_weights(&self) -> Result<Dense<f64>> {
        if self.kernel != Kernel::Linear {
            return Err(Error::Model {
                message: format!("only a linear kernel has weights, not {}", self.kernel.name()),
            });
        }
        let width = self.features();
        let mut weights = vec![0.0; self.functions.len() * width];
        for (function, weights) in self.functions.iter().zip(weights.chunks_mut(width.max(1))) {
            for part in &function.parts {
                for (s, &coefficient) in part.support.clone().zip(&part.coefficients) {
                    self.support.for_each_nonzero(s, |j, x| weights[j] += coefficient * x);
                }
            }
        }
        Dense::new(self.functions.len(), width, weights)
    }
}
