//! `plot`: pictures of what a model does with data.

mod scores;

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use widemargin::Context;
use widemargin::data::{Dataset, Dense, FeatureSummary, Label, Labels, Matrix};
use widemargin::machine::{Model, Scheme};
use widemargin::operation::metrics::{Confusion, RocCurve};

use crate::arguments::{InputArguments, ResourceArguments};
use crate::data_file::{check_outputs, check_picture};
use crate::failure::{CommandResult, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::model_file;
use crate::picture::{self, Curve, Point, Regions};
use crate::session::Session;

/// Draw decision regions, a confusion matrix, curves of scores or residuals (SVG)
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  widemargin plot confusion test.csv --model heart.wm -o confusion.svg
  widemargin plot roc test.csv --model heart.wm -o roc.svg
  widemargin plot regions iris.csv --model iris.wm --axes petal_length,petal_width -o regions.svg")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    picture: Picture,
}

#[derive(Debug, Subcommand)]
enum Picture {
    /// The prediction at every point of a plane, and the rows of the data
    Regions(RegionArguments),
    /// How often each class was taken for each other
    Confusion(Common),
    /// True against false positive rate of every class
    Roc(Common),
    /// Precision against recall of every class
    PrecisionRecall(Common),
    /// Shares of a class against its probabilities
    Calibration(Common),
    /// What predictions of numbers miss
    Residuals(Common),
}

#[derive(Args, Debug)]
struct Common {
    /// Labelled data file; '-': standard input
    data: PathBuf,

    /// The model, native or LIBSVM's
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,

    /// The picture to write; '-': standard output
    #[arg(short, long, value_name = "FILE.svg")]
    output: PathBuf,

    /// Words above the picture
    #[arg(long)]
    title: Option<String>,

    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    resources: ResourceArguments,
}

#[derive(Args, Debug)]
struct RegionArguments {
    #[command(flatten)]
    common: Common,

    /// The two features to show, by name or number from 1; others stay at their mean
    #[arg(long, value_name = "X,Y", default_value = "1,2")]
    axes: String,

    /// Points along each axis
    #[arg(long, value_name = "N", default_value_t = 200,
          value_parser = clap::value_parser!(u16).range(2..=1000))]
    cells: u16,

    /// Circle the support vectors; DATA must be the file the model was trained on
    #[arg(long)]
    support: bool,
}

/// Draws the picture.
pub(crate) fn run(arguments: &Arguments, interrupt: &Interrupt) -> CommandResult {
    let common = match &arguments.picture {
        Picture::Regions(regions) => &regions.common,
        Picture::Confusion(common)
        | Picture::Roc(common)
        | Picture::PrecisionRecall(common)
        | Picture::Calibration(common)
        | Picture::Residuals(common) => common,
    };
    check_picture(Some(&common.output))?;
    check_outputs(
        &[("-o", Some(&common.output))],
        &[Some(&common.data), Some(&common.model), common.input.labels.as_deref()],
    )?;
    let session = common.resources.session(interrupt)?;
    let mut model = Model::load(&common.model)?;
    let data = session
        .read("reading", || model_file::read_for(&mut model, &common.input, &common.data))?;
    match &arguments.picture {
        Picture::Regions(arguments) => regions(arguments, &session, &model, &data)?,
        Picture::Confusion(common) => confusion(common, &session, &model, &data)?,
        Picture::Roc(common) => roc(common, &session, &model, &data)?,
        Picture::PrecisionRecall(common) => {
            scores::draw_precision_recall(common, &session, &model, &data)?;
        }
        Picture::Calibration(common) => {
            scores::draw_calibration(common, &session, &model, &data)?;
        }
        Picture::Residuals(common) => scores::draw_residuals(common, &session, &model, &data)?,
    }
    Ok(Outcome::Done)
}

fn title(common: &Common, default: impl FnOnce() -> String) -> String {
    common.title.clone().unwrap_or_else(default)
}

fn confusion(
    common: &Common,
    session: &Session<'_>,
    model: &Model,
    data: &Dataset,
) -> CommandResult<()> {
    if model.kind.is_regressor() || model.kind.is_ranker() {
        return Err(Failure::usage(format!(
            "a confusion matrix needs classes, not {}",
            model.kind
        )));
    }
    let predictions = session.ask("predicting", |context| predict(model, data, context))?;
    let confusion = Confusion::new(data.labels(), &predictions)?;
    let names: Vec<String> = confusion.classes.iter().map(ToString::to_string).collect();
    let title = title(common, || format!("accuracy {:.2} %", 100.0 * confusion.accuracy()));
    session.save(|| picture::confusion(&common.output, &title, &names, &confusion.counts))
}

fn predict(model: &Model, data: &Dataset, context: &Context) -> widemargin::Result<Labels> {
    model.predictor(context)?.predict_in_time(data.features())
}

fn roc(common: &Common, session: &Session<'_>, model: &Model, data: &Dataset) -> CommandResult<()> {
    let scores = session.ask("predicting", |context| scores(model, data, context))?;
    let curves = scores
        .into_iter()
        .map(|(class, scores)| {
            let curve = RocCurve::of_class(&scores, data.labels(), &class)?;
            let name = format!("{class} (area {:.4})", curve.area);
            Ok(Curve { name, area: curve.area, points: curve.points })
        })
        .collect::<CommandResult<Vec<Curve>>>()?;
    let title = title(common, || "receiver operating characteristic".to_owned());
    session.save(|| picture::roc(&common.output, &title, curves))
}

/// A score for every class that gets a curve: of two classes with one function its values
/// for the positive one, of one-vs-rest the decision values, 1 for inside of novelty detectors, else
/// probabilities.
fn scores(
    model: &Model,
    data: &Dataset,
    context: &Context,
) -> widemargin::Result<Vec<(Label, Vec<f64>)>> {
    let predictor = model.predictor(context)?;
    let values = predictor.decision_values_in_time(data.features())?;
    let fail = |message: &str| Err(widemargin::Error::Model { message: message.into() });
    match &model.classes {
        Some(table) if table.names.len() == 2 && model.offsets().len() == 1 => {
            // Decision values are positive for the first class.
            let positive = table.positive();
            let sign = if positive == 0 { 1.0 } else { -1.0 };
            let scores = column(&values, 0).into_iter().map(|value| sign * value).collect();
            Ok(vec![(table.names[positive].clone(), scores)])
        }
        Some(table) if table.scheme == Scheme::OneVsRest => Ok(columns(&table.names, &values)),
        Some(table) if model.calibration.is_some() => {
            Ok(columns(&table.names, &predictor.probabilities_of(&values)?))
        }
        Some(_) => fail("ROC curves of several classes need --multiclass ovr or --probability"),
        None if model.kind.is_regressor() || model.kind.is_ranker() => {
            fail("ROC curves need classes, not numbers")
        }
        None => Ok(vec![(Label::Int(1), column(&values, 0))]),
    }
}

fn column(table: &Dense<f64>, j: usize) -> Vec<f64> {
    (0..table.rows()).map(|i| table.row(i)[j]).collect()
}

fn columns(names: &[Label], table: &Dense<f64>) -> Vec<(Label, Vec<f64>)> {
    names.iter().enumerate().map(|(j, name)| (name.clone(), column(table, j))).collect()
}

fn regions(
    arguments: &RegionArguments,
    session: &Session<'_>,
    model: &Model,
    data: &Dataset,
) -> CommandResult<()> {
    if model.kind.is_regressor() || model.kind.is_ranker() {
        return Err(Failure::usage(format!("decision regions need classes, not {}", model.kind)));
    }
    let features = data.summary()?.features;
    let axes = axes(&arguments.axes, &features)?;
    let ranges = axes.map(|j| margin(&features[j]));
    let nodes = usize::from(arguments.cells);
    let (lines, row_predictions) = session.ask("predicting", |context| {
        let predictor = model.predictor(context)?;
        let line = |row: usize| {
            let rows = line(&features, axes, &ranges, nodes, row)?;
            let values = predictor.decision_values_in_time(&rows)?;
            Ok((predictor.predictions(&values), values))
        };
        let lines = (0..nodes).map(line).collect::<widemargin::Result<Vec<_>>>()?;
        Ok((lines, predictor.predict_in_time(data.features())?))
    })?;
    let mut predictions = Predictions::of(model);
    let mut classes = Vec::with_capacity(nodes * nodes);
    let mut values = Vec::new();
    for (labels, line) in &lines {
        classes.extend((0..nodes).map(|i| predictions.code(labels, i)));
        values.extend_from_slice(line.values());
    }
    // Labels of their own: those of a machine that does not predict labels.
    let mut labels = (model.classes.is_none() && !data.labels().is_empty()).then(Vec::new);
    let is_support = support(arguments.support, model, data.rows())?;
    let mut row = vec![0.0; data.columns()];
    let points = (0..data.rows())
        .map(|i| {
            data.features().copy_row(i, &mut row);
            let class = match &mut labels {
                Some(labels) => place_among(labels, name_at(data.labels(), i)),
                // Rows without labels are coloured by their predictions.
                None if data.labels().is_empty() => predictions.code(&row_predictions, i),
                None => predictions.code(data.labels(), i),
            };
            Point { place: (row[axes[0]], row[axes[1]]), class, is_support: is_support[i] }
        })
        .collect();
    let name = |j: usize| features[j].name.clone().unwrap_or_else(|| format!("feature {}", j + 1));
    let outputs = values.len() / (nodes * nodes);
    let crossing = crossing(model, &classes, &values, outputs);
    let margins = (outputs == 1 && has_margins(model)).then(|| values.clone());
    let picture = Regions {
        title: title(&arguments.common, || match model.describe().kernel {
            Some(kernel) => format!("{}, {} kernel", model.kind, kernel.name()),
            None => model.kind.to_string(),
        }),
        note: slice_note(features.len() - 2),
        axes: axes.map(name),
        ranges,
        nodes,
        crossing: Box::new(crossing),
        margins,
        names: predictions.names,
        points,
        labels,
        classes: classes.clone(),
    };
    session.save(|| picture::regions(&arguments.common.output, &picture))
}

/// Which rows are support vectors, if they are to be marked.
fn support(wanted: bool, model: &Model, rows: usize) -> CommandResult<Vec<bool>> {
    let mut is_support = vec![false; rows];
    for &row in if wanted { model.support_rows() } else { &[] } {
        match is_support.get_mut(row) {
            Some(mark) => *mark = true,
            None => return Err(Failure::usage("--support: DATA is not the training file")),
        }
    }
    Ok(is_support)
}

/// What a picture of two features says about the others.
fn slice_note(others: usize) -> Option<String> {
    match others {
        0 => None,
        1 => {
            Some("a slice: the other feature is at its mean everywhere; rows lie off it".to_owned())
        }
        more => {
            Some(format!("a slice: the other {more} features are at their means; rows lie off it"))
        }
    }
}

/// The predictions of a model in the order of their colours.
struct Predictions {
    /// How they are written in the legend.
    names: Vec<String>,
    /// How they are written as labels.
    labels: Vec<String>,
    is_clusterer: bool,
}

impl Predictions {
    fn of(model: &Model) -> Self {
        let owned = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let is_clusterer = model.kind.is_clusterer();
        let (names, labels) = match &model.classes {
            Some(table) => {
                let names: Vec<String> = table.names.iter().map(ToString::to_string).collect();
                (names.clone(), names)
            }
            None if model.kind.is_novelty_detector() => {
                (owned(["inside", "outside"]), owned(["1", "-1"]))
            }
            None if is_clusterer && model.outputs() > 1 => {
                let numbers = 0..model.outputs();
                (
                    numbers.clone().map(|k| format!("cluster {k}")).collect(),
                    numbers.map(|k| k.to_string()).collect(),
                )
            }
            None => (Vec::new(), Vec::new()),
        };
        Self { names, labels, is_clusterer }
    }

    /// The place of the `i`-th of `labels`.
    fn code(&mut self, labels: &Labels, i: usize) -> usize {
        let label = name_at(labels, i);
        let place = place_among(&mut self.labels, label.clone());
        if place == self.names.len() {
            self.names.push(if self.is_clusterer { format!("cluster {label}") } else { label });
        }
        place
    }
}

fn name_at(labels: &Labels, i: usize) -> String {
    labels.get(i).map_or_else(String::new, |label| label.to_string())
}

/// The place of a name, which is added when it is new.
fn place_among(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// Where the boundary between two neighbouring nodes crosses their connection: where the function that
/// tells their classes apart is 0 if it is linear between them, else in the middle.
fn crossing<'a>(
    model: &'a Model,
    classes: &'a [usize],
    values: &'a [f64],
    outputs: usize,
) -> impl Fn(usize, usize) -> f64 + 'a {
    let count = model.classes.as_ref().map_or(0, |table| table.names.len());
    let votes_by_pairs = model
        .classes
        .as_ref()
        .is_some_and(|table| matches!(table.scheme, Scheme::OneVsOne | Scheme::Dag));
    let is_per_class = match &model.classes {
        Some(table) => outputs == count && table.scheme == Scheme::OneVsRest,
        None => model.kind.is_clusterer(),
    };
    let difference = move |node: usize, first: usize, second: usize| {
        let of = |output: usize| values[node * outputs + output];
        match outputs {
            0 => None,
            1 => Some(of(0)),
            _ if is_per_class => Some(of(first) - of(second)),
            _ if votes_by_pairs && first.max(second) < count => {
                let (low, high) = (first.min(second), first.max(second));
                Some(of(low * (2 * count - low - 1) / 2 + high - low - 1))
            }
            _ => None,
        }
    };
    move |from: usize, to: usize| {
        let ends = [from, to].map(|node| difference(node, classes[from], classes[to]));
        match ends {
            [Some(a), Some(b)] if a * b < 0.0 => a / (a - b),
            _ => 0.5,
        }
    }
}

/// Whether ±1 are the margins of the only decision function.
fn has_margins(model: &Model) -> bool {
    use widemargin::machine::MachineKind as Kind;
    matches!(
        model.kind,
        Kind::CSvc | Kind::NuSvc | Kind::LinearSvc | Kind::RobustSvc | Kind::SemiSupervised
    )
}

/// The two columns named by `X,Y`.
fn axes(text: &str, features: &[FeatureSummary]) -> CommandResult<[usize; 2]> {
    let find = |word: &str| {
        let by_name = features.iter().position(|f| f.name.as_deref() == Some(word));
        by_name
            .or_else(|| word.parse::<usize>().ok()?.checked_sub(1))
            .filter(|j| *j < features.len())
    };
    let pair = text.split_once(',').map(|(x, y)| (find(x.trim()), find(y.trim())));
    match pair {
        Some((Some(x), Some(y))) => Ok([x, y]),
        _ => Err(Failure::usage(format!(
            "--axes: expected two of the {} features by name or number, found '{text}'",
            features.len()
        ))),
    }
}

/// The range of a feature and a little more.
fn margin(feature: &FeatureSummary) -> Range<f64> {
    let width = feature.maximum - feature.minimum;
    let extra = if width > 0.0 { 0.06 * width } else { 1.0 };
    feature.minimum - extra..feature.maximum + extra
}

/// One line of nodes, from end to end of the range; features that are not shown have their mean.
fn line(
    features: &[FeatureSummary],
    axes: [usize; 2],
    ranges: &[Range<f64>; 2],
    nodes: usize,
    row: usize,
) -> widemargin::Result<Matrix> {
    let place = |range: &Range<f64>, node: usize| {
        range.start + node as f64 / (nodes - 1) as f64 * (range.end - range.start)
    };
    let mut values = Vec::with_capacity(nodes * features.len());
    for column in 0..nodes {
        let start = values.len();
        values.extend(features.iter().map(|feature| feature.mean));
        values[start + axes[0]] = place(&ranges[0], column);
        values[start + axes[1]] = place(&ranges[1], row);
    }
    Ok(Matrix::DenseF64(Dense::new(nodes, features.len(), values)?))
}
