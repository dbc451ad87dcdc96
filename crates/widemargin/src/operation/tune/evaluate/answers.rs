//! What trained models say about the rows that were held out.

use std::time::Instant;

use super::{Answer, STAGE, View};
use crate::context::Event;
use crate::data::{Dataset, Dense};
use crate::error::Result;
use crate::machine::{CalibrationMethod, Model, Predictor};
use crate::operation::calibrate::calibrate;
use crate::operation::tune::Split;
use crate::solver::Status;

/// Held-out rows that all models of a split answer before the next ones.
const ROWS_TOGETHER: usize = 32;

impl<W, K> View<'_, W, K>
where
    W: Fn(usize, usize) -> bool + Sync,
    K: Fn(usize, usize, Result<Answer<'_>>) -> Result<()> + Sync,
{
    /// The answers of several models for one split, a few rows at a time, so that the rows of a table
    /// of kernel values are read once for all of them. A model with a mark has the functions of the
    /// one before it.
    pub(super) fn answers(
        &self,
        data: &Dataset,
        place: usize,
        split: &Split,
        models: &[(usize, Model, bool)],
    ) -> Result<()> {
        let seconds =
            |model: &Model| model.training.as_ref().map_or(0.0, |training| training.seconds);
        if self.job.probabilities {
            return models.iter().try_for_each(|(m, model, _)| {
                self.answer(data, *m, place, split, model, seconds(model))
            });
        }
        let started = Instant::now();
        let predictors = models
            .iter()
            .map(|(_, model, _)| model.predictor(self.quiet))
            .collect::<Result<Vec<_>>>()?;
        let fresh: Vec<usize> = (0..models.len()).filter(|&at| !models[at].2).collect();
        let mut values = vec![Vec::new(); fresh.len()];
        for rows in split.test.chunks(ROWS_TOGETHER) {
            for (&at, values) in fresh.iter().zip(&mut values) {
                let found = predictors[at].decision_values_of(data.features(), rows)?;
                values.extend(found.into_values());
            }
        }
        let each = started.elapsed().as_secs_f64() / models.len().max(1) as f64;
        let mut current = 0;
        for (at, ((m, model, repeats), predictor)) in models.iter().zip(&predictors).enumerate() {
            current += usize::from(at > 0 && !repeats);
            let values = Dense::new(split.test.len(), model.outputs(), values[current].clone())?;
            self.give(*m, place, predictor, values, None, (seconds(model), each))?;
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
        self.give(m, place, &predictor, values, probabilities, spent)
    }

    /// Hands on an answer that took `spent` seconds of training and of prediction.
    fn give(
        &self,
        m: usize,
        place: usize,
        predictor: &Predictor<'_>,
        values: Dense<f64>,
        probabilities: Option<Dense<f64>>,
        spent: (f64, f64),
    ) -> Result<()> {
        let outcome = predictor.model().training.as_ref().map(|training| training.outcome);
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
