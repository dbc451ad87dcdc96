//! k-nearest neighbours: rows that vote for classes or clusters, or whose values are averaged.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::distances::FEW_FEATURES;
use super::super::rows::dense_rows;
use super::brute::Brute;
use super::fit::{NeighbourSearch, Weighting};
use super::tree::{Hull, Tree};
use crate::context::Context;
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::machine::Classic;
use crate::machine::model::{
    Attributes, Description, Evaluation, MAX_SQUARE, MachineKind, Model, ModelBody, Nearest,
    PartsReader, PartsResult, PartsWriter, Prepared, check_classes, check_finite, check_length,
    fail, from_header, run_of, to_header,
};
use crate::numeric::algebra::times_transposed;

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
        let tree = |hull: Hull| Tree::new(&dense_rows(rows)?, columns, hull, context);
        match search {
            // A tree holds its rows densely.
            _ if rows.is_sparse() && columns > FEW_FEATURES => {}
            NeighbourSearch::Tree => return tree(Hull::Box).map(Self::Tree),
            NeighbourSearch::BallTree => return tree(Hull::Ball).map(Self::Tree),
            NeighbourSearch::Auto if rows.rows() >= FEW_ROWS && columns <= MANY_FEATURES => {
                let tree = tree(Hull::Box)?;
                if tree.is_worth_it(k) {
                    return Ok(Self::Tree(tree));
                }
            }
            NeighbourSearch::Auto | NeighbourSearch::Brute => {}
        }
        match Brute::new(rows, context) {
            Ok(brute) => Ok(Self::Single(brute)),
            // Norms that overflow single precision.
            Err(Error::Kernel { .. } | Error::Overflow { .. }) => {
                Ok(Self::Double(Brute::new(rows, context)?))
            }
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
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    pub(in super::super) fn nearest(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        k: usize,
        context: &Context,
        mut visit: impl FnMut(usize, &[(f64, usize)]),
    ) -> Result<()> {
        match self {
            Self::Single(brute) => brute.nearest(queries, range, k, context, visit),
            Self::Double(brute) => brute.nearest(queries, range, k, context, visit),
            Self::Tree(tree) => {
                let mut query = vec![0.0; queries.columns()];
                for i in range {
                    context.checkpoint()?;
                    queries.copy_row(i, &mut query);
                    visit(i, &tree.nearest(&query, k));
                }
                Ok(())
            }
        }
    }
}

/// Rows that vote.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    /// The rows.
    pub rows: Matrix,
    /// How many vote.
    pub k: usize,
    /// Weight of a neighbour's vote.
    pub weighting: Weighting,
    /// How they are found.
    pub search: NeighbourSearch,
    /// Class or cluster (from 0), or value of every row.
    pub targets: Vec<f64>,
    /// L⁻¹ of the covariance L Lᵀ whose distance is used, row by row; empty for Euclid's.
    pub whitening: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    features: usize,
    k: usize,
    weighting: Weighting,
    search: NeighbourSearch,
}

impl Neighbours {
    /// The structure that finds neighbours among the rows.
    pub(super) fn finder(&self, context: &Context) -> Result<Finder> {
        if self.whitening.is_empty() {
            return Finder::new(&self.rows, self.search, self.k, context);
        }
        let white = whitened(&self.rows, 0..self.rows.rows(), &self.whitening, context)?;
        Finder::new(&white, self.search, self.k, context)
    }
}

impl ModelBody for Neighbours {
    fn suits(&self, kind: MachineKind) -> bool {
        let kinds = [Classic::Neighbours, Classic::NeighboursRegression, Classic::Spectral];
        kinds.map(MachineKind::Classic).contains(&kind)
    }

    fn has_class_scores(&self) -> bool {
        true
    }

    fn vectors(&self) -> &Matrix {
        &self.rows
    }

    fn outputs(&self, model: &Model) -> usize {
        match &model.classes {
            Some(table) => table.names.len(),
            None if model.kind.is_regressor() => 1,
            None => self.targets.iter().fold(0, |most, &target| most.max(target as usize + 1)),
        }
    }

    fn check(&self, model: &Model) -> Result<()> {
        let (rows, columns) = (self.rows.rows(), self.rows.columns());
        if let Some(table) = &model.classes {
            check_classes(table, None)?;
        }
        if rows == 0 {
            return Err(Error::Empty { what: "row" });
        }
        if self.k == 0 || self.k > rows {
            return fail(format!("expected 1 to {rows} neighbours, found {}", self.k));
        }
        check_length("targets", rows, self.targets.len())?;
        check_finite("targets", &self.targets)?;
        if !self.whitening.is_empty() {
            if columns > MAX_SQUARE {
                return fail(format!("expected at most {MAX_SQUARE} features, found {columns}"));
            }
            check_length("whitening", columns * columns, self.whitening.len())?;
            check_finite("whitening", &self.whitening)?;
        }
        if model.kind.is_regressor() {
            return Ok(());
        }
        let limit = model.classes.as_ref().map_or(rows, |table| table.names.len());
        let sound =
            |target: &f64| *target >= 0.0 && *target < limit as f64 && target.fract() == 0.0;
        match self.targets.iter().find(|target| !sound(target)) {
            Some(target) => {
                fail(format!("expected targets from 0 to {}, found {target}", limit - 1))
            }
            None => Ok(()),
        }
    }

    fn describe(&self, _model: &Model) -> Description {
        Description::of_vectors("rows")
    }

    fn attributes(&self, _model: &Model) -> Attributes {
        vec![("targets", self.targets.clone().into())]
    }

    fn prepare(&self, model: &Model, context: &Context) -> Result<Box<dyn Prepared>> {
        Ok(Box::new(PreparedNeighbours {
            finder: self.finder(context)?,
            k: self.k,
            weighting: self.weighting,
            targets: self.targets.clone(),
            whitening: self.whitening.clone(),
            classes: if model.kind.is_regressor() { 0 } else { self.outputs(model) },
        }))
    }

    fn write(&self, parts: &mut PartsWriter) -> PartsResult<Value> {
        parts.put_matrix("rows", &self.rows);
        parts.put_list("targets", self.targets.iter().copied());
        parts.put_list("whitening", self.whitening.iter().copied());
        to_header(&Header {
            features: self.rows.columns(),
            k: self.k,
            weighting: self.weighting,
            search: self.search,
        })
    }

    fn read(header: Value, parts: &mut PartsReader<'_>) -> PartsResult<Self> {
        let header: Header = from_header(header)?;
        Ok(Self {
            rows: parts.take_matrix("rows", header.features)?,
            k: header.k,
            weighting: header.weighting,
            search: header.search,
            targets: parts.take_list("targets")?,
            whitening: parts.take_list("whitening")?,
        })
    }
}

/// Neighbours with the structure that finds them.
struct PreparedNeighbours {
    finder: Finder,
    k: usize,
    weighting: Weighting,
    targets: Vec<f64>,
    whitening: Vec<f64>,
    /// Classes or clusters; 0 for numbers.
    classes: usize,
}

impl PreparedNeighbours {
    /// Squared distances and rows of the k nearest of every query.
    fn find(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        k: usize,
        context: &Context,
        mut visit: impl FnMut(usize, &[(f64, usize)]),
    ) -> Result<()> {
        if self.whitening.is_empty() {
            return self.finder.nearest(queries, range, k, context, visit);
        }
        let start = range.start;
        let white = whitened(queries, range, &self.whitening, context)?;
        let rows = 0..white.rows();
        self.finder.nearest(&white, rows, k, context, |i, found| visit(start + i, found))
    }
}

impl Prepared for PreparedNeighbours {
    fn nearest(
        &self,
        queries: &Matrix,
        rows: Range<usize>,
        k: usize,
        context: &Context,
    ) -> Result<Option<Vec<Nearest>>> {
        let mut all = Vec::with_capacity(rows.len());
        self.find(queries, rows, k, context, |_, found| {
            all.push(found.iter().map(|&(squared, row)| (squared.sqrt(), row)).collect());
        })?;
        Ok(Some(all))
    }

    /// Shares of votes, or the mean.
    fn evaluate(&self, evaluation: Evaluation<'_>) -> Result<()> {
        let Evaluation { queries, rows, out, context, .. } = evaluation;
        let width = self.classes.max(1);
        let range = run_of(rows);
        let start = range.start;
        let mut distances = vec![0.0; self.classes];
        self.find(queries, range, self.k, context, |i, found| {
            let out = &mut out[(i - start) * width..][..width];
            let touches = found[0].0 == 0.0;
            let weight = |squared: f64| match self.weighting {
                Weighting::Uniform => 1.0,
                Weighting::Distance if touches => f64::from(u8::from(squared == 0.0)),
                Weighting::Distance => 1.0 / squared.sqrt(),
            };
            let total: f64 = found.iter().map(|&(squared, _)| weight(squared)).sum();
            if self.classes == 0 {
                let target = |row: usize| self.targets[row];
                let sum: f64 = found.iter().map(|&(s, row)| weight(s) * target(row)).sum();
                out[0] = sum / total;
                return;
            }
            out.fill(0.0);
            distances.fill(0.0);
            for &(squared, row) in found {
                let class = self.targets[row] as usize;
                out[class] += weight(squared);
                distances[class] += squared.sqrt();
            }
            let winner = elect(out, &distances, found, &self.targets);
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
fn whitened(
    rows: &Matrix,
    range: Range<usize>,
    whitening: &[f64],
    context: &Context,
) -> Result<Matrix> {
    let columns = rows.columns();
    let mut values = vec![0.0; range.len() * columns];
    for (i, row) in range.clone().zip(values.chunks_exact_mut(columns.max(1))) {
        rows.copy_row(i, row);
    }
    let values = times_transposed(&values, whitening, columns, context)?;
    Ok(Matrix::DenseF64(Dense::new(range.len(), columns, values)?))
}
