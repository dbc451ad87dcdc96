//! Batch training of the all-in-one machines.

use std::time::Instant;

use super::AllInOne;
use crate::context::Context;
use crate::data::{ClassOrder, Classes, Dataset, Label, Labels, Matrix};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, KernelBlocks, KernelRows, Reuse};
use crate::machine::fit::Machine;
use crate::machine::model::{
    ClassTable, DecisionFunction, KernelExpansion, MachineKind, Model, Part, Scheme, Training,
};
use crate::machine::parameters::{ClassWeights, Precision, SolverOptions};
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
    /// Whether every class has an offset, free of charge.
    pub bias: bool,
    /// Factors on C by class.
    pub class_weights: ClassWeights,
    /// All classes, if some may have no row; otherwise those of the data.
    pub classes: Option<Vec<Label>>,
    /// Which class comes first, unless `classes` says.
    pub class_order: ClassOrder,
    /// What is asked of the solver.
    pub options: SolverOptions,
}

impl Default for MulticlassSvc {
    fn default() -> Self {
        Self {
            machine: AllInOne::default(),
            c: 1.0,
            kernel: Kernel::Gaussian { gamma: 1.0 },
            bias: false,
            class_weights: ClassWeights::Uniform,
            classes: None,
            class_order: ClassOrder::Sorted,
            options: SolverOptions::default(),
        }
    }
}

impl Machine for MulticlassSvc {
    fn fit(&self, data: &Dataset, context: &Context) -> Result<Model> {
        self.train(data, None, context)
    }

    fn fit_from(&self, data: &Dataset, start: &Model, context: &Context) -> Result<Model> {
        self.train(data, Some(start), context)
    }

    fn kernel(&self) -> Option<&Kernel> {
        Some(&self.kernel)
    }
}

impl MulticlassSvc {
    fn train(&self, data: &Dataset, start: Option<&Model>, context: &Context) -> Result<Model> {
        if !(self.c.is_finite() && self.c > 0.0) {
            return Err(Error::parameter("c", "a finite number above 0", self.c));
        }
        data.features().validate()?;
        self.kernel.validate()?;
        self.options.validate()?;
        let classes = declared_classes(data.labels(), self.classes.as_deref(), self.class_order)?;
        if classes.count() < 2 {
            let label = classes.names.first().map_or_else(String::new, ToString::to_string);
            return Err(Error::OneClass { label });
        }
        let weights = self.row_weights(data, &classes)?;
        context.install(|| self.fit_rows(data, &classes, &weights, start, context))
    }

    fn row_weights(&self, data: &Dataset, classes: &Classes) -> Result<Vec<f64>> {
        let factors = self.class_weights.resolve(classes)?;
        let factor = |row: usize| factors[classes.codes[row] as usize];
        let own = |row: usize| data.weights().map_or(1.0, |w| w[row]);
        Ok((0..data.rows()).map(|row| own(row) * factor(row)).collect())
    }

    fn fit_rows(
        &self,
        data: &Dataset,
        classes: &Classes,
        weights: &[f64],
        start: Option<&Model>,
        context: &Context,
    ) -> Result<Model> {
        let started = Instant::now();
        let order: Vec<usize> = classes
            .rows_by_class()
            .concat()
            .into_iter()
            .filter(|&row| weights[row] > 0.0)
            .collect();
        if order.is_empty() {
            return Err(Error::Empty { what: "row of positive weight" });
        }
        let rule = self.machine.rule(classes.count());
        let codes: Vec<u32> = order.iter().map(|&row| classes.codes[row]).collect();
        let upper: Vec<f64> = order.iter().map(|&row| self.c * weights[row]).collect();
        let problem = s2do::Problem {
            rule,
            classes: classes.count(),
            start: start.and_then(|model| self.start(model, classes, &order, &upper)),
            codes,
            upper,
            bias: self.bias,
        };
        let options = s2do::Options {
            tol: self.options.tol,
            shrinking: self.options.shrinking,
            max_iterations: self.options.max_iterations.unwrap_or(u64::MAX),
        };
        let solution = match (&self.kernel, self.options.precision) {
            (Kernel::Linear, _) => {
                s2do::solve_linear(data.features(), &order, &problem, &options, context)
            }
            (_, Precision::F32) => self.solve::<f32>(data, &order, &problem, &options, context)?,
            (_, Precision::F64) => self.solve::<f64>(data, &order, &problem, &options, context)?,
        };
        let mut model = class_model(
            MachineKind::AllInOne(self.machine),
            &self.kernel,
            self.options.precision,
            data.features(),
            classes,
            &order,
            &solution.coefficients,
            &solution.bias,
        );
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        model.training = Some(Training {
            outcome: solution.outcome,
            rows: data.rows(),
            seconds: started.elapsed().as_secs_f64(),
            parameters: vec![
                ("c".into(), self.c.to_string()),
                ("tol".into(), self.options.tol.to_string()),
                ("bias".into(), self.bias.to_string()),
            ],
        });
        Ok(model)
    }
}

impl MulticlassSvc {
    /// Solves over kernel rows.
    fn solve<T: Real>(
        &self,
        data: &Dataset,
        order: &[usize],
        problem: &s2do::Problem,
        options: &s2do::Options,
        context: &Context,
    ) -> Result<s2do::Solution> {
        let set = context.instruction_set();
        let blocks = KernelBlocks::<T>::new(&self.kernel, data.features(), Some(order), set)?;
        let segments = vec![0, order.len()];
        let rows = KernelRows::new(blocks, segments, Reuse::Everywhere, context.cache_bytes());
        let mut solution = s2do::solve(&rows.view(&[0], context), problem, options, context);
        solution.outcome.kernel_rows = rows.computed() / order.len().max(1) as u64;
        Ok(solution)
    }

    /// The variables of a model of the same machine and classes, matched by training row; none where
    /// coefficients leave them open within a common bound (`atm`).
    fn start(
        &self,
        model: &Model,
        classes: &Classes,
        order: &[usize],
        upper: &[f64],
    ) -> Option<Vec<f64>> {
        let d = classes.count();
        let table = model.classes.as_ref()?;
        let same = model.kind == MachineKind::AllInOne(self.machine)
            && self.machine != AllInOne::Atm
            && table.names.len() == d
            && model.support_rows().len() == model.support_count();
        if !same {
            return None;
        }
        let rule = self.machine.rule(d);
        let mut place = vec![usize::MAX; classes.codes.len()];
        for (i, &row) in order.iter().enumerate() {
            place[row] = i;
        }
        let mut coefficients = vec![0.0; order.len() * d];
        for (c, function) in model.functions().iter().enumerate() {
            for part in &function.parts {
                for (s, b) in part.support.clone().zip(&part.coefficients) {
                    if let Some(&i) =
                        place.get(model.support_rows()[s]).filter(|i| **i != usize::MAX)
                    {
                        coefficients[i * d + c] = *b;
                    }
                }
            }
        }
        let own =
            |(i, b): (usize, &[f64])| rule.variables(classes.codes[order[i]] as usize, b, upper[i]);
        Some(coefficients.chunks_exact(d).enumerate().flat_map(own).collect())
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
        let at = declared.iter().position(same).ok_or_else(|| Error::Labels {
            expected: "only the classes that were declared".into(),
            found: format!("'{name}'"),
        })?;
        place.push(at as u32);
    }
    classes.codes.iter_mut().for_each(|code| *code = place[*code as usize]);
    classes.names = declared.to_vec();
    Ok(classes)
}

/// A model with one score per class over the rows `order` (ascending by class), given their
/// coefficients class by class.
pub(in crate::machine) fn class_model(
    kind: MachineKind,
    kernel: &Kernel,
    precision: Precision,
    features: &Matrix,
    classes: &Classes,
    order: &[usize],
    coefficients: &[f64],
    bias: &[f64],
) -> Model {
    let d = classes.count();
    let own = |i: usize| &coefficients[i * d..(i + 1) * d];
    let support: Vec<usize> =
        (0..order.len()).filter(|&i| own(i).iter().any(|b| *b != 0.0)).collect();
    let mut per_class = vec![0; d];
    for &i in &support {
        per_class[classes.codes[order[i]] as usize] += 1;
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
    let support_rows: Vec<usize> = support.iter().map(|&i| order[i]).collect();
    let body = KernelExpansion {
        kernel: kernel.clone(),
        precision,
        support: features.select_rows(&support_rows),
        support_rows,
        functions,
    };
    Model {
        classes: Some(ClassTable {
            names: classes.names.clone(),
            scheme: Scheme::OneVsRest,
            support: per_class,
        }),
        ..Model::new(kind, body)
    }
}
