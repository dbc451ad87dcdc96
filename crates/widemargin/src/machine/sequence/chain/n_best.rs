//! The n best paths through a lattice: Viterbi's algorithm with the n best ways to every state (Seshadri and
//! Sundberg, 1994).

use super::super::lattice::Transitions;

/// A way to a state: its score, and the state and rank it comes from.
#[derive(Clone, Copy)]
struct Way {
    score: f64,
    state: u32,
    rank: u32,
}

/// The n best paths and their scores, best first; the smaller states where scores are equal.
pub(super) fn n_best(scores: &[f64], pairs: &Transitions, n: usize) -> Vec<(f64, Vec<u32>)> {
    let (states, width) = (pairs.states, pairs.width);
    let length = scores.len() / width;
    let mut ways: Vec<Vec<Vec<Way>>> = Vec::with_capacity(length);
    for k in 0..length {
        let now: Vec<Vec<Way>> = (0..states)
            .map(|j| {
                let own = scores[k * width + j];
                let mut candidates = Vec::new();
                match ways.last() {
                    None => candidates.push(Way { score: pairs.start[j] + own, state: 0, rank: 0 }),
                    Some(before) => {
                        for (i, before) in before.iter().enumerate() {
                            let pair = pairs.rows[i * width + j];
                            candidates.extend(before.iter().enumerate().map(|(rank, way)| Way {
                                score: way.score + pair + own,
                                state: i as u32,
                                rank: rank as u32,
                            }));
                        }
                    }
                }
                best(candidates, n)
            })
            .collect();
        ways.push(now);
    }
    let last = ways.last().map_or(&[][..], Vec::as_slice);
    let ends = last.iter().enumerate().flat_map(|(j, list)| {
        list.iter().enumerate().map(move |(rank, way)| Way {
            score: way.score,
            state: j as u32,
            rank: rank as u32,
        })
    });
    let ends = best(ends.collect(), n);
    ends.into_iter().map(|end| (end.score, path(&ways, end))).collect()
}

fn best(mut candidates: Vec<Way>, n: usize) -> Vec<Way> {
    candidates.retain(|way| way.score != f64::NEG_INFINITY);
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.truncate(n);
    candidates
}

fn path(ways: &[Vec<Vec<Way>>], end: Way) -> Vec<u32> {
    let mut path = vec![0; ways.len()];
    let mut at = end;
    for (k, tag) in path.iter_mut().enumerate().rev() {
        *tag = at.state;
        at = ways[k][at.state as usize][at.rank as usize];
    }
    path
}
