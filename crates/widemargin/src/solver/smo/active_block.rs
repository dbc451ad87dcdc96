//! The variables that take part, with their part of the matrix in one piece.
//!
//! Steps among few of many variables pass only the entries of those, which stay in the processor's
//! cache. Variables join with their entries and leave when the optimality conditions hold them at a
//! bound; members are in the order they joined.

use super::inner::{InnerMatrix, padded};
use crate::numeric::simd::{Real, mirror};

/// Share of the members below which those that stay are moved together.
const SPARSE: f64 = 0.85;

/// Members that a block has room for from the first one on.
const FIRST_CAPACITY: usize = 512;

/// The members of a block and the matrix over them.
pub(super) struct ActiveBlock<T> {
    members: Vec<u32>,
    is_member: Vec<bool>,
    /// Row after row, each with room for more members; what stands there does not matter.
    values: Vec<T>,
    stride: usize,
    /// Members up to which the block is not asked which of them are still wanted.
    room: usize,
    /// Most members.
    most: usize,
}

/// The matrix of a block: the first `width` places of every row.
pub(super) struct BlockMatrix<'a, T> {
    values: &'a [T],
    stride: usize,
    width: usize,
}

impl<T: Real> InnerMatrix<T> for BlockMatrix<'_, T> {
    fn ensure(&mut self, _: usize) {}

    fn row(&self, v: usize) -> &[T] {
        &self.values[v * self.stride..v * self.stride + self.width]
    }
}

impl<T: Real> ActiveBlock<T> {
    /// An empty block of at most `most` out of `variables`, in the memory of an earlier one.
    pub(super) fn new(variables: usize, most: usize, memory: Vec<T>) -> Self {
        let is_member = vec![false; variables];
        Self { members: Vec::new(), is_member, values: memory, stride: 0, room: 0, most }
    }

    /// Its memory, for the next block.
    pub(super) fn into_memory(self) -> Vec<T> {
        self.values
    }

    /// The members in the order they joined.
    pub(super) fn members(&self) -> &[u32] {
        &self.members
    }

    pub(super) fn contains(&self, v: usize) -> bool {
        self.is_member[v]
    }

    /// Whether so many members are at most half as many again as there were when it last grew.
    pub(super) fn has_room(&self, count: usize) -> bool {
        count <= self.room
    }

    pub(super) fn matrix(&self) -> BlockMatrix<'_, T> {
        let width = padded(self.members.len());
        BlockMatrix { values: &self.values, stride: self.stride, width }
    }

    /// Keeps only the members that `wanted` names, where that leaves many out; whether it did.
    pub(super) fn keep(&mut self, wanted: impl Fn(usize) -> bool) -> bool {
        let places = (0..self.members.len()).filter(|&i| wanted(self.members[i] as usize));
        let kept: Vec<usize> = places.collect();
        if kept.len() as f64 >= SPARSE * self.members.len() as f64 {
            return false;
        }
        for (i, &from) in kept.iter().enumerate() {
            for (j, &column) in kept.iter().enumerate() {
                self.values[i * self.stride + j] = self.values[from * self.stride + column];
            }
        }
        for &v in &self.members {
            self.is_member[v as usize] = false;
        }
        self.members = kept.iter().map(|&i| self.members[i]).collect();
        for &v in &self.members {
            self.is_member[v as usize] = true;
        }
        true
    }

    /// Makes variables members; `None` when those are too many. `gather` writes the entries of the
    /// rows of some variables at some columns, one row every so many places.
    pub(super) fn join(
        &mut self,
        variables: &[u32],
        gather: impl FnOnce(&[u32], &[u32], &mut [T], usize),
    ) -> Option<()> {
        let fresh: Vec<u32> =
            variables.iter().copied().filter(|&v| !self.is_member[v as usize]).collect();
        if fresh.is_empty() {
            return Some(());
        }
        let before = self.members.len();
        let count = before + fresh.len();
        if count > self.most {
            return None;
        }
        for &v in &fresh {
            self.is_member[v as usize] = true;
        }
        self.members.extend(&fresh);
        if !self.has_room(count) {
            self.room = padded(count + count / 2);
        }
        if count > self.stride {
            self.widen(before, count);
        }
        self.cover(count);
        let stride = self.stride;
        gather(&fresh, &self.members, &mut self.values[before * stride..], stride);
        mirror(&mut self.values[..count * stride], stride, before, count);
        Some(())
    }

    /// Makes room for twice as many members as there are now. Memory that no member uses yet is not
    /// touched.
    fn widen(&mut self, before: usize, count: usize) {
        let most = padded(self.is_member.len().min(self.most));
        let stride = padded((2 * count).max(FIRST_CAPACITY)).min(most);
        let old = std::mem::replace(&mut self.stride, stride);
        if self.values.capacity() < stride * stride {
            let mut wide = Vec::with_capacity(stride * stride);
            for i in 0..before {
                wide.extend_from_slice(&self.values[i * old..i * old + before]);
                wide.resize((i + 1) * stride, T::ZERO);
            }
            self.values = wide;
        } else {
            self.cover(before);
            for i in (0..before).rev() {
                self.values.copy_within(i * old..i * old + before, i * stride);
            }
        }
    }

    /// Makes sure that there are rows for so many members.
    fn cover(&mut self, members: usize) {
        if self.values.len() < members * self.stride {
            self.values.resize(members * self.stride, T::ZERO);
        }
    }
}
