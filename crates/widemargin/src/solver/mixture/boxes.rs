//! Branch and bound over boxes of means.
//!
//! In a box l ≤ μ ≤ u the identity −(y − μ)² = [−(y − μ)² + (μ − m)²] − (μ − m)², m = (l + u)/2, bounds the exponent by a function
//! that is linear in μ and at the ends of the interval is −(y − e)² + (u − l)²/4. For given shares of the rows in
//! the components the bound is linear in all means and therefore largest at a corner e; maximised over the shares,
//! the corner has the likelihood of components at e that are exp(‖uⱼ − lⱼ‖²/8sⱼ) times as high, at its best weights:
//!
//! ```text
//! ℓ(w, μ) ≤ max over corners e of max over w of Σₖ cₖ ln Σⱼ wⱼ N(yₖ; eⱼ, sⱼI) exp(‖uⱼ − lⱼ‖²/8sⱼ)
//! ```
//!
//! The bound exceeds the likelihood at that corner by at most N Σⱼ wⱼ‖uⱼ − lⱼ‖²/8sⱼ, so that it closes with the square of
//! the box. The component with the largest term is halved along its longest side. Components of the same variance
//! may change places; only boxes that contain means in ascending order of the first feature are kept.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::weights::Table;
use super::{Certified, Limits, Mixture, Problem};
use crate::context::{Context, Event};
use crate::outcome::Status;

/// Boxes halved at a time. It does not depend on the threads, so that neither does the result.
const BATCH: usize = 16;

/// Accuracy of the weights as a share of the gap asked for.
const WEIGHTS_SHARE: f64 = 0.01;

/// A set of means.
struct Region {
    low: Vec<f64>,
    high: Vec<f64>,
    bound: f64,
    /// Weights at the corner with the largest bound.
    weights: Vec<f64>,
    /// Its place in the order in which regions were made, which decides between equal bounds.
    number: usize,
}

impl Ord for Region {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then_with(|| other.number.cmp(&self.number))
    }
}

impl PartialOrd for Region {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Region {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Region {}

/// The mixture of largest likelihood to a gap, or the best one and the bound when a limit is reached.
pub(crate) fn certify(problem: &Problem, limits: &Limits, context: &Context) -> Certified {
    if problem.components() == 1 {
        let mixture = problem.single();
        let bound = mixture.log_likelihood;
        return Certified { mixture, bound, regions: 0, status: Status::Solved };
    }
    let best = problem.best_of_starts(limits.starts, context);
    let mut search = Search {
        problem,
        limits,
        context,
        best,
        open: BinaryHeap::new(),
        closed: f64::NEG_INFINITY,
        regions: 0,
    };
    let status = search.run();
    let bound = search.bound();
    let mut mixture = search.best;
    problem.sort(&mut mixture);
    Certified { mixture, bound, regions: search.regions, status }
}

struct Search<'a> {
    problem: &'a Problem,
    limits: &'a Limits,
    context: &'a Context,
    best: Mixture,
    open: BinaryHeap<Region>,
    /// The largest bound of the regions that need not be halved.
    closed: f64,
    regions: usize,
}

impl Search<'_> {
    fn bound(&self) -> f64 {
        let open = self.open.peek().map_or(f64::NEG_INFINITY, |region| region.bound);
        open.max(self.closed).max(self.best.log_likelihood)
    }

    fn run(&mut self) -> Status {
        self.open.push(self.problem.whole());
        loop {
            let gap = self.bound() - self.best.log_likelihood;
            self.context.report(&Event::Iteration {
                iteration: self.regions,
                violation: gap,
                objective: self.best.log_likelihood,
                active: self.open.len(),
            });
            if gap <= self.limits.gap {
                return Status::Solved;
            }
            if let Some(stop) = self.context.stop_request() {
                return stop;
            }
            if self.open.is_empty() {
                // Boxes that rounding does not let halve.
                return Status::NumericalTrouble;
            }
            if self.regions >= self.limits.regions {
                return Status::IterationLimit;
            }
            self.halve_some();
        }
    }

    /// Halves the regions with the largest bounds.
    fn halve_some(&mut self) {
        let enough = self.best.log_likelihood + self.limits.gap;
        let mut halves = Vec::with_capacity(2 * BATCH);
        let mut whole = Vec::with_capacity(BATCH);
        while whole.len() < BATCH
            && let Some(region) = self.open.pop()
        {
            match self.problem.halves(&region) {
                Some(parts) if region.bound > enough => {
                    halves.extend(parts);
                    whole.push(region);
                }
                _ => self.closed = self.closed.max(region.bound),
            }
        }
        let accuracy = WEIGHTS_SHARE * self.limits.gap;
        let bounded = self.context.map(halves, |mut half| {
            let corner = self.problem.bound(&mut half, accuracy, enough, self.context);
            corner.map(|corner| (half, corner))
        });
        let Some(bounded) = bounded.into_iter().collect::<Option<Vec<_>>>() else {
            // Stopped: the bounds of the wholes are all there is.
            self.open.extend(whole);
            return;
        };
        for (mut half, corner) in bounded {
            self.regions += 1;
            half.number = self.regions;
            self.consider(&half.weights, &corner);
            if half.bound <= self.best.log_likelihood + self.limits.gap {
                self.closed = self.closed.max(half.bound);
            } else {
                self.open.push(half);
            }
        }
    }

    /// Takes a mixture as a start where it is already better than the best.
    fn consider(&mut self, weights: &[f64], means: &[f64]) {
        if self.problem.log_likelihood(weights, means) > self.best.log_likelihood {
            let found = self.problem.climb(weights, means, self.context);
            if found.log_likelihood > self.best.log_likelihood {
                self.best = found;
            }
        }
    }
}

impl Problem {
    /// All means that an optimum may have: inside of the rows.
    fn whole(&self) -> Region {
        let (n, d) = (self.components(), self.features);
        let ends = |pick: fn(f64, f64) -> f64, start: f64| -> Vec<f64> {
            let end = |i: usize| self.rows.iter().skip(i).step_by(d).copied().fold(start, pick);
            let row: Vec<f64> = (0..d).map(end).collect();
            row.repeat(n)
        };
        let heights = (0..n).map(|j| self.log_height(j)).fold(f64::NEG_INFINITY, f64::max);
        Region {
            low: ends(f64::min, f64::INFINITY),
            high: ends(f64::max, f64::NEG_INFINITY),
            bound: self.total() * heights,
            weights: vec![1.0 / n as f64; n],
            number: 0,
        }
    }

    /// The two halves of a region, less what the order of exchangeable components excludes; nothing where no
    /// number lies between its ends.
    fn halves(&self, region: &Region) -> Option<Vec<Region>> {
        let d = self.features;
        let side = |i: usize| region.high[i] - region.low[i];
        let halvable = |&i: &usize| {
            let middle = 0.5 * (region.low[i] + region.high[i]);
            region.low[i] < middle && middle < region.high[i]
        };
        let term = |i: usize| {
            let size = side(i) * side(i) / self.variances[i / d];
            (region.weights[i / d] * size, size)
        };
        let compare = |a: &usize, b: &usize| {
            let (a, b) = (term(*a), term(*b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        let split = (0..region.low.len()).filter(halvable).max_by(compare)?;
        let middle = 0.5 * (region.low[split] + region.high[split]);
        let part = |lower: bool| {
            let (mut low, mut high) = (region.low.clone(), region.high.clone());
            if lower {
                high[split] = middle
            } else {
                low[split] = middle
            }
            let ordered = self.order(&mut low, &mut high);
            let Region { bound, weights, .. } = region;
            ordered.then(|| Region {
                low,
                high,
                bound: *bound,
                weights: weights.clone(),
                number: 0,
            })
        };
        Some([part(true), part(false)].into_iter().flatten().collect())
    }

    /// Pairs of neighbours among the components of the same variance.
    fn exchangeable(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> {
        let n = self.components();
        (0..n).filter_map(move |i| {
            let next = (i + 1..n).find(|&j| self.variances[j] == self.variances[i])?;
            Some((i, next))
        })
    }

    /// Narrows a box to where means in ascending order can be; false where they cannot.
    fn order(&self, low: &mut [f64], high: &mut [f64]) -> bool {
        let d = self.features;
        for (i, j) in self.exchangeable() {
            low[j * d] = low[j * d].max(low[i * d]);
        }
        for (i, j) in self.exchangeable().rev() {
            high[i * d] = high[i * d].min(high[j * d]);
        }
        low.iter().zip(high.iter()).all(|(low, high)| low <= high)
    }

    /// Bounds the likelihood in a box and returns the corner with the largest bound; nothing when it was stopped.
    fn bound(
        &self,
        region: &mut Region,
        accuracy: f64,
        enough: f64,
        context: &Context,
    ) -> Option<Vec<f64>> {
        let (n, d) = (self.components(), self.features);
        let bonus: Vec<f64> = (0..n)
            .map(|j| {
                let sides = (j * d..(j + 1) * d).map(|i| region.high[i] - region.low[i]);
                sides.map(|side| side * side).sum::<f64>() / (8.0 * self.variances[j])
            })
            .collect();
        let mut largest = f64::NEG_INFINITY;
        let mut found = (region.weights.clone(), region.low.clone());
        for corner in 0..1_u64 << (n * d) {
            if context.stop_request().is_some() {
                return None;
            }
            let end = |i: usize| if corner >> i & 1 == 0 { region.low[i] } else { region.high[i] };
            // An interval of no width has one end.
            if (0..n * d).any(|i| corner >> i & 1 == 1 && region.low[i] == region.high[i]) {
                continue;
            }
            let means: Vec<f64> = (0..n * d).map(end).collect();
            let mut logarithms = Vec::with_capacity(self.counts.len() * n);
            for k in 0..self.counts.len() {
                let each = (0..n).map(|j| self.log_density(k, j, &means[j * d..][..d]) + bonus[j]);
                logarithms.extend(each);
            }
            let fit = Table::new(logarithms, &self.counts, n).fit(&found.0, accuracy, enough);
            if fit.bound > largest {
                largest = fit.bound;
                found = (fit.weights, means);
            }
        }
        region.bound = region.bound.min(largest);
        region.weights = found.0;
        Some(found.1)
    }

    /// Puts exchangeable components into ascending order of their first mean.
    fn sort(&self, mixture: &mut Mixture) {
        let (n, d) = (self.components(), self.features);
        for _ in 1..n {
            for (i, j) in self.exchangeable() {
                if mixture.means[i * d] > mixture.means[j * d] {
                    mixture.weights.swap(i, j);
                    (0..d).for_each(|a| mixture.means.swap(i * d + a, j * d + a));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    fn limits(gap: f64) -> Limits {
        Limits { gap, regions: 100_000, starts: 1 }
    }

    /// The four groups of the specification's GM-LOCAL.
    fn groups() -> Vec<f64> {
        [0.05, 0.30, 0.60, 0.90]
            .iter()
            .flat_map(|a| (0..4).map(move |i| a + 0.02 * f64::from(i)))
            .collect()
    }

    fn certified(rows: &[f64], features: usize, variances: &[f64], gap: f64) -> Certified {
        let problem = Problem::new(rows, features, variances.to_vec());
        certify(&problem, &limits(gap), &Context::new())
    }

    #[test]
    fn the_optima_of_the_specification_are_found_and_proven() {
        // Appendix A: GM-LOCAL, GM-LOCAL-2, GM-EASY.
        let cases = [
            (vec![0.002; 3], -14.8717, vec![0.205, 0.630, 0.930]),
            (vec![0.01; 3], -0.9594, vec![]),
            (vec![0.01; 2], -4.5983, vec![0.205, 0.780]),
            (vec![0.004; 2], -20.7467, vec![0.205, 0.780]),
        ];
        for (variances, value, means) in cases {
            let found = certified(&groups(), 1, &variances, 1e-4);
            let reached = found.mixture.log_likelihood;
            assert_eq!(found.status, Status::Solved);
            assert!((reached - value).abs() < 1e-4, "{variances:?}: {reached}");
            assert!(found.bound >= reached && found.bound - reached <= 1e-4, "{}", found.bound);
            for (a, b) in found.mixture.means.iter().zip(&means) {
                assert!((a - b).abs() < 2e-3, "{variances:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn unequal_variances_need_no_order() {
        // GM-ORD: with ascending means the best is -1.3378.
        let mut rows: Vec<f64> = (0..9).map(|i| 0.76 + 0.01 * f64::from(i)).collect();
        rows.extend((0..10).map(|i| 0.05 + 0.55 * f64::from(i) / 9.0));
        for variances in [[0.001, 0.04], [0.04, 0.001]] {
            let found = certified(&rows, 1, &variances, 1e-3);
            assert!((found.mixture.log_likelihood - 9.8760).abs() < 1e-4);
            assert!(found.bound <= 9.8760 + 1e-3 + 1e-4);
        }
    }

    #[test]
    fn the_interval_holds_the_best_of_a_grid_on_random_problems() {
        let mut generator = Generator::new(11);
        for _ in 0..100 {
            let rows: Vec<f64> = (0..2 + generator.below(12)).map(|_| generator.unit()).collect();
            let variances = [0.003 + 0.03 * generator.unit(), 0.003 + 0.03 * generator.unit()];
            let problem = Problem::new(&rows, 1, variances.to_vec());
            let found = certify(&problem, &limits(1e-3), &Context::new());
            assert_eq!(found.status, Status::Solved);
            let mut best = f64::NEG_INFINITY;
            for i in 0..=40 {
                for j in 0..=40 {
                    let means = [f64::from(i) / 40.0, f64::from(j) / 40.0];
                    for share in 0..=20 {
                        let share = f64::from(share) / 20.0;
                        best = best.max(problem.log_likelihood(&[share, 1.0 - share], &means));
                    }
                }
            }
            assert!(best <= found.bound, "{best} {}", found.bound);
            assert!(found.mixture.log_likelihood <= found.bound);
        }
    }

    #[test]
    fn two_features_and_many_threads_give_the_same_interval() {
        let mut generator = Generator::new(5);
        let rows: Vec<f64> = (0..30)
            .flat_map(|i| {
                let (x, y) = (generator.normal(), generator.normal());
                [0.1 * x + f64::from(i % 2), 0.1 * y - f64::from(i % 2)]
            })
            .collect();
        let problem = Problem::new(&rows, 2, vec![0.02, 0.02]);
        let one = certify(&problem, &limits(1e-2), &Context::new());
        assert_eq!(one.status, Status::Solved);
        let context = Context::new().with_threads(3).unwrap();
        let three = certify(&problem, &limits(1e-2), &context);
        assert_eq!(one.bound.to_bits(), three.bound.to_bits());
        assert_eq!(one.mixture, three.mixture);
        assert_eq!(one.regions, three.regions);
    }

    #[test]
    fn equal_rows_and_more_components_than_rows_are_solved() {
        let height = |s: f64| -0.5 * (super::super::LN_TWO_PI + s.ln());
        let same = certified(&[3.0; 5], 1, &[0.5, 0.1], 1e-6);
        assert_eq!(same.status, Status::Solved);
        assert!((same.mixture.log_likelihood - 5.0 * height(0.1)).abs() < 1e-6);
        let single = certified(&[1.0, 2.0], 1, &[0.01; 3], 1e-3);
        assert_eq!(single.status, Status::Solved);
        // Two components on the two rows, half each.
        let best = 2.0 * (height(0.01) + 0.5_f64.ln());
        assert!((single.mixture.log_likelihood - best).abs() < 1e-3, "{}", single.bound);
    }

    #[test]
    fn a_limit_leaves_an_interval() {
        let problem = Problem::new(&groups(), 1, vec![0.002; 3]);
        let few = Limits { gap: 1e-9, regions: 40, starts: 1 };
        let found = certify(&problem, &few, &Context::new());
        assert_eq!(found.status, Status::IterationLimit);
        assert!(found.mixture.log_likelihood <= -14.8716 && found.bound >= -14.8717);
        let stopped = crate::context::CancelToken::new();
        stopped.cancel();
        let context = Context::new().with_cancel_token(stopped);
        let found = certify(&problem, &few, &context);
        assert_eq!(found.status, Status::Interrupted);
        assert!(found.bound >= -14.8717 && found.mixture.log_likelihood.is_finite());
    }
}
