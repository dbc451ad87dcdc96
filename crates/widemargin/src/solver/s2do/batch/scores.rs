//! Scores of all examples, brought up to date after changes of a few or computed afresh.

use super::offset::Offset;
use crate::context::Context;
use crate::kernel::{MatrixRows, Row};
use crate::numeric::simd::{Real, accumulate_columns};
use crate::solver::s2do::shared::table::Table;

/// Examples whose scores one task brings up to date.
const UPDATE_CHUNK: usize = 1024;

/// Adds Σᵣ `changes[r]` (kᵣ + `constant`) to the scores of all examples, given the kernel rows;
/// the changes of an example, one per column, stand one after another.
pub(super) fn update<R: MatrixRows>(
    rows: &R,
    table: &mut Table,
    fetched: &[Row<R::Value>],
    changes: &[f64],
    constant: f64,
    context: &Context,
) {
    if fetched.is_empty() {
        return;
    }
    let columns = table.score.len();
    shift(table, changes, constant);
    let amounts: Vec<R::Value> = changes.iter().map(|&amount| Real::from_f64(amount)).collect();
    let pieces = rows.pieces();
    let mut tasks: Vec<(usize, usize, Vec<&mut [f64]>)> = Vec::new();
    for (k, piece) in pieces.windows(2).enumerate() {
        for start in (0..piece[1] - piece[0]).step_by(UPDATE_CHUNK) {
            tasks.push((k, start, Vec::with_capacity(columns)));
        }
    }
    for column in &mut table.score {
        let mut rest = &mut column[..];
        let mut t = 0;
        for piece in pieces.windows(2) {
            let (part, tail) = rest.split_at_mut(piece[1] - piece[0]);
            rest = tail;
            for chunk in part.chunks_mut(UPDATE_CHUNK) {
                tasks[t].2.push(chunk);
                t += 1;
            }
        }
    }
    let set = context.instruction_set();
    let work = |(k, start, chunks): &mut (usize, usize, Vec<&mut [f64]>)| {
        let range = *start..*start + chunks[0].len();
        let parts: Vec<&[R::Value]> = fetched.iter().map(|row| &row[*k][range.clone()]).collect();
        accumulate_columns(set, chunks, &parts, &amounts);
    };
    context.for_each(&mut tasks, work);
}

/// As [`update`] for the examples `moved`, whose kernel rows are computed where they are needed and
/// not kept.
pub(super) fn stream<R: MatrixRows>(
    rows: &R,
    table: &mut Table,
    moved: &[u32],
    changes: &[f64],
    constant: f64,
) {
    shift(table, changes, constant);
    rows.add_products(moved, changes, &mut table.score);
}

/// What the constant contributes.
fn shift(table: &mut Table, changes: &[f64], constant: f64) {
    if constant == 0.0 {
        return;
    }
    let columns = table.score.len();
    for (c, column) in table.score.iter_mut().enumerate() {
        let total = constant * changes.iter().skip(c).step_by(columns).sum::<f64>();
        column.iter_mut().for_each(|score| *score += total);
    }
}

/// All scores computed afresh.
pub(super) fn refresh<R: MatrixRows>(rows: &R, table: &mut Table, offset: &Offset) {
    for (column, &centre) in table.score.iter_mut().zip(&offset.centre) {
        column.fill(centre);
    }
    let support: Vec<u32> =
        (0..table.len() as u32).filter(|&i| table.is_support(i as usize)).collect();
    let (mut coefficients, mut own) = (Vec::new(), Vec::new());
    for &i in &support {
        table.coefficients(i as usize, &mut own);
        coefficients.extend_from_slice(&own);
    }
    stream(rows, table, &support, &coefficients, offset.strength);
}
