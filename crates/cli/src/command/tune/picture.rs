//! The picture of a search: a line over one parameter, a heat map over a grid of two, or points whose
//! colour is their score.

use std::path::Path;

use widemargin::machine::specification::Value;
use widemargin::operation::tune::{Found, Judge, Metric, Plan, Space, Strategy, Trial};

use super::{name_of, short};
use crate::failure::{CommandResult, Failure};
use crate::picture::{Chart, Draw, HeatMap, Scale, Series, Shades, heat};

/// Draws what was found.
pub(super) fn draw(path: &Path, space: &Space, found: &Found, plan: &Plan) -> CommandResult<()> {
    let mut names = space.axes.iter().filter(|axis| axis.values.len() > 1).map(|axis| &axis.name);
    let search = Search { found, metric: name_of(plan), is_error: is_error(plan) };
    match (names.next(), names.next(), names.count()) {
        (None, ..) => Err(Failure::usage("--plot needs a parameter with several values")),
        (Some(only), None, _) => {
            let tries_grid = !matches!(plan.strategy, Strategy::Random { .. });
            search.line(only, tries_grid).draw(path)
        }
        (Some(y), Some(x), others) => {
            let note = match others {
                0 => None,
                1 => Some("and one more parameter"),
                _ => Some("and other parameters"),
            };
            search.plane(path, x, y, note, plan)
        }
    }
}

/// Whether a score is an error without its sign.
fn is_error(plan: &Plan) -> bool {
    let Judge::Splits { metric, .. } = &plan.judge else { return false };
    matches!(metric, Metric::SquaredError | Metric::AbsoluteError | Metric::LogLoss)
}

struct Search<'a> {
    found: &'a Found,
    metric: &'a str,
    is_error: bool,
}

impl Search<'_> {
    fn shown(&self, score: f64) -> f64 {
        if self.is_error { -score } else { score }
    }

    /// The points with a score: they and the score as people read it.
    fn finished(&self) -> impl Iterator<Item = (&Trial, f64)> {
        let trials = self.found.trials.iter();
        trials.filter_map(|trial| Some((trial, self.shown(trial.mean()?))))
    }

    /// The score over one parameter with its deviation between the splits.
    fn line(&self, name: &str, tries_grid: bool) -> Chart {
        let axis = Along::new(self.found, name);
        let mut points: Vec<(f64, f64, f64)> = self
            .finished()
            .filter_map(|(trial, score)| {
                let spread = trial.deviation().unwrap_or(0.0);
                Some((axis.place(trial.point.get(name)?)?, score, spread))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let places = points.iter().map(|p| (p.0, p.1)).collect();
        let is_line = tries_grid && !matches!(axis.scale, Scale::Words(_));
        let draw = if is_line { Draw::Marked } else { Draw::Points };
        let mut series = vec![Series {
            spread: points.iter().map(|p| p.2).collect(),
            ..Series::new("mean ± standard deviation of the splits", draw, places)
        }];
        series.extend(self.best(|trial, score| Some((axis.place(trial.point.get(name)?)?, score))));
        let ends = points.iter().flat_map(|p| [p.1 - p.2, p.1 + p.2]);
        Chart {
            title: format!("{} over {name}", self.metric),
            note: None,
            y: (self.metric.to_owned(), Scale::linear(ends)),
            x: (name.to_owned(), axis.scale),
            series,
            shades: None,
            size: (560.0, 360.0),
        }
    }

    fn best(&self, place: impl Fn(&Trial, f64) -> Option<(f64, f64)>) -> Option<Series> {
        let best = self.found.best()?;
        let at = place(best, self.shown(best.mean()?))?;
        Some(Series::new("best", Draw::Rings, vec![at]))
    }

    /// The scores over two parameters.
    fn plane(
        &self,
        path: &Path,
        x: &str,
        y: &str,
        others: Option<&str>,
        plan: &Plan,
    ) -> CommandResult<()> {
        let (columns, rows) = (Along::new(self.found, x), Along::new(self.found, y));
        let cells = self.cells(&columns, &rows, x, y);
        let tried = cells.iter().flatten().flatten().count();
        let chosen = matches!(plan.strategy, Strategy::Random { .. } | Strategy::Surrogate { .. });
        // Finer grids around a point leave most combinations of their values untried.
        if chosen || 2 * tried < columns.values.len() * rows.values.len() {
            let note = others.map(|others| format!("the points differ in {x}, {y} {others}"));
            return self.scatter(columns, rows, x, y, note).draw(path);
        }
        let labels = |along: &Along<'_>| -> Vec<String> {
            along.values.iter().map(|value| short(value)).collect()
        };
        heat(
            path,
            &HeatMap {
                title: self.metric,
                note: others.map(|_| "every cell: the best over the other parameters".to_owned()),
                x: (x, &labels(&columns)),
                y: (y, &labels(&rows)),
                cells: &cells,
                lower_is_better: self.is_error,
            },
        )
    }

    /// The best score of every pair of values.
    fn cells(
        &self,
        columns: &Along<'_>,
        rows: &Along<'_>,
        x: &str,
        y: &str,
    ) -> Vec<Vec<Option<f64>>> {
        let mut cells = vec![vec![None; columns.values.len()]; rows.values.len()];
        for (trial, score) in self.finished() {
            let place = |along: &Along<'_>, name: &str| {
                along.values.iter().position(|value| trial.point.get(name) == Some(*value))
            };
            if let (Some(i), Some(j)) = (place(rows, y), place(columns, x)) {
                let cell: &mut Option<f64> = &mut cells[i][j];
                let better = |other: f64| match self.is_error {
                    true => other.min(score),
                    false => other.max(score),
                };
                *cell = Some(cell.map_or(score, better));
            }
        }
        cells
    }

    /// Every point where it lies.
    fn scatter(
        &self,
        columns: Along<'_>,
        rows: Along<'_>,
        x: &str,
        y: &str,
        note: Option<String>,
    ) -> Chart {
        let place = |trial: &Trial| {
            let along = |axis: &Along<'_>, name: &str| axis.place(trial.point.get(name)?);
            Some((along(&columns, x)?, along(&rows, y)?))
        };
        let mut points: Vec<((f64, f64), f64)> =
            self.finished().filter_map(|(trial, score)| Some((place(trial)?, score))).collect();
        // The best on top.
        points.sort_by(|a, b| match self.is_error {
            true => b.1.total_cmp(&a.1),
            false => a.1.total_cmp(&b.1),
        });
        let scores: Vec<f64> = points.iter().map(|p| p.1).collect();
        let shades = Shades::of(scores.iter().copied(), self.is_error);
        let points: Vec<(f64, f64)> = points.into_iter().map(|p| p.0).collect();
        let mut series =
            vec![Series { scores, ..Series::new("a point that was tried", Draw::Points, points) }];
        series.extend(self.best(|trial, _| place(trial)));
        let unfinished: Vec<(f64, f64)> = self
            .found
            .trials
            .iter()
            .filter(|trial| trial.mean().is_none())
            .filter_map(place)
            .collect();
        if !unfinished.is_empty() {
            let name = "tried on fewer splits";
            series.insert(0, Series::new(name, Draw::Specks, unfinished).styled(6));
        }
        Chart {
            title: format!("{} over {x} and {y}", self.metric),
            note,
            x: (x.to_owned(), columns.scale),
            y: (y.to_owned(), rows.scale),
            series,
            shades: Some((self.metric.to_owned(), shades)),
            size: (520.0, 420.0),
        }
    }
}

/// The values of a parameter along an axis.
struct Along<'a> {
    /// Different values in order.
    values: Vec<&'a Value>,
    scale: Scale,
}

impl<'a> Along<'a> {
    fn new(found: &'a Found, name: &str) -> Self {
        let mut values: Vec<&Value> = Vec::new();
        for value in found.trials.iter().filter_map(|trial| trial.point.get(name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.sort_by(|a, b| match (a.number(), b.number()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => a.to_string().cmp(&b.to_string()),
        });
        let numbers: Option<Vec<f64>> = values.iter().map(|value| value.number()).collect();
        let scale = match numbers {
            Some(numbers) => Scale::fitting(numbers),
            None => Scale::Words(values.iter().map(|value| short(value)).collect()),
        };
        Self { values, scale }
    }

    fn place(&self, value: &Value) -> Option<f64> {
        match &self.scale {
            Scale::Words(_) => {
                self.values.iter().position(|known| *known == value).map(|at| at as f64)
            }
            _ => value.number(),
        }
    }
}
