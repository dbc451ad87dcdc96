//! Regularisation paths: the same machine for many C (and ε), each from the solution before.

use super::classification::LinearSvc;
use super::regression::LinearSvr;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::Result;
use crate::machine::Model;

/// One model of a path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathStep {
    /// Its C.
    pub c: f64,
    /// Its ε, for regression.
    pub epsilon: Option<f64>,
    /// The model.
    pub model: Model,
}

impl LinearSvc {
    /// The models for every C of `path`, in that order.
    ///
    /// ```
    /// use widemargin::data::{Dataset, Dense, Labels, Matrix};
    /// use widemargin::machine::LinearSvc;
    /// use widemargin::Context;
    ///
    /// let rows = Dense::new(4, 1, vec![-2.0, -1.0, 1.0, 2.0])?;
    /// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 1, 1]))?;
    /// let path = LinearSvc::default().path(&data, &[0.1, 1.0, 10.0], &Context::new())?;
    /// assert_eq!(path.len(), 3);
    /// # Ok::<(), widemargin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit`](crate::machine::Machine::fit).
    pub fn path(&self, data: &Dataset, path: &[f64], context: &Context) -> Result<Vec<PathStep>> {
        let models = self.learn(data, path, None, context)?;
        let step = |(model, &c)| PathStep { c, epsilon: None, model };
        Ok(models.into_iter().zip(path).map(step).collect())
    }
}

impl LinearSvr {
    /// The models for every (C, ε) of `path`, in that order.
    ///
    /// # Errors
    /// As [`fit`](crate::machine::Machine::fit).
    pub fn path(
        &self,
        data: &Dataset,
        path: &[(f64, f64)],
        context: &Context,
    ) -> Result<Vec<PathStep>> {
        let models = self.learn(data, path, None, context)?;
        let step = |(model, &(c, epsilon))| PathStep { c, epsilon: Some(epsilon), model };
        Ok(models.into_iter().zip(path).map(step).collect())
    }
}
