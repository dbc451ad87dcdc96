//! Cutting planes for weights that are not negative, and for signed weights in the cone of positive
//! semidefinite matrices.
//!
//! Without a cone a round evaluates the point nearest to the last one where no cut is above a level between
//! bound and objective (the level method). With a cone it goes from an interior point towards the lowest point
//! of the cuts as far as the cone reaches and evaluates that point and the middle between it and the best one
//! (the in-out method of Ben-Ameur and Neto 2007): cuts at points outside the cone alone take very many rounds.
//! Where the linear cuts of the cone close the gap slowly, the lowest point and the bound are those over the cone
//! along the eigenvectors met so far ([`bundle`](super::bundle)).
//! Nothing limits the size of signed weights but the cone itself.

use super::bundle::{Bundle, BundleMinimum};
use super::master::Master;
use super::semidefinite::{Cone, InCone, Way};
use super::{Options, Solved, WeightedDual, Weights, certified, relative};
use crate::context::{Context, Event};
use crate::error::{Error, Result};
use crate::solver::Status;

/// Where the level is between the bound (0) and the objective (1).
const LEVEL: f64 = 0.5;

/// Accuracy of the first training problem.
const FIRST_GAP: f64 = 1e-2;

/// Accuracy of a training problem, as a share of the gap of the weights at that time or at the end.
const SOLVE_SHARE: f64 = 0.2;

/// Part of the gap asked for at which the rounds end; the last training problem may take the rest.
const END_SHARE: f64 = 0.8;

/// Rounds without a better bound or objective after which rounding is taken to stop progress.
const MOST_STALLED: usize = 30;

/// Share of the gap of the round before above which the linear cuts of a cone count as slow.
const SLOW: f64 = 0.7;

/// Accuracy of the lowest point over a cone, as a share of the gap at that time or at the end.
const LOWEST_SHARE: f64 = 0.05;

/// A weight below this is zero.
const ZERO: f64 = 1e-9;

struct Run<'a> {
    dual: &'a mut dyn WeightedDual,
    master: Master,
    /// The same cuts over a cone.
    bundle: Option<Bundle>,
    options: &'a Options,
    best: Vec<f64>,
    objective: f64,
    bound: f64,
    rounds: usize,
    solves: usize,
    /// Forms of the last solution, if it is that of the best weights.
    best_forms: Option<Vec<f64>>,
    /// Forms of the solution that the problem keeps, that of the best weights.
    kept_forms: Vec<f64>,
}

/// Minimises over weights that are not negative.
pub(super) fn non_negative(
    dual: &mut dyn WeightedDual,
    kernels: usize,
    options: &Options,
    context: &Context,
) -> Result<Weights> {
    let master = Master::new(vec![0.0; kernels], vec![f64::INFINITY; kernels]);
    let uniform = vec![1.0 / kernels as f64; kernels];
    minimise(dual, master, uniform, None, options, context)
}

/// Minimises over the weights of a cone.
pub(super) fn in_cone(
    dual: &mut dyn WeightedDual,
    cone: &Cone,
    options: &Options,
    context: &Context,
) -> Result<Weights> {
    let (low, high) = cone.ranges();
    let mut dual = InCone { dual, cone, forms: Vec::new(), kept: Vec::new() };
    let master = Master::new(low, high);
    let mut found = minimise(&mut dual, master, cone.inside(), Some(cone), options, context)?;
    found.weights = cone.weights(&found.weights);
    found.forms = dual.forms;
    found.smallest_eigenvalue = match cone.smallest_eigenvalue(&found.weights, context) {
        Err(Error::Interrupted) => None,
        smallest => Some(smallest?),
    };
    Ok(found)
}

/// Minimises from `inside`, a point strictly inside.
fn minimise(
    dual: &mut dyn WeightedDual,
    master: Master,
    inside: Vec<f64>,
    cone: Option<&Cone>,
    options: &Options,
    context: &Context,
) -> Result<Weights> {
    let mut run = Run {
        dual,
        master,
        bundle: cone.map(|cone| Bundle::new(cone.directions(), cone.most())),
        options,
        best: inside.clone(),
        objective: f64::INFINITY,
        bound: f64::NEG_INFINITY,
        rounds: 0,
        solves: 0,
        best_forms: None,
        kept_forms: Vec::new(),
    };
    run.evaluate(&inside)?;
    let status = match run.descend(&inside, cone, context) {
        Err(Error::Interrupted) if context.stop_request().is_some() => {
            // The last solution is not that of the best weights.
            run.best_forms = None;
            context.stop_request().unwrap_or(Status::Interrupted)
        }
        status => status?,
    };
    run.finish(status)
}

/// Weights of rounding become 0; the others still sum to 1.
fn sparse(mut weights: Vec<f64>) -> Vec<f64> {
    weights.iter_mut().for_each(|weight| *weight = if *weight < ZERO { 0.0 } else { *weight });
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

impl Run<'_> {
    fn gap(&self) -> f64 {
        relative(self.objective - self.bound, self.objective)
    }

    /// Solves the training problem at `weights` and keeps its cut.
    fn evaluate(&mut self, weights: &[f64]) -> Result<()> {
        let now = if self.bound.is_finite() { SOLVE_SHARE * self.gap() } else { FIRST_GAP };
        // A gap may be asked for that is coarser than the first one.
        let gap = now.max(SOLVE_SHARE * self.options.gap).min(FIRST_GAP);
        let Solved { linear, forms, primal, .. } = self.dual.solve(weights, gap)?;
        self.solves += 1;
        self.best_forms = (primal < self.objective).then(|| forms.clone());
        if primal < self.objective {
            (self.objective, self.best) = (primal, weights.to_vec());
            self.kept_forms.clone_from(&forms);
            self.dual.keep();
        }
        if let Some(bundle) = &mut self.bundle {
            bundle.add_objective(&forms, linear);
        }
        self.master.add_objective(forms, linear);
        Ok(())
    }

    /// The lowest point of the cuts over the cone along the vectors known, if there is a cone.
    fn lowest_in_cone(&mut self, context: &Context) -> Result<Option<BundleMinimum>> {
        let gap = self.gap().min(1.0).max(self.options.gap);
        let accuracy = LOWEST_SHARE * gap * self.objective.abs();
        self.bundle.as_mut().map(|bundle| bundle.lowest(accuracy, context)).transpose()
    }

    /// Rounds from `inside`, which was evaluated; why they ended.
    fn descend(
        &mut self,
        inside: &[f64],
        cone: Option<&Cone>,
        context: &Context,
    ) -> Result<Status> {
        let (mut last, mut stalled, mut reached) = (inside.to_vec(), 0, f64::INFINITY);
        let mut slow = false;
        loop {
            self.rounds += 1;
            let mut lowest = self.master.lowest(inside, context);
            self.bound = self.bound.max(lowest.bound);
            slow |= self.rounds > 2 && self.gap() > SLOW * reached;
            if let (true, Some(minimum)) = (slow, self.lowest_in_cone(context)?) {
                self.bound = self.bound.max(minimum.bound);
                lowest.weights = vec![1.0 - minimum.z.iter().sum::<f64>()];
                lowest.weights.extend(minimum.z);
            }
            self.report(context);
            stalled = if self.gap() < reached { 0 } else { stalled + 1 };
            reached = reached.min(self.gap());
            if reached <= END_SHARE * self.options.gap {
                return Ok(Status::Solved);
            }
            if stalled == MOST_STALLED {
                return Ok(Status::NumericalTrouble);
            }
            if let Some(status) = context.stop_request() {
                return Ok(status);
            }
            if self.rounds >= self.options.max_rounds {
                return Ok(Status::IterationLimit);
            }
            match cone {
                None => {
                    let level = self.bound + LEVEL * (self.objective - self.bound);
                    last = match stalled > 1 {
                        true => sparse(lowest.weights),
                        false => sparse(self.master.nearest(&last, level, inside, context)),
                    };
                    self.evaluate(&last)?;
                }
                Some(cone) => {
                    let Way { point, cuts, nearest } = cone.towards(&lowest.weights, context)?;
                    if let Some(bundle) = &mut self.bundle {
                        bundle.add_vectors(&nearest, |j, v| cone.times(j, v), context)?;
                    }
                    cuts.into_iter().for_each(|cut| self.master.add_cone(cut));
                    self.evaluate(&point)?;
                    let middle: Vec<f64> =
                        point.iter().zip(&self.best).map(|(a, b)| 0.5 * (a + b)).collect();
                    self.evaluate(&middle)?;
                }
            }
        }
    }

    fn report(&self, context: &Context) {
        if context.is_observed() {
            context.report(&Event::Iteration {
                iteration: self.rounds,
                violation: self.gap(),
                objective: self.objective,
                active: self.best.iter().filter(|weight| **weight != 0.0).count(),
            });
        }
    }

    /// Solves once more at the best weights unless the last solution belongs to them.
    fn finish(mut self, status: Status) -> Result<Weights> {
        let forms = match self.best_forms.take() {
            Some(forms) => forms,
            None if matches!(status, Status::TimeLimit | Status::Interrupted) => {
                self.dual.restore(&self.best)?;
                std::mem::take(&mut self.kept_forms)
            }
            None => {
                let accuracy = 0.5 * (1.0 - END_SHARE) * self.options.gap;
                let last = self.dual.solve(&self.best, accuracy)?;
                self.objective = last.primal;
                self.solves += 1;
                last.forms
            }
        };
        let status = match status {
            Status::Solved | Status::NumericalTrouble => certified(self.gap(), self.options.gap),
            limit => limit,
        };
        Ok(Weights {
            objective: self.objective,
            forms,
            bound: self.bound,
            status,
            rounds: self.rounds,
            solves: self.solves,
            smallest_eigenvalue: None,
            weights: self.best,
        })
    }
}
