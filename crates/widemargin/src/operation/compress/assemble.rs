//! From a model to the expansions of its functions, and back.

use super::bottom_up::Expansion;
use crate::data::{Dense, Matrix};
use crate::error::Result;
use crate::machine::{DecisionFunction, Model, Part, Precision, Scheme};

/// The expansion of every decision function, vectors of weight 0 left out.
pub(super) fn expansions(model: &Model) -> Vec<Expansion> {
    let mut vector = vec![0.0; model.features()];
    let of = |function: &DecisionFunction| {
        let (mut vectors, mut weights) = (Vec::new(), Vec::new());
        for part in &function.parts {
            for (s, &weight) in part.support.clone().zip(&part.coefficients) {
                if weight != 0.0 {
                    model.support.copy_row(s, &mut vector);
                    vectors.push(vector.clone());
                    weights.push(weight);
                }
            }
        }
        Expansion { vectors, weights }
    };
    model.functions.iter().map(of).collect()
}

/// `model` with other expansions in its functions.
///
/// Vectors stand in the order of classes, as every model's do: those of a pair with the class that
/// their sign speaks for, those of any other function with its place.
pub(super) fn assemble(model: &Model, expansions: &[Expansion]) -> Result<Model> {
    let groups = model.classes.as_ref().map_or(1, |table| table.names.len());
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); expansions.len()];
    let mut counts = vec![0; groups];
    let mut values = Vec::new();
    let mut rows = 0;
    for group in 0..groups {
        for (f, expansion) in expansions.iter().enumerate() {
            let chosen: Vec<usize> = (0..expansion.weights.len())
                .filter(|&v| group_of(model, groups, f, expansion.weights[v]) == group)
                .collect();
            if chosen.is_empty() {
                continue;
            }
            parts[f].push(Part {
                support: rows..rows + chosen.len(),
                coefficients: chosen.iter().map(|&v| expansion.weights[v]).collect(),
            });
            rows += chosen.len();
            counts[group] += chosen.len();
            values.extend(chosen.iter().flat_map(|&v| expansion.vectors[v].iter().copied()));
        }
    }
    let mut smaller = model.clone();
    let columns = model.features();
    smaller.support = match model.precision {
        Precision::F64 => Matrix::DenseF64(Dense::new(rows, columns, values)?),
        Precision::F32 => {
            let values = values.into_iter().map(|v| v as f32).collect();
            Matrix::DenseF32(Dense::new(rows, columns, values)?)
        }
    };
    smaller.support_rows = Vec::new();
    for (function, parts) in smaller.functions.iter_mut().zip(parts) {
        function.parts = parts;
    }
    if let Some(table) = &mut smaller.classes {
        table.support = counts;
    }
    Ok(smaller)
}

/// The class that a vector of function `f` stands with.
fn group_of(model: &Model, groups: usize, f: usize, weight: f64) -> usize {
    match model.classes.as_ref().map(|table| &table.scheme) {
        Some(Scheme::OneVsOne | Scheme::Dag) => {
            let mut pairs = (0..groups).flat_map(|i| (i + 1..groups).map(move |j| (i, j)));
            let (i, j) = pairs.nth(f).unwrap_or_default();
            if weight > 0.0 { i } else { j }
        }
        Some(_) => f % groups,
        None => 0,
    }
}
