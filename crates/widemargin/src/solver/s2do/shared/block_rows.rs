//! Where the steps of a block find its kernel rows: kept for all examples, or cut out of longer rows.

use crate::kernel::{MatrixRows, Row};

/// Kernel rows of a block.
pub(in crate::solver::s2do) trait BlockRows<T> {
    /// Whether the row of an example is there.
    fn holds(&self, example: usize) -> bool;

    /// Fetches the rows of `examples`.
    fn fetch(&mut self, examples: &[u32]);

    /// The kernel values of an example, whose row is there, with all of the block.
    fn row(&self, example: usize) -> &[T];
}

/// Rows of all examples, fetched when they are needed.
pub(in crate::solver::s2do) struct Held<'a, R: MatrixRows> {
    rows: &'a R,
    held: &'a mut [Option<Row<R::Value>>],
}

impl<'a, R: MatrixRows> Held<'a, R> {
    /// Rows in one piece each, those in `held` first.
    pub(in crate::solver::s2do) fn new(rows: &'a R, held: &'a mut [Option<Row<R::Value>>]) -> Self {
        Self { rows, held }
    }
}

impl<R: MatrixRows> BlockRows<R::Value> for Held<'_, R> {
    #[inline(always)]
    fn holds(&self, example: usize) -> bool {
        self.held[example].is_some()
    }

    fn fetch(&mut self, examples: &[u32]) {
        for (&i, row) in examples.iter().zip(self.rows.fetch(examples)) {
            self.held[i as usize] = Some(row);
        }
    }

    #[inline(always)]
    fn row(&self, example: usize) -> &[R::Value] {
        self.held[example].as_ref().map_or(&[], |row| &row[0])
    }
}

/// Rows of a block cut out of those of all examples when they are needed.
pub(in crate::solver::s2do) struct Cut<'a, R: MatrixRows> {
    rows: &'a R,
    fetched: &'a [Row<R::Value>],
    set: &'a [u32],
    values: Vec<Vec<R::Value>>,
}

impl<'a, R: MatrixRows> Cut<'a, R> {
    /// The block of the examples `set`, whose rows with all examples are `fetched`.
    pub(in crate::solver::s2do) fn new(
        rows: &'a R,
        fetched: &'a [Row<R::Value>],
        set: &'a [u32],
    ) -> Self {
        Self { rows, fetched, set, values: vec![Vec::new(); set.len()] }
    }
}

impl<R: MatrixRows> BlockRows<R::Value> for Cut<'_, R> {
    #[inline(always)]
    fn holds(&self, example: usize) -> bool {
        !self.values[example].is_empty()
    }

    fn fetch(&mut self, examples: &[u32]) {
        for &i in examples {
            let i = i as usize;
            cut(self.rows, &self.fetched[i], self.set, &mut self.values[i]);
        }
    }

    #[inline(always)]
    fn row(&self, example: usize) -> &[R::Value] {
        &self.values[example]
    }
}

/// Appends the entries of a row at the examples `set`.
fn cut<R: MatrixRows>(rows: &R, row: &Row<R::Value>, set: &[u32], out: &mut Vec<R::Value>) {
    let mut w = 0;
    for (part, piece) in row.iter().zip(rows.pieces().windows(2)) {
        let part: &[R::Value] = part;
        let end = w + set[w..].partition_point(|&v| (v as usize) < piece[1]);
        out.extend(set[w..end].iter().map(|&v| part[v as usize - piece[0]]));
        w = end;
    }
}
