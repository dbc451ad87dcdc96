//! What trained models say about the rows that were held out.

use std::time::Instant;

use super::{Answer, STAGE, View};
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
    K: Fn(usize, usize, Result<Answer<'_>>) -> Result<()> + Sync,
{
    /// The answers of a part of `paths` for one split: those of the penalties in `wanted`, each with
    /// the place of its machine. All functions are evaluated together, so that the rows of a table of
    /// kernel values are read once; a penalty with the functions of the one before has its values.
    pub(super) fn answers(
        &self,
        data: &Dataset,
        place: usize,
        split: &Split,
        paths: &Paths<'_>,
        part: usize,
        wanted: &[(usize, usize)],
    ) -> Result<()> {
        if self.job.probabilities {
            return wanted.iter().try_for_each(|&(m, penalty)| {
                let seconds = paths.outcome(part, penalty)?.1;
                self.answer(data, m, place, split, &paths.model(part, penalty)?, seconds)
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
        if fresh.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let model = paths.stacked(part, &fresh)?;
        let predictor = model.predictor(self.quiet)?;
        let values = predictor.decision_values_of(data.features(), &split.test)?;
        let outputs = model.outputs() / fresh.len();
        let each = started.elapsed().as_secs_f64() / wanted.len() as f64;
        for (&(m, penalty), from) in wanted.iter().zip(source) {
            let own = from * outputs..(from + 1) * outputs;
            let own = (0..values.rows()).flat_map(|i| &values.row(i)[own.clone()]).copied();
            let values = Dense::new(split.test.len(), outputs, own.collect())?;
            let (outcome, seconds) = paths.outcome(part, penalty)?;
            self.give(m, place, &predictor, Some(outcome), values, None, (seconds, each))?;
        }
        Ok(())
    }

    /// The answer of one model for one split.
    pub(super) fn answer(
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
        let model = if self.job.probabilities {
            let train = self.data.select_rows(&split.train);
            let method = CalibrationMethod::Sigmoid;
            let machine = &*self.job.machines[m];
            calibrated = calibrate(machine, &train, model.clone(), method, self.quiet)?;
            &calibrated
        } else {
            model
        };
        let predictor = model.predictor(self.quiet)?;
        let values = predictor.decision_values_of(data.features(), &split.test)?;
        let probabilities = match self.job.probabilities {
            true => Some(predictor.probabilities_of(&values)?),
            false => None,
        };
        let spent = (fit_seconds, started.elapsed().as_secs_f64());
        let outcome = model.training.as_ref().map(|training| training.outcome);
        self.give(m, place, &predictor, outcome, values, probabilities, spent)
    }

    /// Hands on an answer that took `spent` seconds of training and of prediction.
    fn give(
        &self,
        m: usize,
        place: usize,
        predictor: &Predictor<'_>,
        outcome: Option<Outcome>,
        values: Dense<f64>,
        probabilities: Option<Dense<f64>>,
        spent: (f64, f64),
    ) -> Result<()> {
        let answer = Answer {
            predictor,
            values,
            probabilities,
            fit_seconds: spent.0,
            predict_seconds: spent.1,
            iterations: outcome.map_or(0, |outcome| outcome.iterations),
            status: outcome.map_or(Status::Solved, |outcome| outcome.status),
        };
        (self.take)(m, place, Ok(answer))?;
        self.context.report(&Event::StageStep { name: STAGE });
        Ok(())
    }
}
