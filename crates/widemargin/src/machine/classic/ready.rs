//! Models without decision functions, made ready to answer.

use std::ops::Range;

use super::{ClassicPart, mixture, neighbours, rows, windows};
use crate::context::Context;
use crate::data::Matrix;
use crate::error::Result;
use crate::machine::Model;
use crate::numeric::algebra::{dot, squared_distance};

/// Distances and rows of the nearest rows of a query, nearest first.
pub(in super::super) type Nearest = Vec<(f64, usize)>;

/// What answers in the place of decision functions.
pub(in super::super) enum Ready {
    Mixtures(mixture::Ready),
    Neighbours(Box<neighbours::Ready>),
    Windows(windows::Ready),
    Centres(Vec<f64>),
}

impl Ready {
    /// Of a model that has something in the place of decision functions.
    pub(in super::super) fn new(model: &Model, context: &Context) -> Result<Option<Self>> {
        let has_classes = model.classes.is_some();
        Ok(Some(match &model.classic {
            None | Some(ClassicPart::Discriminant(_)) => return Ok(None),
            Some(ClassicPart::Mixtures(part)) => {
                Self::Mixtures(mixture::Ready::new(&model.support, part, has_classes, context)?)
            }
            Some(ClassicPart::Neighbours(part)) => {
                let classes = if model.kind.is_regressor() { 0 } else { model.outputs() };
                let ready = neighbours::Ready::new(&model.support, part, classes, context)?;
                Self::Neighbours(Box::new(ready))
            }
            Some(ClassicPart::Windows(part)) => {
                let whole = [model.support_count()];
                let counts = model.classes.as_ref().map_or(&whole[..], |table| &table.support);
                Self::Windows(windows::Ready::new(&model.support, part, counts, context)?)
            }
            Some(ClassicPart::Centres) => Self::Centres(rows::dense_rows(&model.support)),
        }))
    }

    /// Writes the outputs of some rows.
    pub(in super::super) fn evaluate(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        out: &mut [f64],
        context: &Context,
    ) -> Result<()> {
        match self {
            Self::Mixtures(ready) => ready.evaluate(queries, range, out, context),
            Self::Neighbours(ready) => return ready.evaluate(queries, range, out),
            Self::Windows(ready) => return ready.evaluate(queries, range, out, context),
            Self::Centres(centres) => {
                let columns = queries.columns();
                let outputs = centres.len() / columns.max(1);
                let mut row = vec![0.0; columns];
                let norms: Vec<f64> = centres.chunks_exact(columns).map(|c| dot(c, c)).collect();
                for (i, out) in range.zip(out.chunks_exact_mut(outputs)) {
                    if !queries.is_sparse() {
                        queries.copy_row(i, &mut row);
                    }
                    let each = centres.chunks_exact(columns).zip(&norms);
                    for (out, (centre, norm)) in out.iter_mut().zip(each) {
                        let squared = if queries.is_sparse() {
                            // Σ (x − c)² over the stored values, Σ c² over the others.
                            let mut sum = *norm;
                            queries.for_each_nonzero(i, |j, x| sum += x * (x - 2.0 * centre[j]));
                            sum.max(0.0)
                        } else {
                            squared_distance(&row, centre)
                        };
                        *out = -squared.sqrt();
                    }
                }
            }
        }
        Ok(())
    }

    /// The k nearest rows of some queries: distances and rows, nearest first.
    pub(in super::super) fn nearest(
        &self,
        queries: &Matrix,
        range: Range<usize>,
        k: usize,
    ) -> Result<Option<Vec<Nearest>>> {
        let Self::Neighbours(ready) = self else { return Ok(None) };
        let mut all = Vec::with_capacity(range.len());
        ready.nearest(queries, range, k, |_, found| {
            all.push(found.iter().map(|&(squared, row)| (squared.sqrt(), row)).collect());
        })?;
        Ok(Some(all))
    }
}
