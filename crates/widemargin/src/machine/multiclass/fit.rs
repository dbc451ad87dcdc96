//! Batch training of the all-in-one machines.

use std::time::Instant;

use super::AllInOne;
use crate::context::Context;
use crate::data::{ClassOrder, Classes, Dataset, Label, Labels, Matrix, check_two_classes};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks, KernelRows, RowCaching};
use crate::machine::definiteness;
use crate::machine::fit::{FitInput, KernelMachine, kernel_fields};
use crate::machine::model::{
    ClassTable, DecisionFunction, KernelExpansion, MachineKind, Model, Part, Scheme, Training,
};
use crate::machine::names::defaults;
use crate::machine::parameters::{ClassWeights, Precision, SolverOptions};
use crate::machine::training::{check_outcome, in_precision, support_table};
use crate::machine::warm_start::Start;
use crate::numeric::simd::Real;
use crate::solver::s2do;

/// An all-in-one multi-class support vector machine.
///
/// ```
/// use widemargin::data::{Dataset, Dense, Labels, Matrix};
/// use widemargin::kernel::Kernel;
/// use widemargin::machine::{AllInOne, Machine, MulticlassSvc};
/// use widemargin::Context;
///
/// let rows = Dense::new(6, 1, vec![-3.0, -2.0, -0.2, 0.2, 2.0, 3.0])?;
/// let labels = Labels::Int(vec![0, 0, 1, 1, 2, 2]);
/// let data = Dataset::new(Matrix::DenseF64(rows), labels.clone())?;
/// let machine = AllInOne::CrammerSinger;
/// let svc = MulticlassSvc { machine, c: 10.0, ..MulticlassSvc::default() };
/// let context = Context::new();
/// let model = svc.fit(&data, &context)?;
/// assert_eq!(model.predictor(&context)?.predict(data.features())?, labels);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MulticlassSvc {
    /// Which machine.
    pub machine: AllInOne,
    /// Price C of the loss, in the scaling of the module page (relative margins with ½, targets 1).
    pub c: f64,
    /// The kernel.
    pub kernel: Kernel,
    /// Whether every class has an offset, which is not penalised.
    pub bias: bool,
    /// Factors on C by class.
    pub class_weights: ClassWeights,
    /// All classes, if some may have no row; otherwise those of the data.
    pub classes: Option<Vec<Label>>,
    /// Which class comes first, unless `classes` says.
    pub class_order: ClassOrder,
    /// Options of the solver.
    pub options: SolverOptions,
}

defaults!(MulticlassSvc {
    machine: AllInOne::default(),
    c: 1.0,
    kernel: Kernel::Gaussian { gamma: 1.0 },
    bias: false,
    class_weights: ClassWeights::Uniform,
    classes: None,
    class_order: ClassOrder::Sorted,
    options: SolverOptions::default(),
});

/// The problem of all classes, over rows in the order of their classes.
pub(in crate::machine) struct ClassesProblem {
    pub(in crate::machine) names: Vec<Label>,
    /// Rows of the data set.
    pub(in crate::machine) rows: Vec<usize>,
    pub(in crate::machine) problem: s2do::Problem,
}

impl KernelMachine for MulticlassSvc {
    fn learn(&self, input: FitInput<'_>, context: &Context) -> Result<Model> {
        self.kernel.validate()?;
        self.options.validate()?;
        let (classes, examples) = self.checked_examples(input)?;
        let start = input.start().map(Start::model);
        context.install(|| self.train(input, &classes.names, &examples, start, context))
    }

    kernel_fields!();

    /// The coefficients of `atm` leave its dual variables open within their common bound.
    fn starts_warm(&self) -> bool {
        self.machine != AllInOne::Atm
    }

    /// The linear kernel is solved with explicit weights, which need no kernel values.
    fn shares_kernel(&self) -> bool {
        self.kernel != Kernel::Linear
    }
}

impl MulticlassSvc {
    /// The classes and the rows of positive weight, after the checks of C and of the data.
    fn checked_examples(&self, input: FitInput<'_>) -> Result<(Classes, Examples)> {
        Error::check_positive("c", self.c)?;
        input.validate()?;
        let classes = declared_classes(&input.labels(), self.classes.as_deref(), self.class_order)?;
        check_two_classes(&classes.names)?;
        let examples = self.examples(input, &classes)?;
        Ok((classes, examples))
    }

    /// The problem that this machine solves, for others to solve.
    pub(in crate::machine) fn dual_problem(&self, input: FitInput<'_>) -> Result<ClassesProblem> {
        let (classes, examples) = self.checked_examples(input)?;
        let problem = self.problem(classes.count(), &examples, None);
        Ok(ClassesProblem { names: classes.names, rows: examples.rows, problem })
    }

    fn problem(
        &self,
        classes: usize,
        examples: &Examples,
        start: Option<Vec<f64>>,
    ) -> s2do::Problem {
        s2do::Problem {
            loss: self.machine.loss(classes),
            classes,
            start,
            codes: examples.codes.clone(),
            upper: examples.upper.clone(),
            bias: self.bias,
        }
    }

    /// The rows of positive weight, class by class.
    fn examples(&self, input: FitInput<'_>, classes: &Classes) -> Result<Examples> {
        let factors = self.class_weights.resolve(classes)?;
        let places: Vec<usize> = classes.rows_by_class().concat();
        let all: Vec<usize> = input.rows().collect();
        let mut examples = Examples::default();
        for place in places {
            let (row, code) = (all[place], classes.codes[place]);
            let weight = input.weight(row) * factors[code as usize];
            if weight > 0.0 {
                examples.rows.push(row);
                examples.codes.push(code);
                examples.upper.push(self.c * weight);
            }
        }
        if examples.rows.is_empty() {
            return Err(Error::Empty { what: "row of positive weight" });
        }
        Ok(examples)
    }

    fn train(
        &self,
        input: FitInput<'_>,
        names: &[Label],
        examples: &Examples,
        start: Option<&Model>,
        context: &Context,
    ) -> Result<Model> {
        let started = Instant::now();
        let data = input.data();
        let start = start.and_then(|model| self.start(model, names.len(), examples));
        let problem = self.problem(names.len(), examples, start);
        let options = s2do::Options {
            tol: self.options.tol,
            shrinking: self.options.shrinking,
            max_iterations: self.options.max_iterations.unwrap_or(u64::MAX),
        };
        let rows = &examples.rows;
        let precision = self.options.precision;
        let ((solution, negative), precision) = if self.kernel == Kernel::Linear {
            let features = data.features();
            let solution = s2do::solve_linear(features, rows, &problem, &options, context);
            ((solution, None), precision)
        } else {
            in_precision(precision, context, |precision| {
                let solution = match precision {
                    Precision::F32 => self.solve::<f32>(data, rows, &problem, &options, context),
                    Precision::F64 => self.solve::<f64>(data, rows, &problem, &options, context),
                };
                Ok((solution?, precision))
            })?
        };
        check_outcome(&self.kernel, &solution.outcome)?;
        let mut model = class_model(
            MachineKind::AllInOne(self.machine),
            &self.kernel,
            precision,
            data.features(),
            names,
            rows,
            &examples.codes,
            &solution.coefficients,
            &solution.bias,
        );
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        let parameters =
            [("c", self.c.into()), ("tol", self.options.tol.into()), ("bias", self.bias.into())];
        let rows = input.rows().count();
        model.training = Some(Training::new(solution.outcome, rows, started, parameters));
        Ok(definiteness::noted(model, negative))
    }
}

/// The rows that a machine learns from, class by class.
#[derive(Default)]
struct Examples {
    /// Rows of the data set.
    rows: Vec<usize>,
    /// Their classes.
    codes: Vec<u32>,
    /// C times their weights.
    upper: Vec<f64>,
}

impl MulticlassSvc {
    /// Solves over kernel rows; tells a negative eigenvalue of the kernel too.
    fn solve<T: Real>(
        &self,
        data: &Dataset,
        order: &[usize],
        problem: &s2do::Problem,
        options: &s2do::Options,
        context: &Context,
    ) -> Result<(s2do::Solution, Option<f64>)> {
        let blocks = KernelBlocks::<T>::new(&self.kernel, data.features(), Some(order), context)?;
        let negative = definiteness::warn(&self.kernel, &blocks, context)?;
        let segments = vec![0, order.len()];
        let rows = KernelRows::new(blocks, segments, RowCaching::All, context.cache_bytes());
        let mut solution = s2do::solve(&rows.view(&[0], context), problem, options, context);
        rows.blocks().check_values()?;
        solution.outcome.kernel_rows = rows.requested() / order.len().max(1) as u64;
        Ok((solution, negative))
    }

    /// The dual variables of a model of the same machine and classes, matched by training row.
    fn start(&self, model: &Model, classes: usize, examples: &Examples) -> Option<Vec<f64>> {
        let table = model.classes.as_ref()?;
        let same = model.kind == MachineKind::AllInOne(self.machine)
            && self.starts_warm()
            && table.names.len() == classes
            && model.support_rows().len() == model.support_count();
        if !same {
            return None;
        }
        let loss = self.machine.loss(classes);
        let last = examples.rows.iter().max().map_or(0, |row| row + 1);
        let mut place = vec![None; last];
        examples.rows.iter().enumerate().for_each(|(i, &row)| place[row] = Some(i));
        let mut coefficients = vec![0.0; examples.rows.len() * classes];
        for (c, function) in model.functions().iter().enumerate() {
            for part in &function.parts {
                for (s, b) in part.support.clone().zip(&part.coefficients) {
                    if let Some(&Some(i)) = place.get(model.support_rows()[s]) {
                        coefficients[i * classes + c] = *b;
                    }
                }
            }
        }
        let own = |(i, b): (usize, &[f64])| {
            loss.variables(examples.codes[i] as usize, b, examples.upper[i])
        };
        Some(coefficients.chunks_exact(classes).enumerate().flat_map(own).collect())
    }
}

/// The classes of labels, or the declared ones with every label among them.
pub(in crate::machine) fn declared_classes(
    labels: &Labels,
    declared: Option<&[Label]>,
    order: ClassOrder,
) -> Result<Classes> {
    let mut classes = labels.classes(order)?;
    let Some(declared) = declared else { return Ok(classes) };
    let mut place = Vec::with_capacity(classes.count());
    for name in &classes.names {
        let same = |other: &Label| other.to_string() == name.to_string();
        let at = declared.iter().position(same).ok_or_else(|| {
            Error::labels("only the classes that were declared", format!("'{name}'"))
        })?;
        place.push(at as u32);
    }
    classes.codes.iter_mut().for_each(|code| *code = place[*code as usize]);
    classes.names = declared.to_vec();
    Ok(classes)
}

/// A model with one score per class over `rows` of `features`, ascending by class, given their classes
/// and their coefficients class by class.
pub(in crate::machine) fn class_model(
    kind: MachineKind,
    kernel: &Kernel,
    precision: Precision,
    features: &Matrix,
    names: &[Label],
    rows: &[usize],
    codes: &[u32],
    coefficients: &[f64],
    bias: &[f64],
) -> Model {
    let d = names.len();
    let own = |i: usize| &coefficients[i * d..(i + 1) * d];
    let support: Vec<usize> =
        (0..rows.len()).filter(|&i| own(i).iter().any(|b| *b != 0.0)).collect();
    let mut per_class = vec![0; d];
    for &i in &support {
        per_class[codes[i] as usize] += 1;
    }
    let functions = (0..d)
        .map(|c| DecisionFunction {
            parts: vec![Part {
                support: 0..support.len(),
                coefficients: support.iter().map(|&i| own(i)[c]).collect(),
            }],
            offset: -bias[c],
        })
        .collect();
    let support_rows: Vec<usize> = support.iter().map(|&i| rows[i]).collect();
    let body = KernelExpansion {
        kernel: kernel.clone(),
        precision,
        support: support_table(kernel, features, &support_rows),
        support_rows,
        functions,
    };
    Model {
        classes: Some(ClassTable {
            names: names.to_vec(),
            scheme: Scheme::OneVsRest,
            support: per_class,
        }),
        ..Model::new(kind, body)
    }
}
