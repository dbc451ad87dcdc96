//! Solutions of triangular systems with several right sides, which stand side by side in the lanes of vectors:
//! the matrix is read once for all of them, and a row of it costs one multiplication of vectors for every entry.

use crate::numeric::InstructionSet;
use crate::numeric::simd::{PlainLoop, run_plain};

/// Right sides in one vector.
const LANES: usize = 8;

/// Rows of the triangle that one pass over the solutions known so far takes: as many as there are registers
/// for their sums.
const BAND: usize = 8;

/// One entry of several right sides.
type Lane = [f64; LANES];

/// Which of the two triangles is solved for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Triangle {
    /// L
    Lower,
    /// Lᵀ
    Upper,
}

/// Replaces every right side b by L⁻¹b or L⁻ᵀb, where `lower` is L, row-major, of which only the lower
/// triangle is read.
pub(super) fn substitute(
    set: InstructionSet,
    triangle: Triangle,
    lower: &[f64],
    rights: &mut [&mut [f64]],
) {
    let Some(order) = rights.first().map(|right| right.len()).filter(|&order| order > 0) else {
        return;
    };
    let groups = rights.len().div_ceil(LANES);
    let mut lanes = vec![[0.0; LANES]; groups * order];
    for (r, right) in rights.iter().enumerate() {
        let group = &mut lanes[r / LANES * order..][..order];
        group.iter_mut().zip(right.iter()).for_each(|(to, &value)| to[r % LANES] = value);
    }
    run_plain(set, Substitution { triangle, lower, order, lanes: &mut lanes });
    for (r, right) in rights.iter_mut().enumerate() {
        let group = &lanes[r / LANES * order..][..order];
        right.iter_mut().zip(group).for_each(|(to, values)| *to = values[r % LANES]);
    }
}

struct Substitution<'a> {
    triangle: Triangle,
    lower: &'a [f64],
    order: usize,
    /// The right sides, group after group.
    lanes: &'a mut [Lane],
}

impl PlainLoop for Substitution<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { triangle, lower, order, lanes } = self;
        let bands = order.div_ceil(BAND);
        for b in 0..bands {
            let start = BAND * if triangle == Triangle::Lower { b } else { bands - 1 - b };
            let count = BAND.min(order - start);
            let row = |i: usize| &lower[(start + i.min(count - 1)) * order..][..start + count];
            let rows: [&[f64]; BAND] = std::array::from_fn(row);
            for group in lanes.chunks_exact_mut(order) {
                match triangle {
                    Triangle::Lower => forward(rows, &mut group[..start + count], start),
                    Triangle::Upper => backward(rows, &mut group[..start + count], start),
                }
            }
        }
    }
}

/// Solves for the entries from `start` on, given those before.
#[inline(always)]
fn forward(rows: [&[f64]; BAND], group: &mut [Lane], start: usize) {
    let (known, own) = group.split_at_mut(start);
    let before = rows.map(|row| &row[..start]);
    let mut sums = [[0.0; LANES]; BAND];
    for (k, known) in known.iter().enumerate() {
        for i in 0..BAND {
            for lane in 0..LANES {
                sums[i][lane] += before[i][k] * known[lane];
            }
        }
    }
    for i in 0..own.len() {
        let (solved, rest) = own.split_at_mut(i);
        let mut value = rest[0];
        subtract(&mut value, 1.0, &sums[i]);
        for (solved, factor) in solved.iter().zip(&rows[i][start..]) {
            subtract(&mut value, *factor, solved);
        }
        let pivot = rows[i][start + i];
        rest[0] = value.map(|value| value / pivot);
    }
}

/// Solves for the entries from `start` on, given those behind, and subtracts them from the equations before.
#[inline(always)]
fn backward(rows: [&[f64]; BAND], group: &mut [Lane], start: usize) {
    let (before, own) = group.split_at_mut(start);
    for i in (0..own.len()).rev() {
        let (rest, solved) = own.split_at_mut(i + 1);
        let mut value = rest[i];
        for (j, solved) in solved.iter().enumerate() {
            let factor = rows[i + 1 + j][start + i];
            subtract(&mut value, factor, solved);
        }
        let pivot = rows[i][start + i];
        rest[i] = value.map(|value| value / pivot);
    }
    let solved: [Lane; BAND] = std::array::from_fn(|i| own.get(i).copied().unwrap_or([0.0; LANES]));
    let factors = rows.map(|row| &row[..start]);
    for (k, before) in before.iter_mut().enumerate() {
        let mut value = *before;
        for (factors, solved) in factors.iter().zip(&solved) {
            subtract(&mut value, factors[k], solved);
        }
        *before = value;
    }
}

/// value ← value − factor · other
#[inline(always)]
fn subtract(value: &mut Lane, factor: f64, other: &Lane) {
    for (value, other) in value.iter_mut().zip(other) {
        *value -= factor * other;
    }
}
