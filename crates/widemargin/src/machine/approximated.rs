//! A machine that learns on features which approximate a Gaussian kernel.
//!
//! The map is part of the model, which therefore predicts raw rows; a linear machine on its features
//! approximates the kernel machine at a cost that grows with the rows alone.

use super::fit::{FitInput, Machine};
use super::model::Model;
use super::parameters::Gamma;
use crate::context::Context;
use crate::data::Label;
use crate::error::{Error, Result};
use crate::kernel::MapRule;

/// Maps the features, then trains `machine`, a linear one.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{Approximated, Gamma, LinearSvc, Machine};
/// use widemargin::Context;
///
/// // Inside and outside of an interval: no threshold tells them apart.
/// let rows = Dense::new(6, 1, vec![-3.0, -2.5, -0.3, 0.3, 2.5, 3.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 1, 1, 0, 0]))?;
/// let machine = Approximated {
///     rule: "nystroem:6".parse()?,
///     gamma: Gamma::Value(1.0),
///     machine: Box::new(LinearSvc::default()),
/// };
/// let context = Context::new();
/// let model = machine.fit(&data, &context)?;
/// assert_eq!(&model.predictor(&context)?.predict(data.features())?, data.labels());
/// # Ok::<(), widemargin::Error>(())
/// ```
pub struct Approximated {
    /// Which map.
    pub rule: MapRule,
    /// γ of the kernel.
    pub gamma: Gamma,
    /// The machine that sees the mapped rows.
    pub machine: Box<dyn Machine>,
}

impl Machine for Approximated {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        let data = &*input.selected();
        let gamma = self.gamma.resolve(data.features());
        let map = self.rule.fit(data.features(), gamma, context)?;
        let mapped = map.transform(data.features(), context)?;
        let mut model = self.machine.fit(&data.clone().with_features(mapped)?, context)?;
        if model.linear().is_none() {
            let message =
                format!("{} cannot use approximate features; use a linear machine", model.kind);
            return Err(Error::Model { message });
        }
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        if let Some(training) = &mut model.training {
            training.parameters.push(("approximate".into(), self.rule.to_string().into()));
            training.parameters.push(("gamma".into(), gamma.into()));
        }
        model.preparation.map = Some(map);
        Ok(model)
    }

    fn unlabelled(&self) -> Option<&Label> {
        self.machine.unlabelled()
    }
}
