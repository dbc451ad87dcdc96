//! k-means by Lloyd's iteration on packed rows, and the seeds of k-means++.
//!
//! Every round assigns each row to the nearest centre and moves the centres to the means of their
//! rows, which never raises Σ ‖x − centre‖² (Lloyd, 1957). Seeds are drawn with probability
//! proportional to the squared distance to those before (Arthur and Vassilvitskii, 2007), the best
//! of 2 + ln k draws each.

use super::super::distances::Distances;
use super::super::rows::{table, total_scatter};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::numeric::algebra::squared_distance;
use crate::numeric::random::Generator;
use crate::solver::Status;

/// Rows assigned by one task.
const TASK_ROWS: usize = 2048;

/// Rows packed for distances to few centres.
pub(in super::super) struct Lloyd<'a> {
    distances: Distances<f64>,
    rows: Matrix,
    pub(super) columns: usize,
    context: &'a Context,
}

/// Where the rows belong.
#[derive(Clone)]
pub(in super::super) struct Assignment {
    /// The nearest centre of every row, the first of equals.
    pub(in super::super) labels: Vec<u32>,
    /// Squared distance to it.
    pub(in super::super) squares: Vec<f64>,
    /// Rounds it took.
    pub(in super::super) rounds: usize,
    pub(in super::super) status: Status,
}

impl Assignment {
    /// Σ of the squared distances.
    pub(in super::super) fn inertia(&self) -> f64 {
        self.squares.iter().sum()
    }

    /// Gives one more centre the rows that are closer to it.
    fn join(&mut self, centre: u32, squares: &[f64]) {
        for ((own, label), &square) in self.squares.iter_mut().zip(&mut self.labels).zip(squares) {
            if square < *own {
                (*own, *label) = (square, centre);
            }
        }
    }
}

impl<'a> Lloyd<'a> {
    pub(in super::super) fn new(rows: &Matrix, context: &'a Context) -> Result<Self> {
        let distances = Distances::new(rows, context)?;
        Ok(Self { distances, rows: rows.clone(), columns: rows.columns(), context })
    }

    fn row(&self, i: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.columns];
        self.rows.copy_row(i, &mut row);
        row
    }

    pub(super) fn len(&self) -> usize {
        self.distances.len()
    }

    /// The nearest centre of every row.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    fn assign(&self, centres: &[f64]) -> Result<Assignment> {
        let count = centres.len() / self.columns;
        let measured = self.distances.measure(&table(centres.to_vec(), self.columns)?, 0..count)?;
        let rows = self.len();
        let part = |task: usize| {
            let range = task * TASK_ROWS..((task + 1) * TASK_ROWS).min(rows);
            let width = range.len();
            if self.context.stop_request().is_some() {
                return Vec::new();
            }
            let mut products = vec![0.0; count * width];
            self.distances.products(&measured, range.clone(), &mut products, width);
            let mut best = vec![(f64::INFINITY, 0_u32); width];
            for (c, products) in products.chunks_exact(width).enumerate() {
                let norm = measured.norms[c];
                for (best, product) in best.iter_mut().zip(products) {
                    let value = norm - 2.0 * product;
                    *best = if value < best.0 { (value, c as u32) } else { *best };
                }
            }
            let norms = &self.distances.norms()[range];
            best.into_iter().zip(norms).map(|((v, c), n)| ((v + n).max(0.0), c)).collect::<Vec<_>>()
        };
        let tasks = rows.div_ceil(TASK_ROWS);
        let parts = self.context.map(0..tasks, part);
        self.context.checkpoint()?;
        let (squares, labels) = parts.into_iter().flatten().unzip();
        Ok(Assignment { labels, squares, rounds: 0, status: Status::Solved })
    }

    /// Moves the centres until they stand still, their moves sum to less than `tol` times the
    /// variance of the features, or `rounds` are over; on a request to stop it keeps the last centres whose
    /// rows are known.
    pub(in super::super) fn run(
        &self,
        seeds: Seeds,
        rounds: usize,
        tol: f64,
    ) -> Result<(Vec<f64>, Assignment)> {
        let Seeds { mut centres, mut assigned } = seeds;
        let threshold = tol * self.variance();
        let mut status = if rounds == 0 { Status::Solved } else { Status::IterationLimit };
        let mut done = 0;
        while done < rounds {
            let round = self
                .recentre(&centres, &assigned)
                .and_then(|moved| self.assign(&moved).map(|next| (moved, next)));
            let (moved, next) = match round {
                Err(Error::Interrupted) => {
                    status = self.context.stop_request().unwrap_or(Status::Interrupted);
                    break;
                }
                round => round?,
            };
            let shift = squared_distance(&centres, &moved);
            done += 1;
            let unchanged = next.labels == assigned.labels;
            (centres, assigned) = (moved, next);
            // The look at the labels of the last centres is a round as well.
            if shift > threshold && unchanged && done < rounds {
                done += 1;
            } else if shift > threshold {
                continue;
            }
            status = Status::Solved;
            break;
        }
        assigned.rounds = done;
        assigned.status = status;
        Ok((centres, assigned))
    }

    /// The means of the rows of every centre; a centre without rows goes to the row farthest from
    /// its own.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    fn recentre(&self, centres: &[f64], assigned: &Assignment) -> Result<Vec<f64>> {
        let columns = self.columns;
        let count = centres.len() / columns;
        let (mut sums, mut sizes) = (vec![0.0; centres.len()], vec![0_usize; count]);
        for (i, &label) in assigned.labels.iter().enumerate() {
            if i.is_multiple_of(TASK_ROWS) {
                self.context.checkpoint()?;
            }
            sizes[label as usize] += 1;
            let sums = &mut sums[label as usize * columns..][..columns];
            self.rows.for_each_nonzero(i, |j, value| sums[j] += value);
        }
        let mut farthest: Vec<usize> = Vec::new();
        if sizes.contains(&0) {
            farthest = (0..self.len()).collect();
            farthest.sort_by(|&a, &b| {
                assigned.squares[a].total_cmp(&assigned.squares[b]).then(b.cmp(&a))
            });
        }
        for (c, size) in sizes.iter().enumerate() {
            let centre = &mut sums[c * columns..][..columns];
            match size {
                0 => {
                    let row = farthest.pop().unwrap_or(0);
                    centre.copy_from_slice(&self.row(row));
                }
                _ => centre.iter_mut().for_each(|sum| *sum /= *size as f64),
            }
        }
        Ok(sums)
    }

    /// Mean variance of the features.
    fn variance(&self) -> f64 {
        total_scatter(&self.rows) / (self.len() * self.columns).max(1) as f64
    }
}

/// Centres to start from and their rows.
pub(in super::super) struct Seeds {
    centres: Vec<f64>,
    assigned: Assignment,
}

impl Seeds {
    /// Centres that are given.
    pub(super) fn given(lloyd: &Lloyd<'_>, centres: &[f64]) -> Result<Self> {
        Ok(Self { centres: centres.to_vec(), assigned: lloyd.assign(centres)? })
    }

    /// Rows drawn as k-means++ does.
    ///
    /// # Errors
    /// [`Error::Parameter`] for more centres than rows; [`Error::Interrupted`] when the context asks to
    /// stop.
    pub(in super::super) fn draw(
        lloyd: &Lloyd<'_>,
        count: usize,
        generator: &mut Generator,
    ) -> Result<Self> {
        let rows = lloyd.len();
        if count > rows {
            let expected = format!("at most the {rows} rows");
            return Err(Error::parameter("clusters", expected, count));
        }
        let draws = 2 + (count as f64).ln() as usize;
        let mut centres = lloyd.row(generator.below(rows));
        let mut assigned = lloyd.assign(&centres)?;
        for centre in 1..count {
            let total = assigned.inertia();
            let mut best: Option<(f64, usize, Vec<f64>)> = None;
            for _ in 0..draws {
                let row = match total > 0.0 {
                    true => draw(&assigned.squares, generator.unit() * total),
                    false => generator.below(rows),
                };
                let squares = lloyd.assign(&lloyd.row(row))?.squares;
                let closer = assigned.squares.iter().zip(&squares);
                let sum: f64 = closer.map(|(&a, &b)| if b < a { b } else { a }).sum();
                if best.as_ref().is_none_or(|(least, ..)| sum < *least) {
                    best = Some((sum, row, squares));
                }
            }
            if let Some((_, row, squares)) = best {
                centres.extend(lloyd.row(row));
                assigned.join(centre as u32, &squares);
            }
        }
        Ok(Self { centres, assigned })
    }
}

/// The row at which the running sum of weights passes `target`.
fn draw(weights: &[f64], target: f64) -> usize {
    let mut sum = 0.0;
    for (row, weight) in weights.iter().enumerate() {
        sum += weight;
        if sum > target {
            return row;
        }
    }
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0)
}
