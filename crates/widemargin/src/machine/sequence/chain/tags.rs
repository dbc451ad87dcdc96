//! Rules of tags: what a wrong one costs, and which may follow which.

use super::super::lattice::{Transitions, padded};
use crate::data::{Label, TaggedSequences};
use crate::error::{Error, Result};

/// What it costs to give a position the tag u where y is true.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum TagLoss {
    /// 1 for every wrong tag.
    #[default]
    Hamming,
    /// A row for every true tag, in the order of the classes, with the cost of every tag; 0 for the true one.
    Table(Vec<f64>),
}

/// Which tags may follow which; neither the decoder nor the training considers others.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum TagConstraints {
    /// Every tag may follow every tag.
    #[default]
    None,
    /// `I-X` only after `B-X` or `I-X`, and never first.
    Bio,
    /// What is listed is forbidden.
    Forbidden {
        /// Tags that no sequence begins with.
        first: Vec<Label>,
        /// Pairs of a tag and one that must not follow it.
        pairs: Vec<(Label, Label)>,
    },
}

/// The rules of a list of tags.
#[derive(Clone, Debug)]
pub(super) struct TagRules {
    count: usize,
    losses: Vec<f64>,
    first_forbidden: Vec<bool>,
    forbidden: Vec<bool>,
}

impl TagRules {
    pub(super) fn new(
        names: &[Label],
        loss: &TagLoss,
        constraints: &TagConstraints,
    ) -> Result<Self> {
        let count = names.len();
        let losses = match loss {
            TagLoss::Hamming => {
                (0..count * count).map(|at| f64::from(at % count != at / count)).collect()
            }
            TagLoss::Table(table) => {
                check_losses(table, count)?;
                table.clone()
            }
        };
        let (first_forbidden, forbidden) = constraints.resolve(names)?;
        Ok(Self { count, losses, first_forbidden, forbidden })
    }

    /// Number of tags.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The cost of every tag where `truth` is true.
    pub(super) fn losses(&self, truth: u32) -> &[f64] {
        &self.losses[truth as usize * self.count..][..self.count]
    }

    /// Scores 0 of all pairs, −∞ of forbidden ones.
    pub(super) fn transitions(&self) -> Transitions {
        let width = padded(self.count);
        let score = |forbidden: bool| if forbidden { f64::NEG_INFINITY } else { 0.0 };
        let mut rows = vec![0.0; self.count * width];
        for (row, forbidden) in
            rows.chunks_exact_mut(width).zip(self.forbidden.chunks(self.count.max(1)))
        {
            row.iter_mut().zip(forbidden).for_each(|(value, is)| *value = score(*is));
        }
        let first = self.first_forbidden.iter().map(|is| score(*is)).collect();
        Transitions::of_scores(first, rows)
    }

    /// Refuses true tags that break the rules.
    pub(super) fn check(
        &self,
        data: &TaggedSequences,
        truth: &[u32],
        names: &[Label],
    ) -> Result<()> {
        for sequence in 0..data.count() {
            let tags = &truth[data.span(sequence)];
            let name = |tag: u32| &names[tag as usize];
            let expected = "tags that the constraints allow";
            if self.first_forbidden[tags[0] as usize] {
                let found =
                    format!("'{}' at the beginning of sequence {}", name(tags[0]), sequence + 1);
                return Err(Error::labels(expected, found));
            }
            let broken = tags
                .windows(2)
                .position(|pair| self.forbidden[pair[0] as usize * self.count + pair[1] as usize]);
            if let Some(k) = broken {
                let (before, after) = (name(tags[k]), name(tags[k + 1]));
                let found = format!(
                    "'{after}' after '{before}' at position {} of sequence {}",
                    k + 2,
                    sequence + 1
                );
                return Err(Error::labels(expected, found));
            }
        }
        Ok(())
    }
}

fn check_losses(table: &[f64], count: usize) -> Result<()> {
    if table.len() != count * count {
        return Err(Error::length(
            "losses, one for every pair of tags",
            count * count,
            table.len(),
        ));
    }
    for (at, &loss) in table.iter().enumerate() {
        let (truth, tag) = (at / count, at % count);
        if !(loss.is_finite() && loss >= 0.0) || (truth == tag && loss != 0.0) {
            let expected = "finite numbers of at least 0, and 0 for the true tag";
            let found = format!("{loss} in row {}, column {}", truth + 1, tag + 1);
            return Err(Error::parameter("loss", expected, found));
        }
    }
    Ok(())
}

impl TagConstraints {
    /// Which tags are forbidden first, and after which.
    fn resolve(&self, names: &[Label]) -> Result<(Vec<bool>, Vec<bool>)> {
        let count = names.len();
        let (mut first, mut pairs) = (vec![false; count], vec![false; count * count]);
        match self {
            Self::None => {}
            Self::Bio => {
                let texts: Vec<String> = names.iter().map(ToString::to_string).collect();
                if !texts.iter().any(|name| name.starts_with("I-")) {
                    let expected = "tags such as B-NP, I-NP and O";
                    return Err(Error::parameter("constraints", expected, texts.join(", ")));
                }
                for (j, after) in texts.iter().enumerate() {
                    let Some(kind) = after.strip_prefix("I-") else { continue };
                    first[j] = true;
                    for (i, before) in texts.iter().enumerate() {
                        let inside = before.strip_prefix("B-").or(before.strip_prefix("I-"));
                        pairs[i * count + j] = inside != Some(kind);
                    }
                }
            }
            Self::Forbidden { first: starts, pairs: listed } => {
                let place = |label: &Label| {
                    names.iter().position(|name| name == label).ok_or_else(|| {
                        Error::parameter("constraints", "tags of the training data", label)
                    })
                };
                for label in starts {
                    first[place(label)?] = true;
                }
                for (before, after) in listed {
                    pairs[place(before)? * count + place(after)?] = true;
                }
            }
        }
        Ok((first, pairs))
    }
}
