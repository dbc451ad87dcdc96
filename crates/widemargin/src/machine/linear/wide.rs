//! Wide tables: weights are learnt of the columns that occur, since those of all others are 0.

use crate::data::Dataset;
use crate::error::Result;
use crate::machine::model::{Body, Linear, Model};
use crate::machine::occurring::Occurring;

/// Models that `learn` makes of a data set and a start; of wide tables it sees the columns that occur.
///
/// # Errors
/// Those of `learn`, and values that are not finite.
pub(crate) fn on_occurring_columns(
    data: &Dataset,
    start: Option<&Model>,
    learn: impl FnOnce(&Dataset, Option<&Model>) -> Result<Vec<Model>>,
) -> Result<Vec<Model>> {
    let Some(occurring) = Occurring::of(data.features())? else { return learn(data, start) };
    let narrow = occurring.narrowed(data)?;
    let start = start.and_then(|model| Some((model, model.linear()?)));
    let start = start.filter(|(_, linear)| linear.weights.columns() == data.columns());
    let start = start.map(|(model, linear)| {
        let weights = occurring.gathered(&linear.weights);
        let body = Body::Linear(Linear { weights, offsets: linear.offsets.clone() });
        Model { body, ..model.clone() }
    });
    let mut models = learn(&narrow, start.as_ref())?;
    for model in &mut models {
        if let Body::Linear(linear) = &mut model.body {
            linear.weights = occurring.spread(&linear.weights);
        }
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
    }
    Ok(models)
}
