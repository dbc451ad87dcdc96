//! Which sums: the functions of a linear machine as the sites see them.

use super::super::message::MAX_DOCUMENT;
use super::descent::Limits;
use crate::data::{Census, Classes, Dataset, Label, memory};
use crate::error::{Error, Result};
use crate::machine::specification::Value;
use crate::machine::{
    Bias, LinearLoss, LinearMulticlass, LinearSolver, LinearSvc, LinearSvr, MachineKind, Model,
    Penalty, Specification, Training, linear_model, newton_tolerance_at,
};
use crate::outcome::Outcome;
use crate::solver::linear::RowLoss;

/// Vectors as long as the weights that a training holds at once, or nearly so.
const VECTORS: u128 = 16;

/// Steps unless the user sets a limit.
const MOST_STEPS: u64 = 1000;

/// A linear machine and the classes of all sites.
pub(in crate::operation::distribute) struct LinearTask {
    kind: MachineKind,
    pub(super) loss: RowLoss,
    pub(super) bias: Option<f64>,
    c: f64,
    tol: Option<f64>,
    gap: f64,
    steps: u64,
    classes: Option<ClassFactors>,
    columns: usize,
    rows: usize,
    parameters: Vec<(String, Value)>,
}

struct ClassFactors {
    svc: LinearSvc,
    names: Vec<Label>,
    factors: Vec<f64>,
    /// Rows of every class.
    rows: Vec<f64>,
}

impl LinearTask {
    /// The machine of a specification over the rows that were counted.
    ///
    /// # Errors
    /// [`Error::Parameter`] for what only training at one place offers; [`Error::TooLarge`] for weights that no
    /// message or memory holds.
    pub(in crate::operation::distribute) fn new(
        specification: &Specification,
        census: &Census,
    ) -> Result<Self> {
        let task = match specification.kind() {
            MachineKind::LinearSvr => Self::regressor(&specification.linear_svr()?, census)?,
            _ => Self::classifier(specification.linear_svc()?, census)?,
        };
        let bytes = 8 * task.width() as u128;
        let what = || format!("a message with the weights of {} features", task.columns);
        if bytes > MAX_DOCUMENT as u128 {
            return Err(Error::TooLarge { what: what(), bytes, limit: MAX_DOCUMENT as u128 });
        }
        // Those of the descent, of the sites, and what is under way.
        memory::check(what, VECTORS * bytes)?;
        Ok(task)
    }

    fn classifier(svc: LinearSvc, census: &Census) -> Result<Self> {
        Error::check_positive("c", svc.c)?;
        let (kind, loss) = match svc.loss {
            LinearLoss::Hinge => return Err(not_smooth("squared-hinge or logistic", "hinge")),
            LinearLoss::SquaredHinge => (MachineKind::LinearSvc, RowLoss::SquaredHinge),
            LinearLoss::Logistic => (MachineKind::Logistic, RowLoss::Logistic),
        };
        if svc.penalty == Penalty::L1 {
            return Err(Error::parameter("penalty", "l2 with rows at several sites", "l1"));
        }
        if svc.multiclass == LinearMulticlass::CrammerSinger {
            let found = svc.multiclass;
            return Err(Error::parameter("multiclass", "ovr with rows at several sites", found));
        }
        let bias = feature(svc.bias, svc.solver)?;
        let names = census.classes(&crate::data::Labels::None, svc.class_order)?.names;
        crate::data::check_two_classes(&names)?;
        if let Some(name) = census.class_without_weight(&names) {
            let found = format!("none in class '{name}'");
            return Err(Error::labels("a row of positive weight in every class", found));
        }
        let rows = census.class_rows(&names);
        let factors = svc.class_weights.of_counts(&names, &rows)?;
        let parameters = vec![
            ("c".into(), svc.c.into()),
            ("loss".into(), svc.loss.to_string().into()),
            ("bias".into(), svc.bias.into()),
        ];
        Ok(Self {
            kind,
            loss,
            bias,
            c: svc.c,
            tol: svc.options.tol,
            gap: svc.options.gap,
            steps: svc.options.max_iterations.unwrap_or(MOST_STEPS),
            classes: Some(ClassFactors { svc, names, factors, rows }),
            columns: census.columns(),
            rows: census.rows(),
            parameters,
        })
    }

    fn regressor(svr: &LinearSvr, census: &Census) -> Result<Self> {
        Error::check_positive("c", svr.c)?;
        Error::check_not_negative("epsilon", svr.epsilon)?;
        if !svr.squared {
            return Err(not_smooth("squared-hinge, which is the squared tube", "hinge"));
        }
        Ok(Self {
            kind: MachineKind::LinearSvr,
            loss: RowLoss::SquaredTube(svr.epsilon),
            bias: feature(svr.bias, svr.solver)?,
            c: svr.c,
            tol: svr.options.tol,
            gap: svr.options.gap,
            steps: svr.options.max_iterations.unwrap_or(MOST_STEPS),
            classes: None,
            columns: census.columns(),
            rows: census.rows(),
            parameters: vec![
                ("c".into(), svr.c.into()),
                ("epsilon".into(), svr.epsilon.into()),
                ("bias".into(), svr.bias.into()),
            ],
        })
    }

    /// Text that identifies the task.
    pub(in crate::operation::distribute) fn description(&self) -> String {
        let classes = self.classes.as_ref().map(|c| (&c.names, &c.factors));
        let (kind, loss, columns, rows) = (self.kind, self.loss, self.columns, self.rows);
        format!("{kind} {loss:?} {:?} {columns} {rows} {classes:?}", self.parameters)
    }

    /// Number of functions: one for two classes, else one for each.
    pub(super) fn functions(&self) -> usize {
        match &self.classes {
            Some(classes) if classes.names.len() > 2 => classes.names.len(),
            _ => 1,
        }
    }

    /// Number of weights of a function.
    pub(super) fn width(&self) -> usize {
        self.columns + usize::from(self.bias.is_some())
    }

    /// When the descent of a function ends.
    pub(super) fn limits(&self, function: usize) -> Limits {
        let share = self.classes.as_ref().map_or(1.0, |classes| {
            let all: f64 = classes.rows.iter().sum();
            let own = classes.rows[function];
            own.min(all - own).max(1.0) / all.max(1.0)
        });
        let tol = newton_tolerance_at(self.loss, self.tol, share);
        Limits { tol, gap: self.gap, steps: self.steps }
    }

    /// The class of every row of a site, where there are classes.
    pub(super) fn codes(&self, data: &Dataset, census: &Census) -> Result<Vec<u32>> {
        match &self.classes {
            Some(classes) => {
                let Classes { codes, .. } =
                    census.classes(data.labels(), classes.svc.class_order)?;
                Ok(codes)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Targets and costs of a function on the rows of a site: rows of the class itself also bear the
    /// weight of the class, as in LIBLINEAR.
    pub(super) fn problem(
        &self,
        function: usize,
        data: &Dataset,
        codes: &[u32],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let cost = |row: usize| self.c * data.weight(row);
        let Some(classes) = &self.classes else {
            let targets = if data.rows() == 0 { Vec::new() } else { data.labels().values()? };
            return Ok((targets, (0..data.rows()).map(cost).collect()));
        };
        let own = |row: usize| codes[row] as usize == function;
        let factor = |row: usize| match (own(row), self.functions()) {
            (true, _) => classes.factors[function],
            (false, 1) => classes.factors[1],
            (false, _) => 1.0,
        };
        let rows = 0..data.rows();
        let targets = rows.clone().map(|row| if own(row) { 1.0 } else { -1.0 }).collect();
        Ok((targets, rows.map(|row| cost(row) * factor(row)).collect()))
    }

    /// The model of the weights of all functions.
    pub(super) fn model(
        &self,
        weights: &[Vec<f64>],
        outcome: Outcome,
        seconds: f64,
    ) -> Result<Model> {
        let columns = self.columns;
        let all = weights.iter().flat_map(|w| w[..columns].to_vec()).collect();
        let constant = |w: &Vec<f64>| self.bias.map_or(0.0, |bias| bias * w[columns]);
        let constants: Vec<f64> = weights.iter().map(constant).collect();
        let names = self.classes.as_ref().map(|classes| classes.names.clone());
        let mut model = linear_model(self.kind, columns, all, &constants, names)?;
        model.training = Some(Training {
            outcome,
            rows: self.rows,
            seconds,
            parameters: self.parameters.clone(),
            specification: None,
        });
        Ok(model)
    }
}

fn not_smooth(expected: &str, found: &str) -> Error {
    Error::parameter("loss", format!("{expected} with rows at several sites"), found)
}

fn feature(bias: Bias, solver: LinearSolver) -> Result<Option<f64>> {
    if !matches!(solver, LinearSolver::Auto | LinearSolver::Newton) {
        return Err(Error::parameter("solver", "auto or newton with several sites", solver));
    }
    match bias {
        Bias::None => Ok(None),
        Bias::Appended(value) => {
            Error::check_positive("bias", value)?;
            Ok(Some(value))
        }
        Bias::Free => Err(Error::parameter("bias", "none or a number with several sites", "free")),
    }
}
