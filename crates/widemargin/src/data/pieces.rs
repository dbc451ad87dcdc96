//! Long lists processed in pieces, on the threads of the current rayon pool if there is one.

use rayon::prelude::*;

/// Elements below which a thread costs more than it saves.
const PIECE: usize = 1 << 13;

/// Whether a list of this length is divided among threads.
fn is_shared(length: usize) -> bool {
    length > PIECE && rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1
}

/// Whether all pieces of a list pass a test.
pub(crate) fn all<T: Sync>(list: &[T], passes: impl Fn(&[T]) -> bool + Sync) -> bool {
    if is_shared(list.len()) {
        list.par_chunks(PIECE).all(&passes)
    } else {
        list.chunks(PIECE).all(passes)
    }
}

/// The first piece that fails a test, and where it begins.
pub(crate) fn first_failing<T: Sync>(
    list: &[T],
    passes: impl Fn(&[T]) -> bool + Sync,
) -> Option<(usize, &[T])> {
    let piece = if is_shared(list.len()) {
        list.par_chunks(PIECE).position_first(|piece| !passes(piece))
    } else {
        list.chunks(PIECE).position(|piece| !passes(piece))
    };
    piece.map(|at| (at * PIECE, &list[at * PIECE..]))
}

/// What becomes of every element of a list.
pub(crate) fn map<T: Sync, U: Send>(list: &[T], each: impl Fn(&T) -> U + Sync) -> Vec<U> {
    if is_shared(list.len()) {
        list.par_iter().with_min_len(PIECE).map(&each).collect()
    } else {
        list.iter().map(each).collect()
    }
}

/// Two computations, in parallel where both are over lists of such a length.
pub(crate) fn join<A: Send, B: Send>(
    length: usize,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if is_shared(length) { rayon::join(first, second) } else { (first(), second()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;

    #[test]
    fn threads_change_nothing() {
        let list: Vec<usize> = (0..5 * PIECE + 7).collect();
        for threads in [1, 2] {
            Context::new().with_threads(threads).unwrap().install(|| {
                assert!(all(&list, |piece| piece.iter().all(|x| *x < list.len())));
                assert!(!all(&list, |piece| piece.iter().all(|x| *x != 3 * PIECE)));
                let below = |limit: usize| move |piece: &[usize]| piece.iter().all(|x| *x < limit);
                assert_eq!(first_failing(&list, below(list.len())), None);
                let (start, rest) = first_failing(&list, below(2 * PIECE + 5)).unwrap();
                assert_eq!((start, rest), (2 * PIECE, &list[2 * PIECE..]));
                assert!(map(&list, |x| x + 1).into_iter().eq(1..=list.len()));
                assert_eq!(join(list.len(), || 1, || 2), (1, 2));
            });
        }
    }
}
