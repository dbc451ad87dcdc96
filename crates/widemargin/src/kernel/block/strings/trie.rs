//! A trie of symbols whose edges are in one hash table, so that a step costs the same for any alphabet, with
//! the links of suffix trees: from a string to the same without its first symbol.

use crate::data::memory;
use crate::error::{Error, Result};

/// The node of the empty string.
pub(super) const ROOT: u32 = 0;

/// Marks a free place of the table.
const EMPTY_SLOT: u64 = u64::MAX;

/// Nodes numbered in the order in which they were met.
#[derive(Clone)]
pub(super) struct Trie {
    first: u32,
    /// Edges (node, symbol) and the nodes they lead to, in a table with linear probing.
    edges: Vec<(u64, u32)>,
    /// The node of every string without its first symbol, as far as [`Nodes::extend`] has set it.
    links: Vec<u32>,
}

/// Nodes to walk along.
pub(super) trait Nodes {
    /// Where an edge leads, which is added if it is new, and whether it is.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there is no memory for the edges, or there are 2³² nodes.
    fn child(&mut self, node: u32, symbol: u32) -> Result<(u32, bool)>;

    /// The string of a node without its first symbol.
    fn link(&self, node: u32) -> u32;

    /// Sets the link of a node that [`child`](Self::child) has added.
    fn set_link(&mut self, node: u32, link: u32);

    /// As [`child`](Self::child), with links of all that is new.
    ///
    /// # Errors
    /// As [`child`](Self::child).
    #[inline(always)]
    fn extend(&mut self, node: u32, symbol: u32) -> Result<u32> {
        let (to, mut is_new) = self.child(node, symbol)?;
        let (mut longer, mut at) = (to, node);
        while is_new {
            if at == ROOT {
                self.set_link(longer, ROOT);
                break;
            }
            at = self.link(at);
            let suffix;
            (suffix, is_new) = self.child(at, symbol)?;
            self.set_link(longer, suffix);
            longer = suffix;
        }
        Ok(to)
    }
}

impl Trie {
    /// A trie that has no edges and numbers its nodes from `first` on.
    pub(super) fn new(first: u32) -> Self {
        Self { first, edges: vec![(EMPTY_SLOT, 0); 16], links: Vec::new() }
    }

    /// Number of the next node.
    pub(super) fn next(&self) -> u32 {
        self.first + self.links.len() as u32
    }

    /// Forgets all edges.
    pub(super) fn clear(&mut self) {
        if !self.links.is_empty() {
            self.edges.fill((EMPTY_SLOT, 0));
            self.links.clear();
        }
    }

    /// The edges, in no order: where each begins, its symbol and where it leads.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let edges = self.edges.iter().filter(|edge| edge.0 != EMPTY_SLOT);
        edges.map(|&(key, to)| ((key >> 32) as u32, key as u32, to))
    }

    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        /// 2⁶⁴ over the golden ratio.
        const HASH_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mask = self.edges.len() - 1;
        let hash = (key ^ (key >> 29)).wrapping_mul(HASH_FACTOR);
        let mut at = (hash >> 32) as usize & mask;
        while self.edges[at].0 != key && self.edges[at].0 != EMPTY_SLOT {
            at = (at + 1) & mask;
        }
        at
    }

    /// Where an edge leads.
    #[inline(always)]
    fn find(&self, node: u32, symbol: u32) -> Option<u32> {
        let key = u64::from(node) << 32 | u64::from(symbol);
        let (found, to) = self.edges[self.place(key)];
        (found == key).then_some(to)
    }

    #[cold]
    fn add(&mut self, at: usize, key: u64) -> Result<u32> {
        let to = self.next();
        // The last numbers are kept free for marks of the callers.
        if to >= u32::MAX - 1 {
            let (what, limit) = ("substrings of strings".into(), u128::from(memory::available()));
            return Err(Error::TooLarge { what, bytes: u128::from(u32::MAX) * 36, limit });
        }
        self.edges[at] = (key, to);
        self.links.push(ROOT);
        if self.links.len() * 2 > self.edges.len() {
            let length = self.edges.len() * 2;
            memory::check(|| "substrings of strings".into(), 18 * length as u128)?;
            let old = std::mem::replace(&mut self.edges, vec![(EMPTY_SLOT, 0); length]);
            for edge in old.into_iter().filter(|edge| edge.0 != EMPTY_SLOT) {
                let at = self.place(edge.0);
                self.edges[at] = edge;
            }
        }
        Ok(to)
    }
}

impl Nodes for Trie {
    #[inline(always)]
    fn child(&mut self, node: u32, symbol: u32) -> Result<(u32, bool)> {
        let key = u64::from(node) << 32 | u64::from(symbol);
        let at = self.place(key);
        match self.edges[at] {
            (found, to) if found == key => Ok((to, false)),
            _ => Ok((self.add(at, key)?, true)),
        }
    }

    #[inline(always)]
    fn link(&self, node: u32) -> u32 {
        self.links[(node - self.first) as usize]
    }

    #[inline(always)]
    fn set_link(&mut self, node: u32, link: u32) {
        self.links[(node - self.first) as usize] = link;
    }
}

/// A trie that is not changed, and the nodes met beyond it, numbered after its own.
pub(super) struct FrozenTrie<'a> {
    pub(super) trie: &'a Trie,
    pub(super) others: &'a mut Trie,
}

impl Nodes for FrozenTrie<'_> {
    #[inline(always)]
    fn child(&mut self, node: u32, symbol: u32) -> Result<(u32, bool)> {
        match (node < self.others.first).then(|| self.trie.find(node, symbol)).flatten() {
            Some(to) => Ok((to, false)),
            None => self.others.child(node, symbol),
        }
    }

    #[inline(always)]
    fn link(&self, node: u32) -> u32 {
        if node < self.others.first { self.trie.link(node) } else { self.others.link(node) }
    }

    #[inline(always)]
    fn set_link(&mut self, node: u32, link: u32) {
        self.others.set_link(node, link);
    }
}
