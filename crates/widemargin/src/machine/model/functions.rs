//! Decision functions: sums of kernel values with the support vectors, times coefficients.

use std::ops::Range;

use super::parts::{PartsReader, PartsResult, PartsWriter, to_index};
use super::validate::fail;
use crate::error::{Error, Result};

/// Coefficients of one decision function on a run of support vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Support vectors concerned.
    pub support: Range<usize>,
    /// One coefficient for each of them.
    pub coefficients: Vec<f64>,
}

/// f(x) = Σ over parts Σ cₛ K(x, xₛ) − offset.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionFunction {
    /// Runs of support vectors with their coefficients, disjoint and ascending.
    pub parts: Vec<Part>,
    /// LIBSVM's ρ.
    pub offset: f64,
}

impl DecisionFunction {
    /// Coefficient of support vector `s`, 0 where the function does not use it.
    pub fn coefficient(&self, s: usize) -> f64 {
        self.parts
            .iter()
            .find(|part| part.support.contains(&s))
            .map_or(0.0, |part| part.coefficients[s - part.support.start])
    }
}

impl DecisionFunction {
    /// The function that is one support vector times a factor, less an offset.
    pub(in crate::machine) fn single(place: usize, factor: f64, offset: f64) -> Self {
        Self { parts: vec![Part { support: place..place + 1, coefficients: vec![factor] }], offset }
    }

    /// The same function times `sign` over support vectors in another order.
    pub(super) fn moved(&self, sign: f64, order: &[usize]) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for (new, &old) in order.iter().enumerate() {
            let Some(part) = self.parts.iter().find(|part| part.support.contains(&old)) else {
                continue;
            };
            let coefficient = sign * part.coefficients[old - part.support.start];
            match parts.last_mut() {
                Some(last) if last.support.end == new => {
                    last.support.end += 1;
                    last.coefficients.push(coefficient);
                }
                _ => parts.push(Part { support: new..new + 1, coefficients: vec![coefficient] }),
            }
        }
        Self { parts, offset: sign * self.offset }
    }

    /// Checks that the runs are ascending and inside `count` support vectors, with a finite
    /// coefficient each; `index` names the function in errors.
    pub(in crate::machine) fn check(&self, index: usize, count: usize) -> Result<()> {
        let place = || format!("function {}", index + 1);
        let mut next = 0;
        for part in &self.parts {
            let range = &part.support;
            if range.start < next || range.end < range.start || range.end > count {
                return fail(format!(
                    "{}: expected ascending runs of {count} support vectors, found {range:?}",
                    place()
                ));
            }
            if part.coefficients.len() != range.len() {
                let what = format!("{}: coefficients", place());
                return Err(Error::length(what, range.len(), part.coefficients.len()));
            }
            if let Some(value) = part.coefficients.iter().find(|value| !value.is_finite()) {
                return fail(format!("{}: expected finite coefficients, found {value}", place()));
            }
            next = range.end;
        }
        if self.offset.is_finite() {
            Ok(())
        } else {
            fail(format!("{}: expected a finite offset, found {}", place(), self.offset))
        }
    }
}

/// Writes functions as `NAME.offsets`, `NAME.parts` (function, first and last-plus-one support
/// vector of every run) and `NAME.coefficients` (of all runs, in order).
pub(in crate::machine) fn put(parts: &mut PartsWriter, name: &str, functions: &[DecisionFunction]) {
    parts.put_list(format!("{name}.offsets"), functions.iter().map(|f| f.offset));
    let runs: Vec<(usize, &Part)> = functions
        .iter()
        .enumerate()
        .flat_map(|(function, f)| f.parts.iter().map(move |part| (function, part)))
        .collect();
    let indices = runs.iter().flat_map(|(function, part)| {
        [*function, part.support.start, part.support.end].map(|index| index as u64)
    });
    parts.put(format!("{name}.parts"), vec![runs.len(), 3], indices);
    let coefficients = runs.iter().flat_map(|(_, part)| part.coefficients.iter().copied());
    parts.put_list(format!("{name}.coefficients"), coefficients);
}

/// Reads what [`put`] wrote.
pub(in crate::machine) fn take(
    arrays: &mut PartsReader<'_>,
    name: &str,
) -> PartsResult<Vec<DecisionFunction>> {
    let [offsets, parts, coefficients] =
        ["offsets", "parts", "coefficients"].map(|part| format!("{name}.{part}"));
    let offsets = arrays.take_list::<f64>(&offsets)?;
    let ([_, width], runs) = arrays.take::<u64, 2>(&parts)?;
    if width != 3 {
        return Err(format!("array '{parts}': expected 3 columns, found {width}"));
    }
    let all = arrays.take_list::<f64>(&coefficients)?;
    let mut rest = all.as_slice();
    let mut functions: Vec<DecisionFunction> =
        offsets.into_iter().map(|offset| DecisionFunction { parts: Vec::new(), offset }).collect();
    for run in runs.chunks_exact(3) {
        let index = |place: usize| to_index(&parts, run[place]);
        let (function, start, end) = (index(0)?, index(1)?, index(2)?);
        let own = end.checked_sub(start).and_then(|count| rest.split_at_checked(count));
        let (Some((own, others)), Some(target)) = (own, functions.get_mut(function)) else {
            return Err(format!(
                "array '{parts}': function {function} over support vectors \
                 {start}..{end} goes beyond the arrays"
            ));
        };
        rest = others;
        target.parts.push(Part { support: start..end, coefficients: own.to_vec() });
    }
    if rest.is_empty() {
        Ok(functions)
    } else {
        Err(format!("array '{coefficients}': {} too many", rest.len()))
    }
}
