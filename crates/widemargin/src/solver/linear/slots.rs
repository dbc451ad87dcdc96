//! The variables of a dual where several threads can reach them, each its own at a time.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rayon::prelude::*;

use super::variable::{Variable, Variables};
use crate::context::Context;
use crate::solver::linear::rows::fetch;

/// Variables that are worth being handed to a thread.
const PIECE: usize = 1 << 10;

/// One variable, alone in its cache line so that threads do not take lines from each other.
#[repr(align(64))]
struct Slot {
    fixed: Variable,
    /// The bits of β; that of `fixed` is where it began.
    beta: AtomicU64,
    nap: AtomicU8,
}

/// All variables; rounds see to it that no two threads have the same one.
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    /// So many, made on the threads of the context.
    pub(super) fn new(
        count: usize,
        variable: impl Fn(usize) -> Variable + Sync,
        context: &Context,
    ) -> Self {
        let slot = |i: usize| {
            let fixed = variable(i);
            let beta = AtomicU64::new(fixed.beta.to_bits());
            Slot { fixed, beta, nap: AtomicU8::new(0) }
        };
        if context.is_parallel() {
            Self((0..count).into_par_iter().with_min_len(PIECE).map(slot).collect())
        } else {
            Self((0..count).map(slot).collect())
        }
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Variable> {
        (0..self.0.len()).map(|i| self.get(i))
    }

    /// Variable `i`.
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Variable {
        let slot = &self.0[i];
        Variable { beta: f64::from_bits(slot.beta.load(Ordering::Relaxed)), ..slot.fixed }
    }

    /// Gives variable `i` a new β.
    #[inline(always)]
    pub(super) fn set(&self, i: usize, beta: f64) {
        self.0[i].beta.store(beta.to_bits(), Ordering::Relaxed);
    }

    fn nap(&self, i: usize) -> u8 {
        self.0[i].nap.load(Ordering::Relaxed)
    }

    fn set_nap(&self, i: usize, nap: u8) {
        self.0[i].nap.store(nap, Ordering::Relaxed);
    }
}

/// Variables in the course of a round: keeps what has to be known about their steps.
pub(super) struct Recorder<'a> {
    slots: &'a Slots,
    /// Variables that were moved, with their β before.
    moved: &'a mut Vec<(u32, f64)>,
    epsilon: f64,
    /// Slope and curvature of the dual along all steps, but for those of ½‖w‖².
    pub(super) slope: f64,
    pub(super) curvature: f64,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(slots: &'a Slots, moved: &'a mut Vec<(u32, f64)>, epsilon: f64) -> Self {
        Self { slots, moved, epsilon, slope: 0.0, curvature: 0.0 }
    }
}

impl Variables for Recorder<'_> {
    #[inline(always)]
    fn get(&self, i: usize) -> Variable {
        self.slots.get(i)
    }

    #[inline(always)]
    fn set(&mut self, i: usize, beta: f64) {
        let before = self.slots.get(i);
        let step = beta - before.beta;
        let tube = self.epsilon * (beta.abs() - before.beta.abs());
        self.slope += step * (before.ridge * before.beta - before.target) + tube;
        self.curvature += before.ridge * step * step;
        self.moved.push((i as u32, before.beta));
        self.slots.set(i, beta);
    }

    #[inline(always)]
    fn nap(&self, i: usize) -> u8 {
        self.slots.nap(i)
    }

    #[inline(always)]
    fn set_nap(&mut self, i: usize, nap: u8) {
        self.slots.set_nap(i, nap);
    }

    #[inline(always)]
    fn fetch(&self, i: usize) {
        fetch(&self.slots.0, i);
    }
}
