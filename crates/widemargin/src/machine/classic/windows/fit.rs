//! Parzen's classifier, the Parzen density and the probabilistic neural network (JHU 685.621, 1.5
//! and 1.6).
//!
//! p_j(x) = 1/l_j Σ_{i∈j} W(‖x − xᵢ‖/σ_j) / ∫W, and the class with the largest P_j p_j(x) is
//! predicted. The network (Specht, 1990) computes the same from products with its pattern neurons:
//! exp((x·w − 1)/σ²) = exp(−‖x − w‖²/2σ²) for vectors of length 1.

use std::time::Instant;

use super::super::rows::{self, Priors, TrainingSummary, check, check_labelled, class_table};
use super::super::{Classic, Windows};
use super::{NetworkInput, Window, WindowWidth};
use crate::context::Context;
use crate::data::{Classes, Dataset, Matrix};
use crate::error::Result;
use crate::machine::Model;
use crate::machine::names::defaults;

/// The Bayes classifier on a Parzen-window density per class.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{Machine, Parzen, WindowWidth};
/// use widemargin::Context;
///
/// let rows = vec![0., 0., 1., 0., 0., 1., 1., 1., 3., 2., 4., 2., 3., 3., 5., 4.];
/// let rows = Matrix::DenseF64(Dense::new(8, 2, rows)?);
/// let data = Dataset::new(rows, Labels::Int(vec![-1, -1, -1, -1, 1, 1, 1, 1]))?;
/// let context = Context::new();
/// let model = Parzen { width: WindowWidth::Value(0.8), ..Parzen::default() }.fit(&data, &context)?;
/// let point = Matrix::DenseF64(Dense::new(1, 2, vec![2.0, 1.0])?);
/// let posterior = model.predictor(&context)?.probabilities(&point)?;
/// assert!((posterior.row(0)[1] - 0.2545941697).abs() < 1e-9);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Parzen {
    /// The shape of the windows.
    pub window: Window,
    /// Their width, found for every class unless given.
    pub width: WindowWidth,
    /// Class probabilities.
    pub priors: Priors,
}

defaults!(Parzen {
    window: Window::Gaussian,
    width: WindowWidth::LeaveOneOut,
    priors: Priors::Frequencies,
});

rows::trained_on_selected!(Parzen, KernelDensity, ProbabilisticNetwork);

impl Parzen {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let classes = check_labelled(data)?;
        let shape = Shape { window: self.window, width: self.width, input: NetworkInput::Distance };
        shape.fit(Classic::Parzen, data, Some((&classes, &self.priors)), context)
    }
}

/// A Parzen-window (kernel) density estimate: the mean of windows around the rows; it predicts ln p(x).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelDensity {
    /// The shape of the windows.
    pub window: Window,
    /// Their width.
    pub width: WindowWidth,
}

impl KernelDensity {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        check(data)?;
        let shape = Shape { window: self.window, width: self.width, input: NetworkInput::Distance };
        shape.fit(Classic::Density, data, None, context)
    }
}

/// The probabilistic neural network, with a width for every class.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilisticNetwork {
    /// What the pattern layer is given.
    pub input: NetworkInput,
    /// Width σ of the activation, by default those of the fewest leave-one-out errors.
    pub width: WindowWidth,
    /// Class probabilities.
    pub priors: Priors,
}

defaults!(ProbabilisticNetwork {
    input: NetworkInput::Distance,
    width: WindowWidth::LeastErrors,
    priors: Priors::Frequencies,
});

impl ProbabilisticNetwork {
    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let classes = check_labelled(data)?;
        let shape = Shape { window: Window::Gaussian, width: self.width, input: self.input };
        let labelled = Some((&classes, &self.priors));
        shape.fit(Classic::ProbabilisticNetwork, data, labelled, context)
    }
}

/// What the three have in common.
struct Shape {
    window: Window,
    width: WindowWidth,
    input: NetworkInput,
}

impl Shape {
    fn fit(
        &self,
        kind: Classic,
        data: &Dataset,
        labelled: Option<(&Classes, &Priors)>,
        context: &Context,
    ) -> Result<Model> {
        let started = Instant::now();
        self.window.validate(data.columns())?;
        self.width.validate(self.window)?;
        let input = self.input.resolved(data.features())?;
        let members = match labelled {
            Some((classes, _)) => classes.rows_by_class(),
            None => vec![(0..data.rows()).collect()],
        };
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let log_priors = match labelled {
            Some((_, priors)) => priors.logarithms(&counts)?,
            None => vec![0.0],
        };
        let order = members.concat();
        let support = data.features().select_rows(&order);
        let prepared = input.prepare(&support)?;
        let mut first = 0;
        let parts: Vec<Matrix> = counts
            .iter()
            .map(|count| {
                first += count;
                prepared.select_rows(&(first - count..first).collect::<Vec<_>>())
            })
            .collect();
        let widths = self.width.resolve_all(&parts, &prepared, &log_priors, context)?;
        let parameters = [
            ("window", self.window.to_string().into()),
            ("width", self.width.to_string().into()),
            ("input", input.to_string().into()),
        ];
        let effort = TrainingSummary::closed_form(started, &parameters);
        let window = self.window;
        let body =
            Windows { rows: support, training_rows: order, window, input, widths, log_priors };
        let mut model = rows::model(kind, data, body, effort);
        model.classes = labelled.map(|(classes, _)| class_table(classes, counts));
        Ok(model)
    }
}
