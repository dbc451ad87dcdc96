//! From a model to the pools of its functions, and back.

use super::pool::{Expansion, VectorPool};
use crate::data::{Dense, Matrix};
use crate::error::{Error, Result};
use crate::machine::{DecisionFunction, KernelExpansion, Model, Part, Precision, Scheme};

/// The support vectors of a model that has such, and nothing that belongs to them.
pub(super) fn expansion_of(model: &Model) -> Result<&KernelExpansion> {
    model
        .replaceable_expansion()
        .ok_or_else(|| Error::model(format!("{} has no support vectors to merge", model.kind)))
}

/// The vectors of every decision function by itself, those of weight 0 left out.
pub(super) fn separate(model: &Model) -> Vec<VectorPool> {
    let mut vector = vec![0.0; model.features()];
    let of = |function: &DecisionFunction| {
        let mut expansion = Expansion::default();
        for part in &function.parts {
            for (s, &weight) in part.support.clone().zip(&part.coefficients) {
                if weight != 0.0 {
                    model.vectors().copy_row(s, &mut vector);
                    expansion.vectors.push(vector.clone());
                    expansion.weights.push(weight);
                }
            }
        }
        VectorPool::single(expansion)
    };
    model.functions().iter().map(of).collect()
}

/// The vectors of all decision functions together, grouped by class; those of a model with one
/// function are grouped by sign.
pub(super) fn together(model: &Model) -> VectorPool {
    let table = match &model.classes {
        Some(table) if model.functions().len() > 1 => table,
        _ => return separate(model).swap_remove(0),
    };
    let classes = table.names.len();
    let mut groups = Vec::with_capacity(model.support_count());
    for (class, &count) in table.support.iter().enumerate() {
        groups.resize(groups.len() + count, class);
    }
    groups.resize(model.support_count(), classes - 1);
    let row = |s: usize| {
        let mut vector = vec![0.0; model.features()];
        model.vectors().copy_row(s, &mut vector);
        vector
    };
    let weights = |function: &DecisionFunction| {
        let mut weights = vec![0.0; model.support_count()];
        for part in &function.parts {
            weights[part.support.clone()].copy_from_slice(&part.coefficients);
        }
        weights
    };
    let uses =
        |f: usize| (0..classes).map(|class| side(&table.scheme, classes, f, class)).collect();
    VectorPool {
        vectors: (0..model.support_count()).map(row).collect(),
        groups,
        weights: model.functions().iter().map(weights).collect(),
        uses: (0..model.functions().len()).map(uses).collect(),
    }
}

/// Whether function `f` is about a class.
fn side(scheme: &Scheme, classes: usize, f: usize, class: usize) -> bool {
    match scheme {
        Scheme::OneVsOne | Scheme::Dag => {
            let (i, j) = pair(classes, f);
            class == i || class == j
        }
        Scheme::OneVsRest => true,
        Scheme::ErrorCorrecting(codes) => codes[class][f] != 0,
    }
}

/// The classes of the pair with number `f`.
fn pair(classes: usize, f: usize) -> (usize, usize) {
    let mut pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    pairs.nth(f).unwrap_or_default()
}

/// `model` with a pool of its own for each function.
///
/// Vectors stand in the order of classes, as every model's do: those of a pair with the class of
/// their group, those of any other function with its place.
pub(super) fn assemble_separate(model: &Model, pools: &[VectorPool]) -> Result<Model> {
    let groups = model.classes.as_ref().map_or(1, |table| table.names.len());
    let mut parts: Vec<Vec<Part>> = vec![Vec::new(); pools.len()];
    let mut counts = vec![0; groups];
    let mut vectors = Vec::new();
    for group in 0..groups {
        for (f, pool) in pools.iter().enumerate() {
            let chosen: Vec<usize> = (0..pool.len())
                .filter(|&v| place_of(model, groups, f, pool.groups[v]) == group)
                .collect();
            if chosen.is_empty() {
                continue;
            }
            parts[f].push(Part {
                support: vectors.len()..vectors.len() + chosen.len(),
                coefficients: chosen.iter().map(|&v| pool.weights[0][v]).collect(),
            });
            counts[group] += chosen.len();
            vectors.extend(chosen.iter().map(|&v| pool.vectors[v].as_slice()));
        }
    }
    finish(model, &vectors, parts, counts)
}

/// The class that a vector of function `f` stands with.
fn place_of(model: &Model, groups: usize, f: usize, sign: usize) -> usize {
    match model.classes.as_ref().map(|table| &table.scheme) {
        Some(Scheme::OneVsOne | Scheme::Dag) => {
            let (i, j) = pair(groups, f);
            if sign == 0 { i } else { j }
        }
        Some(_) => f % groups,
        None => 0,
    }
}

/// `model` with one pool, in the order of groups, for all functions.
pub(super) fn assemble_together(model: &Model, pool: &VectorPool) -> Result<Model> {
    if pool.functions() == 1 {
        return assemble_separate(model, std::slice::from_ref(pool));
    }
    let mut order: Vec<usize> = (0..pool.len()).collect();
    order.sort_by_key(|&v| pool.groups[v]);
    let mut counts = vec![0; pool.uses.first().map_or(0, Vec::len)];
    for &v in &order {
        counts[pool.groups[v]] += 1;
    }
    let parts = pool.uses.iter().zip(&pool.weights).map(|(uses, weights)| {
        let mut parts: Vec<Part> = Vec::new();
        for (at, &v) in order.iter().enumerate().filter(|(_, v)| uses[pool.groups[**v]]) {
            match parts.last_mut() {
                Some(part) if part.support.end == at => {
                    part.support.end += 1;
                    part.coefficients.push(weights[v]);
                }
                _ => parts.push(Part { support: at..at + 1, coefficients: vec![weights[v]] }),
            }
        }
        parts
    });
    let vectors: Vec<&[f64]> = order.iter().map(|&v| pool.vectors[v].as_slice()).collect();
    finish(model, &vectors, parts.collect(), counts)
}

fn finish(
    model: &Model,
    vectors: &[&[f64]],
    parts: Vec<Vec<Part>>,
    counts: Vec<usize>,
) -> Result<Model> {
    let mut smaller = model.clone();
    let (rows, columns) = (vectors.len(), model.features());
    let support = match model.precision() {
        Precision::F64 => Matrix::DenseF64(Dense::new(rows, columns, vectors.concat())?),
        Precision::F32 => {
            let values = vectors.iter().flat_map(|v| v.iter().map(|&v| v as f32)).collect();
            Matrix::DenseF32(Dense::new(rows, columns, values)?)
        }
    };
    if let Some(expansion) = smaller.expansion_mut() {
        expansion.support = support;
        expansion.support_rows = Vec::new();
        for (function, parts) in expansion.functions.iter_mut().zip(parts) {
            function.parts = parts;
        }
    }
    if let Some(table) = &mut smaller.classes {
        table.support = counts;
    }
    Ok(smaller)
}
