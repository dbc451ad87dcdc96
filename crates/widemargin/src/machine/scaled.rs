//! A machine that learns the scaling of the features together with the model.
//!
//! The scaling is fitted on exactly the rows the machine is given, so that cross-validation and
//! calibration never let held-out rows decide it; the model carries it and predicts raw rows.

use super::fit::{FitInput, Machine, WarmStart};
use super::local_duals::LocalDuals;
use super::model::Model;
use super::warm_start::Start;
use crate::context::Context;
use crate::data::scaling::Scaler;
use crate::data::{Dataset, Label, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// How a scaling is learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScalingRule {
    /// Every feature to mean 0 and deviation 1 (sparse features are divided only).
    Standard,
    /// Every feature to a range, as `svm-scale` does.
    Range {
        /// Image of the smallest value.
        lower: f64,
        /// Image of the largest value.
        upper: f64,
    },
}

impl ScalingRule {
    /// Reads `none`, `standard`, `minmax` (to [−1, 1]) or `minmax:LOWER,UPPER`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for anything else.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let range = |lower, upper| Ok(Some(Self::Range { lower, upper }));
        match text {
            "none" => return Ok(None),
            "standard" => return Ok(Some(Self::Standard)),
            "minmax" => return range(-1.0, 1.0),
            _ => {}
        }
        let limits = text.strip_prefix("minmax:").and_then(|limits| limits.split_once(','));
        let parse = |limit: &str| limit.trim().parse::<f64>().ok().filter(|v| v.is_finite());
        match limits.map(|(lower, upper)| (parse(lower), parse(upper))) {
            Some((Some(lower), Some(upper))) if lower < upper => range(lower, upper),
            _ => {
                let expected = "none, standard, minmax or minmax:LOWER,UPPER with LOWER < UPPER";
                Err(Error::parameter("scale", expected, text))
            }
        }
    }

    /// Learns the scaling of a table.
    ///
    /// # Errors
    /// As [`Scaler::fit_standard`] and [`Scaler::fit_range`].
    pub fn fit(self, features: &Matrix) -> Result<Scaler> {
        match self {
            Self::Standard => Scaler::fit_standard(features),
            Self::Range { lower, upper } => Scaler::fit_range(features, lower, upper),
        }
    }
}

/// Scales the features, then trains `machine`.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::{Machine, Scaled, ScalingRule, Svc};
/// use widemargin::Context;
///
/// let rows = Matrix::DenseF64(Dense::new(4, 1, vec![1000.0, 1001.0, 1003.0, 1004.0])?);
/// let data = Dataset::new(rows, Labels::Int(vec![0, 0, 1, 1]))?;
/// let machine = Scaled { rule: ScalingRule::Standard, machine: Box::new(Svc::default()) };
/// let context = Context::new();
/// let model = machine.fit(&data, &context)?;
/// assert_eq!(&model.predictor(&context)?.predict(data.features())?, data.labels());
/// # Ok::<(), widemargin::Error>(())
/// ```
pub struct Scaled {
    /// How the scaling is learnt.
    pub rule: ScalingRule,
    /// The machine that sees the scaled rows.
    pub machine: Box<dyn Machine>,
}

impl Machine for Scaled {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.learn(input, context, |scaled| self.machine.fit(scaled, context))
    }

    fn kernel(&self) -> Option<&Kernel> {
        self.machine.kernel()
    }

    fn unlabelled(&self) -> Option<&Label> {
        self.machine.unlabelled()
    }

    fn local_duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        let scaled = || -> Result<(Scaler, Dataset)> {
            let scaler = self.rule.fit(input.selected().features())?;
            let features = scaler.transform(input.data().features().clone())?;
            Ok((scaler, input.data().clone().with_features(features)?))
        };
        let (scaler, data) = match scaled() {
            Ok(scaled) => scaled,
            Err(error) => return Some(Err(error)),
        };
        let rows: Vec<usize> = input.rows().collect();
        let input = match FitInput::with_rows(&data, &rows) {
            Ok(input) => input,
            Err(error) => return Some(Err(error)),
        };
        let duals = self.machine.local_duals(&input)?;
        Some(duals.map(|duals| LocalDuals { scaler: Some(scaler), ..duals }))
    }

    fn warm_start(&self) -> Option<&dyn WarmStart> {
        self.machine.warm_start().map(|_| self as &dyn WarmStart)
    }
}

impl WarmStart for Scaled {
    fn fit_from(&self, input: FitInput<'_>, start: Start<'_>, context: &Context) -> Result<Model> {
        let Some(machine) = self.machine.warm_start() else { return self.fit_with(input, context) };
        let fit = |scaled: &Dataset| machine.fit_from(FitInput::new(scaled), start, context);
        self.learn(input, context, fit)
    }
}

impl Scaled {
    fn learn(
        &self,
        input: FitInput<'_>,
        context: &Context,
        fit: impl FnOnce(&Dataset) -> Result<Model>,
    ) -> Result<Model> {
        input.fit_selected(self.machine.kernel(), |data| {
            let (scaler, scaled) = context.install(|| {
                let scaler = self.rule.fit(data.features())?;
                let features = scaler.transform(data.features().clone())?;
                Ok::<_, crate::Error>((scaler, data.clone().with_features(features)?))
            })?;
            let mut model = fit(&scaled)?;
            model.preparation.scaler = Some(scaler);
            Ok(model)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Labels};
    use crate::machine::Svr;

    #[test]
    fn ranges_are_read_with_their_limits() {
        let range = |lower, upper| Some(ScalingRule::Range { lower, upper });
        assert_eq!(ScalingRule::parse("minmax").unwrap(), range(-1.0, 1.0));
        assert_eq!(ScalingRule::parse("minmax:0, 2.5").unwrap(), range(0.0, 2.5));
        assert_eq!(ScalingRule::parse("standard").unwrap(), Some(ScalingRule::Standard));
        assert_eq!(ScalingRule::parse("none").unwrap(), None);
        for bad in ["", "minmax:1,0", "minmax:1", "minmax:a,b", "maxmin", "minmax:0,inf"] {
            assert!(ScalingRule::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn training_on_raw_rows_equals_training_on_scaled_ones() {
        let raw = Matrix::DenseF64(Dense::new(4, 1, vec![10.0, 20.0, 30.0, 50.0]).unwrap());
        let labels = Labels::Real(vec![1.0, 2.0, 3.0, 5.0]);
        let data = Dataset::new(raw.clone(), labels.clone()).unwrap();
        let context = Context::new();
        for rule in [ScalingRule::Standard, ScalingRule::Range { lower: 0.0, upper: 1.0 }] {
            let scaled = rule.fit(&raw).unwrap().transform(raw.clone()).unwrap();
            let svr = Svr { c: 100.0, ..Svr::default() };
            let by_hand = Dataset::new(scaled.clone(), labels.clone())
                .and_then(|data| svr.fit(&data, &context))
                .unwrap();
            let machine = Scaled { rule, machine: Box::new(svr) };
            let by_itself = machine.fit(&data, &context).unwrap();
            assert_eq!(by_itself.functions(), by_hand.functions());
            assert_eq!(
                by_itself.predictor(&context).unwrap().predict(&raw).unwrap(),
                by_hand.predictor(&context).unwrap().predict(&scaled).unwrap(),
            );
        }
    }
}
