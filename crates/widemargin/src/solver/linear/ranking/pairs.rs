//! Sums over pairs of rows that stand in a wanted order, in O(n log n).
//!
//! The pairs are those (i, j) of a group whose levels say that i belongs before j. With
//! ξ = (m − zᵢ + zⱼ)₊ for values z and a margin m,
//!
//! ```text
//! H(m) = Σ ξ      S(m) = Σ ξ² = m H(m) − Σᵢ zᵢ bᵢ      bᵢ = Σⱼ ξᵢⱼ − Σⱼ ξⱼᵢ = −½ ∂S/∂zᵢ
//! ```
//!
//! and the second derivative of ½S is the Laplacian of the graph of the pairs with ξ > 0. One sweep over
//! the values in order meets the lower rows of every i, another the upper rows of every j; a tree of
//! levels (Fenwick, 1994) sums those of the right levels (Lee and Lin, 2014; Joachims, 2006).

use std::ops::Range;

use crate::numeric::parallel::{self, Threads};

/// Rows of the groups that are handled together; parts depend on the data alone.
const PART_ROWS: usize = 4096;

/// The pairs of all groups.
#[derive(Debug)]
pub(crate) struct OrderedPairs {
    /// Rows, group after group.
    rows: Vec<u32>,
    /// Level of each of them within its group, from 0.
    levels: Vec<u32>,
    groups: Vec<Group>,
    /// Runs of groups.
    parts: Vec<Range<usize>>,
    /// Sum of all prices.
    total: f64,
}

#[derive(Clone, Debug)]
struct Group {
    rows: Range<usize>,
    /// Where its rows begin in lists of the rows of all groups that have pairs.
    listed: usize,
    levels: usize,
    /// What a unit of loss of a pair costs.
    price: f64,
}

/// H(m), S(m) and bᵢ at some values, each pair times its price.
#[derive(Clone, Debug)]
pub(super) struct MarginSums {
    pub(super) hinge: f64,
    pub(super) squares: f64,
    pub(super) pulls: Vec<f64>,
}

/// The pairs with ξ > 0 at some values.
#[derive(Clone, Debug)]
pub(super) struct ViolatedPairs {
    /// Places of the rows of a group, by value.
    order: Vec<u32>,
    /// For each place in that order, how many come before the first upper row that is far enough above,
    /// and how many before the first lower row that is far enough below.
    within: Vec<[u32; 2]>,
    /// Pairs of each row.
    degrees: Vec<f64>,
}

impl OrderedPairs {
    /// The pairs of rows with the same entry in `groups` and different ones in `targets`; a pair of a
    /// group costs `price` of its first row.
    pub(crate) fn new(groups: &[i64], targets: &[f64], price: impl Fn(usize) -> f64) -> Self {
        let mut rows: Vec<u32> = (0..groups.len() as u32).collect();
        rows.sort_by_key(|&i| groups[i as usize]);
        let mut levels = vec![0; rows.len()];
        let (mut list, mut total) = (Vec::new(), 0.0);
        let (mut start, mut listed) = (0, 0);
        for same in rows.chunk_by(|&i, &j| groups[i as usize] == groups[j as usize]) {
            let mut sorted: Vec<f64> = same.iter().map(|&i| targets[i as usize]).collect();
            sorted.sort_by(f64::total_cmp);
            let mut distinct = sorted.clone();
            distinct.dedup();
            let equal: f64 = sorted
                .chunk_by(|a, b| a == b)
                .map(|run| run.len() as f64 * (run.len() as f64 - 1.0) / 2.0)
                .sum();
            let pairs = same.len() as f64 * (same.len() as f64 - 1.0) / 2.0 - equal;
            for (k, &i) in same.iter().enumerate() {
                let target = targets[i as usize];
                levels[start + k] = distinct.partition_point(|t| *t < target) as u32;
            }
            let price = price(same[0] as usize);
            if pairs > 0.0 && price > 0.0 {
                total += price * pairs;
                let rows = start..start + same.len();
                list.push(Group { rows, listed, levels: distinct.len(), price });
                listed += same.len();
            }
            start += same.len();
        }
        let parts = parts(&list);
        Self { rows, levels, groups: list, parts, total }
    }

    /// Sum of the prices of all pairs; 0 where there are none.
    pub(crate) fn total(&self) -> f64 {
        self.total
    }

    /// What `work` makes of the groups of each part, in order.
    fn of_parts<T: Send>(
        &self,
        threads: Threads<'_>,
        work: impl Fn(&[Group]) -> T + Sync,
    ) -> Vec<T> {
        parallel::map(threads, self.parts.iter(), |part| work(&self.groups[part.clone()]))
    }

    /// The sums at `values` with a margin.
    pub(super) fn sums(&self, values: &[f64], margin: f64, threads: Threads<'_>) -> MarginSums {
        let parts = self.of_parts(threads, |groups| {
            let mut sweep = Sweep::default();
            let (mut hinge, mut squares) = (0.0, 0.0);
            let mut pulls = Vec::new();
            for group in groups {
                let (rows, levels) =
                    (&self.rows[group.rows.clone()], &self.levels[group.rows.clone()]);
                let [loss, square] = sweep.sums(rows, levels, group.levels, values, margin);
                hinge += group.price * loss;
                squares += group.price * square;
                pulls.extend(sweep.pulls.iter().map(|pull| group.price * pull));
            }
            (hinge, squares, pulls)
        });
        let mut sums = MarginSums { hinge: 0.0, squares: 0.0, pulls: vec![0.0; values.len()] };
        for (part, (hinge, squares, pulls)) in self.parts.iter().zip(parts) {
            sums.hinge += hinge;
            sums.squares += squares;
            self.scatter(part, &pulls, 1.0, &mut sums.pulls);
        }
        sums
    }

    /// The pairs that a margin leaves violated at `values`.
    pub(super) fn violated(
        &self,
        values: &[f64],
        margin: f64,
        threads: Threads<'_>,
    ) -> ViolatedPairs {
        let parts = self.of_parts(threads, |groups| {
            let mut sweep = Sweep::default();
            let (mut order, mut within, mut degrees) = (Vec::new(), Vec::new(), Vec::new());
            for group in groups {
                let (rows, levels) =
                    (&self.rows[group.rows.clone()], &self.levels[group.rows.clone()]);
                sweep.count(rows, levels, group.levels, values, margin);
                order.extend_from_slice(&sweep.order);
                within.extend_from_slice(&sweep.within);
                degrees.extend(sweep.pulls.iter().map(|degree| group.price * degree));
            }
            (order, within, degrees)
        });
        let mut pairs =
            ViolatedPairs { order: Vec::new(), within: Vec::new(), degrees: Vec::new() };
        for (order, within, degrees) in parts {
            pairs.order.extend(order);
            pairs.within.extend(within);
            pairs.degrees.extend(degrees);
        }
        pairs
    }

    /// Adds `factor` times the product of the Laplacian of `pairs` with `vector` to `product`.
    pub(super) fn add_product(
        &self,
        pairs: &ViolatedPairs,
        vector: &[f64],
        factor: f64,
        product: &mut [f64],
        threads: Threads<'_>,
    ) {
        let parts = self.of_parts(threads, |groups| {
            let mut sweep = Sweep::default();
            let mut sums = Vec::new();
            for group in groups {
                let own = group.listed..group.listed + group.rows.len();
                let (rows, levels) =
                    (&self.rows[group.rows.clone()], &self.levels[group.rows.clone()]);
                sweep.product(rows, levels, group.levels, vector, pairs, own.clone());
                let degrees = &pairs.degrees[own];
                let own = rows.iter().zip(degrees).zip(&sweep.pulls);
                sums.extend(own.map(|((&i, d), pull)| d * vector[i as usize] - group.price * pull));
            }
            sums
        });
        for (part, sums) in self.parts.iter().zip(parts) {
            self.scatter(part, &sums, factor, product);
        }
    }

    /// Adds entries of the rows of some groups, in order, to a list of all rows.
    fn scatter(&self, groups: &Range<usize>, entries: &[f64], factor: f64, all: &mut [f64]) {
        let mut entries = entries.iter();
        for group in &self.groups[groups.clone()] {
            for (&i, entry) in self.rows[group.rows.clone()].iter().zip(&mut entries) {
                all[i as usize] += factor * entry;
            }
        }
    }
}

/// The work on one group; memory is used again for the next.
#[derive(Default)]
struct Sweep {
    /// Places of rows, by value.
    order: Vec<u32>,
    sorted: Vec<f64>,
    within: Vec<[u32; 2]>,
    counts: Vec<f64>,
    values: Vec<f64>,
    pulls: Vec<f64>,
}

impl Sweep {
    /// Sorts a group and clears the trees.
    fn begin(&mut self, rows: &[u32], levels: usize, values: &[f64]) {
        self.order.clear();
        self.order.extend(0..rows.len() as u32);
        let value = |k: u32| values[rows[k as usize] as usize];
        self.order.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
        self.sorted.clear();
        self.sorted.extend(self.order.iter().map(|&k| value(k)));
        self.pulls.clear();
        self.pulls.resize(rows.len(), 0.0);
        self.clear(levels);
    }

    fn clear(&mut self, levels: usize) {
        for tree in [&mut self.counts, &mut self.values] {
            tree.clear();
            tree.resize(levels + 1, 0.0);
        }
    }

    /// H and S of a group without its price; `pulls` are its bᵢ.
    fn sums(
        &mut self,
        rows: &[u32],
        levels: &[u32],
        count: usize,
        values: &[f64],
        margin: f64,
    ) -> [f64; 2] {
        self.begin(rows, count, values);
        let (n, mut hinge, mut squares) = (rows.len(), 0.0, 0.0);
        // From the largest value down, rows that are not far enough below enter.
        let mut entered = n;
        for at in (0..n).rev() {
            while entered > 0 && self.sorted[at] - self.sorted[entered - 1] < margin {
                entered -= 1;
                let level = levels[self.order[entered] as usize] as usize;
                add(&mut self.counts, level, 1.0);
                add(&mut self.values, level, self.sorted[entered]);
            }
            let place = self.order[at] as usize;
            let level = levels[place] as usize;
            let pairs = sum_below(&self.counts, level);
            let loss = pairs * (margin - self.sorted[at]) + sum_below(&self.values, level);
            hinge += loss;
            self.pulls[place] += loss;
        }
        self.clear(count);
        // From the smallest value up, rows that are not far enough above enter; levels count downwards.
        let mut entered = 0;
        for at in 0..n {
            while entered < n && self.sorted[entered] - self.sorted[at] < margin {
                let level = count - 1 - levels[self.order[entered] as usize] as usize;
                add(&mut self.counts, level, 1.0);
                add(&mut self.values, level, self.sorted[entered]);
                entered += 1;
            }
            let place = self.order[at] as usize;
            let level = count - 1 - levels[place] as usize;
            let pairs = sum_below(&self.counts, level);
            self.pulls[place] -=
                pairs * (margin + self.sorted[at]) - sum_below(&self.values, level);
        }
        for (at, &place) in self.order.iter().enumerate() {
            squares -= self.sorted[at] * self.pulls[place as usize];
        }
        [hinge, squares + margin * hinge]
    }

    /// The order of a group, which rows meet which, and in `pulls` how many pairs each has.
    fn count(&mut self, rows: &[u32], levels: &[u32], count: usize, values: &[f64], margin: f64) {
        self.begin(rows, count, values);
        let n = rows.len();
        self.within.clear();
        self.within.resize(n, [0, 0]);
        let mut entered = n;
        for at in (0..n).rev() {
            while entered > 0 && self.sorted[at] - self.sorted[entered - 1] < margin {
                entered -= 1;
                add(&mut self.counts, levels[self.order[entered] as usize] as usize, 1.0);
            }
            let place = self.order[at] as usize;
            self.within[at][1] = entered as u32;
            self.pulls[place] += sum_below(&self.counts, levels[place] as usize);
        }
        self.clear(count);
        let mut entered = 0;
        for at in 0..n {
            while entered < n && self.sorted[entered] - self.sorted[at] < margin {
                let level = count - 1 - levels[self.order[entered] as usize] as usize;
                add(&mut self.counts, level, 1.0);
                entered += 1;
            }
            let place = self.order[at] as usize;
            self.within[at][0] = entered as u32;
            self.pulls[place] += sum_below(&self.counts, count - 1 - levels[place] as usize);
        }
    }

    /// In `pulls`, the sum of `vector` over the partners of each row.
    fn product(
        &mut self,
        rows: &[u32],
        levels: &[u32],
        count: usize,
        vector: &[f64],
        pairs: &ViolatedPairs,
        own: Range<usize>,
    ) {
        let (order, within) = (&pairs.order[own.clone()], &pairs.within[own]);
        let entry = |at: usize| vector[rows[order[at] as usize] as usize];
        self.pulls.clear();
        self.pulls.resize(rows.len(), 0.0);
        self.clear(count);
        let mut entered = rows.len();
        for at in (0..rows.len()).rev() {
            while entered > within[at][1] as usize {
                entered -= 1;
                add(&mut self.values, levels[order[entered] as usize] as usize, entry(entered));
            }
            let place = order[at] as usize;
            self.pulls[place] += sum_below(&self.values, levels[place] as usize);
        }
        self.clear(count);
        let mut entered = 0;
        for at in 0..rows.len() {
            while entered < within[at][0] as usize {
                let level = count - 1 - levels[order[entered] as usize] as usize;
                add(&mut self.values, level, entry(entered));
                entered += 1;
            }
            let place = order[at] as usize;
            self.pulls[place] += sum_below(&self.values, count - 1 - levels[place] as usize);
        }
    }
}

/// Runs of groups with about [`PART_ROWS`] rows each.
fn parts(groups: &[Group]) -> Vec<Range<usize>> {
    let (mut parts, mut first, mut size) = (Vec::new(), 0, 0);
    for (g, group) in groups.iter().enumerate() {
        size += group.rows.len();
        if size >= PART_ROWS {
            parts.push(first..g + 1);
            (first, size) = (g + 1, 0);
        }
    }
    if first < groups.len() {
        parts.push(first..groups.len());
    }
    parts
}

/// Adds to the entry of a level in a tree of prefix sums.
fn add(tree: &mut [f64], level: usize, value: f64) {
    let mut at = level + 1;
    while at < tree.len() {
        tree[at] += value;
        at += at & at.wrapping_neg();
    }
}

/// The sum over the levels below one.
fn sum_below(tree: &[f64], level: usize) -> f64 {
    let (mut at, mut sum) = (level, 0.0);
    while at > 0 {
        sum += tree[at];
        at &= at - 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn sums_and_products_are_those_of_all_pairs() {
        let mut random = Generator::new(5);
        for (round, margin) in [1.0, 0.3, 2.5, 1.0, 0.0].into_iter().enumerate() {
            let n = 60;
            let groups: Vec<i64> = (0..n).map(|_| random.below(4) as i64 - 2).collect();
            let kinds = 2 + 5 * round;
            let targets: Vec<f64> = (0..n).map(|_| random.below(kinds) as f64).collect();
            let values: Vec<f64> = (0..n).map(|_| (random.unit() * 20.0).round() / 8.0).collect();
            let vector: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
            let price = |group: i64| 1.0 + group as f64 * 0.25;
            let pairs = OrderedPairs::new(&groups, &targets, |i| price(groups[i]));
            let found = pairs.sums(&values, margin, Threads::Caller);
            let violated = pairs.violated(&values, margin, Threads::Caller);
            let mut product = vec![0.0; n];
            pairs.add_product(&violated, &vector, 1.0, &mut product, Threads::Caller);
            let (mut hinge, mut squares, mut total) = (0.0, 0.0, 0.0);
            let (mut pulls, mut laplacian) = (vec![0.0; n], vec![0.0; n]);
            for i in 0..n {
                for j in 0..n {
                    if groups[i] != groups[j] || targets[i] <= targets[j] {
                        continue;
                    }
                    let price = price(groups[i]);
                    total += price;
                    let short = margin - (values[i] - values[j]);
                    if values[i] - values[j] < margin {
                        hinge += price * short;
                        squares += price * short * short;
                        pulls[i] += price * short;
                        pulls[j] -= price * short;
                        laplacian[i] += price * (vector[i] - vector[j]);
                        laplacian[j] += price * (vector[j] - vector[i]);
                    }
                }
            }
            assert!((pairs.total() - total).abs() < 1e-9);
            assert!((found.hinge - hinge).abs() < 1e-9 * (1.0 + hinge));
            assert!((found.squares - squares).abs() < 1e-9 * (1.0 + squares));
            for i in 0..n {
                assert!((found.pulls[i] - pulls[i]).abs() < 1e-9, "{i}");
                assert!((product[i] - laplacian[i]).abs() < 1e-9, "{i}");
            }
        }
    }
}
