//! What the solver of a path knows about rows outside a part.
//!
//! The gradient of a two-class problem covers all rows of its classes: with f = Kβ − y the decision
//! value of a row outside the part is f + y − ρ. A row whose class takes part in every problem has
//! all its values that way. Where pairs of classes vote, a class that wins all its pairs is elected
//! whatever the other pairs say, and so it is by the graph of pairs: most rows need no more.

use super::Task;
use crate::data::Dense;
use crate::machine::model::Scheme;
use crate::machine::training::RowSegments;
use crate::solver::smo::Solution;

/// Rows outside one part that are to be predicted, by the segment of their class.
pub(super) struct HeldOut {
    /// How many are to be predicted, whether they are in the layout or not.
    rows: usize,
    /// Places among the rows of every segment, and among the rows that are held out.
    of_segment: Vec<Vec<(usize, usize)>>,
}

impl HeldOut {
    /// The rows of `held_out` that have no weight in the part; `place` gives places in the layout.
    pub(super) fn new(
        layout: &RowSegments,
        segments: usize,
        place: &[Option<usize>],
        held_out: &[usize],
        weights: &[f64],
    ) -> Self {
        let mut of_segment = vec![Vec::new(); segments];
        for (at, &row) in held_out.iter().enumerate().filter(|(_, row)| weights[**row] == 0.0) {
            if let Some(place) = place.get(row).copied().flatten() {
                let segment = layout.segment_of(place);
                of_segment[segment].push((place - layout.segment(segment).start, at));
            }
        }
        Self { rows: held_out.len(), of_segment }
    }

    /// Decision values that a solution of `task` gives, segment by segment.
    pub(super) fn values(
        &self,
        task: &Task,
        layout: &RowSegments,
        solution: &Solution,
    ) -> Vec<f64> {
        let offset = solution.multipliers[0];
        let mut start = 0;
        let mut values = Vec::with_capacity(self.count(task));
        for &(s, sign) in task {
            let gradient = &solution.gradient[start..];
            values.extend(self.of_segment[s].iter().map(|&(v, _)| gradient[v] + sign - offset));
            start += layout.segment(s).len();
        }
        values
    }

    fn count(&self, task: &Task) -> usize {
        task.iter().map(|(s, _)| self.of_segment[*s].len()).sum()
    }

    /// Whether the values of all `tasks` are known for every row.
    fn knows_all(&self, tasks: &[Task]) -> bool {
        tasks.iter().all(|task| self.count(task) == self.rows)
    }

    /// A table of all values, one row for every row that is held out, where all are known.
    pub(super) fn table<'a>(
        &self,
        tasks: &[Task],
        values: impl Iterator<Item = &'a [f64]>,
    ) -> Option<Dense<f64>> {
        if !self.knows_all(tasks) {
            return None;
        }
        let mut table = vec![0.0; self.rows * tasks.len()];
        for (column, (task, values)) in tasks.iter().zip(values).enumerate() {
            let rows = task.iter().flat_map(|(s, _)| &self.of_segment[*s]);
            for ((_, at), value) in rows.zip(values) {
                table[at * tasks.len() + column] = *value;
            }
        }
        Dense::new(self.rows, tasks.len(), table).ok()
    }

    /// The class of every row that wins all its pairs.
    pub(super) fn winners<'a>(
        &self,
        scheme: &Scheme,
        tasks: &[Task],
        values: impl Iterator<Item = &'a [f64]>,
    ) -> Vec<Option<usize>> {
        let mut winners = vec![None; self.rows];
        if !matches!(scheme, Scheme::OneVsOne | Scheme::Dag) {
            return winners;
        }
        for (s, rows) in self.of_segment.iter().enumerate() {
            rows.iter().for_each(|&(_, at)| winners[at] = Some(s));
        }
        for (task, values) in tasks.iter().zip(values) {
            let rows = task.iter().flat_map(|&(s, sign)| {
                self.of_segment[s].iter().map(move |&(_, at)| (at, sign > 0.0))
            });
            for ((at, is_first), &value) in rows.zip(values) {
                if (value > 0.0) != is_first {
                    winners[at] = None;
                }
            }
        }
        winners
    }
}
