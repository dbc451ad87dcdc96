//! Support patterns in slots and the kernel values among them.
//!
//! Rows of the kernel matrix among slots are kept as memory allows. A row learns of slots that were
//! filled after it when it is next asked for, from the rows of those slots: kernel values are
//! symmetric up to the rounding of their number format.

use std::ops::Range;

use super::vectors::Vectors;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::numeric::InstructionSet;
use crate::numeric::simd::Real;

/// Fillings kept beyond twice the number of slots.
const MEMORY: usize = 4096;

/// Patterns in slots.
pub(super) struct Store<T: Real> {
    vectors: Vectors<T>,
    rows: Vec<Option<Kept<T>>>,
    /// Slots in use.
    taken: Vec<bool>,
    free: Vec<usize>,
    /// Slots in the order in which they were filled, from number `forgotten` on.
    filled: Vec<u32>,
    forgotten: usize,
    clock: u64,
    held: usize,
    cache_bytes: usize,
    computed: u64,
}

/// A kernel row against all slots.
struct Kept<T> {
    values: Vec<T>,
    /// How many fillings it knows of.
    knows: usize,
    used: u64,
}

/// Rows that are about to be learnt from, with their kernel values, computed together.
pub(super) struct PrefetchedRows<T> {
    rows: Matrix,
    values: Vec<Vec<T>>,
    among: Vec<Vec<T>>,
    /// Slots that rows of this group took, (slot, row) in order.
    taken: Vec<(usize, usize)>,
}

impl<T: Real> PrefetchedRows<T> {
    /// The kernel value of row `k` with itself.
    pub(super) fn own(&self, k: usize) -> T {
        self.among[k][k]
    }

    /// The kernel values of row `k` against the `slots` slots there are now; to be asked once.
    pub(super) fn values(&mut self, k: usize, slots: usize) -> Vec<T> {
        let mut values = std::mem::take(&mut self.values[k]);
        values.resize(slots, T::ZERO);
        for &(slot, row) in &self.taken {
            values[slot] = self.among[k][row];
        }
        values
    }
}

impl<T: Real> Store<T> {
    /// An empty store whose rows take at most about `cache_bytes`; `parallel` where it is used inside
    /// a pool of threads.
    pub(super) fn new(
        kernel: Kernel,
        set: InstructionSet,
        cache_bytes: usize,
        parallel: bool,
    ) -> Self {
        Self {
            vectors: Vectors::new(kernel, set, parallel),
            rows: Vec::new(),
            taken: Vec::new(),
            free: Vec::new(),
            filled: Vec::new(),
            forgotten: 0,
            clock: 0,
            held: 0,
            cache_bytes,
            computed: 0,
        }
    }

    /// Number of slots, free ones included.
    pub(super) fn slots(&self) -> usize {
        self.rows.len()
    }

    /// Kernel values computed so far.
    pub(super) fn computed(&self) -> u64 {
        self.computed
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> &Kernel {
        self.vectors.kernel()
    }

    /// The SIMD path in force.
    pub(super) fn instruction_set(&self) -> InstructionSet {
        self.vectors.instruction_set()
    }

    /// About how many feature products a kernel value costs.
    pub(super) fn products(&self) -> f64 {
        self.vectors.products()
    }

    /// Kernel values of rows `range` of a table against all slots, row after row.
    pub(super) fn query(&mut self, table: &Matrix, range: Range<usize>) -> Result<Vec<Vec<T>>> {
        self.computed += (range.len() * self.slots()) as u64;
        self.vectors.query(table, range)
    }

    /// Kernel values of the named rows of a table against all slots and among themselves.
    pub(super) fn look_ahead(
        &mut self,
        table: &Matrix,
        rows: &[usize],
    ) -> Result<PrefetchedRows<T>> {
        let rows = table.select_rows(rows);
        let values = self.query(&rows, 0..rows.rows())?;
        let among = self.vectors.among(&rows)?;
        self.computed += (rows.rows() * rows.rows()) as u64;
        Ok(PrefetchedRows { rows, values, among, taken: Vec::new() })
    }

    /// Takes row `k` of a group into a slot; `values` are its kernel values against all slots.
    pub(super) fn insert(
        &mut self,
        group: &mut PrefetchedRows<T>,
        k: usize,
        mut values: Vec<T>,
    ) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.taken.push(false);
            values.push(T::ZERO);
            self.rows.len() - 1
        });
        self.vectors.fill(slot, group.rows.select_rows(&[k]));
        values[slot] = group.own(k);
        group.taken.push((slot, k));
        self.taken[slot] = true;
        self.filled.push(slot as u32);
        self.keep(slot, values);
        self.forget();
        slot
    }

    /// Gives all vectors `columns` features, zero beyond those they had.
    pub(super) fn widen(&mut self, columns: usize) -> Result<()> {
        self.vectors.widen(columns)
    }

    /// Gives a slot up.
    pub(super) fn remove(&mut self, slot: usize) {
        self.drop_row(slot);
        self.taken[slot] = false;
        self.free.push(slot);
    }

    /// The kernel row of a slot against all slots.
    pub(super) fn row(&mut self, slot: usize) -> Result<&[T]> {
        if !self.bring_up_to_date(slot) {
            let mut rows = self.query(&self.vectors.get(slot), 0..1)?;
            self.keep(slot, rows.swap_remove(0));
        }
        self.clock += 1;
        let clock = self.clock;
        Ok(self.rows[slot].as_mut().map_or(&[], |kept| {
            kept.used = clock;
            &kept.values[..]
        }))
    }

    /// The kept row of a slot that [`row`](Self::row) has just made ready.
    pub(super) fn ready(&self, slot: usize) -> Option<&[T]> {
        self.rows[slot].as_ref().map(|kept| &kept.values[..])
    }

    /// Rows of the present length that are kept at once.
    pub(super) fn most_rows(&self) -> usize {
        (self.cache_bytes / (size_of::<T>() * self.slots().max(1))).max(2)
    }

    /// The vectors in the named slots.
    pub(super) fn vectors(&self, slots: &[usize]) -> Result<Option<Matrix>> {
        self.vectors.select(slots)
    }

    /// Lets a kept row know of the slots filled since; whether it is there and could.
    fn bring_up_to_date(&mut self, slot: usize) -> bool {
        let now = self.forgotten + self.filled.len();
        let Some(mut kept) = self.rows[slot].take() else { return false };
        kept.values.resize(self.slots(), T::ZERO);
        for &other in &self.filled[kept.knows.max(self.forgotten) - self.forgotten..] {
            let other = other as usize;
            match &self.rows[other] {
                Some(row) => kept.values[other] = row.values[slot],
                None if self.taken[other] => {
                    self.held -= 1;
                    return false;
                }
                None => {}
            }
        }
        kept.knows = now;
        self.rows[slot] = Some(kept);
        true
    }

    /// Keeps a row, dropping the one not used for longest while too many are held.
    fn keep(&mut self, slot: usize, values: Vec<T>) {
        if self.rows[slot].is_none() {
            self.held += 1;
        }
        self.clock += 1;
        let knows = self.forgotten + self.filled.len();
        self.rows[slot] = Some(Kept { values, knows, used: self.clock });
        while self.held > self.most_rows() {
            let oldest = (0..self.slots())
                .filter(|&s| s != slot)
                .filter_map(|s| self.rows[s].as_ref().map(|kept| (kept.used, s)))
                .min();
            let Some((_, oldest)) = oldest else { break };
            self.drop_row(oldest);
        }
    }

    fn drop_row(&mut self, slot: usize) {
        if self.rows[slot].take().is_some() {
            self.held -= 1;
        }
    }

    /// Drops the older half of many fillings, and the rows that do not know of it.
    fn forget(&mut self) {
        if self.filled.len() <= 2 * self.slots() + MEMORY {
            return;
        }
        let half = self.filled.len() / 2;
        self.filled.drain(..half);
        self.forgotten += half;
        for slot in 0..self.slots() {
            if self.rows[slot].as_ref().is_some_and(|kept| kept.knows < self.forgotten) {
                self.drop_row(slot);
            }
        }
    }
}
