//! What trained models say about the rows that were held out.

use std::time::Instant;

use super::{Evaluation, Predictions, Response, STAGE, View};
use crate::context::Event;
use crate::data::{Dataset, Dense};
use crate::error::Result;
use crate::machine::{CalibrationMethod, Model, Paths, Predictor};
use crate::operation::calibrate::calibrate;
use crate::operation::tune::Split;
use crate::solver::{Outcome, Status};

impl<W, K> View<'_, W, K>
where
    W: Fn(usize, usize) -> bool + Sync,
    K: Fn(usize, usize, Result<Evaluation<'_>>) -> Result<()> + Sync,
{
    /// The predictions of a part of `paths` for one split: those of the penalties in `wanted`, each
    /// with the place of its machine. A penalty with the functions of the one before has its
    /// predictions.
    pub(super) fn predict_path(
        &self,
        data: &Dataset,
        place: usize,
        split: &Split,
        paths: &Paths<'_>,
        part: usize,
        wanted: &[(usize, usize)],
    ) -> Result<()> {
        if self.job.response == Response::Probabilities {
            return wanted.iter().try_for_each(|&(m, penalty)| {
                let seconds = paths.outcome(part, penalty)?.1;
                self.predict(data, m, place, split, &paths.model(part, penalty)?, seconds)
            });
        }
        let repeats = |pair: &[(usize, usize)]| paths.repeats(part, pair[0].1, pair[1].1);
        let mut fresh: Vec<usize> = Vec::new();
        let mut source = Vec::with_capacity(wanted.len());
        for (at, &(_, penalty)) in wanted.iter().enumerate() {
            if at == 0 || !repeats(&wanted[at - 1..=at]) {
                fresh.push(penalty);
            }
            source.push(fresh.len() - 1);
        }
        let Some(&first) = fresh.first() else { return Ok(()) };
        let started = Instant::now();
        let model = paths.model(part, first)?;
        let predictor = model.predictor(self.quiet)?;
        let known = |&penalty: &usize| {
            let values = paths.held_out_values(part, penalty)?;
            Some(from_values(&predictor, values))
        };
        let predictions = match fresh.iter().map(known).collect::<Option<Vec<_>>>() {
            Some(known) => known,
            None if self.job.response == Response::Labels => {
                let elected = |&penalty| self.elected(data, split, paths, part, penalty);
                fresh.iter().map(elected).collect::<Result<_>>()?
            }
            None => self.evaluated(data, split, paths, part, &fresh)?,
        };
        let each = started.elapsed().as_secs_f64() / wanted.len() as f64;
        for (&(m, penalty), from) in wanted.iter().zip(source) {
            let (outcome, seconds) = paths.outcome(part, penalty)?;
            let predictions = predictions[from].clone();
            self.give(m, place, &predictor, Some(outcome), predictions, (seconds, each))?;
        }
        Ok(())
    }

    /// Whether the solver knows the predictions of a part and penalty, so that they take no time.
    pub(super) fn is_known(&self, paths: &Paths<'_>, part: usize, penalty: usize) -> bool {
        self.job.response != Response::Probabilities
            && paths.held_out_values(part, penalty).is_some()
    }

    /// The classes of held-out rows; only those that the solver does not know are evaluated.
    fn elected(
        &self,
        data: &Dataset,
        split: &Split,
        paths: &Paths<'_>,
        part: usize,
        penalty: usize,
    ) -> Result<Predictions> {
        let mut winners = paths.winners(part, penalty);
        let open: Vec<usize> = (0..winners.len()).filter(|&i| winners[i].is_none()).collect();
        let model = paths.model(part, penalty)?;
        let predictor = model.predictor(self.quiet)?;
        let rows: Vec<usize> = open.iter().map(|&i| split.test[i]).collect();
        let values = predictor.decision_values_of(data.features(), &rows)?;
        for (i, class) in open.into_iter().zip(predictor.class_indices(&values)) {
            winners[i] = Some(class);
        }
        let winners: Vec<usize> = winners.into_iter().flatten().collect();
        let labels = predictor.labels_of(&winners);
        Ok(Predictions { labels, values: None, probabilities: None })
    }

    /// The decision values of held-out rows for every one of `penalties`. All functions are evaluated
    /// together, so that the rows of a table of kernel values are read once.
    fn evaluated(
        &self,
        data: &Dataset,
        split: &Split,
        paths: &Paths<'_>,
        part: usize,
        penalties: &[usize],
    ) -> Result<Vec<Predictions>> {
        let model = paths.stacked(part, penalties)?;
        let predictor = model.predictor(self.quiet)?;
        let values = predictor.decision_values_of(data.features(), &split.test)?;
        let outputs = model.outputs() / penalties.len();
        let of_penalty = |at: usize| {
            let own = at * outputs..(at + 1) * outputs;
            let own = (0..values.rows()).flat_map(|i| &values.row(i)[own.clone()]).copied();
            Ok(from_values(&predictor, Dense::new(split.test.len(), outputs, own.collect())?))
        };
        (0..penalties.len()).map(of_penalty).collect()
    }

    /// The predictions of one model for one split.
    pub(super) fn predict(
        &self,
        data: &Dataset,
        m: usize,
        place: usize,
        split: &Split,
        model: &Model,
        fit_seconds: f64,
    ) -> Result<()> {
        let started = Instant::now();
        let calibrated;
        let with_probabilities = self.job.response == Response::Probabilities;
        let model = if with_probabilities {
            let train = self.data.select_rows(&split.train);
            let method = CalibrationMethod::Sigmoid;
            let machine = &*self.job.machines[m];
            calibrated = calibrate(machine, &train, model.clone(), method, self.quiet)?;
            if calibrated.calibration.is_none() {
                self.quiet.checkpoint()?;
            }
            &calibrated
        } else {
            model
        };
        let predictor = model.predictor(self.quiet)?;
        let values = predictor.decision_values_of_in_time(data.features(), &split.test)?;
        let probabilities = match with_probabilities {
            true => Some(predictor.probabilities_of(&values)?),
            false => None,
        };
        let predictions = Predictions { probabilities, ..from_values(&predictor, values) };
        let spent = (fit_seconds, started.elapsed().as_secs_f64());
        let outcome = model.training.as_ref().map(|training| training.outcome);
        self.give(m, place, &predictor, outcome, predictions, spent)
    }

    /// Hands on predictions that took `spent` seconds of training and of prediction.
    fn give(
        &self,
        m: usize,
        place: usize,
        predictor: &Predictor<'_>,
        outcome: Option<Outcome>,
        predictions: Predictions,
        spent: (f64, f64),
    ) -> Result<()> {
        let evaluation = Evaluation {
            predictor,
            predictions,
            fit_seconds: spent.0,
            predict_seconds: spent.1,
            iterations: outcome.map_or(0, |outcome| outcome.iterations),
            status: outcome.map_or(Status::Solved, |outcome| outcome.status),
        };
        (self.take)(m, place, Ok(evaluation))?;
        self.context.report(&Event::StageStep { name: STAGE });
        Ok(())
    }
}

/// The predictions that decision values mean.
fn from_values(predictor: &Predictor<'_>, values: Dense<f64>) -> Predictions {
    Predictions {
        labels: predictor.predictions(&values),
        values: Some(values),
        probabilities: None,
    }
}
