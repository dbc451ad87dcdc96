//! The matrix over the variables inside, factored once and corrected for those that come and go.
//!
//! With M = L Lᵀ over the variables that were inside at first, a system over those without some R and
//! with some others A is the bordered one
//!
//! ```text
//! [ M   B   E ] [x]   [r]
//! [ Bᵀ  D   0 ] [y] = [s]      B = M over (first, A),  D = M over A,  E = unit vectors of R,
//! [ Eᵀ  0   0 ] [λ]   [0]
//! ```
//!
//! which V = L⁻¹[B E] reduces to one of the order of the changes (the Schur complement method of Gill,
//! Murray, Saunders and Wright, 1990). A change costs the square of the order in products, a new factor
//! a third of its cube.

use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::{Cholesky, QuasiDefinite, add_products, dot};

/// Changes, as a share of the order, from which on a new factor costs less.
const MOST_CHANGES: f64 = 0.25;

/// Rows of Vᵀ, as a share of the order, that are kept.
const MOST_ROWS: f64 = 0.5;

/// A variable that was not inside at first.
const OUTSIDE: u32 = u32::MAX;

/// A factor of the matrix over some variables.
pub(super) struct InsideFactor {
    factor: Cholesky,
    /// The variables of the factor.
    first: Vec<u32>,
    /// Place of every variable in it.
    places: Vec<u32>,
    /// The variables that came or went in some guess, and their rows of Vᵀ.
    changed: Vec<u32>,
    rows: Vec<f64>,
    /// The correction for those that are changed now.
    border: Option<Border>,
}

/// The bordering system of the present guess.
struct Border {
    /// The variables that came or went.
    changed: Vec<u32>,
    /// Their rows of Vᵀ.
    rows: Vec<f64>,
    /// The factor of diag(D, 0) − VᵀV.
    system: QuasiDefinite,
}

impl InsideFactor {
    /// Factors the matrix over `inside`, ascending, out of so many `variables`; `None` when it is not
    /// positive definite. `fill` writes the lower triangle, which takes `memory`.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn new(
        inside: Vec<u32>,
        variables: usize,
        fill: impl Fn(&[u32], &mut [f64]),
        memory: &mut Vec<f64>,
        context: &Context,
    ) -> Result<Option<Self>> {
        let order = inside.len();
        let mut values = std::mem::take(memory);
        values.resize(order * order, 0.0);
        fill(&inside, &mut values);
        let Some(factor) = Cholesky::interruptible(values, order, context)? else {
            return Ok(None);
        };
        let mut places = vec![OUTSIDE; variables];
        inside.iter().zip(0..).for_each(|(&v, place)| places[v as usize] = place);
        let (changed, rows) = (Vec::new(), Vec::new());
        Ok(Some(Self { factor, first: inside, places, changed, rows, border: None }))
    }

    /// The memory of the factor.
    pub(super) fn into_memory(self) -> Vec<f64> {
        self.factor.into_matrix()
    }

    /// Corrects the factor for `inside`, which are ascending; returns the multiplications that took,
    /// or `None` when a new factor costs less or rounding forbids a correction.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn update(
        &mut self,
        inside: &[u32],
        entry: impl Fn(u32, u32) -> f64,
        context: &Context,
    ) -> Result<Option<f64>> {
        let order = self.first.len();
        let changed = difference(&self.first, inside);
        if changed.is_empty() {
            self.border = None;
            return Ok(Some(0.0));
        }
        let count = changed.len();
        let fresh: Vec<u32> =
            changed.iter().copied().filter(|v| !self.changed.contains(v)).collect();
        let rows = self.changed.len() + fresh.len();
        if count as f64 > MOST_CHANGES * order as f64 || rows as f64 > MOST_ROWS * order as f64 {
            return Ok(None);
        }
        self.add_rows(&fresh, &entry, context);
        let mut rows = Vec::with_capacity(count * order);
        for v in &changed {
            let at = self.changed.iter().position(|other| other == v).unwrap_or_default();
            rows.extend_from_slice(&self.rows[at * order..(at + 1) * order]);
        }
        let mut products = vec![0.0; count * count];
        add_products(&mut products, count, &rows, order, context)?;
        for (i, &v) in changed.iter().enumerate() {
            for (j, &w) in changed[..=i].iter().enumerate() {
                let joined = self.is_outside(v) && self.is_outside(w);
                let corner = if joined { entry(v, w) } else { 0.0 };
                products[i * count + j] = corner - products[i * count + j];
            }
        }
        let joins = |i: usize| self.is_outside(changed[i]);
        let Some(system) = QuasiDefinite::new(products, count, joins) else { return Ok(None) };
        self.border = Some(Border { changed, rows, system });
        let (order, count, fresh) = (order as f64, count as f64, fresh.len() as f64);
        Ok(Some(order * order * fresh + order * count * count + count * count * count))
    }

    fn is_outside(&self, v: u32) -> bool {
        self.places[v as usize] == OUTSIDE
    }

    /// Computes the rows of Vᵀ of more variables.
    fn add_rows(&mut self, fresh: &[u32], entry: &impl Fn(u32, u32) -> f64, context: &Context) {
        let (order, before) = (self.first.len(), self.rows.len());
        self.rows.resize(before + fresh.len() * order, 0.0);
        let rows = &mut self.rows[before..];
        for (&v, row) in fresh.iter().zip(rows.chunks_exact_mut(order.max(1))) {
            match self.places[v as usize] {
                OUTSIDE => {
                    row.iter_mut().zip(&self.first).for_each(|(out, &w)| *out = entry(v, w));
                }
                place => row[place as usize] = 1.0,
            }
        }
        self.factor.solve_lower_rows(rows, context);
        self.changed.extend(fresh);
    }

    /// Solves for the variables `inside` that the last correction was for.
    pub(super) fn solve(&self, inside: &[u32], right: &[f64]) -> Vec<f64> {
        let order = self.first.len();
        let Some(border) = &self.border else {
            let mut x = right.to_vec();
            self.factor.solve(&mut x);
            return x;
        };
        let mut x = vec![0.0; order];
        let mut y = vec![0.0; border.changed.len()];
        for (&v, &value) in inside.iter().zip(right) {
            match self.places[v as usize] {
                OUTSIDE => {
                    if let Ok(at) = border.changed.binary_search(&v) {
                        y[at] = value;
                    }
                }
                place => x[place as usize] = value,
            }
        }
        self.factor.solve_lower(&mut x);
        for (y, row) in y.iter_mut().zip(border.rows.chunks_exact(order.max(1))) {
            *y -= dot(row, &x);
        }
        border.system.solve(&mut y);
        for (&y, row) in y.iter().zip(border.rows.chunks_exact(order.max(1))) {
            x.iter_mut().zip(row).for_each(|(x, row)| *x -= y * row);
        }
        self.factor.solve_upper(&mut x);
        let value = |v: &u32| match self.places[*v as usize] {
            OUTSIDE => border.changed.binary_search(v).map_or(0.0, |at| y[at]),
            place => x[place as usize],
        };
        inside.iter().map(value).collect()
    }
}

/// What is in one of two ascending lists, ascending.
fn difference(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut different = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        let (a, b) = (left.get(i).copied(), right.get(j).copied());
        match (a, b) {
            (Some(a), Some(b)) if a == b => {
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), b) if b.is_none_or(|b| a < b) => {
                different.push(a);
                i += 1;
            }
            (_, Some(b)) => {
                different.push(b);
                j += 1;
            }
            _ => break,
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn a_corrected_factor_solves_as_a_new_one() {
        let n = 60_u32;
        let mut generator = Generator::new(7);
        let points: Vec<f64> = (0..n).map(|_| 3.0 * generator.unit()).collect();
        let entry = |v: u32, w: u32| {
            let distance = points[v as usize] - points[w as usize];
            (-distance * distance).exp() + if v == w { 1e-3 } else { 0.0 }
        };
        let fill = |inside: &[u32], values: &mut [f64]| {
            for (i, row) in values.chunks_exact_mut(inside.len()).enumerate() {
                let entries = row.iter_mut().zip(inside).take(i + 1);
                entries.for_each(|(out, &w)| *out = entry(inside[i], w));
            }
        };
        let context = Context::new();
        let new = |inside: &[u32]| {
            let factor =
                InsideFactor::new(inside.to_vec(), n as usize, fill, &mut Vec::new(), &context);
            factor.unwrap().unwrap()
        };
        let first: Vec<u32> = (0..n).filter(|v| v % 4 != 0).collect();
        let mut factor = new(&first);
        // Some come, some go, one of those returns; then all is as it was.
        let guesses = [
            (0..n).filter(|v| v % 4 != 0 || *v == 8).filter(|v| *v != 5).collect(),
            (0..n).filter(|v| v % 4 != 0 || *v == 8 || *v == 56).filter(|v| *v != 9).collect(),
            (0..n).filter(|v| v % 4 != 0 && *v > 3).collect(),
            first.clone(),
        ];
        for inside in guesses {
            let inside: Vec<u32> = inside;
            assert!(factor.update(&inside, entry, &context).unwrap().is_some());
            let right: Vec<f64> = inside.iter().map(|&v| f64::from(v).sin()).collect();
            let (corrected, expected) =
                (factor.solve(&inside, &right), new(&inside).solve(&inside, &right));
            for (x, y) in corrected.iter().zip(&expected) {
                assert!((x - y).abs() < 1e-7 * (1.0 + y.abs()), "{x} but {y}");
            }
        }
        let others: Vec<u32> = (0..n).filter(|v| v % 4 == 0).collect();
        assert!(factor.update(&others, entry, &context).unwrap().is_none());
    }
}
