//! What machines have in common: they learn a model from rows of a data set.
//!
//! [`Machine`] is what every machine can do. What only some can do is a trait of its own that a caller
//! asks for: [`WarmStart`], [`PenaltyPath`] and [`SharedKernel`].

use std::borrow::Cow;

use super::warm_start::UsableStart;
use super::{LocalDuals, Model, PathStarts, Paths, Precision, Start, Svc};
use crate::context::Context;
use crate::data::{Census, ClassOrder, Classes, Dataset, Dense, Label, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// The rows of a data set that a machine learns from.
#[derive(Clone, Copy, Debug)]
pub struct FitInput<'a> {
    data: &'a Dataset,
    rows: Option<&'a [usize]>,
    /// Of which rows these are a part, if they are.
    census: Option<&'a Census>,
    /// The solution of a related problem to start from, if there is one.
    start: Option<Start<'a>>,
}

/// A machine with its parameters set, ready to learn.
pub trait Machine: Send + Sync {
    /// Learns a model from the rows of `input`.
    ///
    /// The `support_rows` of the model are rows of the whole data set, and so are the columns that
    /// a model of a precomputed kernel expects of its queries.
    ///
    /// # Errors
    /// Bad parameters, data that does not suit the machine, or an interruption before a model
    /// existed. Running out of time or iterations is no error but a
    /// [`Status`](crate::solver::Status) of the model.
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model>;

    /// Learns a model from all rows of `data`.
    ///
    /// # Errors
    /// As [`fit_with`](Self::fit_with).
    fn fit(&self, data: &Dataset, context: &Context) -> Result<Model> {
        self.fit_with(FitInput::new(data), context)
    }

    /// The kernel it will use, if it uses one.
    fn kernel(&self) -> Option<&Kernel> {
        None
    }

    /// Number format of its kernel values.
    fn precision(&self) -> Precision {
        Precision::default()
    }

    /// The label that marks rows without one, if it learns from such rows; they are never held out.
    fn unlabelled(&self) -> Option<&Label> {
        None
    }

    /// Training from the solution of a related problem, if the machine can.
    fn warm_start(&self) -> Option<&dyn WarmStart> {
        None
    }

    /// Training for many penalties over one kernel matrix, if the machine can.
    fn penalty_path(&self) -> Option<&dyn PenaltyPath> {
        None
    }

    /// Its dual problems over the rows of `input` together, for trainings whose rows are at several
    /// places; `None` for machines without such problems.
    fn local_duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        let _ = input;
        None
    }

    /// The machine with kernel values given, if it can use them.
    fn shared_kernel(&self) -> Option<&dyn SharedKernel> {
        None
    }
}

/// A machine that can start from the solution of a related problem.
pub trait WarmStart: Machine {
    /// Learns as [`fit_with`](Machine::fit_with) does, starting from `start`: a solution over rows
    /// of the same data set with other parameters, weights or labels.
    ///
    /// The optimum is the same whatever the start; a near one only saves time. A model of another
    /// machine or of other classes is no start, and the training begins as without one.
    ///
    /// # Errors
    /// As [`fit_with`](Machine::fit_with).
    fn fit_from(&self, input: FitInput<'_>, start: Start<'_>, context: &Context) -> Result<Model>;
}

/// A machine that can be trained for many penalties over one kernel matrix.
pub trait PenaltyPath: Machine {
    /// Its own penalty C.
    fn penalty(&self) -> f64;

    /// The tolerance of its optimality conditions.
    fn tolerance(&self) -> f64;

    /// It without its penalty: machines for which this is equal share a path.
    fn without_penalty(&self) -> PathMachine;

    /// How many kernel values, as a multiple of those among all rows of `data`, its paths over so
    /// many penalties compute by themselves; `None` where reading a table of them is better.
    fn values_computed(&self, penalties: usize, data: &Dataset) -> Option<f64>;

    /// Trains this machine with each of `penalties` (ascending) in the place of its own on each of
    /// `parts`, the rows of `data` to learn from; `held_out` are rows outside each part that will
    /// be predicted ([`Paths::winners`]). `earlier`, of the same machine with another kernel on the
    /// same parts, is where it starts from.
    ///
    /// `None` when that is not possible together: a class without rows in some part. When it is
    /// stopped, the paths hold the penalties that were finished ([`Paths::finished`]).
    ///
    /// # Errors
    /// As [`Machine::fit_with`].
    fn fit_paths<'a>(
        &'a self,
        penalties: &[f64],
        data: &'a Dataset,
        parts: &'a [Vec<usize>],
        held_out: &[Vec<usize>],
        earlier: Option<&PathStarts>,
        context: &Context,
    ) -> Result<Option<Paths<'a>>>;
}

/// A machine with a [`PenaltyPath`], its penalty set to 1.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PathMachine {
    /// C-SVC.
    Svc(Svc),
}

/// A machine that can use kernel values computed elsewhere: a caller that trains it often computes those
/// of a data set once and gives them as a precomputed kernel.
pub trait SharedKernel: Machine {
    /// The same machine with another kernel.
    fn with_kernel(&self, kernel: Kernel) -> Box<dyn Machine>;
}

impl<'a> FitInput<'a> {
    /// All rows of a data set.
    pub fn new(data: &'a Dataset) -> Self {
        Self { data, rows: None, census: None, start: None }
    }

    /// All rows of a data set, which are a part of those that were counted.
    pub(crate) fn of_part(data: &'a Dataset, census: &'a Census) -> Self {
        Self { census: Some(census), ..Self::new(data) }
    }

    /// The rows of a data set named by `rows`. Its features are taken to have passed
    /// [`Matrix::validate`], which would otherwise be repeated for every subset.
    ///
    /// # Errors
    /// [`Error::Empty`] for no row, [`Error::Length`] for a row that the data set does not have.
    pub fn with_rows(data: &'a Dataset, rows: &'a [usize]) -> Result<Self> {
        match rows.iter().max() {
            None => Err(Error::Empty { what: "row" }),
            Some(&last) if last >= data.rows() => {
                Err(Error::length("rows of the data set", last + 1, data.rows()))
            }
            Some(_) => Ok(Self { rows: Some(rows), ..Self::new(data) }),
        }
    }

    /// The whole data set.
    pub fn data(&self) -> &'a Dataset {
        self.data
    }

    /// Numbers of the rows in the data set.
    pub fn rows(&self) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let all = 0..self.rows.map_or(self.data.rows(), <[usize]>::len);
        let rows = self.rows;
        all.map(move |i| rows.map_or(i, |rows| rows[i]))
    }

    /// The rows as a data set of their own.
    pub fn selected(&self) -> Cow<'a, Dataset> {
        match self.rows {
            Some(rows) => Cow::Owned(self.data.select_rows(rows)),
            None => Cow::Borrowed(self.data),
        }
    }

    /// The solution of a related problem to start from.
    pub(in crate::machine) fn start(&self) -> Option<Start<'a>> {
        self.start
    }

    /// The start as far as a training of dual variables can use it.
    pub(in crate::machine) fn usable_start(&self) -> UsableStart<'a> {
        UsableStart::new(self.start)
    }

    /// Whether the rows are a part of a data set.
    pub(in crate::machine) fn is_part(&self) -> bool {
        self.rows.is_some()
    }

    /// Learns from the rows as a data set of their own, for machines that use a `kernel` or none.
    pub(in crate::machine) fn fit_selected(
        &self,
        kernel: Option<&Kernel>,
        fit: impl FnOnce(&Dataset) -> Result<Model>,
    ) -> Result<Model> {
        let Some(rows) = self.rows else { return fit(self.data) };
        let mut data = self.data.select_rows(rows);
        if kernel == Some(&Kernel::Precomputed) {
            data = data.with_features(square(self.data.features(), rows)?)?;
        }
        let mut model = fit(&data)?;
        model.body.get_mut().rename_rows(rows);
        Ok(model)
    }

    /// Checks that all features are finite, unless a subset was chosen from checked ones.
    pub(in crate::machine) fn validate(&self) -> Result<()> {
        match self.rows {
            Some(_) => Ok(()),
            None if self.census.is_some() && self.data.rows() == 0 => Ok(()),
            None => self.data.features().validate(),
        }
    }

    /// What was counted of all rows, where these are a part of them.
    pub(in crate::machine) fn census(&self) -> Option<&'a Census> {
        self.census
    }

    /// The classes, those of other parts included.
    pub(in crate::machine) fn classes(&self, order: ClassOrder) -> Result<Classes> {
        match self.census {
            Some(census) => census.classes(&self.labels(), order),
            None => self.labels().classes(order),
        }
    }

    /// Number of rows that the training is about, those of other parts included.
    pub(in crate::machine) fn all_rows(&self) -> usize {
        self.census.map_or(self.data.rows(), Census::rows)
    }

    /// Labels of the rows.
    pub(in crate::machine) fn labels(&self) -> Cow<'a, Labels> {
        match self.rows {
            Some(rows) => Cow::Owned(self.data.labels().select(rows)),
            None => Cow::Borrowed(self.data.labels()),
        }
    }

    /// Weight of a row of the data set.
    pub(in crate::machine) fn weight(&self, row: usize) -> f64 {
        self.data.weight(row)
    }
}

/// The rows and columns `members` of a table of kernel values.
fn square(table: &Matrix, members: &[usize]) -> Result<Matrix> {
    if table.columns() != table.rows() {
        return Err(Error::kernel(
            "precomputed",
            format!("one column for each of {} rows", table.rows()),
            format!("{} columns", table.columns()),
        ));
    }
    let mut row_values = vec![0.0; table.columns()];
    let mut values = Vec::with_capacity(members.len() * members.len());
    for &row in members {
        table.copy_row(row, &mut row_values);
        values.extend(members.iter().map(|&column| row_values[column]));
    }
    Dense::new(members.len(), members.len(), values).map(Matrix::DenseF64)
}

/// A machine of dual variables that belong to training rows: it learns from any rows and any start,
/// with any kernel.
pub(in crate::machine) trait KernelMachine:
    Clone + Send + Sync + 'static
{
    /// Learns from rows, starting from an earlier solution if the input has one.
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model>;

    /// The kernel and the number format of its values.
    fn kernel_and_precision(&self) -> (&Kernel, Precision);

    /// The same machine with another kernel.
    fn replace_kernel(&self, kernel: Kernel) -> Self;

    /// Whether an earlier solution can be a start; see [`Machine::warm_start`].
    fn starts_warm(&self) -> bool {
        true
    }

    /// Whether given kernel values are of use; see [`Machine::shared_kernel`].
    fn shares_kernel(&self) -> bool {
        true
    }

    /// See [`Machine::local_duals`].
    fn duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        let _ = input;
        None
    }

    /// See [`Machine::penalty_path`].
    fn as_penalty_path(&self) -> Option<&dyn PenaltyPath> {
        None
    }
}

/// What [`KernelMachine`] asks of the fields `kernel` and `options` of a machine.
macro_rules! kernel_fields {
    () => {
        fn kernel_and_precision(&self) -> (&$crate::kernel::Kernel, $crate::machine::Precision) {
            (&self.kernel, self.options.precision)
        }

        fn replace_kernel(&self, kernel: $crate::kernel::Kernel) -> Self {
            Self { kernel, ..self.clone() }
        }
    };
}

pub(in crate::machine) use kernel_fields;

impl<M: KernelMachine> Machine for M {
    fn fit_with(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.learn(input, context)
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(self.kernel_and_precision().0)
    }

    fn precision(&self) -> Precision {
        self.kernel_and_precision().1
    }

    fn warm_start(&self) -> Option<&dyn WarmStart> {
        self.starts_warm().then_some(self as &dyn WarmStart)
    }

    fn penalty_path(&self) -> Option<&dyn PenaltyPath> {
        self.as_penalty_path()
    }

    fn local_duals(&self, input: &FitInput<'_>) -> Option<Result<LocalDuals>> {
        self.duals(input)
    }

    fn shared_kernel(&self) -> Option<&dyn SharedKernel> {
        self.shares_kernel().then_some(self as &dyn SharedKernel)
    }
}

impl<M: KernelMachine> WarmStart for M {
    fn fit_from(&self, input: FitInput<'_>, start: Start<'_>, context: &Context) -> Result<Model> {
        self.learn(FitInput { start: Some(start), ..input }, context)
    }
}

impl<M: KernelMachine> SharedKernel for M {
    fn with_kernel(&self, kernel: Kernel) -> Box<dyn Machine> {
        Box::new(self.replace_kernel(kernel))
    }
}
