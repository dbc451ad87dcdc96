//! Online training over a data set: passes, the confirming sweep, and the model.

use std::time::Instant;

use super::learner::{GROUP, OnlineLearner};
use super::schedule::{Clock, Epochs, LEAST_SHARE, OnlineSchedule, RATE_STEP, WorkingSetStrategy};
use crate::context::{Context, Event};
use crate::data::{ClassOrder, Dataset, Label, check_two_classes};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::ClassWeights;
use crate::machine::definiteness;
use crate::machine::fit::{FitInput, Machine};
use crate::machine::model::Model;
use crate::machine::multiclass::AllInOne;
use crate::machine::names::defaults;
use crate::numeric::random::Generator;
use crate::solver::Status;

/// Passes after which "until optimal" gives up.
const MOST_EPOCHS: usize = 1000;

/// An all-in-one machine trained online.
///
/// `fit` goes through a data set a number of times; [`learner`](Self::learner) learns from a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct OnlineSvc {
    /// Which machine.
    pub machine: AllInOne,
    /// Price C of the loss, as for [`MulticlassSvc`](crate::machine::MulticlassSvc).
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// How often `fit` goes through the examples.
    pub epochs: Epochs,
    /// How working sets of old steps are chosen.
    pub strategy: WorkingSetStrategy,
    /// How many old steps follow a fresh example.
    pub schedule: OnlineSchedule,
    /// What costs of steps are measured in.
    pub clock: Clock,
    /// β: share of a new gain per cost in the running one; above 0 and at most 1.
    pub rate_step: f64,
    /// η: smallest share of a kind of step in the sum of all rates; at least 0 and below 1/3.
    pub least_share: f64,
    /// Elementary steps of an old step; by default as many as there are classes.
    pub multiplier: Option<usize>,
    /// Whether `fit` goes through the examples in random order.
    pub shuffle: bool,
    /// Most examples kept; beyond it the one with the shortest part of the weights is given up.
    pub budget: Option<usize>,
    /// All classes, if some may come late or never.
    pub classes: Option<Vec<Label>>,
    /// Factors on C by class; [`ClassWeights::Balanced`] for `fit` alone, which knows all rows.
    pub class_weights: ClassWeights,
    /// With [`Epochs::UntilOptimal`]: ends at this duality gap relative to the primal objective as well.
    pub gap: Option<f64>,
    /// Ends `fit` after the pass that reaches this dual objective.
    pub target_dual: Option<f64>,
    /// Violation from which an example or a variable is worth a step.
    pub tol: f64,
}

defaults!(OnlineSvc {
    machine: AllInOne::default(),
    c: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    epochs: Epochs::Times(1),
    strategy: WorkingSetStrategy::default(),
    schedule: OnlineSchedule::Adaptive,
    clock: Clock::Counted,
    rate_step: RATE_STEP,
    least_share: LEAST_SHARE,
    multiplier: None,
    shuffle: true,
    budget: None,
    classes: None,
    class_weights: ClassWeights::Uniform,
    gap: None,
    target_dual: None,
    tol: 1e-3,
});

impl OnlineSvc {
    /// A machine that has learnt nothing yet; seed and cache are those of the context.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range, [`Error::Kernel`] for precomputed kernels,
    /// which have no vectors to keep.
    pub fn learner(&self, context: &Context) -> Result<OnlineLearner> {
        self.validate()?;
        if self.class_weights == ClassWeights::Balanced {
            let expected =
                "none or factors by class in a stream, whose classes are not counted yet";
            return Err(Error::parameter("class_weight", expected, "balanced"));
        }
        Ok(OnlineLearner::new(self.clone(), context, false))
    }

    fn validate(&self) -> Result<()> {
        check_parameters(self.c, self.tol, &self.kernel)?;
        if self.budget == Some(0) || self.multiplier == Some(0) {
            return Err(Error::parameter("budget and multiplier", "at least 1", 0));
        }
        if self.strategy == WorkingSetStrategy::LaRank && self.machine != AllInOne::CrammerSinger {
            return Err(Error::parameter("strategy", "larank with machine cs only", self.machine));
        }
        if !(self.rate_step > 0.0 && self.rate_step <= 1.0) {
            return Err(Error::parameter("rate-step", "above 0 and at most 1", self.rate_step));
        }
        if !(self.least_share >= 0.0 && self.least_share < 1.0 / 3.0) {
            let expected = "at least 0 and below a third";
            return Err(Error::parameter("least-share", expected, self.least_share));
        }
        self.gap.map_or(Ok(()), |gap| Error::check_positive("stop-gap", gap))
    }

    /// The classes: those declared, or those of the data; at least two.
    fn class_names(&self, data: &Dataset) -> Result<Vec<Label>> {
        let found = data.labels().classes(ClassOrder::Sorted)?.names;
        let names = self.classes.clone().unwrap_or(found);
        check_two_classes(&names)?;
        Ok(names)
    }

    /// A machine that goes on where `model` ended: its support vectors are the examples kept.
    ///
    /// Weights of examples are not in a model; every example kept gets the bound C, or what its
    /// variables need. The order of random choices begins anew.
    ///
    /// # Errors
    /// As [`learner`](Self::learner); [`Error::Parameter`] when the model is of another machine or
    /// kernel, [`Error::Labels`] when it knows classes that were not declared.
    pub fn resume(&self, model: &Model, context: &Context) -> Result<OnlineLearner> {
        let mut learner = self.learner(context)?;
        learner.take_up(model)?;
        Ok(learner)
    }
}

impl Machine for OnlineSvc {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.validate()?;
        input.validate()?;
        let fit = |data: &Dataset| context.install(|| self.train(data, context));
        input.fit_selected(Some(&self.kernel), fit)
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }
}

impl OnlineSvc {
    fn most_epochs(&self) -> usize {
        match self.epochs {
            Epochs::Times(times) => times,
            Epochs::UntilOptimal => MOST_EPOCHS,
        }
    }

    /// Whether the duality gap, the losses of rows that are not kept among it, is small enough.
    fn is_within_gap(&self, learner: &OnlineLearner, cost: f64) -> bool {
        let (dual, gap) = learner.objective_and_gap();
        self.gap.is_some_and(|most| gap + cost <= most * (dual + gap + cost))
    }

    fn train(&self, data: &Dataset, context: &Context) -> Result<Model> {
        let started = Instant::now();
        let negative = definiteness::warn_of_rows(&self.kernel, data.features(), context)?;
        let parameters = Self { classes: Some(self.class_names(data)?), ..self.clone() };
        let mut learner = OnlineLearner::new(parameters, context, context.is_parallel());
        let codes = learner.codes(data)?;
        learner.weigh_classes(&codes)?;
        let upper = learner.upper(data, &codes);
        let mut order: Vec<usize> = (0..data.rows()).collect();
        let mut generator = Generator::new(context.seed() ^ 0x5eed);
        let mut kept = KeptExamples::new(data.rows());
        let stop = || context.stop_request();
        let most = self.most_epochs();
        context.report(&Event::Stage { name: "epoch", total: most });
        let mut status = Status::IterationLimit;
        let (mut violation, mut cost) = (f64::INFINITY, 0.0);
        'epochs: for epoch in 0..most {
            if self.shuffle {
                generator.shuffle(&mut order);
            }
            let mut learnt = false;
            for rows in order.chunks(GROUP) {
                kept.forget(&learner);
                let rows = kept.others(rows);
                if rows.is_empty() {
                    continue;
                }
                let Some(mut group) = learner.look_ahead(data.features(), &rows)? else { continue };
                learnt = true;
                for (k, &row) in rows.iter().enumerate() {
                    let slot = learner.learn(&mut group, k, codes[row], upper[row], &stop)?;
                    slot.into_iter().for_each(|slot| kept.keep(row, slot));
                    if let Some(stopped) = stop() {
                        status = stopped;
                        break 'epochs;
                    }
                }
            }
            if self.epochs == Epochs::UntilOptimal
                && let Some(stopped) = learner.finish(context)?
            {
                status = stopped;
                break;
            }
            context.report(&Event::StageStep { name: "epoch" });
            let reached = self.target_dual.is_some_and(|target| learner.dual() >= target);
            // Where all examples are kept, more epochs change nothing.
            let last = epoch + 1 == most || !learnt || reached;
            if self.epochs == Epochs::UntilOptimal || last {
                kept.forget(&learner);
                let Some((outside, loss)) = learner.sweep(data, &codes, &kept.slots, context)?
                else {
                    status = context.stop_request().unwrap_or(status);
                    break;
                };
                (violation, cost) = (outside.max(learner.violation()), loss);
                context.report(&Event::Iteration {
                    iteration: epoch + 1,
                    violation,
                    objective: learner.dual(),
                    active: learner.support_count(),
                });
                if violation <= self.tol || reached || self.is_within_gap(&learner, cost) {
                    status = Status::Solved;
                    break;
                }
                if last && self.epochs != Epochs::UntilOptimal {
                    break;
                }
            }
        }
        // Without a sweep the report covers the examples that are kept.
        if violation.is_infinite() {
            violation = learner.violation();
        }
        learner.note(data, started.elapsed().as_secs_f64());
        let mut model = learner.model_with(cost, violation, status)?;
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        Ok(definiteness::noted(model, negative))
    }
}

/// Checks what all online machines have: C, a tolerance and a kernel of vectors.
pub(super) fn check_parameters(c: f64, tol: f64, kernel: &Kernel) -> Result<()> {
    Error::check_positive("c", c)?;
    Error::check_positive("tol", tol)?;
    if *kernel == Kernel::Precomputed {
        return Err(Error::kernel(
            "precomputed",
            "a kernel of vectors, for online training",
            "a table of kernel values",
        ));
    }
    kernel.validate()
}

/// The examples that a learner keeps.
struct KeptExamples {
    /// Slot of every example that is kept.
    slots: Vec<Option<usize>>,
    /// Example in every slot.
    examples: Vec<Option<usize>>,
}

impl KeptExamples {
    fn new(rows: usize) -> Self {
        Self { slots: vec![None; rows], examples: Vec::new() }
    }

    /// Those of some examples that are not kept.
    fn others(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().copied().filter(|&row| self.slots[row].is_none()).collect()
    }

    /// Puts an example into a slot, in the place of the one that was there.
    fn keep(&mut self, row: usize, slot: usize) {
        self.examples.resize(self.examples.len().max(slot + 1), None);
        if let Some(other) = self.examples[slot].replace(row) {
            self.slots[other] = None;
        }
        self.slots[row] = Some(slot);
    }

    /// Clears the examples whose slots were given up.
    fn forget(&mut self, learner: &OnlineLearner) {
        for (slot, row) in self.examples.iter_mut().enumerate() {
            if !learner.holds(slot)
                && let Some(row) = row.take()
            {
                self.slots[row] = None;
            }
        }
    }
}
