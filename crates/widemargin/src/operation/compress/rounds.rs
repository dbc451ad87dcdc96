//! Merging in rounds, for budgets: every vector remembers its few best partners among those of more
//! weight, and each round merges the cheapest pairs, several into one vector where they agree on it.
//!
//! (Among all it would be no use: the vector of least weight is everybody's best.) Partners are
//! chosen by an [estimate](super::estimate), pairs are priced exactly, and at most an eighth of the
//! vectors goes in a round; only vectors that are new or have lost all partners look around again,
//! many at a time. In a list of N vectors each sees min(N, 1024) others or so, in single precision on
//! the block engine; that is as many similarities at first and about as many again later, whatever the
//! number of rounds.

use std::collections::BTreeMap;

use super::element::table_of;
use super::estimate::{Partners, Row, scan_block};
use super::gaussian::Merged;
use super::merge_kernel::MergeKernel;
use super::pool::Expansion;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::kernel::{KernelBlocks, Queries};
use crate::numeric::InstructionSet;

/// Share of the vectors that one round merges away, 1 / this.
const SHARE: usize = 8;

/// The cheapest pairs that a round considers, for each that it merges.
const CANDIDATES: usize = 2;

/// Rows that look around together.
const ROWS: usize = 64;

/// Columns of one task.
const COLUMNS: usize = 512;

/// Vectors of a list that all look at each other; in longer ones each looks at about this many.
const COMPARED: usize = 1024;

/// Marks a removed vector.
const REMOVED: u32 = u32::MAX;

/// Merges vectors within each of `lists`, cheapest pairs of all lists first, and returns the lists
/// as they are with each number of vectors in `budgets` (descending). A list always keeps a vector.
pub(super) fn merge_in_rounds(
    lists: &[Expansion],
    rule: &MergeKernel,
    budgets: &[usize],
    context: &Context,
) -> Result<Vec<Vec<Expansion>>> {
    let mut lists: Vec<List> = lists.iter().map(|list| List::new(list, rule)).collect();
    let mut snapshots = Vec::with_capacity(budgets.len());
    for &budget in budgets {
        while context.stop_request().is_none() {
            let total: usize = lists.iter().map(|list| list.weights.len()).sum();
            let most = total.saturating_sub(budget).min((total / SHARE).max(1));
            if most == 0 {
                break;
            }
            match round(&mut lists, rule, most, context) {
                Ok(true) => {}
                // Vectors are merged at the end of a round.
                Ok(false) | Err(Error::Interrupted) => break,
                Err(error) => return Err(error),
            }
        }
        snapshots.push(lists.iter().map(List::expansion).collect());
    }
    Ok(snapshots)
}

/// Merges up to `most` vectors into others of their lists; false when there are none.
fn round(lists: &mut [List], rule: &MergeKernel, most: usize, context: &Context) -> Result<bool> {
    let mut pairs = Vec::new();
    for (l, list) in lists.iter_mut().enumerate() {
        list.find_partners(rule, context)?;
        for (i, partners) in list.partners.iter().enumerate() {
            if let Some(&(_, partner)) = partners.list().first() {
                let j = partner as usize;
                pairs.push((list.merged(rule, i, j).cost, l, i, j));
            }
        }
    }
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3))));
    pairs.truncate(CANDIDATES * most);
    let Some(&(limit, ..)) = pairs.last() else { return Ok(false) };
    let mut rounds: Vec<Round> = lists.iter().map(|list| Round::new(list.weights.len())).collect();
    let mut count = 0;
    for (_, l, i, j) in pairs {
        if count == most {
            break;
        }
        count += usize::from(rounds[l].absorb(&lists[l], rule, i, j, limit));
    }
    for (list, round) in lists.iter_mut().zip(rounds) {
        list.replace(rule, round);
    }
    Ok(count > 0)
}

/// What one round makes of a list.
struct Round {
    /// Vectors that are gone, into others or replaced by what they became.
    gone: Vec<bool>,
    /// What vectors that took in others have become.
    grown: BTreeMap<usize, Grown>,
}

/// A vector that took in others.
struct Grown {
    vector: Vec<f64>,
    weight: f64,
    own: f64,
}

impl Round {
    fn new(vectors: usize) -> Self {
        Self { gone: vec![false; vectors], grown: BTreeMap::new() }
    }

    /// Merges vector `i` into `j`, or into what that has become; false when either is not there any
    /// more or it would cost more than `limit`.
    fn absorb(&mut self, list: &List, rule: &MergeKernel, i: usize, j: usize, limit: f64) -> bool {
        if self.gone[i] || (self.gone[j] && !self.grown.contains_key(&j)) {
            return false;
        }
        let (vector, weight, own) = match self.grown.get(&j) {
            Some(grown) => (&grown.vector, grown.weight, grown.own),
            None => (&list.vectors[j], list.weights[j], list.own[j]),
        };
        let base = rule.base_of(&list.vectors[i], vector);
        let merged = rule.merge(list.weights[i], weight, (list.own[i], own), base);
        if merged.cost > limit {
            return false;
        }
        let k = merged.position;
        let between = list.vectors[i].iter().zip(vector);
        let vector: Vec<f64> = between.map(|(x, y)| k * x + (1.0 - k) * y).collect();
        let own = rule.own_base(&vector);
        self.grown.insert(j, Grown { vector, weight: merged.weight, own });
        (self.gone[i], self.gone[j]) = (true, true);
        true
    }
}

/// Vectors that look for partners among all others, a tile of those at a time.
struct Scan<'a> {
    blocks: KernelBlocks<f32>,
    queries: Queries<f32>,
    /// Numbers of the vectors that look.
    rows: &'a [usize],
    lengths: &'a [f32],
    first_new: usize,
    set: InstructionSet,
}

impl Scan<'_> {
    /// The partners that every row finds in tile `t`; new rows are offered to the vectors of the tile,
    /// whose bounds and partners are given.
    fn tile(
        &self,
        t: usize,
        bounds: &mut [f32],
        partners: &mut [Partners],
    ) -> Vec<(f32, Partners)> {
        let Self { rows, lengths, first_new, .. } = *self;
        let every = lengths.len().div_ceil(COMPARED);
        let columns = t * COLUMNS..t * COLUMNS + bounds.len();
        let width = columns.len();
        let (mut block, mut scratch) = (vec![0.0; ROWS * width], vec![0.0; 2 * width]);
        let (longer, shorter) = scratch.split_at_mut(width);
        let mut found = Vec::with_capacity(rows.len());
        for (c, chunk) in rows.chunks(ROWS).enumerate() {
            // Of two new vectors the earlier one is shown the later one.
            let is_new = chunk[0] >= first_new;
            let is_earlier = first_new <= columns.start && columns.end <= chunk[0];
            if (is_new && is_earlier) || !(t + c).is_multiple_of(every) {
                found.resize(found.len() + chunk.len(), (f32::INFINITY, Partners::default()));
                continue;
            }
            let range = c * ROWS..c * ROWS + chunk.len();
            self.blocks.query_block(&self.queries, range, columns.clone(), &mut block, width);
            for (&number, similarities) in chunk.iter().zip(block.chunks_exact(width)) {
                let is_new = number >= first_new;
                let hidden = if is_new { first_new..number + 1 } else { number..number + 1 };
                let within = |at: usize| at.clamp(columns.start, columns.end) - columns.start;
                let (mut bound, mut own) = (f32::INFINITY, Partners::default());
                let row = Row {
                    length: lengths[number],
                    number: number as u32,
                    similarities,
                    lengths: &lengths[columns.clone()],
                    first: columns.start as u32,
                    hidden: within(hidden.start)..within(hidden.end),
                    partners: (&mut bound, &mut own),
                    offered: is_new.then_some((&mut *bounds, &mut *partners)),
                    scratch: [&mut *longer, &mut *shorter],
                };
                scan_block(self.set, row);
                found.push((bound, own));
            }
        }
        found
    }
}

/// Vectors that may be merged with each other, each with its best partners.
#[derive(Default)]
struct List {
    vectors: Vec<Vec<f64>>,
    weights: Vec<f64>,
    /// The base kernel value of every vector and itself.
    own: Vec<f64>,
    /// Lengths of the weighted images.
    lengths: Vec<f32>,
    /// No vector that is not among the partners costs less.
    bounds: Vec<f32>,
    partners: Vec<Partners>,
    /// Vectors from here on are new: no partners were computed for them, and they are the partner of none.
    first_new: usize,
}

impl List {
    fn new(expansion: &Expansion, rule: &MergeKernel) -> Self {
        let mut list = Self::default();
        for (vector, &weight) in expansion.vectors.iter().zip(&expansion.weights) {
            list.push(rule, vector.clone(), weight);
        }
        list
    }

    fn expansion(&self) -> Expansion {
        Expansion { vectors: self.vectors.clone(), weights: self.weights.clone() }
    }

    fn push(&mut self, rule: &MergeKernel, vector: Vec<f64>, weight: f64) {
        let own = rule.own_base(&vector);
        self.lengths.push((weight.abs() * rule.value(own).max(0.0).sqrt()) as f32);
        self.own.push(own);
        self.vectors.push(vector);
        self.weights.push(weight);
        self.bounds.push(f32::INFINITY);
        self.partners.push(Partners::default());
    }

    /// What vectors `i` and `j` would become.
    fn merged(&self, rule: &MergeKernel, i: usize, j: usize) -> Merged {
        let base = rule.base_of(&self.vectors[i], &self.vectors[j]);
        rule.merge(self.weights[i], self.weights[j], (self.own[i], self.own[j]), base)
    }

    /// Shows the new vectors to all others, and all others to those that have lost their partners.
    fn find_partners(&mut self, rule: &MergeKernel, context: &Context) -> Result<()> {
        let n = self.weights.len();
        let without_partners =
            |i: &usize| self.partners[*i].list().is_empty() && self.bounds[*i] < f32::INFINITY;
        let without_partners: Vec<usize> = (0..self.first_new).filter(without_partners).collect();
        let rows: Vec<usize> = without_partners.iter().copied().chain(self.first_new..n).collect();
        if n < 2 || rows.is_empty() {
            return Ok(());
        }
        for &row in &without_partners {
            // They look themselves: nothing may be offered to them twice.
            self.bounds[row] = f32::NEG_INFINITY;
        }
        let directions: Vec<Vec<f64>> = self.vectors.iter().map(|v| rule.direction(v)).collect();
        let table = table_of::<f32>(&directions)?;
        let set = context.instruction_set();
        let blocks = KernelBlocks::<f32>::new(&rule.cosine(), &table, None, context)?;
        let scan = Scan {
            queries: blocks.gather(&rows),
            blocks,
            rows: &rows,
            lengths: &self.lengths,
            first_new: self.first_new,
            set,
        };
        let (bounds, partners) = (&mut self.bounds, &mut self.partners);
        let tiles = bounds.chunks_mut(COLUMNS).zip(partners.chunks_mut(COLUMNS)).enumerate();
        let found: Vec<Vec<(f32, Partners)>> =
            context.try_map(tiles, |(t, (bounds, partners))| {
                context.checkpoint()?;
                Ok(scan.tile(t, bounds, partners))
            })?;
        for &row in &without_partners {
            self.bounds[row] = f32::INFINITY;
        }
        for tile in found {
            for (&row, (bound, own)) in rows.iter().zip(tile) {
                for &(cost, partner) in own.list() {
                    self.partners[row].offer(&mut self.bounds[row], cost, partner);
                }
                self.bounds[row] = self.bounds[row].min(bound);
            }
        }
        for (bound, partners) in self.bounds.iter().zip(&mut self.partners) {
            partners.cut(*bound);
        }
        self.first_new = n;
        Ok(())
    }

    /// Puts what vectors have become in their place, after all others.
    fn replace(&mut self, rule: &MergeKernel, round: Round) {
        let taken = &round.gone;
        let mut place = vec![REMOVED; taken.len()];
        let alive = (0..taken.len()).filter(|&i| !taken[i]);
        alive.zip(0..).for_each(|(i, next)| place[i] = next);
        retain(&mut self.vectors, taken);
        retain(&mut self.weights, taken);
        retain(&mut self.own, taken);
        retain(&mut self.lengths, taken);
        retain(&mut self.bounds, taken);
        retain(&mut self.partners, taken);
        for partners in &mut self.partners {
            partners.renumber(|partner| Some(place[partner as usize]).filter(|&at| at != REMOVED));
        }
        self.first_new = self.weights.len();
        for (_, grown) in round.grown {
            self.push(rule, grown.vector, grown.weight);
        }
    }
}

/// Leaves out what is taken.
fn retain<T>(values: &mut Vec<T>, taken: &[bool]) {
    let mut gone = taken.iter();
    values.retain(|_| gone.next() == Some(&false));
}
