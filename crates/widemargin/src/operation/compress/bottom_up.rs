//! Bottom-up simplification: the cheapest pair of vectors of one sign becomes one vector, again and
//! again (Nguyen 2006, Table 3.1, with the pair of least cost instead of the nearest).
//!
//! Every vector remembers its few best partners, so that a merge costs one row of similarities and
//! seldom a second one. Ties go to the lower numbers, so that the result is the same on any machine
//! with the same instructions and for any number of threads.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use super::merge_kernel::MergeKernel;
use super::pool::Expansion;
use super::store::Store;
use crate::context::Context;
use crate::error::{Error, Result};

/// Partners that a vector remembers.
const PARTNERS: usize = 8;

/// When merging ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MergeStop {
    /// Before the function changes by more than this at any of its own support vectors.
    Difference(f64),
    /// With one vector per sign.
    End,
}

/// The merges of an expansion, in order; any number of the first ones can be applied.
pub(super) struct Merging<'a> {
    original: &'a Expansion,
    merges: Vec<Merge>,
}

/// Two vectors, by number, and the one in their place, which has the next number.
struct Merge {
    pair: (usize, usize),
    vector: Vec<f64>,
    weight: f64,
    cost: f64,
}

impl Merging<'_> {
    /// Cost of every merge.
    pub(super) fn costs(&self) -> impl Iterator<Item = f64> {
        self.merges.iter().map(|merge| merge.cost)
    }

    /// The expansion after the first `count` merges.
    pub(super) fn after(&self, count: usize) -> Expansion {
        let merges = &self.merges[..count];
        let mut alive = vec![true; self.original.vectors.len() + count];
        for merge in merges {
            alive[merge.pair.0] = false;
            alive[merge.pair.1] = false;
        }
        let original = self.original.vectors.iter().zip(&self.original.weights);
        let merged = merges.iter().map(|merge| (&merge.vector, &merge.weight));
        let kept = original.chain(merged).zip(alive).filter(|(_, alive)| *alive);
        let (vectors, weights) = kept.map(|((v, &w), _)| (v.clone(), w)).unzip();
        Expansion { vectors, weights }
    }
}

/// A cost that can be ordered; never NaN.
#[derive(Clone, Copy, PartialEq)]
struct Cost(f64);

impl Eq for Cost {}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cost {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Stands for a partner that has to be looked up first.
const UNKNOWN: usize = usize::MAX;

/// A pair that may be merged, or a vector whose partner is not known; cheapest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    cost: Cost,
    pair: (usize, usize),
}

/// One vector with its best partners.
struct Node {
    weight: f64,
    own: f64,
    alive: bool,
    /// Best partners, cheapest first.
    partners: Vec<(f64, usize)>,
    /// No vector that is not among the partners costs less.
    bound: f64,
}

impl Node {
    fn new(weight: f64, own: f64) -> Self {
        Self { weight, own, alive: true, partners: Vec::new(), bound: f64::INFINITY }
    }

    fn offer(&mut self, cost: f64, partner: usize) {
        if cost >= self.bound {
            return;
        }
        let at = self.partners.partition_point(|&other| other <= (cost, partner));
        self.partners.insert(at, (cost, partner));
        if self.partners.len() > PARTNERS
            && let Some((cost, _)) = self.partners.pop()
        {
            self.bound = cost;
        }
    }
}

/// How far the function has moved at its own support vectors.
struct Drift {
    limit: f64,
    originals: Store,
    difference: Vec<f64>,
    /// Where, and by how much, a refused pair would have moved the function too far.
    refused: HashMap<(usize, usize), (usize, f64)>,
}

impl Drift {
    fn add(&self, rule: &MergeKernel, vector: &[f64], weight: f64, to: &mut [f64]) -> Result<()> {
        self.originals.for_each(vector, |i, base| to[i] += weight * rule.value(base))
    }
}

/// A merge that does not move the function too far.
struct Admitted {
    vector: Vec<f64>,
    weight: f64,
    /// How far the function has moved after it.
    moved: Vec<f64>,
}

/// Merges vectors until `stop`, or until the context asks to stop.
pub(super) fn merge<'a>(
    original: &'a Expansion,
    rule: &MergeKernel,
    stop: MergeStop,
    context: &Context,
) -> Result<Merging<'a>> {
    let mut merges = Vec::new();
    let mut merge_all = || -> Result<()> {
        let mut state = Merger::new(original, rule, stop, context)?;
        while let Some(merge) = state.merge_one(context)? {
            merges.push(merge);
            context.checkpoint()?;
        }
        Ok(())
    };
    match merge_all() {
        Err(Error::Interrupted) | Ok(()) => Ok(Merging { original, merges }),
        Err(error) => Err(error),
    }
}

struct Merger<'a> {
    rule: &'a MergeKernel,
    store: Store,
    nodes: Vec<Node>,
    drift: Option<Drift>,
    queue: BinaryHeap<Reverse<Entry>>,
}

impl<'a> Merger<'a> {
    fn new(
        expansion: &Expansion,
        rule: &'a MergeKernel,
        stop: MergeStop,
        context: &Context,
    ) -> Result<Self> {
        let store = Store::new(rule, expansion.vectors.clone(), context)?;
        let nodes: Vec<Node> = expansion
            .vectors
            .iter()
            .zip(&expansion.weights)
            .map(|(vector, &weight)| Node::new(weight, rule.own_base(vector)))
            .collect();
        let n = nodes.len();
        let drift = match stop {
            MergeStop::End => None,
            MergeStop::Difference(limit) => {
                let originals = Store::new(rule, expansion.vectors.clone(), context)?;
                let mut drift =
                    Drift { limit, originals, difference: vec![0.0; n], refused: HashMap::new() };
                let mut scale = vec![0.0; n];
                for (vector, &weight) in expansion.vectors.iter().zip(&expansion.weights) {
                    context.checkpoint()?;
                    drift.originals.for_each(vector, |i, base| {
                        scale[i] += (weight * rule.value(base)).abs();
                    })?;
                }
                drift.limit += 1e-12 * scale.iter().copied().fold(0.0, f64::max);
                Some(drift)
            }
        };
        let queue = BinaryHeap::new();
        let mut merger = Self { rule, store, nodes, drift, queue };
        merger.nodes = context.try_map(0..n, |v| {
            context.checkpoint()?;
            merger.scan(v)
        })?;
        Ok(merger)
    }

    /// Node `v` with its partners looked up afresh.
    fn scan(&self, v: usize) -> Result<Node> {
        let mut fresh = Node::new(self.nodes[v].weight, self.nodes[v].own);
        self.store.for_each(self.store.vector(v), |u, base| {
            if u != v
                && let Some(cost) = self.cost(&fresh, u, base, fresh.bound)
            {
                fresh.offer(cost, u);
            }
        })?;
        Ok(fresh)
    }

    /// What merging `node` with vector `u` costs; `None` when signs differ or it is not below
    /// `limit`.
    fn cost(&self, node: &Node, u: usize, base: f64, limit: f64) -> Option<f64> {
        let other = &self.nodes[u];
        let (a, b) = (node.weight, other.weight);
        if a * b <= 0.0 || self.rule.least_cost(a, b, base) >= limit {
            return None;
        }
        Some(self.rule.merge(a, b, (node.own, other.own), base).cost)
    }

    /// Where node `v` stands in the queue: with its best living partner or, when those it
    /// remembers are gone, by what any other costs at least.
    fn entry(&mut self, v: usize) -> Option<Entry> {
        let gone = self.nodes[v].partners.iter().take_while(|(_, u)| !self.nodes[*u].alive).count();
        let node = &mut self.nodes[v];
        node.partners.drain(..gone);
        match node.partners.first() {
            Some(&(cost, u)) => Some(Entry { cost: Cost(cost), pair: (v.min(u), v.max(u)) }),
            None if node.bound == f64::INFINITY => None,
            None => Some(Entry { cost: Cost(node.bound), pair: (v, UNKNOWN) }),
        }
    }

    /// Merges the cheapest admissible pair; `None` when there is none or enough was merged.
    fn merge_one(&mut self, context: &Context) -> Result<Option<Merge>> {
        let mut entries = std::mem::take(&mut self.queue).into_vec();
        entries.clear();
        for v in 0..self.nodes.len() {
            if self.nodes[v].alive
                && let Some(entry) = self.entry(v)
            {
                entries.push(Reverse(entry));
            }
        }
        self.queue = BinaryHeap::from(entries);
        while let Some(Reverse(Entry { cost, pair: (u, v) })) = self.queue.pop() {
            if context.stop_request().is_some() {
                return Ok(None);
            }
            if v == UNKNOWN {
                self.nodes[u] = self.scan(u)?;
                let entry = self.entry(u);
                self.queue.extend(entry.map(Reverse));
            } else if let Some(admitted) = self.admissible(u, v)? {
                if let Some(drift) = &mut self.drift {
                    drift.difference = admitted.moved;
                }
                let Admitted { vector, weight, .. } = admitted;
                self.replace(u, v, vector.clone(), weight, context)?;
                return Ok(Some(Merge { pair: (u, v), vector, weight, cost: cost.0 }));
            }
        }
        Ok(None)
    }

    /// The vector and weight that `u` and `v` become.
    fn merged(&self, u: usize, v: usize) -> (Vec<f64>, f64) {
        let (x, y) = (self.store.vector(u), self.store.vector(v));
        let (a, b) = (&self.nodes[u], &self.nodes[v]);
        let similarity = self.store.similarity(u, v);
        let merged = self.rule.merge(a.weight, b.weight, (a.own, b.own), similarity);
        let k = merged.position;
        let vector = x.iter().zip(y).map(|(x, y)| k * x + (1.0 - k) * y).collect();
        (vector, merged.weight)
    }

    /// What `u` and `v` become and where that moves the function, unless it moves too far.
    fn admissible(&mut self, u: usize, v: usize) -> Result<Option<Admitted>> {
        let Some(drift) = &self.drift else {
            let (vector, weight) = self.merged(u, v);
            return Ok(Some(Admitted { vector, weight, moved: Vec::new() }));
        };
        if let Some(&(i, change)) = drift.refused.get(&(u, v))
            && (drift.difference[i] + change).abs() > drift.limit
        {
            return Ok(None);
        }
        let (vector, weight) = self.merged(u, v);
        let mut change = vec![0.0; drift.difference.len()];
        drift.add(self.rule, self.store.vector(u), self.nodes[u].weight, &mut change)?;
        drift.add(self.rule, self.store.vector(v), self.nodes[v].weight, &mut change)?;
        drift.add(self.rule, &vector, -weight, &mut change)?;
        let moved: Vec<f64> = drift.difference.iter().zip(&change).map(|(d, c)| d + c).collect();
        let worst = (0..moved.len())
            .max_by(|&i, &j| moved[i].abs().total_cmp(&moved[j].abs()).then(j.cmp(&i)));
        match worst {
            Some(i) if moved[i].abs() > drift.limit => {
                let evidence = (i, change[i]);
                if let Some(drift) = &mut self.drift {
                    drift.refused.insert((u, v), evidence);
                }
                Ok(None)
            }
            _ => Ok(Some(Admitted { vector, weight, moved })),
        }
    }

    /// Puts a vector in the place of `u` and `v`.
    fn replace(
        &mut self,
        u: usize,
        v: usize,
        vector: Vec<f64>,
        weight: f64,
        context: &Context,
    ) -> Result<()> {
        for gone in [u, v] {
            self.nodes[gone].alive = false;
            self.nodes[gone].partners = Vec::new();
            self.store.remove(gone);
        }
        let mut node = Node::new(weight, self.rule.own_base(&vector));
        let number = self.nodes.len();
        let mut offers = Vec::new();
        self.store.for_each(&vector, |w, base| {
            let limit = node.bound.max(self.nodes[w].bound);
            if let Some(cost) = self.cost(&node, w, base, limit) {
                node.offer(cost, w);
                offers.push((w, cost));
            }
        })?;
        for (w, cost) in offers {
            self.nodes[w].offer(cost, number);
        }
        self.nodes.push(node);
        self.store.push(vector, context)?;
        Ok(())
    }
}
