//! The n best paths through a lattice: Viterbi's algorithm with the n best partial paths to every state (Seshadri and
//! Sundberg, 1994).

use std::mem::size_of;

use super::super::lattice::Transitions;
use crate::context::Context;
use crate::error::Result;

/// A path to a state: its score, and the state and rank it comes from.
#[derive(Clone, Copy)]
struct PartialPath {
    score: f64,
    state: u32,
    rank: u32,
}

/// Bytes that the search and its result take for a sequence: there are no more paths than states to the
/// power of the length.
pub(super) fn bytes(length: usize, states: usize, n: usize) -> (u128, u128) {
    let (positions, states, n) = (length as u128, states as u128, n as u128);
    let paths =
        |length: usize| states.saturating_pow(u32::try_from(length).unwrap_or(u32::MAX)).min(n);
    let size = size_of::<PartialPath>() as u128;
    let to_a_state = paths(length.saturating_sub(1));
    // The partial paths to all states of all positions, and those that one state has to choose from.
    let search = (positions + 1) * states * to_a_state * size;
    let result = paths(length)
        * (positions * size_of::<u32>() as u128 + size_of::<(f64, Vec<u32>)>() as u128);
    (search, result)
}

/// The n best paths and their scores, best first; the smaller states where scores are equal.
///
/// # Errors
/// An interruption.
pub(super) fn n_best(
    scores: &[f64],
    pairs: &Transitions,
    n: usize,
    context: &Context,
) -> Result<Vec<(f64, Vec<u32>)>> {
    let (states, width) = (pairs.states, pairs.width);
    let length = scores.len() / width;
    let mut partial: Vec<Vec<Vec<PartialPath>>> = Vec::with_capacity(length);
    for k in 0..length {
        let now = (0..states)
            .map(|j| {
                context.checkpoint()?;
                let own = scores[k * width + j];
                let mut candidates = Vec::new();
                match partial.last() {
                    None => candidates.push(PartialPath {
                        score: pairs.start[j] + own,
                        state: 0,
                        rank: 0,
                    }),
                    Some(before) => {
                        for (i, before) in before.iter().enumerate() {
                            let pair = pairs.rows[i * width + j];
                            candidates.extend(before.iter().enumerate().map(|(rank, path)| {
                                PartialPath {
                                    score: path.score + pair + own,
                                    state: i as u32,
                                    rank: rank as u32,
                                }
                            }));
                        }
                    }
                }
                Ok(best(candidates, n))
            })
            .collect::<Result<Vec<Vec<PartialPath>>>>()?;
        partial.push(now);
    }
    let last: &[Vec<PartialPath>] = partial.last().map_or(&[], Vec::as_slice);
    let ends = last.iter().enumerate().flat_map(|(j, list)| {
        list.iter().enumerate().map(move |(rank, path)| PartialPath {
            score: path.score,
            state: j as u32,
            rank: rank as u32,
        })
    });
    let ends = best(ends.collect(), n);
    Ok(ends.into_iter().map(|end| (end.score, path(&partial, end))).collect())
}

fn best(mut candidates: Vec<PartialPath>, n: usize) -> Vec<PartialPath> {
    candidates.retain(|path| path.score != f64::NEG_INFINITY);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.truncate(n);
    candidates
}

fn path(partial: &[Vec<Vec<PartialPath>>], end: PartialPath) -> Vec<u32> {
    let mut path = vec![0; partial.len()];
    let mut at = end;
    for (k, tag) in path.iter_mut().enumerate().rev() {
        *tag = at.state;
        at = partial[k][at.state as usize][at.rank as usize];
    }
    path
}
