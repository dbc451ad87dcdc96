//! Which points are tried, in which order, and which one is best.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use super::bounds::{Criterion, criterion};
use super::evaluate::{Evaluation, Job, Reuse, evaluate};
use super::journal::{Heading, Journal, Record};
use super::rounds::{self, SearchRound};
use super::{Family, Found, Metric, Point, Space, Split, Trial, Value};
use crate::context::{Context, Event};
use crate::data::{ClassOrder, Dataset, Labels};
use crate::error::{Error, Result};
use crate::machine::{FitInput, Machine, ScalingRule, Start};
use crate::numeric::random::Generator;
use crate::solver::Status;

/// How often a grid is shifted at most.
const MOST_SHIFTS: usize = 50;

/// How points are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Every point of the grid.
    Grid,
    /// Every point of the grid, then so many times a grid of half the distance around the best.
    Refined {
        /// How many finer grids.
        rounds: usize,
    },
    /// So many points at random, numbers between the ends of their axes.
    Random {
        /// How many.
        points: usize,
    },
    /// The points of the grid on few rows, then the best of them on more, until one share of
    /// `factor` is left on all rows (Jamieson and Talwalkar 2016).
    Halving {
        /// One in how many points goes on, and how many times more rows it gets.
        factor: usize,
        /// Rows of the first round.
        smallest: usize,
    },
    /// The points of the grid, eliminating those that are clearly worse than the leader after some splits
    /// (Maron and Moore 1997, with a paired t-statistic in the place of Hoeffding's bound).
    Race,
    /// The grid; while the best point lies at an end of an axis of numbers, another value beyond that end with
    /// every value of the other axes, until that brings nothing better (Trinh 2012, 4.3.2). Of equal points the one with the smaller C wins, then
    /// the one with the smaller γ.
    Shifted,
    /// From the middle of the axes, which have to be ranges of positive numbers, a step of the grid up and down
    /// on every axis; to the best of these as long as one is better, else the step is halved so many times
    /// (Momma and Bennett 2002).
    Pattern {
        /// How often the step is halved.
        halvings: usize,
    },
    /// Points at random, then points where a surrogate of the scores (a Gaussian process) expects the
    /// largest improvement.
    Surrogate {
        /// How many in all.
        points: usize,
    },
}

/// How points are judged.
#[derive(Clone, Debug)]
pub enum Judge {
    /// By held-out rows.
    Splits {
        /// What is learnt from and held out.
        splits: Vec<Split>,
        /// How predictions are scored.
        metric: Metric,
    },
    /// By an estimate of the leave-one-out error of C-SVC.
    Estimate(Criterion),
}

/// What a search does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How points are chosen.
    pub strategy: Strategy,
    /// How points are judged.
    pub judge: Judge,
    /// How features are scaled on the rows that are learnt from.
    pub scaling: Option<ScalingRule>,
    /// What trainings may have in common.
    pub reuse: Reuse,
}

/// Searches a space for the machine of a family that does best on `data`.
///
/// With a journal, everything that was found is written to that file at once, and what the file
/// already knows is not computed again; the family has to have an identity. At a deadline or an interruption the finished trials are
/// kept.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{Machine, Svc};
/// use widemargin::operation::folds::Folds;
/// use widemargin::operation::tune::{
///     Axis, Judge, Metric, Plan, Point, Reuse, Space, Strategy, Value, repeated, search,
/// };
/// use widemargin::Context;
///
/// let rows = Dense::new(8, 1, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])?;
/// let data = Dataset::new(Matrix::DenseF64(rows), Labels::Int(vec![0, 0, 1, 1, 1, 1, 0, 0]))?;
/// let space = Space { axes: vec![Axis::logarithmic("gamma", 1e-4, 1.0, 3)?] };
/// let family = |point: &Point| -> widemargin::Result<Box<dyn Machine>> {
///     let gamma = point.get("gamma").and_then(Value::number).unwrap_or(1.0);
///     Ok(Box::new(Svc { kernel: Kernel::Gaussian { gamma }, ..Svc::default() }))
/// };
/// let context = Context::new();
/// let plan = Plan {
///     strategy: Strategy::Grid,
///     judge: Judge::Splits {
///         splits: repeated(&Folds::Stratified(2), 1, &data, None, 0)?,
///         metric: Metric::Accuracy,
///     },
///     scaling: None,
///     reuse: Reuse::Everything,
/// };
/// let found = search(&family, &space, &data, &plan, None, &context)?;
/// assert_eq!(found.trials.len(), 3);
/// assert_eq!(found.best().unwrap().point.get("gamma"), Some(&Value::Real(1.0)));
/// # Ok::<(), widemargin::Error>(())
/// ```
///
/// # Errors
/// What the family refuses, a journal of another search or family, a metric that does not suit the labels;
/// the first failure when no machine could be trained; [`Error::Interrupted`] when nothing was
/// finished.
pub fn search(
    family: &dyn Family,
    space: &Space,
    data: &Dataset,
    plan: &Plan,
    journal: Option<&Path>,
    context: &Context,
) -> Result<Found> {
    space.check(match plan.strategy {
        Strategy::Random { points } | Strategy::Surrogate { points } => Some(points),
        _ => None,
    })?;
    let journal = match journal {
        Some(path) => {
            let searched: Vec<&str> = space.axes.iter().map(|axis| &axis.name[..]).collect();
            let Some(identity) = family.identity(&searched) else {
                let expected = "a family with an identity (a SpecifiedFamily has one)";
                return Err(Error::parameter("journal", expected, "one that does not"));
            };
            Journal::open(path, &Heading::new(fingerprint(data, plan, context)?, identity))?
        }
        None => Journal::in_memory(),
    };
    let mut run = Run { family, data, plan, journal, context, trials: Vec::new(), stopped: None };
    match plan.strategy {
        Strategy::Grid => {
            run.try_all(space.grid())?;
        }
        Strategy::Refined { rounds } => run.refine(space, rounds)?,
        Strategy::Random { points } => {
            let points = space.random(points, &mut Generator::new(context.seed()));
            run.try_all(points)?;
        }
        Strategy::Halving { factor, smallest } => run.halve(&space.grid(), factor, smallest)?,
        Strategy::Race => run.race(&space.grid())?,
        Strategy::Shifted => run.shift(space)?,
        Strategy::Pattern { halvings } => run.pattern(space, halvings)?,
        Strategy::Surrogate { points } => run.surrogate(space, points)?,
    }
    run.finish()
}

struct Run<'a> {
    family: &'a dyn Family,
    data: &'a Dataset,
    plan: &'a Plan,
    journal: Journal,
    context: &'a Context,
    trials: Vec<Trial>,
    stopped: Option<Status>,
}

impl Run<'_> {
    fn finish(self) -> Result<Found> {
        // A search that was stopped early may have no point with all splits: then those with the most.
        let seen = |trial: &Trial| (trial.scores().count(), trial.rows);
        let finished = self.trials.iter().filter(|trial| trial.mean().is_some());
        let most = match finished.map(seen).max_by_key(|&(_, rows)| rows) {
            Some(most) => Some(most),
            None if self.stopped.is_some() => self.trials.iter().map(seen).max(),
            None => None,
        };
        let mut best: Option<(usize, f64)> = None;
        for (t, trial) in self.trials.iter().enumerate() {
            if let Some(mean) = trial.partial_mean()
                && Some(seen(trial)) == most
                && best.is_none_or(|(_, other)| mean > other)
            {
                best = Some((t, mean));
            }
        }
        if best.is_none() {
            let failure = self.trials.iter().find_map(|trial| trial.failure.clone());
            return Err(match failure {
                Some(message) => Error::Model { message },
                None => Error::Interrupted,
            });
        }
        let best = best.map(|(t, _)| t);
        Ok(Found { trials: self.trials, best, stopped: self.stopped })
    }

    fn all_splits(&self) -> Vec<Split> {
        match &self.plan.judge {
            Judge::Splits { splits, .. } => splits.clone(),
            Judge::Estimate(_) => {
                vec![Split { train: (0..self.data.rows()).collect(), test: Vec::new() }]
            }
        }
    }

    fn machines(&self, points: &[Point]) -> Result<Vec<Box<dyn Machine>>> {
        points.iter().map(|point| self.family.machine(point)).collect()
    }

    /// Tries points on all splits; returns the places of their trials.
    fn try_all(&mut self, points: Vec<Point>) -> Result<Vec<usize>> {
        let (machines, splits) = (self.machines(&points)?, self.all_splits());
        let rows = splits.first().map_or(0, |split| split.train.len());
        let first = self.trials.len();
        let trials = points.into_iter().map(|point| Trial::new(point, rows, splits.len()));
        self.trials.extend(trials);
        let places: Vec<usize> = (first..self.trials.len()).collect();
        let trials: Vec<Option<usize>> = places.iter().copied().map(Some).collect();
        self.evaluate(&machines, &trials, &splits, 0..splits.len())?;
        Ok(places)
    }

    /// Tries the candidates of a round, which are points with their machines; returns their scores.
    /// `known` holds the trials of earlier rounds by candidate and rows.
    fn try_round(
        &mut self,
        points: &[Point],
        machines: &[Box<dyn Machine>],
        known: &mut HashMap<(usize, usize), usize>,
        round: &SearchRound<'_>,
    ) -> Result<Vec<Vec<f64>>> {
        let rows = round.splits.first().map_or(0, |split| split.train.len());
        let mut trials = vec![None; points.len()];
        for &candidate in round.candidates {
            let place = *known.entry((candidate, rows)).or_insert_with(|| {
                let point = points[candidate].clone();
                self.trials.push(Trial::new(point, rows, round.splits.len()));
                self.trials.len() - 1
            });
            trials[candidate] = Some(place);
        }
        self.evaluate(machines, &trials, round.splits, round.tried.clone())?;
        let score = |record: &Option<Record>| record.and_then(|r| r.score).unwrap_or(f64::NAN);
        let scores = |t: usize| self.trials[t].records[round.tried.clone()].iter().map(score);
        Ok(trials.into_iter().flatten().map(|t| scores(t).collect()).collect())
    }

    /// Evaluates machines on the splits `tried`, for the trials at the places of `trials`; machines
    /// without a trial are left out.
    fn evaluate(
        &mut self,
        machines: &[Box<dyn Machine>],
        trials: &[Option<usize>],
        splits: &[Split],
        tried: Range<usize>,
    ) -> Result<()> {
        let names: Vec<String> = trials
            .iter()
            .map(|trial| trial.map_or_else(String::new, |t| self.trials[t].point.to_string()))
            .collect();
        let mut missing = vec![vec![false; splits.len()]; machines.len()];
        for (m, trial) in trials.iter().enumerate() {
            let Some(trial) = trial.map(|t| &mut self.trials[t]) else { continue };
            for (s, record) in trial.records.iter_mut().enumerate() {
                *record = record.or_else(|| self.journal.get(&names[m], trial.rows, s));
                missing[m][s] = record.is_none() && tried.contains(&s);
            }
        }
        let wanted = |m: usize, s: usize| missing[m][s];
        let places = trials;
        let trials = Mutex::new(&mut self.trials);
        let journal = &self.journal;
        let store = |m: usize, s: usize, record: Result<Record>| {
            let mut trials = trials.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Some(trial) = places[m].map(|t| &mut trials[t]) else { return Ok(()) };
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    trial.failure.get_or_insert(error.to_string());
                    Record {
                        score: None,
                        fit_seconds: 0.0,
                        predict_seconds: 0.0,
                        iterations: 0,
                        status: Status::NumericalTrouble,
                    }
                }
            };
            trial.records[s] = Some(record);
            journal.add(&names[m], trial.rows, s, record)
        };
        let stopped = match &self.plan.judge {
            Judge::Splits { metric, .. } => {
                let job = Job {
                    machines,
                    data: self.data,
                    splits,
                    scaling: self.plan.scaling,
                    response: metric.response(),
                    reuse: self.plan.reuse,
                };
                let labels = match machines.first().and_then(|machine| machine.unlabelled()) {
                    Some(mark) => self.data.labels().without_mark(mark),
                    None => Cow::Borrowed(self.data.labels()),
                };
                let take = |m: usize, s: usize, evaluation: Result<Evaluation<'_>>| {
                    let truth = labels.select(&splits[s].test);
                    let groups: Option<Vec<i64>> = self
                        .data
                        .groups()
                        .map(|groups| splits[s].test.iter().map(|&row| groups[row]).collect());
                    let record =
                        |one: Evaluation<'_>| scored(*metric, &one, &truth, groups.as_deref());
                    store(m, s, evaluation.and_then(record))
                };
                evaluate(&job, wanted, take, self.context)?
            }
            Judge::Estimate(which) => {
                estimate(*which, machines, self.data, wanted, store, self.context)?
            }
        };
        self.stopped = self.stopped.or(stopped);
        Ok(())
    }

    /// The place with the best mean among `places`.
    fn leader(&self, places: &[usize]) -> Option<usize> {
        let mean = |t: usize| self.trials[t].mean().unwrap_or(f64::NEG_INFINITY);
        let better = |best: usize, t: usize| if mean(t) > mean(best) { t } else { best };
        let best = places.iter().copied().reduce(better)?;
        self.trials[best].mean().map(|_| best)
    }

    fn refine(&mut self, space: &Space, rounds: usize) -> Result<()> {
        let mut known = self.try_all(space.grid())?;
        let mut space = space.clone();
        for _ in 0..rounds {
            let Some(best) = self.leader(&known).filter(|_| self.stopped.is_none()) else { break };
            space = space.refined(&self.trials[best].point);
            let tried: Vec<String> =
                self.trials.iter().map(|trial| trial.point.to_string()).collect();
            let fresh: Vec<Point> = space
                .grid()
                .into_iter()
                .filter(|point| !tried.contains(&point.to_string()))
                .collect();
            known.extend(self.try_all(fresh)?);
        }
        Ok(())
    }

    /// The best of some trials, the one with the smaller C and then γ among equals.
    fn smallest_leader(&self, places: &[usize]) -> Option<usize> {
        let number = |t: usize, name: &str| {
            let value = self.trials[t].point.get(name).and_then(Value::number);
            value.unwrap_or(0.0)
        };
        let key = |t: usize| (number(t, "c"), number(t, "gamma"));
        let mut ordered = places.to_vec();
        ordered.sort_by(|&a, &b| key(a).partial_cmp(&key(b)).unwrap_or(Ordering::Equal));
        self.leader(&ordered)
    }

    fn shift(&mut self, space: &Space) -> Result<()> {
        let mut space = space.clone();
        let mut known = self.try_all(space.grid())?;
        for _ in 0..MOST_SHIFTS {
            let Some(best) = self.smallest_leader(&known).filter(|_| self.stopped.is_none()) else {
                break;
            };
            let (wider, fresh) = space.beyond(&self.trials[best].point);
            if fresh.is_empty() {
                break;
            }
            space = wider;
            known.extend(self.try_all(fresh)?);
            let mean = |t: usize| self.trials[t].mean().unwrap_or(f64::NEG_INFINITY);
            if self.leader(&known).is_none_or(|next| mean(next) <= mean(best)) {
                break;
            }
        }
        Ok(())
    }

    fn pattern(&mut self, space: &Space, halvings: usize) -> Result<()> {
        let (mut point, mut steps) = space.middle()?;
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut halved = 0;
        loop {
            let mut points = vec![point.clone()];
            points.extend(space.around(&point, &steps));
            points.retain(|one| !known.contains_key(&one.to_string()));
            let names: Vec<String> = points.iter().map(Point::to_string).collect();
            let places = self.try_all(points)?;
            known.extend(names.into_iter().zip(places));
            let own = known.get(&point.to_string()).copied();
            let near = space.around(&point, &steps).into_iter();
            let near = near.filter_map(|one| known.get(&one.to_string()).copied());
            let all: Vec<usize> = own.into_iter().chain(near).collect();
            let Some(best) = self.leader(&all).filter(|_| self.stopped.is_none()) else { break };
            if Some(best) != own {
                point = self.trials[best].point.clone();
            } else if halved == halvings {
                break;
            } else {
                halved += 1;
                steps.iter_mut().for_each(|step| *step *= 0.5);
            }
        }
        Ok(())
    }

    fn halve(&mut self, points: &[Point], factor: usize, smallest: usize) -> Result<()> {
        let (machines, splits, context) = (self.machines(points)?, self.all_splits(), self.context);
        let classes = self.data.labels().classes(ClassOrder::Sorted).ok();
        let codes = classes.as_ref().map(|classes| &classes.codes[..]);
        let mut known = HashMap::new();
        let evaluate =
            |round: &SearchRound<'_>| self.try_round(points, &machines, &mut known, round);
        rounds::halving(points.len(), &splits, codes, factor, smallest, context, evaluate)
    }

    fn race(&mut self, points: &[Point]) -> Result<()> {
        let (machines, splits, context) = (self.machines(points)?, self.all_splits(), self.context);
        let mut known = HashMap::new();
        let evaluate =
            |round: &SearchRound<'_>| self.try_round(points, &machines, &mut known, round);
        rounds::race(points.len(), &splits, context, evaluate)
    }

    fn surrogate(&mut self, space: &Space, points: usize) -> Result<()> {
        rounds::surrogate(space.axes.len(), points, self.context, |shares| {
            let places = self.try_all(shares.iter().map(|shares| space.at(shares)).collect())?;
            let trials = places.into_iter().map(|t| &self.trials[t]);
            let scored =
                |trial: &Trial| (space.shares(&trial.point), trial.mean().unwrap_or(f64::NAN));
            Ok(trials.map(scored).collect())
        })
    }
}

fn scored(
    metric: Metric,
    evaluation: &Evaluation<'_>,
    truth: &Labels,
    groups: Option<&[i64]>,
) -> Result<Record> {
    Ok(Record {
        score: Some(metric.score(evaluation, truth, groups)?),
        fit_seconds: evaluation.fit_seconds,
        predict_seconds: evaluation.predict_seconds,
        iterations: evaluation.iterations,
        status: evaluation.status,
    })
}

/// Judges machines by an estimate of their leave-one-out error.
fn estimate(
    which: Criterion,
    machines: &[Box<dyn Machine>],
    data: &Dataset,
    wanted: impl Fn(usize, usize) -> bool,
    store: impl Fn(usize, usize, Result<Record>) -> Result<()>,
    context: &Context,
) -> Result<Option<Status>> {
    let mut last: Option<crate::machine::Model> = None;
    context.report(&Event::Stage { name: "trainings", total: machines.len() });
    for (m, machine) in machines.iter().enumerate().filter(|(m, _)| wanted(*m, 0)) {
        if let Some(status) = context.stop_request() {
            return Ok(Some(status));
        }
        let judged = (|| {
            let Some(svc) = machine.penalty_path() else {
                return Err(Error::parameter(
                    "criterion",
                    "c-svc without scaling",
                    "another machine",
                ));
            };
            let model = match (&last, machine.warm_start()) {
                (Some(last), Some(warm)) => {
                    warm.fit_from(FitInput::new(data), Start::of(last, &**machine), context)?
                }
                _ => machine.fit(data, context)?,
            };
            let error = criterion(which, svc, &model, data, context)?;
            let training = model.training.clone();
            last = Some(model);
            let outcome = training.as_ref().map(|training| training.outcome);
            Ok(Record {
                score: Some(1.0 - error),
                fit_seconds: training.map_or(0.0, |training| training.seconds),
                predict_seconds: 0.0,
                iterations: outcome.map_or(0, |outcome| outcome.iterations),
                status: outcome.map_or(Status::Solved, |outcome| outcome.status),
            })
        })();
        if matches!(judged, Err(Error::Interrupted)) {
            return Ok(context.stop_request());
        }
        store(m, 0, judged)?;
        context.report(&Event::StageStep { name: "trainings" });
    }
    Ok(None)
}

/// A checksum of what decides the scores of a search beside the family.
fn fingerprint(data: &Dataset, plan: &Plan, context: &Context) -> Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut number = |value: u64| hasher.update(&value.to_le_bytes());
    number(data.columns() as u64);
    for row in 0..data.rows() {
        context.checkpoint()?;
        data.features().for_each_nonzero(row, |column, value| {
            number(column as u64);
            number(value.to_bits());
        });
        number(u64::MAX);
    }
    let mut text = format!("{:?} {:?} {:?}", plan.scaling, data.weights(), data.groups());
    for row in 0..data.rows() {
        text.extend(data.labels().get(row).map(|label| format!("{label};")));
    }
    match &plan.judge {
        Judge::Splits { splits, metric } => text.push_str(&format!("{metric} {splits:?}")),
        Judge::Estimate(which) => text.push_str(which.name()),
    }
    hasher.update(text.as_bytes());
    Ok(hasher.finalize())
}
