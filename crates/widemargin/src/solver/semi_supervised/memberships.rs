//! The groups of rows as probabilities: the least of Σᵢ cᵢ (Σ_g pᵢ_g q_ig + T Σ_g pᵢ_g log pᵢ_g) with
//! Σᵢ cᵢ pᵢ_g = share_g Σᵢ cᵢ, that is pᵢ_g ∝ exp((ν_g − q_ig) / T) for prices ν of the groups.

use crate::numeric::algebra::dot;

/// How closely the shares are met, relative to the smaller of a share and what is left of it.
const SHARE_TOLERANCE: f64 = 1e-6;

/// Steps for the price of two groups, and for those of several, which also meet the shares less closely.
const MAX_STEPS: usize = 100;
const SEVERAL_TOLERANCE: f64 = 1e-3;

/// Temperature at which the prices of several groups are found where no entropy is asked for.
const PRICE_TEMPERATURE: f64 = 0.05;

/// What the memberships of rows have to meet, and the prices that make them do so.
pub(super) struct Memberships {
    shares: Vec<f64>,
    /// Weight of every row in the shares, which sum to 1.
    weights: Vec<f64>,
    prices: Vec<f64>,
}

impl Memberships {
    /// For rows of given costs.
    pub(super) fn new(shares: &[f64], costs: &[f64]) -> Self {
        let total: f64 = costs.iter().sum();
        let weights = match total > 0.0 {
            true => costs.iter().map(|cost| cost / total).collect(),
            false => vec![1.0 / costs.len().max(1) as f64; costs.len()],
        };
        Self { shares: shares.to_vec(), weights, prices: vec![0.0; shares.len()] }
    }

    /// Those of all rows by the shares alone.
    pub(super) fn uniform(&self) -> Vec<f64> {
        self.weights.iter().flat_map(|_| self.shares.iter().copied()).collect()
    }

    /// The best ones at a temperature for losses q, a row of them for every row.
    pub(super) fn at(&mut self, losses: &[f64], temperature: f64) -> Vec<f64> {
        let count = self.shares.len();
        match (count, temperature > 0.0) {
            (2, true) => {
                let differences: Vec<f64> =
                    losses.chunks_exact(2).map(|row| row[0] - row[1]).collect();
                self.two(&differences, temperature)
            }
            (2, false) => self.cut(losses),
            (_, true) => self.several(losses, temperature),
            (_, false) => {
                self.several(losses, PRICE_TEMPERATURE);
                let best = |row: &[f64]| {
                    let cost = |g: usize| row[g] - self.prices[g];
                    (0..count).fold(0, |best, g| if cost(g) < cost(best) { g } else { best })
                };
                let groups = losses.chunks_exact(count).map(best);
                groups.flat_map(|own| (0..count).map(move |g| f64::from(g == own))).collect()
            }
        }
    }

    /// Newton's method for the price of the first of two groups, within a bracket.
    fn two(&mut self, differences: &[f64], temperature: f64) -> Vec<f64> {
        let share = self.shares[0];
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut price = self.prices[0];
        let mut first = vec![0.0; differences.len()];
        let mut width = temperature.max(1e-3);
        for _ in 0..MAX_STEPS {
            for (p, difference) in first.iter_mut().zip(differences) {
                *p = 1.0 / (1.0 + ((difference - price) / temperature).exp());
            }
            let excess = dot(&self.weights, &first) - share;
            if excess.abs() <= SHARE_TOLERANCE * share.min(1.0 - share) {
                break;
            }
            if excess < 0.0 {
                low = price;
            } else {
                high = price;
            }
            let each = first.iter().zip(&self.weights);
            let slope = each.map(|(p, weight)| weight * p * (1.0 - p)).sum::<f64>() / temperature;
            let newton = price - excess / slope;
            price = if newton.is_finite() && newton > low && newton < high && slope > 0.0 {
                newton
            } else if low.is_finite() && high.is_finite() {
                0.5 * (low + high)
            } else {
                width *= 2.0;
                if excess < 0.0 { price + width } else { price - width }
            };
        }
        self.prices[0] = price;
        first.iter().flat_map(|p| [*p, 1.0 - p]).collect()
    }

    /// The first group for the rows that gain most by it, as many as its share asks for; each has one at least.
    fn cut(&self, losses: &[f64]) -> Vec<f64> {
        let rows = self.weights.len();
        let gain = |i: usize| losses[2 * i] - losses[2 * i + 1];
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(a.cmp(&b)));
        let mut memberships = [0.0, 1.0].repeat(rows);
        let mut reached = 0.0;
        for (place, &i) in order.iter().enumerate() {
            let enough = reached + 0.5 * self.weights[i] >= self.shares[0];
            if place > 0 && (enough || place + 1 == rows) {
                break;
            }
            reached += self.weights[i];
            (memberships[2 * i], memberships[2 * i + 1]) = (1.0, 0.0);
        }
        memberships
    }

    /// Scales the groups in turn until their shares are met (Sinkhorn).
    fn several(&mut self, losses: &[f64], temperature: f64) -> Vec<f64> {
        let count = self.shares.len();
        let mut memberships = vec![0.0; losses.len()];
        for _ in 0..MAX_STEPS {
            let mut reached = vec![0.0; count];
            let rows = memberships.chunks_exact_mut(count).zip(losses.chunks_exact(count));
            for ((row, losses), weight) in rows.zip(&self.weights) {
                let value = |g: usize| (self.prices[g] - losses[g]) / temperature;
                let most = (0..count).map(value).fold(f64::NEG_INFINITY, f64::max);
                row.iter_mut().enumerate().for_each(|(g, p)| *p = (value(g) - most).exp());
                let total: f64 = row.iter().sum();
                for (p, reached) in row.iter_mut().zip(&mut reached) {
                    *p /= total;
                    *reached += weight * *p;
                }
            }
            let far = |g: usize| (reached[g] - self.shares[g]).abs() / self.shares[g];
            if (0..count).map(far).fold(0.0, f64::max) <= SEVERAL_TOLERANCE {
                break;
            }
            for g in 0..count {
                let ratio = self.shares[g] / reached[g].max(1e-300);
                self.prices[g] += temperature * ratio.ln().clamp(-30.0, 30.0);
            }
        }
        memberships
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(memberships: &[f64], weights: &[f64], groups: usize) -> Vec<f64> {
        let mut sums = vec![0.0; groups];
        for (row, weight) in memberships.chunks_exact(groups).zip(weights) {
            row.iter().zip(&mut sums).for_each(|(p, sum)| *sum += weight * p);
        }
        sums
    }

    #[test]
    fn memberships_meet_their_shares_and_rank_rows_by_their_losses() {
        let costs = [1.0, 2.0, 1.0, 1.0, 3.0, 1.0];
        for (shares, tolerance) in [(vec![0.3, 0.7], 1e-5), (vec![0.2, 0.5, 0.3], 2e-3)] {
            let groups = shares.len();
            let losses: Vec<f64> =
                (0..6 * groups).map(|k| ((k * k * 7) % 11) as f64 / 3.0 - 1.0).collect();
            let mut memberships = Memberships::new(&shares, &costs);
            for temperature in [10.0, 1.0, 0.3] {
                let found = memberships.at(&losses, temperature);
                let reached = sums(&found, &memberships.weights, groups);
                for (reached, share) in reached.iter().zip(&shares) {
                    assert!((reached - share).abs() < tolerance, "{reached} for {share}");
                }
                for (p, q) in found.chunks_exact(groups).zip(losses.chunks_exact(groups)) {
                    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    // log pᵢ_g + q_ig / T − ν_g / T is the same for all groups of a row.
                    let level = |g: usize| p[g].ln() + (q[g] - memberships.prices[g]) / temperature;
                    (1..groups).for_each(|g| assert!((level(g) - level(0)).abs() < 1e-9));
                }
            }
        }
    }

    #[test]
    fn the_cut_is_the_best_of_all_assignments_with_as_many_rows() {
        let gains = [0.3, -1.0, 0.2, -0.4, 2.0, -0.1, 0.25];
        let losses: Vec<f64> = gains.iter().flat_map(|gain| [*gain, 0.0]).collect();
        for count in 1..7_u32 {
            let share = f64::from(count) / 7.0;
            let found = Memberships::new(&[share, 1.0 - share], &[1.0; 7]).at(&losses, 0.0);
            let value: f64 = gains.iter().zip(found.chunks_exact(2)).map(|(g, p)| g * p[0]).sum();
            let best = (0_u32..128)
                .filter(|mask| mask.count_ones() == count)
                .map(|mask| (0..7).filter(|i| mask >> i & 1 == 1).map(|i| gains[i]).sum::<f64>())
                .fold(f64::INFINITY, f64::min);
            assert!((value - best).abs() < 1e-12, "{count}: {value} for {best}");
        }
    }
}
