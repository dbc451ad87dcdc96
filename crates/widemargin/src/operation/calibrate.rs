//! Probabilities for a trained model, learnt from decision values on rows its machine had not seen.
//!
//! Five folds with their share of every class are held out in turn; the values of each decision
//! function on held-out rows of its classes are fitted by a sigmoid or an isotonic function. For
//! one-vs-one this is LIBSVM's cross-validation of every pair, with folds shared by the pairs so that
//! five trainings serve them all. Regression gets the scale of Laplace noise from held-out residuals,
//! one-class machines get density marks from the training rows (LIBSVM's `-b 1`; Platt 1999).

use super::folds::{FoldPlan, Folds, fit_part, run_folds};
use crate::context::{Context, Event};
use crate::data::{Dataset, Dense, Label, Labels};
use crate::error::{Error, Result};
use crate::machine::{
    Calibration, CalibrationMethod, ClassTable, Machine, MachineKind, Model, Scheme,
};
use crate::solver::Status;
use crate::solver::calibration::{fit_density_marks, fit_isotonic, fit_laplace_scale, fit_sigmoid};

/// Number of folds, LIBSVM's.
const FOLDS: usize = 5;

/// Gives a model of `machine`, trained on `data`, its probabilities.
///
/// The seed of the context decides the folds. When the user interrupts, or a one-class model has
/// too few rows on a side, the model comes back without probabilities and a warning is reported.
/// Regressors and one-class machines have one method each, whatever `method` says; classical
/// machines whose values are probabilities keep them.
///
/// # Errors
/// [`Error::Model`] for machines [without probabilities](MachineKind::has_probabilities), and for an
/// error-correcting code when a fold lacks a class; [`Error::Parameter`] for fewer than two rows; what the machine refuses.
pub fn calibrate(
    machine: &dyn Machine,
    data: &Dataset,
    mut model: Model,
    method: CalibrationMethod,
    context: &Context,
) -> Result<Model> {
    if let Some(Calibration::Softmax | Calibration::Shares) = model.calibration {
        return Ok(model);
    }
    if !model.kind.has_probabilities() {
        return Err(Error::model(format!("{} has no probabilities", model.kind)));
    }
    let is_marked = |mark: &Label| !data.labels().rows_marked(mark).is_empty();
    if machine.unlabelled().is_some_and(is_marked) {
        return Err(Error::model("probabilities need labels of all rows"));
    }
    let calibration = match (model.kind, &model.classes) {
        (MachineKind::OneClass | MachineKind::LinearOneClass, _) => density(data, &model, context)?,
        (_, None) => laplace(machine, data, context)?,
        (_, Some(table)) => classes(machine, data, table, method, context)?,
    };
    if calibration.is_some() {
        model.calibration = calibration;
    }
    Ok(model)
}

/// Fits the probabilities of a model anew to its decision values on `data`, rows that did not train
/// it; a model without probabilities stays without.
///
/// This is for models that changed after they were trained: the values of a compressed model are not
/// quite those that its probabilities were fitted to. When it is interrupted, the model comes back without
/// probabilities and a warning is reported.
///
/// # Errors
/// [`Error::Labels`] for labels that the model does not know; what the predictor refuses.
pub fn recalibrate(data: &Dataset, mut model: Model, context: &Context) -> Result<Model> {
    let Some(calibration) = model.calibration.clone() else { return Ok(model) };
    let Some(values) = values_of_all(data, &model, context)? else {
        return Ok(Model { calibration: None, ..model });
    };
    let fitted = match (&calibration, &model.classes) {
        (Calibration::Density { .. }, _) => density(data, &model, context)?,
        (calibration, Some(table)) => {
            let class_of = class_of_rows(data.labels(), table)?;
            let rows = (0..data.rows()).collect();
            let method = match calibration {
                Calibration::Isotonic { .. } => CalibrationMethod::Isotonic,
                _ => CalibrationMethod::Sigmoid,
            };
            Some(fit_classes(table, data, &class_of, &[(rows, values)], method))
        }
        (_, None) => {
            let targets = data.labels().values()?;
            let residuals: Vec<f64> =
                targets.iter().zip(values.values()).map(|(y, f)| y - f).collect();
            Some(Calibration::Laplace { scale: fit_laplace_scale(&residuals) })
        }
    };
    if fitted.is_some() {
        model.calibration = fitted;
    }
    Ok(model)
}

fn warn(context: &Context, reason: &str) {
    let message = format!("{reason}; the model has no probabilities");
    context.report(&Event::Warning { message });
}

fn density(data: &Dataset, model: &Model, context: &Context) -> Result<Option<Calibration>> {
    let Some(values) = values_of_all(data, model, context)? else { return Ok(None) };
    let marks = fit_density_marks(values.values());
    if marks.is_none() {
        warn(context, "fewer than 5 rows are inside or fewer than 5 outside");
    }
    Ok(marks.map(|marks| Calibration::Density { marks }))
}

fn laplace(
    machine: &dyn Machine,
    data: &Dataset,
    context: &Context,
) -> Result<Option<Calibration>> {
    let targets = data.labels().values()?;
    let plan = Folds::Random(FOLDS.min(data.rows())).assign(data, context.seed())?;
    let held_out =
        held_out(machine, data, &plan, context, |train| train, |_| None, |_, values| Ok(values))?;
    Ok(held_out.map(|folds| {
        let residual = |row: usize, values: &[f64]| targets[row] - values[0];
        let residuals: Vec<f64> = folds
            .iter()
            .flat_map(|(rows, values)| {
                rows.iter().enumerate().map(move |(i, &row)| residual(row, values.row(i)))
            })
            .collect();
        Calibration::Laplace { scale: fit_laplace_scale(&residuals) }
    }))
}

fn classes(
    machine: &dyn Machine,
    data: &Dataset,
    table: &ClassTable,
    method: CalibrationMethod,
    context: &Context,
) -> Result<Option<Calibration>> {
    let class_of = class_of_rows(data.labels(), table)?;
    let plan = Folds::Stratified(FOLDS.min(data.rows())).assign(data, context.seed())?;
    // In class order, so that a machine that takes classes as they come finds the same order.
    let in_class_order = |mut rows: Vec<usize>| {
        rows.sort_by_key(|&row| class_of[row]);
        rows
    };
    let lone = |train: &[usize]| lone_class(table, data, &class_of, train);
    let held_out =
        held_out(machine, data, &plan, context, in_class_order, lone, |model, values| {
            aligned(table, model, values)
        })?;
    Ok(held_out.map(|held_out| fit_classes(table, data, &class_of, &held_out, method)))
}

/// Fits every function to the values of held-out rows.
fn fit_classes(
    table: &ClassTable,
    data: &Dataset,
    class_of: &[usize],
    held_out: &[HeldOut],
    method: CalibrationMethod,
) -> Calibration {
    let functions = table.scheme.functions(table.names.len());
    let mut samples = vec![Samples::default(); functions];
    for (rows, values) in held_out {
        for (i, &row) in rows.iter().enumerate().filter(|(_, row)| data.weight(**row) > 0.0) {
            for (f, value) in values.row(i).iter().enumerate() {
                if let Some(positive) = side(table, f, class_of[row]) {
                    samples[f].push(*value, positive, data.weight(row));
                }
            }
        }
    }
    match method {
        CalibrationMethod::Sigmoid => {
            let fits = samples.iter().map(|s| fit_sigmoid(&s.values, &s.positive));
            let (a, b) = fits.map(|sigmoid| (sigmoid.a, sigmoid.b)).unzip();
            Calibration::Sigmoid { a, b }
        }
        CalibrationMethod::Isotonic => {
            Calibration::Isotonic { knots: samples.iter().map(Samples::isotonic).collect() }
        }
    }
}

/// Held-out values of one function.
#[derive(Clone, Default)]
struct Samples {
    values: Vec<f64>,
    positive: Vec<bool>,
    weights: Vec<f64>,
}

impl Samples {
    fn push(&mut self, value: f64, positive: bool, weight: f64) {
        self.values.push(value);
        self.positive.push(positive);
        self.weights.push(weight);
    }

    fn isotonic(&self) -> Vec<(f64, f64)> {
        let targets: Vec<f64> = self.positive.iter().map(|p| f64::from(u8::from(*p))).collect();
        let knots = fit_isotonic(&self.values, &targets, &self.weights);
        if knots.is_empty() { vec![(0.0, 0.5)] } else { knots }
    }
}

/// The class of every row by its label's name.
fn class_of_rows(labels: &Labels, table: &ClassTable) -> Result<Vec<usize>> {
    let found = labels.classes(crate::data::ClassOrder::Sorted)?;
    let mut of_code = Vec::with_capacity(found.names.len());
    for name in &found.names {
        match position(&table.names, name) {
            Some(class) => of_code.push(class),
            None => {
                return Err(Error::labels(
                    "the classes the model was trained on",
                    format!("'{name}'"),
                ));
            }
        }
    }
    Ok(found.codes.iter().map(|&code| of_code[code as usize]).collect())
}

fn position(names: &[Label], name: &Label) -> Option<usize> {
    names.iter().position(|other| other.to_string() == name.to_string())
}

/// The side of function `f` that a class is on, if it is on any.
fn side(table: &ClassTable, f: usize, class: usize) -> Option<bool> {
    match &table.scheme {
        Scheme::OneVsOne | Scheme::Dag => {
            let (i, j) = pair(table.names.len(), f);
            if class == i { Some(true) } else { (class == j).then_some(false) }
        }
        Scheme::OneVsRest => Some(class == f),
        Scheme::ErrorCorrecting(codes) => match codes[class][f] {
            0 => None,
            sign => Some(sign > 0),
        },
    }
}

/// The classes of the pair with number `f`.
fn pair(classes: usize, f: usize) -> (usize, usize) {
    let (mut i, mut rest) = (0, f);
    while i + 1 < classes && rest >= classes - 1 - i {
        rest -= classes - 1 - i;
        i += 1;
    }
    (i, i + 1 + rest)
}

/// Values of a fold's model in the places of the full model's functions.
///
/// A class that the fold's training rows lack loses against every class they have (LIBSVM's rule).
fn aligned(table: &ClassTable, model: &Model, values: Dense<f64>) -> Result<Dense<f64>> {
    let Some(found) = &model.classes else {
        return Err(Error::model("expected a classifier in every fold"));
    };
    if found.names == table.names {
        return Ok(values);
    }
    if let Scheme::ErrorCorrecting(_) = table.scheme {
        return Err(Error::model(
            "a class is too small to be calibrated with an error-correcting code; use \
                      one-vs-one",
        ));
    }
    let place: Vec<Option<usize>> =
        table.names.iter().map(|name| position(&found.names, name)).collect();
    let functions = table.scheme.functions(table.names.len());
    let mut all = Vec::with_capacity(values.rows() * functions);
    for row in 0..values.rows() {
        let row = values.row(row);
        for f in 0..functions {
            all.push(match table.scheme {
                Scheme::OneVsRest => place[f].map_or(-1.0, |c| row[c]),
                _ => {
                    let (i, j) = pair(table.names.len(), f);
                    match (place[i], place[j]) {
                        (Some(a), Some(b)) => pair_value(found.names.len(), a, b, row),
                        (Some(_), None) => 1.0,
                        (None, Some(_)) => -1.0,
                        (None, None) => 0.0,
                    }
                }
            });
        }
    }
    Dense::new(values.rows(), functions, all)
}

/// The value of every function when the training rows of a fold are all of one class, which then
/// wins against the others (LIBSVM's rule); `None` when they are of several.
fn lone_class(
    table: &ClassTable,
    data: &Dataset,
    class_of: &[usize],
    train: &[usize],
) -> Option<Vec<f64>> {
    let counts = |row: &&usize| data.weights().is_none_or(|weights| weights[**row] > 0.0);
    let mut classes = train.iter().filter(counts).map(|&row| class_of[row]);
    let class = classes.next()?;
    if matches!(table.scheme, Scheme::ErrorCorrecting(_)) || classes.any(|other| other != class) {
        return None;
    }
    let value = |f: usize| side(table, f, class).map_or(0.0, |on| if on { 1.0 } else { -1.0 });
    Some((0..table.scheme.functions(table.names.len())).map(value).collect())
}

/// The value of pair (a, b), positive meaning a.
fn pair_value(classes: usize, a: usize, b: usize, values: &[f64]) -> f64 {
    let number = |i: usize, j: usize| i * (2 * classes - i - 1) / 2 + j - i - 1;
    if a < b { values[number(a, b)] } else { -values[number(b, a)] }
}

/// Rows of a fold and their decision values.
type HeldOut = (Vec<usize>, Dense<f64>);

/// Decision values of the rows of each fold; `None` after an interruption.
fn held_out(
    machine: &dyn Machine,
    data: &Dataset,
    plan: &FoldPlan,
    context: &Context,
    order: impl Fn(Vec<usize>) -> Vec<usize> + Sync,
    lone: impl Fn(&[usize]) -> Option<Vec<f64>> + Sync,
    align: impl Fn(&Model, Dense<f64>) -> Result<Dense<f64>> + Sync,
) -> Result<Option<Vec<HeldOut>>> {
    data.features().validate()?;
    let run = run_folds(plan.count(), "calibration", context, |fold, context| {
        let (train, held) = plan.split(fold);
        let train = order(train);
        if let Some(row) = lone(&train) {
            let values = Dense::new(held.len(), row.len(), row.repeat(held.len()))?;
            return Ok(Some((held, values)));
        }
        let Some(model) = fit_part(machine, data, &train, context)? else { return Ok(None) };
        let values =
            model.predictor(context)?.decision_values_of_in_time(data.features(), &held)?;
        Ok(Some((held, align(&model, values)?)))
    })?;
    match run.stopped {
        None => Ok(Some(run.results.into_iter().flatten().collect())),
        Some(status) => {
            warn_of_stop(context, status);
            Ok(None)
        }
    }
}

fn warn_of_stop(context: &Context, status: Status) {
    let reason = match status {
        Status::TimeLimit => "time ran out while calibrating",
        _ => "calibrating was interrupted",
    };
    warn(context, reason);
}

/// Decision values of all rows; `None`, with a warning, after an interruption.
fn values_of_all(data: &Dataset, model: &Model, context: &Context) -> Result<Option<Dense<f64>>> {
    match model.predictor(context)?.decision_values_in_time(data.features()) {
        Err(Error::Interrupted) => {
            warn_of_stop(context, context.stop_request().unwrap_or(Status::Interrupted));
            Ok(None)
        }
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_as_their_functions() {
        for classes in 2..6 {
            let all = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
            for (f, expected) in all.enumerate() {
                assert_eq!(pair(classes, f), expected);
            }
        }
    }

    #[test]
    fn values_of_missing_classes_are_decided_against_them() {
        let table = |names: &[i64], scheme| ClassTable {
            names: names.iter().map(|&name| Label::Int(name)).collect(),
            scheme,
            support: vec![0; names.len()],
        };
        let model = |scheme| Model {
            classes: Some(table(&[3, 1], scheme)),
            ..Model::load_from_bytes(
                b"svm_type one_class\nkernel_type linear\nnr_class 2\ntotal_sv 0\nrho 0\nSV\n",
            )
            .unwrap()
        };
        let row = |values: Vec<f64>| Dense::new(1, values.len(), values).unwrap();
        let found = aligned(
            &table(&[1, 2, 3], Scheme::OneVsOne),
            &model(Scheme::OneVsOne),
            row(vec![0.25]),
        );
        // Pairs (1, 2), (1, 3), (2, 3); the fold knew (3, 1).
        assert_eq!(found.unwrap().values(), [1.0, -0.25, -1.0]);
        let found = aligned(
            &table(&[1, 2, 3], Scheme::OneVsRest),
            &model(Scheme::OneVsRest),
            row(vec![0.5, 0.75]),
        );
        assert_eq!(found.unwrap().values(), [0.75, -1.0, 0.5]);
    }
}
