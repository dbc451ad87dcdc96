//! Labelling sequences with a trained chain: the best tags of every sequence, or the n best.

use std::ops::Range;
use std::sync::Arc;

use super::super::lattice::{Transitions, padded};
use super::blocks::Decoder;
use super::body::{Chain, TagScores};
use super::check_memory;
use super::emissions::{WeightSums, sparse};
use super::n_best::{bytes, n_best};
use crate::context::Context;
use crate::data::{Csr, Label, Matrix, TaggedSequences, memory};
use crate::error::{Error, Result};
use crate::machine::model::{Evaluation, MachineKind, Model, ModelBody, Scratch};
use crate::numeric::InstructionSet;
use crate::numeric::parallel::Scratches;
use crate::numeric::simd::run_plain;

/// Sequences that one task labels.
const TASK: usize = 32;

/// Tags of a sequence and their score.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Labelling {
    /// A code for every position: its place in the list of tags.
    pub tags: Vec<u32>,
    /// Their score.
    pub score: f64,
}

/// The parts of a chain laid out for labelling, kept for the sequences to come.
#[derive(Clone)]
pub struct PackedChain(Arc<Tables>);

struct Tables {
    pairs: Transitions,
    /// Weights of all tags, feature after feature.
    weights: Vec<f64>,
}

/// A chain ready to label sequences; see [`Chain::labeller`].
pub struct Labeller<'a> {
    chain: &'a Chain,
    tables: Arc<Tables>,
    context: &'a Context,
}

/// Where the scores of positions come from.
pub(super) enum Source {
    Rows(Csr<f64>),
    Scores(Vec<f64>),
}

impl Chain {
    /// Makes the chain ready to label sequences.
    ///
    /// # Errors
    /// As [`pack`](Self::pack).
    pub fn labeller<'a>(&'a self, context: &'a Context) -> Result<Labeller<'a>> {
        Ok(self.labeller_with(&self.pack()?, context))
    }

    /// A labeller that uses what [`pack`](Self::pack) of the same chain made.
    pub fn labeller_with<'a>(&'a self, packed: &PackedChain, context: &'a Context) -> Labeller<'a> {
        Labeller { chain: self, tables: Arc::clone(&packed.0), context }
    }

    /// Lays the weights out for labellers to come.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when they would not fit in memory.
    pub fn pack(&self) -> Result<PackedChain> {
        let width = padded(self.tags.len());
        let mut weights = Vec::new();
        if let TagScores::Weights(table) = &self.scores {
            check_memory(table.columns(), table.rows())?;
            weights.resize(table.columns() * width, 0.0);
            for tag in 0..table.rows() {
                table.for_each_nonzero(tag, |feature, weight| {
                    weights[feature * width + tag] = weight
                });
            }
        }
        Ok(PackedChain(Arc::new(Tables { pairs: self.transitions(), weights })))
    }
}

impl Labeller<'_> {
    /// The best tags of every sequence.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of features, [`Error::NonFinite`], [`Error::Model`] for scores that
    /// are not finite, [`Error::Labels`] when the constraints allow no tags of a sequence's length, or an
    /// interruption.
    pub fn label(&self, data: &TaggedSequences) -> Result<Vec<Labelling>> {
        let source = self.source(data)?;
        let decoders = Scratches::<Decoder>::new();
        self.of_sequences(data, |sequence| {
            let span = data.span(sequence);
            decoders.with(|decoder| {
                let set = self.context.instruction_set();
                let mut checked = Ok(());
                let (path, score) = decoder.decode(span.len(), &self.tables.pairs, set, |scores| {
                    self.fill(&source, span.clone(), scores);
                    checked = self.check_finite(scores, sequence);
                });
                checked?;
                check_total(score, sequence, span.len())?;
                Ok(Labelling { tags: path.to_vec(), score })
            })
        })
    }

    /// The `n` best labellings of every sequence, best first; fewer where there are not as many.
    ///
    /// # Errors
    /// As [`label`](Self::label), [`Error::Parameter`] for n = 0, and [`Error::TooLarge`] for more labellings
    /// than fit in memory.
    pub fn n_best(&self, data: &TaggedSequences, n: usize) -> Result<Vec<Vec<Labelling>>> {
        if n == 0 {
            return Err(Error::parameter("n", "at least 1", n));
        }
        // Ranks are kept as 32 bits.
        let n = n.min(u32::MAX as usize);
        self.check_n_best(data, n)?;
        let source = self.source(data)?;
        self.of_sequences(data, |sequence| {
            let span = data.span(sequence);
            let mut scores = vec![0.0; span.len() * self.tables.pairs.width];
            self.fill(&source, span.clone(), &mut scores);
            self.check_finite(&scores, sequence)?;
            let found = n_best(&scores, &self.tables.pairs, n, self.context)?;
            let labellings: Vec<Labelling> =
                found.into_iter().map(|(score, tags)| Labelling { tags, score }).collect();
            let best = labellings.first().map_or(f64::NEG_INFINITY, |labelling| labelling.score);
            check_total(best, sequence, span.len())?;
            Ok(labellings)
        })
    }

    /// Refuses lists that memory cannot hold.
    fn check_n_best(&self, data: &TaggedSequences, n: usize) -> Result<()> {
        let (mut largest, mut results) = (0, 0_u128);
        for sequence in 0..data.count() {
            let (search, result) = bytes(data.span(sequence).len(), self.tables.pairs.states, n);
            largest = search.max(largest);
            results = results.saturating_add(result);
        }
        let bytes = results.saturating_add(largest.saturating_mul(self.context.threads() as u128));
        memory::check(|| format!("the {n} best labellings"), bytes)
    }

    /// Scores of pairs.
    pub(super) fn pairs(&self) -> &Transitions {
        &self.tables.pairs
    }

    pub(super) fn instruction_set(&self) -> InstructionSet {
        self.context.instruction_set()
    }

    /// The names of codes.
    pub fn names<'b>(&'b self, codes: &'b [u32]) -> impl Iterator<Item = &'b Label> {
        codes.iter().map(|&code| &self.chain.tags[code as usize])
    }

    fn of_sequences<T: Send>(
        &self,
        data: &TaggedSequences,
        work: impl Fn(usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let parts = self.context.try_map((0..data.count()).step_by(TASK), |first| {
            self.context.checkpoint()?;
            (first..(first + TASK).min(data.count())).map(&work).collect::<Result<Vec<T>>>()
        })?;
        Ok(parts.into_iter().flatten().collect())
    }

    pub(super) fn source(&self, data: &TaggedSequences) -> Result<Source> {
        let rows = data.rows();
        rows.validate()?;
        let features = self.chain.vectors().columns();
        if rows.columns() != features {
            return Err(Error::length("features", features, rows.columns()));
        }
        match &self.chain.scores {
            TagScores::Weights(_) => Ok(Source::Rows(sparse(rows))),
            TagScores::Expansion(expansion) => {
                self.kernel_scores(expansion, rows).map(Source::Scores)
            }
        }
    }

    fn kernel_scores(
        &self,
        expansion: &crate::machine::KernelExpansion,
        rows: &Matrix,
    ) -> Result<Vec<f64>> {
        let model = Model::new(MachineKind::ChainSvc, self.chain.clone());
        let prepared = expansion.prepare(&model, self.context)?;
        let (tags, width) = (self.chain.tags.len(), self.tables.pairs.width);
        let mut scores = vec![0.0; rows.rows() * width];
        let all: Vec<usize> = (0..rows.rows()).collect();
        let tasks = scores.chunks_mut(256 * width).zip(all.chunks(256));
        self.context.try_for_each(tasks, |(scores, rows_of_task)| {
            self.context.checkpoint()?;
            let mut values = vec![0.0; rows_of_task.len() * tags];
            let (scratch, context) = (&mut Scratch::default(), self.context);
            let (queries, rows, out) = (rows, rows_of_task, &mut values[..]);
            prepared.evaluate(Evaluation { queries, rows, out, scratch, context })?;
            for (row, own) in scores.chunks_exact_mut(width).zip(values.chunks_exact(tags)) {
                row[..tags].copy_from_slice(own);
            }
            Ok(())
        })?;
        Ok(scores)
    }

    /// Refuses scores of a sequence's positions that are not finite.
    fn check_finite(&self, scores: &[f64], sequence: usize) -> Result<()> {
        let tags = &self.chain.tags;
        for (position, row) in scores.chunks_exact(self.tables.pairs.width).enumerate() {
            let own = tags.iter().zip(row);
            if let Some((tag, score)) = own.into_iter().find(|(_, score)| !score.is_finite()) {
                return Err(Error::model(format!(
                    "the score of tag '{tag}' at position {} of sequence {} is {score}, not a finite number: \
                     scale the features",
                    position + 1,
                    sequence + 1
                )));
            }
        }
        Ok(())
    }

    pub(super) fn fill(&self, source: &Source, positions: Range<usize>, out: &mut [f64]) {
        let width = self.tables.pairs.width;
        match source {
            Source::Rows(rows) => {
                let weights = &self.tables.weights[..];
                let sums = WeightSums { rows, positions, weights, width, out };
                run_plain(self.context.instruction_set(), sums);
            }
            Source::Scores(scores) => {
                out.copy_from_slice(&scores[positions.start * width..positions.end * width]);
            }
        }
    }
}

/// Refuses the score of a sequence's best tags that is no number.
fn check_total(score: f64, sequence: usize, length: usize) -> Result<()> {
    if score == f64::NEG_INFINITY {
        return Err(Error::labels(
            "constraints that allow tags for every sequence",
            format!("none for the {length} positions of sequence {}", sequence + 1),
        ));
    }
    if score.is_finite() {
        return Ok(());
    }
    Err(Error::model(format!(
        "the score of the best tags of sequence {} is {score}, not a finite number: scale the features",
        sequence + 1
    )))
}
