//! A KD-tree: boxes around halves of halves of the rows, so that most rows need not be looked at.

use crate::solver::algebra::squared_distance;

/// Rows of a box that is not divided.
const LEAF: usize = 24;

/// Boxes and the rows in them.
pub(crate) struct Tree {
    columns: usize,
    /// Rows in the order of the boxes.
    values: Vec<f64>,
    /// Original row of each.
    rows: Vec<usize>,
    boxes: Vec<Box>,
    /// Lower then upper corner of every box.
    corners: Vec<f64>,
}

struct Box {
    start: usize,
    end: usize,
    /// The two halves; 0 for a box that is not divided.
    children: [usize; 2],
}

/// The nearest rows so far: squared distance and row, the farthest last.
struct Nearest {
    k: usize,
    found: Vec<(f64, usize)>,
}

impl Nearest {
    fn reach(&self) -> f64 {
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
    pub(super) fn new(values: &[f64], columns: usize) -> Self {
        let mut rows: Vec<usize> = (0..values.len() / columns).collect();
        let mut tree =
            Self { columns, values: Vec::new(), rows: Vec::new(), boxes: vec![], corners: vec![] };
        let count = rows.len();
        tree.divide(values, &mut rows, 0, count);
        tree.values =
            rows.iter().flat_map(|&i| &values[i * columns..(i + 1) * columns]).copied().collect();
        tree.rows = rows;
        tree
    }

    fn divide(&mut self, values: &[f64], rows: &mut [usize], start: usize, end: usize) -> usize {
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
        let place = self.boxes.len();
        self.boxes.push(Box { start, end, children: [0, 0] });
        let divisible = end - start > LEAF && width(widest) > 0.0;
        self.corners.extend_from_slice(&lower);
        self.corners.extend_from_slice(&upper);
        if divisible {
            let middle = (start + end) / 2;
            let key = |i: usize| values[i * columns + widest];
            rows[start..end].select_nth_unstable_by(middle - start, |&a, &b| {
                key(a).total_cmp(&key(b)).then(a.cmp(&b))
            });
            let first = self.divide(values, rows, start, middle);
            let second = self.divide(values, rows, middle, end);
            self.boxes[place].children = [first, second];
        }
        place
    }

    /// The k nearest rows and their squared distances, nearest first, the lower row first among
    /// equals.
    pub(super) fn nearest(&self, query: &[f64], k: usize) -> Vec<(f64, usize)> {
        let mut nearest = Nearest { k, found: Vec::with_capacity(k + 1) };
        self.visit(0, self.distance_to(0, query), query, &mut nearest);
        nearest.found
    }

    fn visit(&self, place: usize, distance: f64, query: &[f64], nearest: &mut Nearest) {
        if distance > nearest.reach() {
            return;
        }
        let node = &self.boxes[place];
        if node.children == [0, 0] {
            for at in node.start..node.end {
                let row = &self.values[at * self.columns..(at + 1) * self.columns];
                let distance = squared_distance(query, row);
                if distance <= nearest.reach() {
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

    /// Squared distance from a point to a box, rounded down so that no row of it is missed.
    fn distance_to(&self, place: usize, query: &[f64]) -> f64 {
        let corners = &self.corners[place * 2 * self.columns..][..2 * self.columns];
        let (lower, upper) = corners.split_at(self.columns);
        let mut sum = 0.0;
        for ((x, lower), upper) in query.iter().zip(lower).zip(upper) {
            let outside = (lower - x).max(x - upper).max(0.0);
            sum += outside * outside;
        }
        sum * (1.0 - 1e-14)
    }
}
