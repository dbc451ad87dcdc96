//! A site of a linear training: it answers requests about its rows with sums.

use super::machine::LinearTask;
use super::{Request, Response, SumRequest};
use crate::context::Context;
use crate::data::{Census, Dataset, Matrix};
use crate::error::{Error, Result};
use crate::operation::distribute::message::{decode, encode};
use crate::solver::linear::rows::{DenseRows, LinearRows, SparseRows};
use crate::solver::linear::{Problem, Products, Table, WeightedRows, conjugate, curvature};

/// One participant with rows.
pub(in crate::operation::distribute) struct SumsSite {
    task: LinearTask,
    data: Dataset,
    codes: Vec<u32>,
    point: Option<Point>,
}

/// SumRequest the site knows of its rows at the last weights.
struct Point {
    /// Of the request that brought them.
    serial: u32,
    function: u32,
    weights: Vec<f64>,
    targets: Vec<f64>,
    costs: Vec<f64>,
    slopes: Vec<f64>,
    curvatures: WeightedRows,
    /// Loss and gradient.
    loss: f64,
    gradient: Vec<f64>,
}

impl SumsSite {
    pub(in crate::operation::distribute) fn new(
        task: LinearTask,
        data: Dataset,
        census: &Census,
    ) -> Result<Self> {
        if data.rows() > 0 {
            data.features().validate()?;
        }
        let codes = task.codes(&data, census)?;
        Ok(Self { task, data, codes, point: None })
    }

    /// Number of rows.
    pub(in crate::operation::distribute) fn rows(&self) -> usize {
        self.data.rows()
    }

    /// Answers the request in some bytes.
    ///
    /// # Errors
    /// [`Error::Message`] for other bytes.
    pub(in crate::operation::distribute) fn receive(
        &mut self,
        bytes: &[u8],
        fingerprint: u64,
        context: &Context,
    ) -> Result<Vec<u8>> {
        let response = self.response(decode(bytes, fingerprint)?, context)?;
        encode(&response, fingerprint)
    }

    /// Answers.
    ///
    /// # Errors
    /// [`Error::Message`] for a request of other functions or lengths.
    fn response(&mut self, request: Request, context: &Context) -> Result<Response> {
        let Request { serial, function, point, weights, what } = request;
        let direction = match &what {
            SumRequest::Point => None,
            SumRequest::Product(direction) | SumRequest::Along(direction, _) => Some(direction),
        };
        let width = self.task.width();
        let lengths = weights.iter().chain(direction).map(Vec::len);
        let wrong = lengths.into_iter().find(|length| *length != width);
        if let Some(found) = wrong {
            return Err(Error::message(format!("{width} weights"), format!("{found}")));
        }
        if function as usize >= self.task.functions() {
            let expected = format!("a function below {}", self.task.functions());
            return Err(Error::message(expected, function));
        }
        if let Some(weights) = weights {
            self.move_to(point, function, weights, context)?;
        }
        let rows = self.data.rows() as u64;
        let known = |known: &&Point| (known.serial, known.function) == (point, function);
        let Some(at) = self.point.as_ref().filter(known) else {
            return Ok(Response { serial, sums: None, rows });
        };
        let task = RequestTask { at, what: &what, problem: self.problem(at), context };
        Ok(Response { serial, sums: Some(self.over_rows(task, context)), rows })
    }

    fn problem<'a>(&self, at: &'a Point) -> Problem<'a> {
        let loss = self.task.loss;
        Problem { loss, targets: &at.targets, costs: &at.costs, shift: 0.0 }
    }

    fn move_to(
        &mut self,
        serial: u32,
        function: u32,
        weights: Vec<f64>,
        context: &Context,
    ) -> Result<()> {
        if self.point.as_ref().is_some_and(|p| (p.serial, p.function) == (serial, function)) {
            return Ok(());
        }
        let (targets, costs) = self.task.problem(function as usize, &self.data, &self.codes)?;
        let slopes = vec![0.0; self.data.rows()];
        let mut point = Point {
            serial,
            function,
            weights,
            targets,
            costs,
            slopes,
            curvatures: WeightedRows::default(),
            loss: 0.0,
            gradient: Vec::new(),
        };
        let differentiate = Differentiate { point: &mut point, loss: self.task.loss, context };
        self.over_rows(differentiate, context);
        let problem = self.problem(&point);
        let slopes = point.slopes.iter().enumerate();
        let curvatures: Vec<f64> =
            slopes.map(|(i, &slope)| curvature(&problem, i, slope)).collect();
        point.curvatures = WeightedRows::new(&curvatures);
        self.point = Some(point);
        Ok(())
    }

    fn over_rows<T: RowTask>(&self, task: T, context: &Context) -> T::Output {
        let (bias, set) = (self.task.bias, context.instruction_set());
        context.install(|| match self.data.features() {
            Matrix::DenseF32(table) => task.run(&DenseRows::new(table, bias, set)),
            Matrix::DenseF64(table) => task.run(&DenseRows::new(table, bias, set)),
            Matrix::SparseF32(table) => task.run(&SparseRows::new(table, table.values(), bias)),
            Matrix::SparseF64(table) => task.run(&SparseRows::new(table, table.values(), bias)),
        })
    }
}

/// A computation over rows of any storage.
trait RowTask: Send {
    type Output: Send;
    fn run<R: LinearRows>(self, rows: &R) -> Self::Output;
}

struct Differentiate<'a> {
    point: &'a mut Point,
    loss: crate::solver::linear::RowLoss,
    context: &'a Context,
}

impl RowTask for Differentiate<'_> {
    type Output = ();

    fn run<R: LinearRows>(self, rows: &R) {
        let Point { weights, targets, costs, slopes, .. } = self.point;
        let problem = Problem { loss: self.loss, targets, costs, shift: 0.0 };
        let table = Products::new(rows, true, self.context);
        let (loss, gradient) = table.differentiate(&problem, weights, slopes);
        (self.point.loss, self.point.gradient) = (loss, gradient);
    }
}

struct RequestTask<'a> {
    at: &'a Point,
    what: &'a SumRequest,
    problem: Problem<'a>,
    context: &'a Context,
}

impl RowTask for RequestTask<'_> {
    type Output = Vec<f64>;

    fn run<R: LinearRows>(self, rows: &R) -> Vec<f64> {
        let Self { at, what, problem, context } = self;
        let table = Products::new(rows, true, context);
        match what {
            SumRequest::Point => {
                let each = at.slopes.iter().zip(&at.targets).zip(&at.costs);
                let conjugates = each.map(|((s, t), c)| conjugate(problem.loss, -s, *t, *c));
                let mut sums = vec![at.loss, conjugates.sum()];
                sums.extend_from_slice(&at.gradient);
                sums.extend(table.transposed_squares(&at.curvatures));
                sums
            }
            SumRequest::Product(direction) => table.weighted_normal(&at.curvatures, direction),
            SumRequest::Along(direction, lengths) => {
                let (values, along) = (table.values(&at.weights), table.values(direction));
                let loss = |length: &f64| {
                    problem.total_loss(values.iter().zip(&along).map(|(v, a)| v + length * a))
                };
                lengths.iter().map(loss).collect()
            }
        }
    }
}
