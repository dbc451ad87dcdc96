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
use crate::numeric::algebra::{Cholesky, QuasiDefinite, add, add_products, dot};
use crate::numeric::simd::{PlainLoop, run_plain};

/// Changes, as a share of the order, from which on a new factor costs less.
const MOST_CHANGES: f64 = 0.25;

/// Rows of Vᵀ, as a share of the order, that are kept: they take as much memory as the factor.
const MOST_ROWS: f64 = 1.0;

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
    /// The rows of those that are changed now.
    border_rows: Vec<f64>,
    /// The correction for those that are changed now.
    border: Option<Border>,
}

/// Memory of a factor, for the next one.
#[derive(Default)]
pub(super) struct FactorMemory {
    values: Vec<f64>,
    rows: Vec<f64>,
    border_rows: Vec<f64>,
}

/// The bordering system of the present guess.
struct Border {
    /// The variables that came or went.
    changed: Vec<u32>,
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
        memory: FactorMemory,
        context: &Context,
    ) -> Result<Option<Self>> {
        let order = inside.len();
        let FactorMemory { mut values, mut rows, mut border_rows } = memory;
        rows.clear();
        border_rows.clear();
        values.resize(order * order, 0.0);
        fill(&inside, &mut values);
        let Some(factor) = Cholesky::interruptible(values, order, context)? else {
            return Ok(None);
        };
        let mut places = vec![OUTSIDE; variables];
        inside.iter().zip(0..).for_each(|(&v, place)| places[v as usize] = place);
        let changed = Vec::new();
        let first = inside;
        Ok(Some(Self { factor, first, places, changed, rows, border_rows, border: None }))
    }

    /// The memory of the factor.
    pub(super) fn into_memory(self) -> FactorMemory {
        let Self { factor, rows, border_rows, .. } = self;
        FactorMemory { values: factor.into_matrix(), rows, border_rows }
    }

    /// Corrects the factor for `inside`, which are ascending, out of so many `variables`, the first of which
    /// are those that it knows; returns the multiplications that took,
    /// or `None` when a new factor costs less or rounding forbids a correction.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the context asks to stop.
    pub(super) fn update(
        &mut self,
        inside: &[u32],
        variables: usize,
        entry: impl Fn(u32, u32) -> f64,
        context: &Context,
    ) -> Result<Option<f64>> {
        let order = self.first.len();
        self.places.resize(variables.max(self.places.len()), OUTSIDE);
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
        self.border_rows.clear();
        for v in &changed {
            let at = self.changed.iter().position(|other| other == v).unwrap_or_default();
            self.border_rows.extend_from_slice(&self.rows[at * order..(at + 1) * order]);
        }
        let mut products = vec![0.0; count * count];
        add_products(&mut products, count, &self.border_rows, order, context)?;
        for (i, &v) in changed.iter().enumerate() {
            for (j, &w) in changed[..=i].iter().enumerate() {
                let joined = self.is_outside(v) && self.is_outside(w);
                let corner = if joined { entry(v, w) } else { 0.0 };
                products[i * count + j] = corner - products[i * count + j];
            }
        }
        let joins = |i: usize| self.is_outside(changed[i]);
        let Some(system) = QuasiDefinite::new(products, count, context.instruction_set(), joins)
        else {
            return Ok(None);
        };
        self.border = Some(Border { changed, system });
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

    /// Solves for the variables `inside` that the last correction was for, with several right sides.
    pub(super) fn solve(
        &self,
        inside: &[u32],
        rights: &[Vec<f64>],
        context: &Context,
    ) -> Vec<Vec<f64>> {
        let order = self.first.len();
        let Some(border) = &self.border else {
            let mut solutions = rights.to_vec();
            self.factor.solve_lower_each(&mut solutions, context);
            self.factor.solve_upper_each(&mut solutions, context);
            return solutions;
        };
        let place = |v: u32| match self.places[v as usize] {
            OUTSIDE => Err(border.changed.binary_search(&v).ok()),
            place => Ok(place as usize),
        };
        let places: Vec<_> = inside.iter().map(|&v| place(v)).collect();
        let mut outer = vec![vec![0.0; border.changed.len()]; rights.len()];
        let mut inner = vec![vec![0.0; order]; rights.len()];
        for ((x, y), right) in inner.iter_mut().zip(&mut outer).zip(rights) {
            for (place, &value) in places.iter().zip(right) {
                match *place {
                    Ok(at) => x[at] = value,
                    Err(Some(at)) => y[at] = value,
                    Err(None) => {}
                }
            }
        }
        self.factor.solve_lower_each(&mut inner, context);
        let correction = Correction {
            rows: &self.border_rows,
            order: order.max(1),
            system: &border.system,
            inner: &mut inner,
            outer: &mut outer,
        };
        run_plain(context.instruction_set(), correction);
        self.factor.solve_upper_each(&mut inner, context);
        let solution = |(x, y): (&Vec<f64>, &Vec<f64>)| {
            let value = |place: &std::result::Result<usize, Option<usize>>| match *place {
                Ok(at) => x[at],
                Err(at) => at.map_or(0.0, |at| y[at]),
            };
            places.iter().map(value).collect()
        };
        inner.iter().zip(&outer).map(solution).collect()
    }
}

/// The part of a solution that is about the changes: y ← S⁻¹(y − Vᵀx), x ← x − Vy for every right side.
struct Correction<'a> {
    /// Vᵀ, of so many columns.
    rows: &'a [f64],
    order: usize,
    /// The factor of S.
    system: &'a QuasiDefinite,
    inner: &'a mut [Vec<f64>],
    outer: &'a mut [Vec<f64>],
}

impl PlainLoop for Correction<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (x, y) in self.inner.iter_mut().zip(self.outer) {
            for (y, row) in y.iter_mut().zip(self.rows.chunks_exact(self.order)) {
                *y -= dot(row, x);
            }
            self.system.solve(y);
            for (&y, row) in y.iter().zip(self.rows.chunks_exact(self.order)) {
                add(x, row, -y);
            }
        }
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
            let factor = InsideFactor::new(
                inside.to_vec(),
                n as usize,
                fill,
                FactorMemory::default(),
                &context,
            );
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
            assert!(factor.update(&inside, n as usize, entry, &context).unwrap().is_some());
            let right: Vec<f64> = inside.iter().map(|&v| f64::from(v).sin()).collect();
            let rights = [right, vec![1.0; inside.len()]];
            let (corrected, expected) = (
                factor.solve(&inside, &rights, &context),
                new(&inside).solve(&inside, &rights, &context),
            );
            for (x, y) in corrected.concat().iter().zip(&expected.concat()) {
                assert!((x - y).abs() < 1e-7 * (1.0 + y.abs()), "{x} but {y}");
            }
        }
        let others: Vec<u32> = (0..n).filter(|v| v % 4 == 0).collect();
        assert!(factor.update(&others, n as usize, entry, &context).unwrap().is_none());
    }
}
