//! Models of weights.

use crate::data::{ClassOrder, Dense, Label, Layout, Matrix};
use crate::error::Result;
use crate::machine::model::{Calibration, ClassTable, Linear, MachineKind, Model, Scheme};

/// A model of the given weights, function after function, `width` each, and constants b.
///
/// Two classes with one function are distinguished by its sign, more by the largest function. Logistic
/// regression comes with its probabilities.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) when there are not `width` weights for every constant.
pub(crate) fn linear_model(
    kind: MachineKind,
    width: usize,
    weights: Vec<f64>,
    constants: &[f64],
    classes: Option<Vec<Label>>,
) -> Result<Model> {
    let count = constants.len();
    let weights = Matrix::DenseF64(Dense::new(count, width, weights)?).into_layout(Layout::Auto);
    let offsets = constants.iter().map(|constant| -constant).collect();
    let calibration = (kind == MachineKind::Logistic)
        .then(|| Calibration::Sigmoid { a: vec![-1.0; count], b: vec![0.0; count] });
    let classes = classes.map(|names| {
        let single = count == 1 && names.len() == 2;
        let scheme = if single { Scheme::OneVsOne } else { Scheme::OneVsRest };
        let support = (0..names.len()).map(|c| usize::from(c < count)).collect();
        ClassTable { names, scheme, support }
    });
    Ok(Model { classes, calibration, ..Model::new(kind, Linear { weights, offsets }) })
}

/// The weights of function `f` with its constant as the weight of a feature of value `bias`.
pub(super) fn start_weights(start: &Linear, f: usize, bias: Option<f64>) -> Vec<f64> {
    let mut weights = start.function_weights(f);
    weights.extend(bias.map(|bias| -start.offsets[f] / bias));
    weights
}

/// Which class comes first by default.
pub(super) const ORDER: ClassOrder = ClassOrder::Sorted;
