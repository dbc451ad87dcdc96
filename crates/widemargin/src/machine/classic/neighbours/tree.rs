//! k-nearest neighbours by a k-d tree (Bentley, 1975) or ball tree (Omohundro, 1989): the rows are halved
//! again and again, and a part is left out when its bounding box or ball is farther away than the k-th
//! nearest row so far.

use std::ops::Range;

use super::super::rows::means;
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::squared_distance;

/// Rows of a part that is not divided.
const LEAF: usize = 24;

/// One in how many rows a tree may look at and still win over products with all rows: measured
/// between 8 and 16 on data of 9 to 64 features.
const VISITED_ONE_IN: usize = 12;

/// Searches that judge a tree.
const SAMPLED: usize = 16;

/// What encloses the rows of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hull {
    /// The box along the axes: its lower and upper corner.
    Box,
    /// A ball around the mean: its centre and radius.
    Ball,
}

/// A k-d tree or ball tree.
pub(crate) struct Tree {
    hull: Hull,
    columns: usize,
    /// Rows in the order of the parts.
    values: Vec<f64>,
    /// Original row of each.
    rows: Vec<usize>,
    parts: Vec<Part>,
    /// The hull of every part.
    hulls: Vec<f64>,
}

struct Part {
    start: usize,
    end: usize,
    /// The two halves; 0 for a part that is not divided.
    children: [usize; 2],
}

/// The nearest rows so far: squared distance and row, the farthest last.
struct Nearest {
    k: usize,
    found: Vec<(f64, usize)>,
    /// Rows whose distance was computed.
    looked_at: usize,
}

impl Nearest {
    fn farthest(&self) -> f64 {
        if self.found.len() < self.k { f64::INFINITY } else { self.found[self.k - 1].0 }
    }

    fn offer(&mut self, distance: f64, row: usize) {
        let place = self.found.partition_point(|&(d, r)| (d, r) < (distance, row));
        if place < self.k {
            if self.found.len() == self.k {
                self.found.pop();
            }
            self.found.insert(place, (distance, row));
        }
    }
}

impl Tree {
    /// Divides rows, each `columns` wide, at the median of the widest side of their box.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn new(
        values: &[f64],
        columns: usize,
        hull: Hull,
        context: &Context,
    ) -> Result<Self> {
        let mut rows: Vec<usize> = (0..values.len() / columns).collect();
        let (parts, hulls) = (Vec::new(), Vec::new());
        let mut tree = Self { hull, columns, values: Vec::new(), rows: Vec::new(), parts, hulls };
        let count = rows.len();
        tree.divide(values, &mut rows, 0..count, context)?;
        tree.values =
            rows.iter().flat_map(|&i| &values[i * columns..(i + 1) * columns]).copied().collect();
        tree.rows = rows;
        Ok(tree)
    }

    fn divide(
        &mut self,
        values: &[f64],
        rows: &mut [usize],
        range: Range<usize>,
        context: &Context,
    ) -> Result<usize> {
        context.checkpoint()?;
        let Range { start, end } = range;
        let columns = self.columns;
        let mut lower = vec![f64::INFINITY; columns];
        let mut upper = vec![f64::NEG_INFINITY; columns];
        for &i in &rows[start..end] {
            for j in 0..columns {
                lower[j] = lower[j].min(values[i * columns + j]);
                upper[j] = upper[j].max(values[i * columns + j]);
            }
        }
        let width = |j: usize| upper[j] - lower[j];
        let widest = (0..columns).fold(0, |best, j| if width(j) > width(best) { j } else { best });
        let divisible = end - start > LEAF && width(widest) > 0.0;
        let place = self.parts.len();
        self.parts.push(Part { start, end, children: [0, 0] });
        match self.hull {
            Hull::Box => {
                self.hulls.extend_from_slice(&lower);
                self.hulls.extend_from_slice(&upper);
            }
            Hull::Ball => {
                let row = |&i: &usize| &values[i * columns..(i + 1) * columns];
                let own = &rows[start..end];
                let centre = means(own.iter().map(row), columns);
                let squares = own.iter().map(|i| squared_distance(row(i), &centre));
                let radius = squares.fold(0.0, f64::max).sqrt();
                self.hulls.extend_from_slice(&centre);
                self.hulls.push(radius);
            }
        }
        if divisible {
            let middle = (start + end) / 2;
            let key = |i: usize| values[i * columns + widest];
            rows[start..end].select_nth_unstable_by(middle - start, |&a, &b| {
                key(a).total_cmp(&key(b)).then(a.cmp(&b))
            });
            let first = self.divide(values, rows, start..middle, context)?;
            let second = self.divide(values, rows, middle..end, context)?;
            self.parts[place].children = [first, second];
        }
        Ok(place)
    }

    /// The k nearest rows and their squared distances, nearest first, the lower row first among
    /// equals.
    pub(super) fn nearest(&self, query: &[f64], k: usize) -> Vec<(f64, usize)> {
        self.search(query, k).found
    }

    fn search(&self, query: &[f64], k: usize) -> Nearest {
        let mut nearest = Nearest { k, found: Vec::with_capacity(k + 1), looked_at: 0 };
        self.visit(0, self.distance_to(0, query), query, &mut nearest);
        nearest
    }

    /// Whether a search among the rows themselves looks at few of them: less than one in
    /// [`VISITED_ONE_IN`], judged by [`SAMPLED`] of them.
    pub(super) fn is_worth_it(&self, k: usize) -> bool {
        let count = self.rows.len();
        let limit = SAMPLED * count / VISITED_ONE_IN;
        let mut looked_at = 0;
        for at in (0..SAMPLED).map(|i| i * count / SAMPLED) {
            looked_at +=
                self.search(&self.values[at * self.columns..][..self.columns], k).looked_at;
            if looked_at >= limit {
                return false;
            }
        }
        true
    }

    fn visit(&self, place: usize, distance: f64, query: &[f64], nearest: &mut Nearest) {
        if distance > nearest.farthest() {
            return;
        }
        let node = &self.parts[place];
        if node.children == [0, 0] {
            nearest.looked_at += node.end - node.start;
            for at in node.start..node.end {
                let row = &self.values[at * self.columns..(at + 1) * self.columns];
                let distance = squared_distance(query, row);
                if distance <= nearest.farthest() {
                    nearest.offer(distance, self.rows[at]);
                }
            }
            return;
        }
        let [first, second] = node.children;
        let (near, far) = (self.distance_to(first, query), self.distance_to(second, query));
        if near <= far {
            self.visit(first, near, query, nearest);
            self.visit(second, far, query, nearest);
        } else {
            self.visit(second, far, query, nearest);
            self.visit(first, near, query, nearest);
        }
    }

    /// Squared distance from a point to a hull, rounded down so that no row of it is missed.
    fn distance_to(&self, place: usize, query: &[f64]) -> f64 {
        match self.hull {
            Hull::Box => {
                let corners = &self.hulls[place * 2 * self.columns..][..2 * self.columns];
                let (lower, upper) = corners.split_at(self.columns);
                let mut sum = 0.0;
                for ((x, lower), upper) in query.iter().zip(lower).zip(upper) {
                    let outside = (lower - x).max(x - upper).max(0.0);
                    sum += outside * outside;
                }
                sum * (1.0 - 1e-14)
            }
            Hull::Ball => {
                let ball = &self.hulls[place * (self.columns + 1)..][..=self.columns];
                let away = squared_distance(query, &ball[..self.columns]).sqrt();
                // The sum and the root are off by a few units of rounding each.
                let outside = (away * (1.0 - 1e-12) - ball[self.columns] * (1.0 + 1e-12)).max(0.0);
                outside * outside * (1.0 - 1e-14)
            }
        }
    }
}
