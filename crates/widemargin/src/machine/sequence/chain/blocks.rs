//! Chains as blocks of a structured problem: the score of tags y of a sequence x is
//!
//! ```text
//! s(x, y) = Σₖ ⟨w(yₖ), φ(xₖ)⟩ + Σ over k ≥ 2 of t(yₖ₋₁, yₖ)
//! ```
//!
//! and ψ(u) = Φ(x, y) − Φ(x, u) for the true tags y. A labelling is kept as the positions where it differs from the
//! truth, so that ψ, its norm and the step along it cost what differs. The marginals of the multipliers over positions
//! and over pairs of neighbours are those of the factored dual (Taskar, Guestrin and Koller, 2004).

use super::super::best_path::BestPath;
use super::super::lattice::{Lattice, Transitions, padded};
use super::emissions::Emissions;
use super::tags::TagRules;
use crate::data::TaggedSequences;
use crate::error::{Error, Result};
use crate::numeric::InstructionSet;
use crate::numeric::simd::run_plain;
use crate::solver::structured::Blocks;

/// Positions and tags where a labelling differs from the truth, ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Differences(Vec<(u32, u32)>);

impl Differences {
    fn of(path: &[u32], truth: &[u32]) -> Option<Self> {
        let pairs = path.iter().zip(truth).enumerate();
        let differing = pairs.filter(|(_, (u, y))| u != y).map(|(k, (u, _))| (k as u32, *u));
        let list: Vec<(u32, u32)> = differing.collect();
        (!list.is_empty()).then_some(Self(list))
    }

    fn tag(&self, k: usize, truth: &[u32]) -> u32 {
        match self.0.binary_search_by_key(&(k as u32), |(position, _)| *position) {
            Ok(place) => self.0[place].1,
            Err(_) => truth[k],
        }
    }

    /// Calls `visit` for every pair of neighbours that the labelling changes, with the true tags and its own.
    fn for_each_pair(&self, truth: &[u32], mut visit: impl FnMut([u32; 2], [u32; 2])) {
        let mut done = 0;
        for &(k, _) in &self.0 {
            let k = k as usize;
            for end in [k, k + 1] {
                if end > done && end < truth.len() {
                    let own = [self.tag(end - 1, truth), self.tag(end, truth)];
                    visit([truth[end - 1], truth[end]], own);
                    done = end;
                }
            }
        }
    }
}

/// Weights of the features and scores of pairs of tags; forbidden pairs have −∞.
pub(super) struct ChainWeights<E> {
    pub(super) emissions: E,
    pub(super) pairs: Transitions,
}

/// Sequences with known tags as blocks.
pub(super) struct ChainBlocks<'a, E> {
    pub(super) emissions: E,
    data: &'a TaggedSequences,
    truth: &'a [u32],
    rules: &'a TagRules,
    c: f64,
    set: InstructionSet,
}

impl<'a, E: Emissions> ChainBlocks<'a, E> {
    pub(super) fn new(
        emissions: E,
        data: &'a TaggedSequences,
        truth: &'a [u32],
        rules: &'a TagRules,
        c: f64,
        set: InstructionSet,
    ) -> Self {
        Self { emissions, data, truth, rules, c, set }
    }

    fn truth(&self, block: usize) -> (usize, &'a [u32]) {
        let span = self.data.span(block);
        (span.start, &self.truth[span])
    }
}

/// Memory of a decoder.
#[derive(Default)]
pub(super) struct Decoder {
    lattice: Lattice,
    back: Vec<u32>,
    path: Vec<u32>,
}

impl Decoder {
    /// The best path of a run whose scores `fill` writes, and its score.
    pub(super) fn decode(
        &mut self,
        length: usize,
        pairs: &Transitions,
        set: InstructionSet,
        fill: impl FnOnce(&mut [f64]),
    ) -> (&[u32], f64) {
        self.lattice.resize(length, pairs.width);
        fill(&mut self.lattice.emissions[..length * pairs.width]);
        self.path.clear();
        self.path.resize(length, 0);
        let (lattice, back, path) = (&mut self.lattice, &mut self.back, &mut self.path[..]);
        let context = None;
        let best = BestPath { chain: pairs, inputs: &[], lattice, back, path, context };
        let score = run_plain(set, best);
        (&self.path, score)
    }
}

impl<E: Emissions> Blocks for ChainBlocks<'_, E> {
    type Labelling = Differences;
    type Weights = ChainWeights<E::Weights>;
    type Scratch = Decoder;

    fn count(&self) -> usize {
        self.data.count()
    }

    fn price(&self, block: usize) -> f64 {
        self.c * self.data.weight(block)
    }

    fn zero(&self) -> Self::Weights {
        let width = padded(self.rules.count());
        ChainWeights { emissions: self.emissions.zero(width), pairs: self.rules.transitions() }
    }

    fn most_violating(
        &self,
        block: usize,
        weights: &Self::Weights,
        decoder: &mut Decoder,
    ) -> Result<Option<Differences>> {
        let (first, truth) = self.truth(block);
        let (width, tags) = (weights.pairs.width, self.rules.count());
        let (path, score) = decoder.decode(truth.len(), &weights.pairs, self.set, |scores| {
            self.emissions.scores(first..first + truth.len(), &weights.emissions, width, scores);
            for (scores, &tag) in scores.chunks_exact_mut(width).zip(truth) {
                let losses = self.rules.losses(tag);
                scores[..tags].iter_mut().zip(losses).for_each(|(score, loss)| *score += loss);
            }
        });
        if score.is_nan() || score == f64::INFINITY {
            return Err(Error::model(format!(
                "the scores of sequence {} are not finite: scale the features or choose a smaller c",
                block + 1
            )));
        }
        Ok(Differences::of(path, truth))
    }

    fn loss(&self, block: usize, labelling: &Differences) -> f64 {
        let (_, truth) = self.truth(block);
        let loss = |&(k, tag): &(u32, u32)| self.rules.losses(truth[k as usize])[tag as usize];
        labelling.0.iter().map(loss).sum()
    }

    fn margin(&self, block: usize, labelling: &Differences, weights: &Self::Weights) -> f64 {
        let (first, truth) = self.truth(block);
        let width = weights.pairs.width;
        let mut margin = 0.0;
        for &(k, tag) in &labelling.0 {
            let tags = [truth[k as usize], tag];
            margin +=
                self.emissions.difference(first + k as usize, tags, &weights.emissions, width);
        }
        let score =
            |pair: [u32; 2]| weights.pairs.rows[pair[0] as usize * width + pair[1] as usize];
        labelling.for_each_pair(truth, |real, own| margin += score(real) - score(own));
        margin
    }

    fn product(&self, block: usize, left: &Differences, right: &Differences) -> f64 {
        let (first, truth) = self.truth(block);
        let mut sum = 0.0;
        for &(k, u) in &left.0 {
            let real = truth[k as usize];
            for &(l, v) in &right.0 {
                let other = truth[l as usize];
                // ⟨e(y) − e(u), e(y′) − e(v)⟩ of the tags' unit vectors.
                let tags = i32::from(real == other) - i32::from(u == other) - i32::from(real == v)
                    + i32::from(u == v);
                if tags != 0 {
                    let product = self.emissions.product(first + k as usize, first + l as usize);
                    sum += f64::from(tags) * product;
                }
            }
        }
        let mut pairs: Vec<([u32; 2], i32)> = Vec::new();
        left.for_each_pair(truth, |real, own| pairs.extend([(real, 1), (own, -1)]));
        right.for_each_pair(truth, |real, own| {
            for (pair, sign) in &pairs {
                let same = i32::from(*pair == real) - i32::from(*pair == own);
                sum += f64::from(sign * same);
            }
        });
        sum
    }

    fn add(&self, block: usize, labelling: &Differences, factor: f64, weights: &mut Self::Weights) {
        let (first, truth) = self.truth(block);
        let width = weights.pairs.width;
        for &(k, tag) in &labelling.0 {
            let tags = [truth[k as usize], tag];
            self.emissions.add(first + k as usize, tags, factor, &mut weights.emissions, width);
        }
        let rows = &mut weights.pairs.rows;
        labelling.for_each_pair(truth, |real, own| {
            rows[real[0] as usize * width + real[1] as usize] += factor;
            rows[own[0] as usize * width + own[1] as usize] -= factor;
        });
    }

    fn squared_norm(&self, weights: &Self::Weights) -> f64 {
        let pairs = weights.pairs.rows.iter().filter(|score| score.is_finite());
        self.emissions.squared_norm(&weights.emissions) + pairs.map(|t| t * t).sum::<f64>()
    }
}
