//! An online machine from outside: rows in, a model out.

use std::time::Instant;

use super::fit::OnlineSvc;
use super::schedule::{MOST_OLD_STEPS, OnlineSchedule, Rates, Step, WorkingSetStrategy};
use super::state::{State, Value};
use super::store::{PrefetchedRows, Store};
use crate::context::Context;
use crate::data::{ClassOrder, Dataset, Dense, Label, Matrix};
use crate::error::{Error, Result};
use crate::machine::model::{Model, Training};
use crate::machine::multiclass::{class_model, declared_classes};
use crate::machine::training::check_outcome;
use crate::machine::{ClassWeights, MachineKind};
use crate::numeric::InstructionSet;
use crate::numeric::random::Generator;
use crate::solver::s2do::{Patterns, Pool};
use crate::solver::{Outcome, Status};

/// Rows whose kernel values are computed together.
pub(super) const GROUP: usize = 64;

/// A machine that learns from rows as they come.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::machine::OnlineSvc;
/// use widemargin::Context;
///
/// let rows = Dense::new(4, 1, vec![-1.0, 1.0, 3.0, 3.2])?;
/// let labels = Labels::Int(vec![0, 1, 2, 2]);
/// let data = Dataset::new(Matrix::DenseF64(rows), labels.clone())?;
/// let context = Context::new();
/// let mut learner = OnlineSvc { c: 10.0, ..OnlineSvc::default() }.learner(&context)?;
/// for _ in 0..3 {
///     learner.partial_fit(&data)?;
/// }
/// let model = learner.model()?;
/// assert_eq!(model.predictor(&context)?.predict(data.features())?, labels);
/// # Ok::<(), widemargin::Error>(())
/// ```
pub struct OnlineLearner {
    parameters: OnlineSvc,
    names: Vec<Label>,
    /// The state, once there are two classes.
    state: Option<State>,
    /// Rows that wait for a second class.
    waiting: Vec<Dataset>,
    seed: u64,
    set: InstructionSet,
    cache_bytes: usize,
    parallel: bool,
    columns: Option<usize>,
    seen: usize,
    seconds: f64,
    /// What ended the last rows before all were learnt.
    stopped: Option<Status>,
    /// Factors on C of the classes, where they are known.
    factors: Vec<f64>,
}

impl OnlineLearner {
    /// Seed, cache and instructions are those of the context; `parallel` where it learns inside the
    /// context's pool.
    pub(super) fn new(parameters: OnlineSvc, context: &Context, parallel: bool) -> Self {
        let names = parameters.classes.clone().unwrap_or_default();
        let mut learner = Self {
            parameters,
            names,
            state: None,
            waiting: Vec::new(),
            seed: context.seed(),
            set: context.instruction_set(),
            cache_bytes: context.cache_bytes(),
            parallel,
            columns: None,
            seen: 0,
            seconds: 0.0,
            stopped: None,
            factors: Vec::new(),
        };
        if learner.names.len() > 1 {
            learner.begin();
        }
        learner
    }

    fn begin(&mut self) {
        let d = self.names.len();
        let kernel = self.parameters.kernel.clone();
        self.state = Some(State {
            patterns: Patterns::new(self.parameters.machine.loss(d), d),
            store: Store::new(kernel, self.set, self.cache_bytes, self.parallel),
            coefficients: Vec::new(),
            live: Vec::new(),
            place: Vec::new(),
            rates: Rates::new(self.parameters.rate_step, self.parameters.least_share),
            generator: Generator::new(self.seed),
            steps: 0,
            touched: 0,
            removed: 0,
            ahead_seconds: 0.0,
        });
    }

    /// Goes on from a model of the same machine: its support vectors are the examples kept, with the
    /// bound C each, or more where their variables are larger (weights are not in a model).
    pub(super) fn take_up(&mut self, model: &Model) -> Result<()> {
        let kind = MachineKind::AllInOne(self.parameters.machine);
        let table = model.classes.as_ref().filter(|_| model.kind == kind);
        let body = model.expansion().filter(|body| body.kernel == self.parameters.kernel);
        let (Some(table), Some(body)) = (table, body) else {
            let kernel = model.kernel().map_or_else(String::new, |k| format!(" with kernel {k}"));
            return Err(Error::parameter(
                "model to go on from",
                format!("{kind} with the same kernel"),
                format!("{}{kernel}", model.kind),
            ));
        };
        if self.names.is_empty() {
            self.names.clone_from(&table.names);
            if self.names.len() > 1 {
                self.begin();
            }
        }
        let place = |name: &Label| {
            let same = |other: &Label| other.to_string() == name.to_string();
            self.names.iter().position(same).ok_or_else(|| {
                Error::labels("only the classes that were declared", format!("'{name}'"))
            })
        };
        let places = table.names.iter().map(place).collect::<Result<Vec<usize>>>()?;
        self.columns = Some(body.support.columns());
        self.seen = model.training.as_ref().map_or(0, |training| training.rows);
        let d = self.names.len();
        let loss = self.parameters.machine.loss(d);
        let Some(state) = &mut self.state else { return Ok(()) };
        let classes: Vec<usize> = table
            .support
            .iter()
            .enumerate()
            .flat_map(|(class, &count)| std::iter::repeat_n(class, count))
            .collect();
        for start in (0..classes.len()).step_by(GROUP) {
            let rows: Vec<usize> = (start..(start + GROUP).min(classes.len())).collect();
            let mut group = state.look_ahead(&body.support, &rows)?;
            for (k, &s) in rows.iter().enumerate() {
                let class = classes[s];
                let mut b = vec![0.0; d];
                for (c, function) in body.functions.iter().enumerate() {
                    let part = function.parts.iter().find(|part| part.support.contains(&s));
                    b[places[c]] =
                        part.map_or(0.0, |part| part.coefficients[s - part.support.start]);
                }
                let alpha = loss.variables(places[class], &b, self.parameters.c);
                let upper = alpha.iter().copied().fold(self.parameters.c, f64::max);
                state.adopt(&mut group, k, places[class] as u32, upper, &alpha);
            }
        }
        state.rescore()
    }

    /// Learns from the rows of `data`, each once, in their order.
    ///
    /// Classes not seen before join unless the machine was given a list of all classes. Until there
    /// are two classes, rows wait.
    ///
    /// # Errors
    /// Labels outside the declared classes, values that are not finite, another number of features
    /// than before (sparse rows may bring further features).
    pub fn partial_fit(&mut self, data: &Dataset) -> Result<()> {
        self.take(data, || None)
    }

    /// As [`partial_fit`](Self::partial_fit), until the context asks to stop: rows that were not
    /// learnt by then are left out, and the status says why. It stands in the model until further
    /// rows are learnt.
    ///
    /// # Errors
    /// As [`partial_fit`](Self::partial_fit).
    pub fn partial_fit_in_time(
        &mut self,
        data: &Dataset,
        context: &Context,
    ) -> Result<Option<Status>> {
        self.take(data, || context.stop_request())?;
        Ok(self.stopped)
    }

    /// Learns from rows until it is to stop.
    fn take(&mut self, data: &Dataset, stop: impl Fn() -> Option<Status>) -> Result<()> {
        data.features().validate()?;
        let started = Instant::now();
        let widened;
        let data = match self.columns {
            Some(columns) if columns != data.columns() => {
                if !data.features().is_sparse() {
                    return Err(Error::length("features", columns, data.columns()));
                }
                let columns = columns.max(data.columns());
                self.widen(columns)?;
                let features = data.features().clone().resized_columns(columns);
                widened = data.clone().with_features(features)?;
                &widened
            }
            _ => data,
        };
        self.columns = Some(data.columns());
        self.meet(data)?;
        self.stopped = None;
        self.seen += data.rows();
        if self.state.is_none() {
            self.waiting.push(data.clone());
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut left = waiting.iter().chain([data]).map(Dataset::rows).sum::<usize>();
        for data in waiting.iter().chain([data]) {
            left -= self.learn_rows(data, &stop)?;
        }
        self.seen -= left;
        self.seconds += started.elapsed().as_secs_f64();
        Ok(())
    }

    /// Learns the rows of a table until it is to stop; how many there were.
    fn learn_rows(&mut self, data: &Dataset, stop: impl Fn() -> Option<Status>) -> Result<usize> {
        let codes = self.codes(data)?;
        let upper = self.upper(data, &codes);
        let rows: Vec<usize> = (0..data.rows()).collect();
        for rows in rows.chunks(GROUP) {
            let Some(mut group) = self.look_ahead(data.features(), rows)? else { continue };
            for (k, &row) in rows.iter().enumerate() {
                self.stopped = self.stopped.or_else(&stop);
                if self.stopped.is_some() {
                    return Ok(row);
                }
                self.learn(&mut group, k, codes[row], upper[row], &stop)?;
            }
        }
        Ok(rows.len())
    }

    /// Gives everything kept `columns` features, zero beyond those it had.
    fn widen(&mut self, columns: usize) -> Result<()> {
        for data in &mut self.waiting {
            let features = data.features().clone().resized_columns(columns);
            *data = data.clone().with_features(features)?;
        }
        match &mut self.state {
            Some(state) => state.store.widen(columns),
            None => Ok(()),
        }
    }

    /// Takes up the classes of `data` that are new.
    pub(super) fn meet(&mut self, data: &Dataset) -> Result<()> {
        let found = data.labels().classes(ClassOrder::Sorted)?;
        for name in found.names {
            let same = |other: &Label| other.to_string() == name.to_string();
            if self.names.iter().any(same) {
                continue;
            }
            if self.parameters.classes.is_some() {
                return Err(Error::labels(
                    "only the classes that were declared",
                    format!("'{name}'"),
                ));
            }
            self.names.push(name);
            let d = self.names.len();
            match &mut self.state {
                Some(state) => state.grow(self.parameters.machine.loss(d), d),
                None if d == 2 => self.begin(),
                None => {}
            }
        }
        Ok(())
    }

    pub(super) fn codes(&self, data: &Dataset) -> Result<Vec<u32>> {
        Ok(declared_classes(data.labels(), Some(&self.names), ClassOrder::Sorted)?.codes)
    }

    /// Finds the factors of the classes, from the classes of all rows.
    pub(super) fn weigh_classes(&mut self, codes: &[u32]) -> Result<()> {
        let mut counts = vec![0.0; self.names.len()];
        codes.iter().for_each(|&code| counts[code as usize] += 1.0);
        self.factors = self.parameters.class_weights.of_counts(&self.names, &counts)?;
        Ok(())
    }

    /// The factor of a class: of a stream by its name, since classes may come late.
    fn factor(&self, code: u32) -> f64 {
        let class = code as usize;
        match (self.factors.get(class), &self.parameters.class_weights) {
            (Some(factor), _) => *factor,
            (None, ClassWeights::Given(given)) => {
                let name = self.names[class].to_string();
                let own = given.iter().find(|(label, _)| label.to_string() == name);
                own.map_or(1.0, |(_, factor)| *factor)
            }
            _ => 1.0,
        }
    }

    pub(super) fn upper(&self, data: &Dataset, codes: &[u32]) -> Vec<f64> {
        let bound =
            |(row, &code): (usize, &u32)| self.parameters.c * self.factor(code) * data.weight(row);
        codes.iter().enumerate().map(bound).collect()
    }

    /// Kernel values of the named rows of a table, which are to be learnt from next; none before
    /// there are two classes.
    pub(super) fn look_ahead(
        &mut self,
        table: &Matrix,
        rows: &[usize],
    ) -> Result<Option<PrefetchedRows<Value>>> {
        self.state.as_mut().map(|state| state.look_ahead(table, rows)).transpose()
    }

    /// A fresh example, row `k` of a group, then old steps as the schedule says unless a stop is asked for;
    /// the slot it took, if any.
    pub(super) fn learn(
        &mut self,
        group: &mut PrefetchedRows<Value>,
        k: usize,
        code: u32,
        upper: f64,
        stop: &impl Fn() -> Option<Status>,
    ) -> Result<Option<usize>> {
        let parameters = &self.parameters;
        let Some(state) = &mut self.state else { return Ok(None) };
        let slot = state
            .timed(parameters, Step::New, |state| state.fresh(parameters, group, k, code, upper))?;
        match parameters.schedule {
            OnlineSchedule::Fixed { old, supports } => {
                for (count, pool) in [(old, Pool::Patterns), (supports, Pool::Supports)] {
                    for _ in (0..count).take_while(|_| stop().is_none()) {
                        state.old(parameters, pool)?;
                    }
                }
            }
            OnlineSchedule::Adaptive => {
                for _ in (0..MOST_OLD_STEPS).take_while(|_| stop().is_none()) {
                    let step = match parameters.strategy {
                        WorkingSetStrategy::Blocks => {
                            state.rates.draw_by_time(&mut state.generator)
                        }
                        _ => state.rates.draw(&mut state.generator),
                    };
                    let pool = match step {
                        Step::New => break,
                        Step::Old => Pool::Patterns,
                        Step::Supports => Pool::Supports,
                    };
                    let tries = match parameters.strategy {
                        WorkingSetStrategy::Blocks => 1,
                        _ => state.patterns.classes(),
                    };
                    let tries = parameters.multiplier.unwrap_or(tries);
                    state.timed(parameters, step, |state| {
                        let mut gain = 0.0;
                        for _ in (0..tries).take_while(|_| stop().is_none()) {
                            let more = state.old(parameters, pool)?;
                            gain += more;
                            let done =
                                parameters.strategy == WorkingSetStrategy::All && more == 0.0;
                            if done {
                                break;
                            }
                        }
                        Ok((None, gain))
                    })?;
                }
            }
        }
        Ok(slot.filter(|&slot| state.patterns.is_support(slot)))
    }

    /// Whether a slot still holds the example that once took it is up to the caller; this tells
    /// whether it holds any.
    pub(super) fn holds(&self, slot: usize) -> bool {
        self.state.as_ref().is_some_and(|state| state.patterns.upper(slot) > 0.0)
    }

    /// Old steps, from fresh scores on, until no kept example violates the optimality conditions by
    /// `tol`, or a limit ends it.
    pub(super) fn finish(&mut self, context: &Context) -> Result<Option<Status>> {
        let mut parameters = self.parameters.clone();
        if parameters.strategy != WorkingSetStrategy::LaRank {
            parameters.strategy = WorkingSetStrategy::All;
        }
        let Some(state) = &mut self.state else { return Ok(None) };
        state.rescore()?;
        loop {
            if let Some(status) = context.stop_request() {
                return Ok(Some(status));
            }
            if parameters.strategy == WorkingSetStrategy::LaRank {
                let worst = (0..state.patterns.len())
                    .map(|i| (state.patterns.violation_at(i), i))
                    .fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a });
                if worst.0 < parameters.tol {
                    return Ok(None);
                }
                let (gain, changes) = state.patterns.solve_labels(worst.1, Pool::Patterns, 0.0);
                state.apply(changes)?;
                if gain <= 0.0 {
                    return Ok(None);
                }
            } else if state.old(&parameters, Pool::Patterns)? <= 0.0 {
                return Ok(None);
            }
        }
    }

    /// The largest violation and Σ U · loss over rows of `data` that no slot holds; `None` when a
    /// limit or a request ends it.
    pub(super) fn sweep(
        &mut self,
        data: &Dataset,
        codes: &[u32],
        held: &[Option<usize>],
        context: &Context,
    ) -> Result<Option<(f64, f64)>> {
        let upper = self.upper(data, codes);
        let Some(state) = &mut self.state else { return Ok(Some((0.0, 0.0))) };
        let (mut worst, mut cost) = (0.0_f64, 0.0);
        for start in (0..data.rows()).step_by(GROUP) {
            if context.stop_request().is_some() {
                return Ok(None);
            }
            let range = start..(start + GROUP).min(data.rows());
            let rows = state.store.query(data.features(), range.clone())?;
            let counts = |row: usize| held[row].is_none() && upper[row] > 0.0;
            for (row, values) in range.zip(&rows).filter(|(row, _)| counts(*row)) {
                let score = state.score(values);
                let (y, loss) = (codes[row] as usize, *state.patterns.loss());
                let (mut total, mut largest) = (0.0, 0.0_f64);
                for p in (0..state.patterns.classes()).filter(|&p| loss.uses(y, p)) {
                    let g = state.patterns.gradient_of(y, p, &score);
                    total += g.max(0.0);
                    largest = largest.max(g);
                }
                worst = worst.max(largest);
                let single = loss.slacks(state.patterns.classes()) == 1;
                cost += upper[row] * if single { largest } else { total };
            }
        }
        Ok(Some((worst, cost)))
    }

    /// The largest violation among the kept examples.
    pub(super) fn violation(&self) -> f64 {
        self.state.as_ref().map_or(0.0, |state| state.patterns.violation())
    }

    /// Dual objective, and duality gap over the kept examples.
    pub(super) fn objective_and_gap(&self) -> (f64, f64) {
        self.state.as_ref().map_or((0.0, 0.0), |state| state.patterns.objective_and_gap())
    }

    /// Dual objective reached.
    pub fn dual(&self) -> f64 {
        self.state.as_ref().map_or(0.0, |state| state.patterns.dual())
    }

    /// Examples kept.
    pub fn support_count(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.live.len())
    }

    /// Kernel values computed so far.
    pub fn kernel_values(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.store.computed())
    }

    /// The model as it stands. Its training report covers the examples that are kept; a model of one
    /// class alone predicts it.
    ///
    /// # Errors
    /// [`Error::Empty`] before any row was seen.
    pub fn model(&self) -> Result<Model> {
        let status = self.stopped.unwrap_or(Status::IterationLimit);
        self.model_with(0.0, self.violation(), status)
    }

    /// The model, given what a sweep found about the examples that are not kept.
    pub(super) fn model_with(&self, cost: f64, violation: f64, status: Status) -> Result<Model> {
        let columns = self.columns.ok_or(Error::Empty { what: "row" })?;
        let parameters = &self.parameters;
        let d = self.names.len();
        let mut own = Vec::new();
        let mut codes = Vec::new();
        let mut coefficients = Vec::new();
        let mut vectors = None;
        let (mut dual, mut gap) = (0.0, 0.0);
        if let Some(state) = &self.state {
            let mut slots = state.live.clone();
            slots.sort_unstable();
            vectors = state.store.vectors(&slots)?;
            for &slot in &slots {
                codes.push(state.patterns.code(slot) as u32);
                state.patterns.coefficients(slot, &mut own);
                let mean = own.get(d).copied().unwrap_or(0.0);
                coefficients.extend(own[..d].iter().map(|b| b - mean));
            }
            (dual, gap) = state.patterns.objective_and_gap();
        }
        let state = self.state.as_ref();
        let outcome = Outcome {
            status,
            primal: dual + gap + cost,
            dual,
            violation,
            iterations: state.map_or(0, |state| state.steps),
            blocks: self.seen as u64,
            kernel_rows: self.kernel_values() / (self.seen.max(1) as u64),
        };
        let vectors = match vectors {
            Some(vectors) => vectors,
            None => Matrix::DenseF64(Dense::new(0, columns, Vec::new())?),
        };
        let mut order: Vec<usize> = (0..codes.len()).collect();
        order.sort_by_key(|&i| codes[i]);
        let sorted: Vec<f64> =
            order.iter().flat_map(|&i| coefficients[i * d..(i + 1) * d].to_vec()).collect();
        let codes: Vec<u32> = order.iter().map(|&i| codes[i]).collect();
        check_outcome(&parameters.kernel, &outcome)?;
        let mut model = class_model(
            MachineKind::AllInOne(parameters.machine),
            &parameters.kernel,
            crate::machine::Precision::F32,
            &vectors,
            &self.names,
            &order,
            &codes,
            &sorted,
            &vec![0.0; d],
        );
        if let Some(expansion) = model.expansion_mut() {
            expansion.support_rows = Vec::new();
        }
        model.training = Some(Training {
            outcome,
            rows: self.seen,
            seconds: self.seconds,
            parameters: vec![
                ("c".into(), parameters.c.into()),
                ("tol".into(), parameters.tol.into()),
                ("online".into(), parameters.strategy.to_string().into()),
                ("removed for the budget".into(), state.map_or(0, |s| s.removed).into()),
            ],
            specification: None,
        });
        Ok(model)
    }

    /// Notes what was learnt from outside of [`partial_fit`](Self::partial_fit).
    pub(super) fn note(&mut self, data: &Dataset, seconds: f64) {
        self.seen = data.rows();
        self.columns = Some(data.columns());
        self.seconds = seconds;
    }
}
