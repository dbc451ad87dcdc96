//! Unsupervised chains by alternation (Xu 2007, section 5.4): train on tags, tag anew with what was learnt, and so on,
//!
//! ```text
//! minimise over tags y and w   ½‖w‖² + C Σᵢ (max over u [Δ(u, yⁱ) + s(xⁱ, u)] − s(xⁱ, yⁱ))
//! ```
//!
//! to a local minimum. The tags that the chain predicts need not have the smallest loss for its weights, because the
//! first term depends on them too: they are taken only where the loss of their sequence does not grow. Where they are
//! not taken, single tags are changed for as long as that lowers it.

use super::blocks::Decoder;
use super::label::{Labeller, Source};
use super::tags::TagRules;
use super::{Chain, ChainSvc};
use crate::context::{Context, Event};
use crate::data::{Classes, Label, TaggedSequences};
use crate::error::{Error, Result};
use crate::machine::{Body, Model};
use crate::outcome::Status;

/// Least decrease of a sequence's loss, as a share of the largest, that is worth a change.
const LEAST_DECREASE: f64 = 1e-9;

/// Unsupervised chains by training and tagging in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainAlternation {
    /// The machine that is trained in every round.
    pub machine: ChainSvc,
    /// Most rounds.
    pub rounds: usize,
}

impl Default for ChainAlternation {
    fn default() -> Self {
        Self { machine: ChainSvc { tol: 1e-3, ..ChainSvc::default() }, rounds: 50 }
    }
}

/// Tags that were found and how.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AlternationFit {
    /// The chain trained on the tags.
    pub model: Model,
    /// A tag for every position.
    pub tags: Vec<u32>,
    /// The primal objective after every training.
    pub objectives: Vec<f64>,
    /// Solved where no change of tags was left; otherwise why it ended.
    pub status: Status,
}

impl ChainAlternation {
    /// Learns from sequences without tags, from `start`, one tag below `count` for every position: the best path of a
    /// hidden Markov model, for example.
    ///
    /// # Errors
    /// As [`ChainSvc::fit`], and [`Error::Labels`] when a tag does not occur at the start.
    pub fn fit(
        &self,
        data: &TaggedSequences,
        start: &[u32],
        count: usize,
        context: &Context,
    ) -> Result<AlternationFit> {
        if self.rounds == 0 {
            return Err(Error::parameter("rounds", "at least 1", 0));
        }
        if let Some(tag) = (0..count as u32).find(|tag| !start.contains(tag)) {
            return Err(Error::labels(format!("{count} tags at the start"), format!("no {tag}")));
        }
        let names: Vec<Label> = (0..count as i64).map(Label::Int).collect();
        let rules = TagRules::new(&names, &self.machine.loss, &self.machine.constraints)?;
        // All features keep their places, whatever their weights.
        let unnamed = data.clone().without_names();
        let (mut tags, mut objectives) = (start.to_vec(), Vec::new());
        let mut last = None;
        let mut status = Status::IterationLimit;
        for round in 1..=self.rounds {
            if let Some(stop) = context.stop_request().filter(|_| last.is_some()) {
                status = stop;
                break;
            }
            let classes = Classes { names: names.clone(), codes: tags.clone() };
            let tagged = unnamed.clone().with_classes(classes)?;
            let model = self.machine.fit(&tagged, context)?;
            let objective = model.training.as_ref().map_or(f64::NAN, |t| t.outcome.primal);
            objectives.push(objective);
            let Body::Chain(chain) = &model.body else { return Err(Error::model("no chain")) };
            let found = match relabelled(chain, &tagged, &tags, &rules, context) {
                Err(Error::Interrupted) => {
                    status = context.stop_request().unwrap_or(Status::Interrupted);
                    last = Some((model, tags));
                    break;
                }
                found => found?,
            };
            context.report(&Event::Iteration {
                iteration: round,
                violation: found.as_ref().map_or(0, |found| changes(found, &tags)) as f64,
                objective,
                active: tags.len(),
            });
            last = Some((model, tags.clone()));
            match found {
                Some(found) if (0..count as u32).all(|tag| found.contains(&tag)) => tags = found,
                // A fixed point, or a tag would disappear.
                _ => {
                    status = Status::Solved;
                    break;
                }
            }
        }
        let (mut model, tags) = last.ok_or(Error::Interrupted)?;
        model.feature_names = data.feature_names().map(<[String]>::to_vec);
        Ok(AlternationFit { model, tags, objectives, status })
    }
}

fn changes(left: &[u32], right: &[u32]) -> usize {
    left.iter().zip(right).filter(|(a, b)| a != b).count()
}

/// Tags with a smaller loss at the weights of `chain`; nothing where none were found.
fn relabelled(
    chain: &Chain,
    data: &TaggedSequences,
    tags: &[u32],
    rules: &TagRules,
    context: &Context,
) -> Result<Option<Vec<u32>>> {
    let labeller = chain.labeller(context)?;
    let source = labeller.source(data)?;
    let mut all = tags.to_vec();
    let mut changed = false;
    let mut decoder = Decoder::default();
    for sequence in 0..data.count() {
        context.checkpoint()?;
        let span = data.span(sequence);
        let mut own = Rescorer::new(&labeller, &source, span.clone(), rules, &mut decoder);
        if let Some(found) = own.improved(&tags[span.clone()], context)? {
            all[span].copy_from_slice(&found);
            changed = true;
        }
    }
    Ok(changed.then_some(all))
}

/// The loss of any tags of one sequence for given scores.
struct Rescorer<'a> {
    scores: Vec<f64>,
    labeller: &'a Labeller<'a>,
    rules: &'a TagRules,
    decoder: &'a mut Decoder,
}

impl<'a> Rescorer<'a> {
    fn new(
        labeller: &'a Labeller<'a>,
        source: &Source,
        span: std::ops::Range<usize>,
        rules: &'a TagRules,
        decoder: &'a mut Decoder,
    ) -> Self {
        let mut scores = vec![0.0; span.len() * labeller.pairs().width];
        labeller.fill(source, span, &mut scores);
        Self { scores, labeller, rules, decoder }
    }

    /// max over u [Δ(u, y) + s(u)] − s(y).
    fn loss(&mut self, tags: &[u32]) -> f64 {
        let (pairs, rules, own) = (self.labeller.pairs(), self.rules, &self.scores);
        let width = pairs.width;
        let set = self.labeller.instruction_set();
        let (_, highest) = self.decoder.decode(tags.len(), pairs, set, |scores| {
            scores.copy_from_slice(own);
            for (scores, &tag) in scores.chunks_exact_mut(width).zip(tags) {
                scores.iter_mut().zip(rules.losses(tag)).for_each(|(score, loss)| *score += loss);
            }
        });
        let mut score = pairs.start[tags[0] as usize];
        score += tags.iter().enumerate().map(|(k, &t)| own[k * width + t as usize]).sum::<f64>();
        for pair in tags.windows(2) {
            score += pairs.rows[pair[0] as usize * width + pair[1] as usize];
        }
        highest - score
    }

    /// The best tags where their loss is no larger; otherwise what changes of single tags lead to.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the context asks to stop.
    fn improved(&mut self, tags: &[u32], context: &Context) -> Result<Option<Vec<u32>>> {
        let before = self.loss(tags);
        let least = LEAST_DECREASE * (1.0 + before.abs());
        let (pairs, own, set) =
            (self.labeller.pairs(), &self.scores, self.labeller.instruction_set());
        let best =
            self.decoder.decode(tags.len(), pairs, set, |scores| scores.copy_from_slice(own));
        let best = best.0.to_vec();
        if best == tags {
            return Ok(None);
        }
        if self.loss(&best) < before - least {
            return Ok(Some(best));
        }
        let (mut now, mut lowest) = (tags.to_vec(), before);
        loop {
            let mut found = None;
            for k in 0..now.len() {
                context.checkpoint()?;
                let kept = now[k];
                for tag in (0..self.rules.count() as u32).filter(|tag| *tag != kept) {
                    now[k] = tag;
                    let loss = self.loss(&now);
                    if loss < lowest - least {
                        (found, lowest) = (Some((k, tag)), loss);
                    }
                }
                now[k] = kept;
            }
            match found {
                Some((k, tag)) => now[k] = tag,
                None => break,
            }
        }
        Ok((now != tags).then_some(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::CancelToken;
    use crate::data::{Csr, Dense, Matrix};
    use crate::machine::sequence::{TagConstraints, TagLoss, TagScores};

    /// Two positions whose four labellings have given scores.
    fn chain(pairs: [f64; 4]) -> (Chain, TaggedSequences) {
        let weights = Csr::new(1, vec![0, 0, 0], Vec::new(), Vec::new()).unwrap();
        let chain = Chain {
            tags: vec![Label::Int(0), Label::Int(1)],
            scores: TagScores::Weights(Matrix::SparseF64(weights)),
            pairs: pairs.to_vec(),
            first_forbidden: vec![false; 2],
            templates: None,
        };
        let rows = Matrix::DenseF64(Dense::new(2, 1, vec![0.0; 2]).unwrap());
        (chain, TaggedSequences::new(rows, vec![2]).unwrap())
    }

    #[test]
    fn predicted_tags_with_a_larger_loss_are_not_taken() {
        // The prediction 00 has the loss 2, the tags 01 have 1.1.
        let (chain, data) = chain([0.0, -0.1, -5.0, 0.0]);
        let context = Context::new();
        let rules = TagRules::new(&chain.tags, &TagLoss::Hamming, &TagConstraints::None).unwrap();
        let labeller = chain.labeller(&context).unwrap();
        assert_eq!(labeller.label(&data).unwrap()[0].tags, [0, 0]);
        let source = labeller.source(&data).unwrap();
        let mut decoder = Decoder::default();
        let mut own = Rescorer::new(&labeller, &source, 0..2, &rules, &mut decoder);
        assert!((own.loss(&[0, 0]) - 2.0).abs() < 1e-12);
        assert!((own.loss(&[0, 1]) - 1.1).abs() < 1e-12);
        assert_eq!(relabelled(&chain, &data, &[0, 1], &rules, &context).unwrap(), None);
        // Tags with a larger loss than the prediction give way to it.
        let better = Rescorer::new(&labeller, &source, 0..2, &rules, &mut decoder)
            .improved(&[1, 0], &context);
        assert_eq!(better.unwrap().unwrap(), [0, 0]);
    }

    #[test]
    fn a_stop_while_tags_are_changed_leaves_the_chain_that_was_trained() {
        let values = vec![0.0, 1.0, 0.2, 0.9, 1.1, 0.1];
        let rows = Matrix::DenseF64(Dense::new(6, 1, values).unwrap());
        let data = TaggedSequences::new(rows, vec![3, 3]).unwrap();
        let token = CancelToken::new();
        let stop = token.clone();
        // The first training reports its only pass.
        let context =
            Context::new().with_cancel_token(token).with_observer(move |_: &Event| stop.cancel());
        let machine = ChainSvc { max_iterations: 1, ..ChainSvc::default() };
        let alternation = ChainAlternation { machine, rounds: 9 };
        let start = [0, 1, 0, 1, 1, 0];
        let found = alternation.fit(&data, &start, 2, &context).unwrap();
        assert_eq!((found.status, &found.tags[..]), (Status::Interrupted, &start[..]));
        let Body::Chain(chain) = &found.model.body else { panic!("a chain") };
        assert_eq!(chain.tags.len(), 2);
        let labeller = chain.labeller(&context).unwrap();
        let source = labeller.source(&data).unwrap();
        let rules = TagRules::new(&chain.tags, &TagLoss::Hamming, &TagConstraints::None).unwrap();
        let mut decoder = Decoder::default();
        // No labelling with a smaller loss is found in one step, so that single tags are tried.
        let mut own = Rescorer::new(&labeller, &source, 0..3, &rules, &mut decoder);
        own.scores.fill(0.0);
        let tried = own.improved(&[1, 1, 1], &context);
        assert!(matches!(tried, Err(Error::Interrupted)), "{tried:?}");
    }
}
