//! How good the predictions of a model are, as text and as JSON.

use serde_json::{Value, json};
use widemargin::data::{Dataset, Labels};
use widemargin::machine::{MachineKind, Model};
use widemargin::operation::cross_validate::Quality;
use widemargin::operation::metrics::Confusion;

use crate::failure::CommandResult;
use crate::table::{Summary, count, duration, grid};
use crate::terminal;
use crate::usage::UsedTime;

/// Classes beyond which a line of text can no longer hold a row of the confusion matrix.
const LARGEST_PRINTED: usize = 12;

/// Compares predictions with the labels of the data, if it has any that fit.
pub(crate) fn quality(
    kind: MachineKind,
    data: &Dataset,
    predictions: &Labels,
) -> CommandResult<Option<Quality>> {
    let truth = data.labels();
    let novelty = kind.is_novelty_detector() && !speaks_of_novelty(truth);
    if matches!(truth, Labels::None) || novelty || !kind.has_true_labels() {
        return Ok(None);
    }
    Ok(Some(Quality::new(kind, truth, data.groups(), predictions)?))
}

/// Lines for people.
pub(crate) fn quality_text(quality: &Quality) -> String {
    let mut lines = Summary::default();
    match quality {
        Quality::Numbers(errors) => {
            lines
                .line("mean squared error", format!("{:.6}", errors.mean_squared_error))
                .line("mean absolute error", format!("{:.6}", errors.mean_absolute_error))
                .line("determination (R²)", format!("{:.6}", errors.determination));
            lines.text()
        }
        Quality::Orders(orders) => {
            let optional = |value: Option<f64>| {
                value.map_or_else(
                    || "not defined for these labels".to_owned(),
                    |v| format!("{v:.6}"),
                )
            };
            lines
                .line("queries", count(orders.queries as u64))
                .line("pairs in order", format!("{:.4} %", 100.0 * orders.pair_accuracy))
                .line("NDCG", optional(orders.ndcg))
                .line("NDCG@10", optional(orders.ndcg_at_10))
                .line("mean average precision", optional(orders.mean_average_precision))
                .line("Kendall's tau-b", format!("{:.6}", orders.kendall_tau));
            lines.text()
        }
        Quality::Classes(confusion) => {
            let share = 100.0 * confusion.accuracy();
            let (right, total) =
                (count(confusion.correct() as u64), count(confusion.total() as u64));
            lines.line("accuracy", format!("{share:.4} % ({right} of {total})"));
            lines.text() + &confusion_text(confusion)
        }
    }
}

/// Fields for programs.
pub(crate) fn quality_json(quality: &Quality) -> Value {
    match quality {
        Quality::Numbers(errors) => json!(errors),
        Quality::Orders(orders) => json!(orders),
        Quality::Classes(confusion) => json!({
            "accuracy": confusion.accuracy(),
            "balanced_accuracy": confusion.balanced_accuracy(),
            "correct": confusion.correct(),
            "confusion": confusion,
        }),
    }
}

/// Whether the labels are those of a novelty detector, 1 and −1.
fn speaks_of_novelty(truth: &Labels) -> bool {
    truth.values().is_ok_and(|values| values.iter().all(|v| v.abs() == 1.0))
}

/// A share as a percentage; nothing where there is none.
fn percent(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| format!("{:.1}", 100.0 * share))
}

fn confusion_text(confusion: &Confusion) -> String {
    let names: Vec<String> = confusion.classes.iter().map(ToString::to_string).collect();
    let rows = if names.len() > LARGEST_PRINTED {
        class_rows(confusion, &names)
    } else {
        matrix_rows(confusion, &names)
    };
    format!("\n{}", grid(&rows))
}

/// The matrix, a row per true class.
fn matrix_rows(confusion: &Confusion, names: &[String]) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["true \\ predicted".to_owned()]];
    rows[0].extend(names.iter().cloned());
    rows[0].push("recall %".to_owned());
    for (i, name) in names.iter().enumerate() {
        let mut row = vec![name.clone()];
        row.extend(confusion.counts[i].iter().map(|c| count(*c as u64)));
        row.push(percent(confusion.recall(i)));
        rows.push(row);
    }
    let mut last = vec!["precision %".to_owned()];
    last.extend((0..names.len()).map(|j| percent(confusion.precision(j))));
    rows.push(last);
    rows
}

/// What matters of every class: a line each, however many there are.
fn class_rows(confusion: &Confusion, names: &[String]) -> Vec<Vec<String>> {
    let heading = ["class", "rows", "recall %", "precision %", "most often taken for"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for (i, name) in names.iter().enumerate() {
        let counts = &confusion.counts[i];
        let others = (0..names.len()).filter(|&j| j != i && counts[j] > 0);
        let taken = others.max_by_key(|&j| (counts[j], names.len() - j));
        rows.push(vec![
            name.clone(),
            count(counts.iter().sum::<usize>() as u64),
            percent(confusion.recall(i)),
            percent(confusion.precision(i)),
            taken.map_or(String::new(), |j| format!("{} ({})", names[j], counts[j])),
        ]);
    }
    rows
}

/// Quality and cost of the predictions for a file.
pub(crate) struct Evaluation {
    pub(crate) quality: Option<Quality>,
    pub(crate) rows: usize,
    pub(crate) spent: UsedTime,
}

impl Evaluation {
    /// Compares predictions with the labels of the data.
    pub(crate) fn new(
        model: &Model,
        data: &Dataset,
        predictions: &Labels,
        spent: UsedTime,
    ) -> CommandResult<Self> {
        let quality = quality(model.kind, data, predictions)?;
        Ok(Self { quality, rows: predictions.len(), spent })
    }

    /// Lines for people.
    pub(crate) fn text(&self) -> String {
        let mut lines = Summary::default();
        let per_row = duration(self.spent.seconds / self.rows.max(1) as f64);
        lines
            .line("rows", count(self.rows as u64))
            .line("time", format!("{} ({per_row} a row)", duration(self.spent.seconds)));
        lines.text() + &self.quality.as_ref().map_or_else(String::new, quality_text)
    }

    /// Prints it: as JSON, or as text beside predictions that went to standard output, unless it is to be quiet.
    pub(crate) fn print(&self, as_json: bool, beside: bool, quiet: bool) -> CommandResult<()> {
        if as_json {
            terminal::print_json(&self.json())?;
        } else if beside && !quiet {
            terminal::note(self.text().trim_end());
        } else if !quiet {
            terminal::print(&self.text())?;
        }
        Ok(())
    }

    /// Fields for programs.
    pub(crate) fn json(&self) -> Value {
        let mut document = json!({
            "rows": self.rows,
            "predict_seconds": self.spent.seconds,
            "predict_cpu_seconds": self.spent.cpu_seconds,
        });
        let more = self.quality.as_ref().map_or_else(|| json!({}), quality_json);
        if let (Value::Object(fields), Value::Object(more)) = (&mut document, more) {
            fields.extend(more);
        }
        document
    }
}
