//! Neighbours made ready to answer: the search structure, and votes or means.

use std::ops::Range;

use super::super::Neighbours;
use super::super::rows::dense_rows;
use super::brute::Brute;
use super::fit::{NeighbourSearch, Weighting};
use super::tree::{Hull, Tree};
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};

/// Rows below which no tree is tried.
const FEW_ROWS: usize = 500;

/// Features above which no tree is tried.
const MANY_FEATURES: usize = 64;

/// Finds the nearest rows.
pub(in super::super) enum Finder {
    Single(Brute<f32>),
    Double(Brute<f64>),
    Tree(Tree),
}

impl Finder {
    /// The structure that `search` asks for, good for searches of about `k` rows.
    ///
    /// What wins depends on how the rows lie more than on their number: `Auto` makes a tree of boxes
    /// and keeps it where a search looks at less than one row in twelve, which is the crossover
    /// measured. Trees of balls lost to the one or the other on all data tried.
    pub(in super::super) fn new(
        rows: &Matrix,
        search: NeighbourSearch,
        k: usize,
        context: &Context,
    ) -> Result<Self> {
        let columns = rows.columns();
        let tree = |hull: Hull| Tree::new(&dense_rows(rows), columns, hull);
        match search {
            NeighbourSearch::Tree => return Ok(Self::Tree(tree(Hull::Box))),
            NeighbourSearch::BallTree => return Ok(Self::Tree(tree(Hull::Ball))),
            NeighbourSearch::Auto if rows.rows() >= FEW_ROWS && columns <= MANY_FEATURES => {
                let tree = tree(Hull::Box);
                if tree.is_worth_it(k) {
                    return Ok(Self::Tree(tree));
                }
            }
            NeighbourSearch::Auto | NeighbourSearch::Brute => {}
        }
        match Brute::new(rows, context) {
            Ok(brute) => Ok(Self::Single(brute)),
            // Norms that overflow single precision.
            Err(Error::Kernel { .. }) => Ok(Self::Double(Brute::new(rows, context)?)),
            Err(error) => Err(error),
        }
    }

    /// What it is, by the name that asks for it.
    pub(super) fn search(&self) -> NeighbourSearch {
        match self {
            Self::Tree(_) => NeighbourSearch::Tree,
            _ => NeighbourSearch::Brute,
        }
    }

    /// Calls `visit(query, neighbours)` with the squared distances and rows of the k nearest.
    pub(in super::super) fn nearest(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        k: usize,
        mut visit: impl FnMut(usize, &[(f64, usize)]),
    ) -> Result<()> {
        match self {
            Self::Single(brute) => brute.nearest(queries, range, k, visit),
            Self::Double(brute) => brute.nearest(queries, range, k, visit),
            Self::Tree(tree) => {
                let mut query = vec![0.0; queries.columns()];
                for i in range {
                    queries.copy_row(i, &mut query);
                    visit(i, &tree.nearest(&query, k));
                }
                Ok(())
            }
        }
    }
}

/// A model of neighbours, ready.
pub(crate) struct Ready {
    finder: Finder,
    part: Neighbours,
    /// Classes or clusters; 0 for numbers.
    classes: usize,
}

impl Ready {
    pub(in super::super) fn new(
        support: &Matrix,
        part: &Neighbours,
        classes: usize,
        context: &Context,
    ) -> Result<Self> {
        let white;
        let rows = if part.whitening.is_empty() {
            support
        } else {
            white = whitened(support, 0..support.rows(), &part.whitening)?;
            &white
        };
        let finder = Finder::new(rows, part.search, part.k, context)?;
        Ok(Self { finder, part: part.clone(), classes })
    }

    /// How it searches, which `Auto` leaves open.
    pub(super) fn search(&self) -> NeighbourSearch {
        self.finder.search()
    }

    /// Squared distances and rows of the k nearest of every query.
    pub(in super::super) fn nearest(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        k: usize,
        mut visit: impl FnMut(usize, &[(f64, usize)]),
    ) -> Result<()> {
        if self.part.whitening.is_empty() {
            return self.finder.nearest(queries, range, k, visit);
        }
        let start = range.start;
        let white = whitened(queries, range, &self.part.whitening)?;
        self.finder.nearest(&white, 0..white.rows(), k, |i, found| visit(start + i, found))
    }

    /// Shares of votes, or the mean.
    pub(in super::super) fn evaluate(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        out: &mut [f64],
    ) -> Result<()> {
        let width = self.classes.max(1);
        let start = range.start;
        let mut distances = vec![0.0; self.classes];
        self.nearest(queries, range, self.part.k, |i, found| {
            let out = &mut out[(i - start) * width..][..width];
            let touches = found[0].0 == 0.0;
            let weight = |squared: f64| match self.part.weighting {
                Weighting::Uniform => 1.0,
                Weighting::Distance if touches => f64::from(u8::from(squared == 0.0)),
                Weighting::Distance => 1.0 / squared.sqrt(),
            };
            let total: f64 = found.iter().map(|&(squared, _)| weight(squared)).sum();
            if self.classes == 0 {
                let target = |row: usize| self.part.targets[row];
                let sum: f64 = found.iter().map(|&(s, row)| weight(s) * target(row)).sum();
                out[0] = sum / total;
                return;
            }
            out.fill(0.0);
            distances.fill(0.0);
            for &(squared, row) in found {
                let class = self.part.targets[row] as usize;
                out[class] += weight(squared);
                distances[class] += squared.sqrt();
            }
            let winner = elect(out, &distances, found, &self.part.targets);
            out.iter_mut().for_each(|share| *share /= total);
            // The winner of a tie gets the smallest lead there is, so that the largest share is
            // always the answer.
            let most = out.iter().fold(0.0_f64, |most, share| most.max(*share));
            if out.iter().filter(|share| **share == most).count() > 1 {
                out[winner] = out[winner].next_up();
            }
        })
    }
}

/// The class that wins the vote, by the rule of the module [`fit`](super::fit).
fn elect(votes: &[f64], distances: &[f64], found: &[(f64, usize)], targets: &[f64]) -> usize {
    let most = votes.iter().fold(0.0_f64, |most, vote| most.max(*vote));
    let tied = |class: usize| votes[class] == most;
    let nearest = |class: usize| {
        found.iter().position(|&(_, row)| targets[row] as usize == class).unwrap_or(found.len())
    };
    let key = |class: usize| (distances[class], nearest(class), class);
    (0..votes.len())
        .filter(|&class| tied(class))
        .min_by(|&a, &b| {
            let (a, b) = (key(a), key(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
        })
        .unwrap_or(0)
}

/// W x of every row x.
fn whitened(rows: &Matrix, range: Range<usize>, whitening: &[f64]) -> Result<Matrix> {
    let columns = rows.columns();
    let mut values = Vec::with_capacity(range.len() * columns);
    let mut row = vec![0.0; columns];
    for i in range.clone() {
        rows.copy_row(i, &mut row);
        let product = |w: &[f64]| w.iter().zip(&row).map(|(w, x)| w * x).sum::<f64>();
        values.extend(whitening.chunks_exact(columns).map(product));
    }
    Ok(Matrix::DenseF64(Dense::new(range.len(), columns, values)?))
}
