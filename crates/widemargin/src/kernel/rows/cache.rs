//! A cache of parts of kernel rows, bounded in bytes, the least recently used leaving first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pool::Buffer;
use crate::numeric::simd::Real;

/// Part of a kernel row, shared between the cache and its users.
pub(crate) type Piece<T> = Arc<Buffer<T>>;

const NONE: u32 = u32::MAX;

struct Entry<T> {
    key: usize,
    piece: Option<Piece<T>>,
    newer: u32,
    older: u32,
}

struct Lru<T> {
    /// Entry of every key, `NONE` when it is not cached.
    slots: Vec<u32>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    bytes: usize,
    limit: usize,
}

/// Pieces by key (0, 1, …, keys − 1), for any number of threads.
pub(super) struct PieceCache<T> {
    lru: Mutex<Lru<T>>,
}

impl<T: Real> PieceCache<T> {
    /// An empty cache for `keys` keys and at most `limit` bytes of pieces.
    pub(super) fn new(keys: usize, limit: usize) -> Self {
        let lru = Lru {
            slots: vec![NONE; keys],
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            bytes: 0,
            limit,
        };
        Self { lru: Mutex::new(lru) }
    }

    fn lock(&self) -> MutexGuard<'_, Lru<T>> {
        self.lru.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pieces of `keys` that are cached; they become the most recently used.
    pub(super) fn get(&self, keys: &[usize]) -> Vec<Option<Piece<T>>> {
        let mut lru = self.lock();
        keys.iter()
            .map(|&key| {
                let slot = lru.slots[key];
                (slot != NONE).then(|| {
                    lru.unlink(slot);
                    lru.link_newest(slot);
                    lru.entries[slot as usize].piece.clone()
                })?
            })
            .collect()
    }

    /// The pieces of `keys` that are cached, without counting as a use.
    pub(super) fn peek(&self, keys: &[usize]) -> Vec<Option<Piece<T>>> {
        let lru = self.lock();
        let piece = |&key: &usize| match lru.slots[key] {
            NONE => None,
            slot => lru.entries[slot as usize].piece.clone(),
        };
        keys.iter().map(piece).collect()
    }

    /// Adds pieces; older ones leave until the limit holds.
    pub(super) fn insert(&self, pieces: impl IntoIterator<Item = (usize, Piece<T>)>) {
        let mut lru = self.lock();
        for (key, piece) in pieces {
            if lru.slots[key] == NONE {
                lru.insert(key, piece);
            }
        }
        lru.evict();
    }

    /// Forgets the pieces of `keys`.
    pub(super) fn remove(&self, keys: &[usize]) {
        let mut lru = self.lock();
        for &key in keys {
            let slot = lru.slots[key];
            if slot != NONE {
                lru.remove(slot);
            }
        }
    }

    /// Forgets all pieces.
    pub(super) fn clear(&self) {
        let mut lru = self.lock();
        while lru.oldest != NONE {
            let oldest = lru.oldest;
            lru.remove(oldest);
        }
    }

    /// Halves what the cache holds, for good; false when it holds nothing.
    pub(super) fn halve(&self) -> bool {
        let mut lru = self.lock();
        let held = lru.bytes;
        lru.limit = held / 2;
        lru.evict();
        held > 0
    }

    /// Changes the limit; older pieces leave until it holds.
    pub(super) fn set_limit(&self, limit: usize) {
        let mut lru = self.lock();
        lru.limit = limit;
        lru.evict();
    }
}

fn size_of_piece<T: Real>(piece: &Piece<T>) -> usize {
    std::mem::size_of_val::<[T]>(piece)
}

impl<T: Real> Lru<T> {
    fn insert(&mut self, key: usize, piece: Piece<T>) {
        self.bytes += size_of_piece(&piece);
        let entry = Entry { key, piece: Some(piece), newer: NONE, older: NONE };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.slots[key] = slot;
        self.link_newest(slot);
    }

    fn evict(&mut self) {
        while self.bytes > self.limit && self.oldest != NONE {
            self.remove(self.oldest);
        }
    }

    fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        let entry = &mut self.entries[slot as usize];
        if let Some(piece) = entry.piece.take() {
            self.bytes -= size_of_piece(&piece);
        }
        self.slots[entry.key] = NONE;
        self.free.push(slot);
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = {
            let entry = &self.entries[slot as usize];
            (entry.newer, entry.older)
        };
        match newer {
            NONE => self.newest = older,
            n => self.entries[n as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            o => self.entries[o as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let older = self.newest;
        let entry = &mut self.entries[slot as usize];
        (entry.newer, entry.older) = (NONE, older);
        match older {
            NONE => self.oldest = slot,
            o => self.entries[o as usize].newer = slot,
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::*;

    fn piece(value: u8, length: usize) -> Piece<f32> {
        let mut buffer = Pool::default().buffers(1, length).unwrap().remove(0);
        buffer.fill(f32::from(value));
        Arc::new(buffer)
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        let cache = PieceCache::new(4, 120);
        cache.insert([(0, piece(0, 10)), (1, piece(1, 10)), (2, piece(2, 10))]);
        assert!(cache.get(&[0])[0].is_some());
        cache.insert([(3, piece(3, 10))]);
        let held: Vec<bool> = cache.peek(&[0, 1, 2, 3]).iter().map(Option::is_some).collect();
        assert_eq!(held, [true, false, true, true]);
        assert_eq!(cache.lock().bytes, 120);
    }

    #[test]
    fn a_piece_larger_than_the_limit_is_not_kept() {
        let cache = PieceCache::new(1, 20);
        cache.insert([(0, piece(0, 10))]);
        assert_eq!(cache.lock().bytes, 0);
        assert!(cache.peek(&[0])[0].is_none());
    }

    #[test]
    fn forgotten_pieces_make_room() {
        let cache = PieceCache::new(3, 80);
        cache.insert([(0, piece(0, 10)), (1, piece(1, 10))]);
        cache.remove(&[0, 2]);
        cache.insert([(2, piece(2, 10))]);
        let held: Vec<bool> = cache.peek(&[0, 1, 2]).iter().map(Option::is_some).collect();
        assert_eq!(held, [false, true, true]);
    }

    #[test]
    fn lowering_the_limit_empties_from_the_old_end() {
        let cache = PieceCache::new(3, 400);
        cache.insert([(2, piece(2, 10)), (0, piece(0, 10)), (1, piece(1, 10))]);
        cache.set_limit(80);
        let held: Vec<bool> = cache.peek(&[0, 1, 2]).iter().map(Option::is_some).collect();
        assert_eq!(held, [true, true, false]);
    }
}
