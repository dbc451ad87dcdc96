//! How good the answers of a model are, as text and as JSON.

use serde_json::{Value, json};
use widemargin::data::Labels;
use widemargin::machine::{MachineKind, Model};
use widemargin::operation::cross_validate::Quality;
use widemargin::operation::metrics::Confusion;

use crate::failure::CommandResult;
use crate::table::{Summary, count, duration, grid};
use crate::usage::Spent;

/// Classes beyond which the confusion matrix is left out of the text.
const LARGEST_PRINTED: usize = 30;

/// Compares answers with the labels of the data, if it has any that fit.
pub(crate) fn quality(
    kind: MachineKind,
    truth: &Labels,
    answers: &Labels,
) -> CommandResult<Option<Quality>> {
    let novelty = !kind.is_classifier() && !kind.is_regressor();
    if matches!(truth, Labels::None) || (novelty && !speaks_of_novelty(truth)) {
        return Ok(None);
    }
    Ok(Some(Quality::new(kind, truth, answers)?))
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
        Quality::Classes(confusion) => json!({
            "accuracy": confusion.accuracy(),
            "balanced_accuracy": confusion.balanced_accuracy(),
            "correct": confusion.correct(),
            "confusion": confusion,
        }),
    }
}

/// Whether the labels are the answers of a novelty detector, 1 and −1.
fn speaks_of_novelty(truth: &Labels) -> bool {
    truth.values().is_ok_and(|values| values.iter().all(|v| v.abs() == 1.0))
}

fn confusion_text(confusion: &Confusion) -> String {
    if confusion.classes.len() > LARGEST_PRINTED {
        return String::new();
    }
    let names: Vec<String> = confusion.classes.iter().map(ToString::to_string).collect();
    let percent =
        |share: Option<f64>| share.map_or(String::new(), |s| format!("{:.1} %", 100.0 * s));
    let mut rows = vec![vec!["true \\ predicted".to_owned()]];
    rows[0].extend(names.iter().cloned());
    rows[0].push("recall".to_owned());
    for (i, name) in names.iter().enumerate() {
        let mut row = vec![name.clone()];
        row.extend(confusion.counts[i].iter().map(|c| count(*c as u64)));
        row.push(percent(confusion.recall(i)));
        rows.push(row);
    }
    let mut last = vec!["precision".to_owned()];
    last.extend((0..names.len()).map(|j| percent(confusion.precision(j))));
    rows.push(last);
    format!("\n{}", grid(&rows))
}

/// Quality and cost of the answers to a file.
pub(crate) struct Evaluation {
    pub(crate) quality: Option<Quality>,
    pub(crate) rows: usize,
    pub(crate) spent: Spent,
}

impl Evaluation {
    /// Compares answers with the labels of the data.
    pub(crate) fn new(
        model: &Model,
        truth: &Labels,
        answers: &Labels,
        spent: Spent,
    ) -> CommandResult<Self> {
        let quality = quality(model.kind, truth, answers)?;
        Ok(Self { quality, rows: answers.len(), spent })
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
