//! Exact draws without replacement from a multiset.

use crate::numeric::random::Generator;

/// Multiplicities of rows with their sums in a binary indexed tree (Fenwick, "A new data structure for
/// cumulative frequency tables", 1994): a draw takes time logarithmic in the number of rows.
#[derive(Clone)]
pub(super) struct Multiset {
    tree: Vec<u128>,
    total: u128,
}

impl Multiset {
    pub(super) fn new(counts: &[u128]) -> Self {
        let mut tree = vec![0; counts.len() + 1];
        for (place, &count) in counts.iter().enumerate() {
            tree[place + 1] += count;
            let parent = (place + 1) + ((place + 1) & (place + 1).wrapping_neg());
            if parent < tree.len() {
                tree[parent] += tree[place + 1];
            }
        }
        Self { tree, total: counts.iter().sum() }
    }

    /// Copies that are left.
    pub(super) fn total(&self) -> u128 {
        self.total
    }

    /// Takes a copy, all that are left equally likely; `None` if there is none.
    pub(super) fn draw(&mut self, generator: &mut Generator) -> Option<usize> {
        if self.total == 0 {
            return None;
        }
        let mut rest = below(generator, self.total);
        let mut place = 0;
        let mut step = (self.tree.len() - 1).next_power_of_two();
        while step > 0 {
            let next = place + step;
            if next < self.tree.len() && self.tree[next] <= rest {
                rest -= self.tree[next];
                place = next;
            }
            step /= 2;
        }
        let drawn = place;
        let mut node = drawn + 1;
        while node < self.tree.len() {
            self.tree[node] -= 1;
            node += node & node.wrapping_neg();
        }
        self.total -= 1;
        Some(drawn)
    }
}

/// A number below `limit`, all equally likely.
fn below(generator: &mut Generator, limit: u128) -> u128 {
    let mask = u128::MAX >> (limit - 1).leading_zeros().min(127);
    loop {
        let bits = (u128::from(generator.bits()) << 64) | u128::from(generator.bits());
        if bits & mask < limit {
            return bits & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_drawn_in_proportion_and_each_once() {
        let counts = [1_u128, 0, 4, 2, 1];
        let mut generator = Generator::new(11);
        let mut first = [0_u32; 5];
        for _ in 0..8000 {
            let mut all = Multiset::new(&counts);
            assert_eq!(all.total(), 8);
            let drawn: Vec<usize> = std::iter::from_fn(|| all.draw(&mut generator)).collect();
            let times = |place| drawn.iter().filter(|d| **d == place).count() as u128;
            assert_eq!([0, 1, 2, 3, 4].map(times), counts);
            first[drawn[0]] += 1;
        }
        // Chi-square with 3 degrees of freedom: above 21.1 once in 10 000 runs.
        let expected = [1000.0, 0.0, 4000.0, 2000.0, 1000.0];
        let terms = first.iter().zip(expected).filter(|(_, e)| *e > 0.0);
        let chi: f64 = terms.map(|(&f, e)| (f64::from(f) - e).powi(2) / e).sum();
        assert!(chi < 21.1, "{chi} {first:?}");
    }

    #[test]
    fn large_counts_are_no_trouble() {
        let mut all = Multiset::new(&[1 << 100, 3 << 100]);
        let mut generator = Generator::new(2);
        let drawn = (0..4000).filter_map(|_| all.draw(&mut generator)).sum::<usize>();
        // Five standard deviations of a binomial count.
        assert!((drawn as f64 - 3000.0).abs() < 137.0, "{drawn}");
        assert_eq!(all.total(), (4 << 100) - 4000);
    }
}
