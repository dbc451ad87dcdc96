//! `inspect`: what is in a model or data file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use widemargin::data::read::{Loaded, Missing};
use widemargin::data::scaling::Scaler;
use widemargin::data::{LabelSummary, Summary as DataSummary};
use widemargin::kernel::FeatureMap;
use widemargin::machine::specification::Value as Setting;
use widemargin::machine::{Calibration, Model, Scheme};
use widemargin::operation::advice::column_advice;

use super::predict::function_names;
use crate::arguments::InputArguments;
use crate::failure::{CommandResult, Outcome};
use crate::model_file::{self, Content, ModelFormatName};
use crate::report::DataReport;
use crate::table::{Summary, count, duration, grid};
use crate::terminal;

/// Most numbers of a list that are shown.
const LISTED: usize = 8;

/// Show what is in a model or data file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin inspect heart.wm
  widemargin inspect heart.csv --features 5
  widemargin inspect mnist.libsvm.xz --json")]
pub(crate) struct Arguments {
    /// A model (native or LIBSVM's) or a data file; '-' reads standard input
    file: PathBuf,

    /// Features to list for a data file or a linear model, support vectors for a kernel model
    #[arg(long, value_name = "N", default_value_t = 20)]
    features: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArguments,
}

/// Prints the description.
pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let mut input = arguments.input.clone();
    // Gaps are counted here rather than refused; the mean leaves that of the others as it is.
    input.missing = input.missing.or(Some(Missing::Mean));
    match model_file::open(&arguments.file, &input)? {
        Content::Model(format, model) => {
            if arguments.json {
                terminal::print_json(&model_json(format, &model))?;
            } else {
                let text = model_text(format, &model)
                    + &coefficients_text(&model, arguments.features)
                    + &influence_text(&model, arguments.features);
                terminal::print(&text)?;
            }
        }
        Content::Data(mut loaded) => {
            let columns = std::mem::take(&mut loaded.columns);
            let report = DataReport { advice: column_advice(&columns), columns };
            report.warn();
            let summary = loaded.dataset.summary()?;
            if arguments.json {
                let mut document = data_json(&loaded, &summary);
                report.add_to(&mut document);
                terminal::print_json(&document)?;
            } else {
                let columns =
                    if report.columns.is_empty() { String::new() } else { report.table() };
                let text = data_text(&loaded, &summary, arguments.features);
                let text = if columns.is_empty() { text } else { format!("{text}\n{columns}") };
                terminal::print(&text)?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn scheme_name(scheme: &Scheme) -> &'static str {
    match scheme {
        Scheme::OneVsOne => "one-vs-one",
        Scheme::OneVsRest => "one-vs-rest",
        Scheme::Dag => "decision graph",
        Scheme::ErrorCorrecting(_) => "error-correcting codes",
    }
}

fn calibration_name(calibration: &Calibration) -> &'static str {
    match calibration {
        Calibration::Sigmoid { .. } => "sigmoid",
        Calibration::Isotonic { .. } => "isotonic",
        Calibration::Laplace { .. } => "laplace",
        Calibration::Density { .. } => "density",
        Calibration::Softmax => "posteriors",
        Calibration::Shares => "shares of votes",
    }
}

fn scaling_name(model: &Model) -> &'static str {
    match &model.preparation.scaler {
        None => "none",
        Some(Scaler::Range(_)) => "minmax",
        Some(Scaler::Standard(_)) => "standard",
    }
}

fn model_text(format: ModelFormatName, model: &Model) -> String {
    let (body, vectors) = (model.describe(), count(model.support_count() as u64));
    let mut summary = Summary::default();
    summary.line("file", format!("{} model", format.name())).line("machine", model.kind);
    if let Some(kernel) = &body.kernel {
        summary.line("kernel", kernel);
    }
    summary.line("features", count(model.features() as u64));
    match body.nonzeros {
        Some(used) => summary.line(body.vectors, weights_text(model, used)),
        None => summary.line(body.vectors, vectors),
    };
    summary
        .line("functions", count(body.functions as u64))
        .line("precision", body.precision)
        .line("scaling", scaling_name(model));
    if let Some(map) = &model.preparation.map {
        let (inputs, outputs) = (map.inputs() as u64, map.outputs() as u64);
        let kernel = match map {
            FeatureMap::Blocks(blocks) => {
                format!("a sum, kernels with a weight: {}", blocks.kernels())
            }
            _ => "rbf".into(),
        };
        summary.line(
            "approximates",
            format!("{kernel}, {} features from {}", count(outputs), count(inputs)),
        );
    }
    if let Some(classes) = &model.classes {
        let names: Vec<String> = classes
            .names
            .iter()
            .zip(&classes.support)
            .map(|(name, support)| match support {
                _ if body.nonzeros.is_some() => name.to_string(),
                0 => name.to_string(),
                _ => format!("{name} ({support} {})", body.vectors),
            })
            .collect();
        summary.line("classes", names.join(", ")).line("scheme", scheme_name(&classes.scheme));
    }
    for (name, value) in &body.details {
        summary.line(name, value);
    }
    let probabilities = model.calibration.as_ref().map_or("no", calibration_name);
    summary.line("probabilities", probabilities);
    if let [offset] = model.offsets()[..] {
        summary.line("offset", offset);
    }
    if let Some(training) = &model.training {
        let outcome = &training.outcome;
        let parameters: Vec<String> = training.parameters.iter().map(parameter).collect();
        summary
            .line("trained on", format!("{} rows", count(training.rows as u64)))
            .line("parameters", parameters.join(", "))
            .line("status", outcome.status)
            .line("objective", objective(outcome))
            .line("KKT violation", format!("{:.3e}", outcome.violation))
            .line("iterations", count(outcome.iterations))
            .line("time", duration(training.seconds));
    }
    summary.text()
}

/// A parameter; of long lists, such as a score of every row, only how many numbers they have.
fn parameter((name, value): &(String, Setting)) -> String {
    match value {
        Setting::Reals(numbers) if numbers.len() > LISTED => {
            format!("{name}: {} numbers", count(numbers.len() as u64))
        }
        _ => format!("{name}={value}"),
    }
}

/// How many weights a linear model has and uses.
pub(super) fn weights_text(model: &Model, used: usize) -> String {
    let weights = model.vectors();
    let all = weights.rows() * weights.columns();
    format!("{} of {} not 0", count(used as u64), count(all as u64))
}

/// The weights of a linear model that are not 0, by function and feature; none where its features are not
/// those of the data.
fn coefficients(model: &Model) -> Vec<(String, Vec<(String, f64)>)> {
    let Some(linear) = model.linear().filter(|_| model.preparation.map.is_none()) else {
        return Vec::new();
    };
    let name = |j: usize| match &model.feature_names {
        Some(names) => names[j].clone(),
        None => (j + 1).to_string(),
    };
    let of = |(function, name_of): (usize, String)| {
        let mut weights = Vec::new();
        linear.weights.for_each_nonzero(function, |j, weight| {
            if weight != 0.0 {
                weights.push((name(j), weight));
            }
        });
        (name_of, weights)
    };
    function_names(model).into_iter().take(linear.weights.rows()).enumerate().map(of).collect()
}

/// The largest weights of every function.
fn coefficients_text(model: &Model, listed: usize) -> String {
    let mut text = String::new();
    for (function, mut weights) in coefficients(model) {
        weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let left = weights.len().saturating_sub(listed);
        let mut rows = vec![header(&["feature", &function])];
        rows.extend(
            weights.iter().take(listed).map(|(name, w)| vec![name.clone(), format!("{w:.6}")]),
        );
        if listed > 0 {
            text.push('\n');
            text.push_str(&grid(&rows));
        }
        if listed > 0 && left > 0 {
            text.push_str(&format!("... and {} smaller weights\n", count(left as u64)));
        }
    }
    text
}

fn coefficients_json(model: &Model) -> serde_json::Value {
    let of = |(function, weights): (String, Vec<(String, f64)>)| {
        let weights: Vec<_> = weights.iter().map(|(name, w)| json!([name, w])).collect();
        json!({ "function": function, "weights": weights })
    };
    match model.linear() {
        Some(_) => coefficients(model).into_iter().map(of).collect(),
        None => serde_json::Value::Null,
    }
}

/// A support vector: its training row from 1, its class, and the sum of its coefficients' sizes over all
/// functions.
struct Influence {
    row: Option<usize>,
    class: Option<String>,
    weight: f64,
}

/// The support vectors of a kernel model, the most influential first.
fn influences(model: &Model) -> Vec<Influence> {
    let Some(body) = model.expansion() else { return Vec::new() };
    let mut weights = vec![0.0; body.support.rows()];
    for part in body.functions.iter().flat_map(|function| &function.parts) {
        let own = part.support.clone().zip(&part.coefficients);
        own.for_each(|(vector, coefficient)| weights[vector] += coefficient.abs());
    }
    let classes: Vec<String> = model
        .classes
        .iter()
        .flat_map(|table| {
            let counts = table.names.iter().zip(&table.support);
            counts.flat_map(|(name, &count)| std::iter::repeat_n(name.to_string(), count))
        })
        .collect();
    let mut found: Vec<Influence> = weights
        .into_iter()
        .enumerate()
        .map(|(vector, weight)| Influence {
            row: body.support_rows.get(vector).map(|row| row + 1),
            class: classes.get(vector).cloned(),
            weight,
        })
        .collect();
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found
}

/// The support vectors with the most influence.
fn influence_text(model: &Model, listed: usize) -> String {
    let found = influences(model);
    if listed == 0 || found.is_empty() {
        return String::new();
    }
    let mut rows = vec![header(&["training row", "class", "influence"])];
    rows.extend(found.iter().take(listed).map(|one| {
        let row = one.row.map_or_else(|| "unknown".to_owned(), |row| row.to_string());
        vec![row, one.class.clone().unwrap_or_default(), format!("{:.6}", one.weight)]
    }));
    let left = found.len().saturating_sub(listed);
    let more = match left {
        0 => String::new(),
        left => format!("... and {} support vectors with less\n", count(left as u64)),
    };
    format!("\n{}{more}", grid(&rows))
}

fn influence_json(model: &Model) -> serde_json::Value {
    let of = |one: Influence| json!({ "row": one.row, "class": one.class, "weight": one.weight });
    match model.expansion() {
        Some(_) => influences(model).into_iter().map(of).collect(),
        None => serde_json::Value::Null,
    }
}

fn objective(outcome: &widemargin::Outcome) -> String {
    let (primal, dual) = (outcome.primal, outcome.dual);
    format!("primal {primal:.6}, dual {dual:.6}, gap {:.3e}", outcome.gap())
}

fn model_json(format: ModelFormatName, model: &Model) -> serde_json::Value {
    let classes = model.classes.as_ref().map(|classes| {
        json!({
            "names": classes.names,
            "support_vectors": classes.support,
            "scheme": scheme_name(&classes.scheme),
        })
    });
    let body = model.describe();
    json!({
        "kind": "model",
        "format": format.name(),
        "machine": model.kind,
        "body": model.body.name(),
        "kernel": body.kernel.map(|kernel| kernel.to_string()),
        "precision": body.precision,
        "scaling": scaling_name(model),
        "features": model.features(),
        "feature_names": model.feature_names,
        "support_vectors": model.support_count(),
        "functions": body.functions,
        "offsets": model.offsets(),
        "coefficients": coefficients_json(model),
        "influence": influence_json(model),
        "classes": classes,
        "calibration": model.calibration.as_ref().map(calibration_name),
        "training": model.training,
    })
}

fn data_text(loaded: &Loaded, summary: &DataSummary, listed: usize) -> String {
    let storage = if summary.sparse { "sparse" } else { "dense" };
    let share = 100.0 * summary.density;
    let nonzeros = count(summary.nonzeros as u64);
    let mut lines = Summary::default();
    lines
        .line("file", format!("{:?} data", loaded.format).to_lowercase())
        .line("rows", count(summary.rows as u64))
        .line("features", count(summary.features.len() as u64))
        .line("values", format!("{nonzeros} not zero ({share:.2} %), stored {storage}"));
    match &summary.labels {
        LabelSummary::None => lines.line("labels", "none"),
        LabelSummary::Targets { minimum, maximum, mean } => {
            lines.line("labels", format!("numbers from {minimum} to {maximum}, mean {mean}"))
        }
        LabelSummary::Classes { counts } => {
            let shown: Vec<String> =
                counts.iter().take(30).map(|(label, rows)| format!("{label} ({rows})")).collect();
            let more = if counts.len() > 30 { ", ..." } else { "" };
            let shown = shown.join(", ");
            lines.line("labels", format!("{} classes: {shown}{more}", counts.len()))
        }
    };
    if let Some(groups) = summary.groups {
        lines.line("groups", count(groups as u64));
    }
    let mut rows =
        vec![header(&["feature", "minimum", "maximum", "mean", "deviation", "nonzeros"])];
    for (j, feature) in summary.features.iter().enumerate().take(listed) {
        rows.push(vec![
            feature.name.clone().unwrap_or_else(|| (j + 1).to_string()),
            format!("{}", feature.minimum),
            format!("{}", feature.maximum),
            format!("{:.6}", feature.mean),
            format!("{:.6}", feature.deviation),
            count(feature.nonzeros as u64),
        ]);
    }
    let mut text = lines.text();
    if listed > 0 {
        text.push('\n');
        text.push_str(&grid(&rows));
    }
    let left = summary.features.len().saturating_sub(listed);
    if left > 0 {
        text.push_str(&format!("... and {} more features\n", count(left as u64)));
    }
    text
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn data_json(loaded: &Loaded, summary: &DataSummary) -> serde_json::Value {
    json!({
        "kind": "data",
        "format": loaded.format,
        "rows": summary.rows,
        "features": summary.features.len(),
        "nonzeros": summary.nonzeros,
        "density": summary.density,
        "sparse": summary.sparse,
        "labels": summary.labels,
        "groups": summary.groups,
        "feature_summaries": summary.features,
    })
}
