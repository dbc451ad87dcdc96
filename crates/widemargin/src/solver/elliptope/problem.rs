//! The family of saddle problems as data.

use super::ties::Ties;

/// The linear inequality on X.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constraint {
    /// None.
    Free,
    /// ‖Σ wᵢuᵢ‖² ≤ `limit`: balance of two clusters, the limit being the square of the largest difference of
    /// their sizes, or of that from a given one.
    Sum {
        /// The limit.
        limit: f64,
    },
    /// Σ uᵢ·uᵢ ≥ `least`: what counts of all rows together.
    Counted {
        /// The least sum.
        least: f64,
    },
}

/// A problem; see the [module](crate::solver::elliptope) for the formula.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Number n of variables λ.
    pub size: usize,
    /// The matrix G, n × n, symmetric and positive semidefinite.
    pub gram: Vec<f64>,
    /// Number N of unit vectors v.
    pub vertices: usize,
    /// Factor aᵢ of v₀.
    pub anchor: Vec<f64>,
    /// Factor bᵢ of the variable's own vector.
    pub own: Vec<f64>,
    /// Place k(i) of the variable's own vector.
    pub vertex: Vec<usize>,
    /// Price p of every 1 − uᵢ·uᵢ.
    pub price: f64,
    /// The inequality.
    pub constraint: Constraint,
    /// Factor wᵢ of uᵢ in the inequality.
    pub balance: Vec<f64>,
}

impl Problem {
    /// Labels of all rows unknown: uᵢ = vᵢ, and |Σ yᵢ| ≤ `imbalance` where that is given.
    pub(crate) fn clustering(gram: Vec<f64>, size: usize, imbalance: Option<f64>) -> Self {
        Self {
            size,
            gram,
            vertices: size,
            anchor: vec![0.0; size],
            own: vec![1.0; size],
            vertex: (0..size).collect(),
            price: 0.0,
            constraint: balance(imbalance),
            balance: vec![1.0; size],
        }
    }

    /// The same where rows are tied together: uᵢ = ±v of their group.
    pub(crate) fn tied(gram: Vec<f64>, ties: &Ties, imbalance: f64) -> Self {
        Self {
            vertices: ties.groups(),
            own: ties.sign.iter().map(|&sign| f64::from(sign)).collect(),
            vertex: ties.group.clone(),
            ..Self::clustering(gram, ties.rows(), Some(imbalance))
        }
    }

    /// Rows that may be left out: uᵢ = ½(v₀ + vᵢ). Leaving a row out costs 1, or where `least` is given nothing,
    /// and so many rows have to count.
    pub(crate) fn robust(gram: Vec<f64>, size: usize, least: Option<f64>) -> Self {
        Self {
            size,
            gram,
            vertices: size + 1,
            anchor: vec![0.5; size],
            own: vec![0.5; size],
            vertex: (1..=size).collect(),
            price: if least.is_some() { 0.0 } else { 1.0 },
            constraint: least.map_or(Constraint::Free, |least| Constraint::Counted { least }),
            balance: vec![1.0; size],
        }
    }

    /// Labels of some rows known (±1, 0: unknown) and losses of given costs: uᵢ = √cᵢ yᵢ v₀ or √cᵢ vᵢ, where the
    /// unknown labels add up to `sum`. A kernel matrix K becomes G = K ∘ √c√cᵀ.
    pub(crate) fn semi_supervised(kernel: &[f64], known: &[i8], costs: &[f64], sum: f64) -> Self {
        let size = known.len();
        let roots: Vec<f64> = costs.iter().map(|cost| cost.sqrt()).collect();
        let mut gram = kernel.to_vec();
        for (row, own) in gram.chunks_exact_mut(size).zip(&roots) {
            row.iter_mut().zip(&roots).for_each(|(value, other)| *value *= own * other);
        }
        let labelled = known.iter().filter(|label| **label != 0).count() as f64;
        let mut problem = Self {
            vertices: 1,
            anchor: roots.iter().zip(known).map(|(r, y)| r * f64::from(*y)).collect(),
            own: vec![0.0; size],
            vertex: vec![0; size],
            // The labelled rows take `sum` away; integers of one parity that differ by 1 at most are equal.
            balance: vec![0.0; size],
            ..Self::clustering(gram, size, Some(1.0))
        };
        for i in 0..size {
            let label = f64::from(known[i]);
            problem.balance[i] = -sum * label / (labelled * roots[i]);
            if known[i] == 0 {
                problem.own[i] = roots[i];
                problem.vertex[i] = problem.vertices;
                problem.vertices += 1;
                problem.balance[i] = 1.0 / roots[i];
            }
        }
        problem
    }

    /// What the constraint weighs squared lengths of uᵢ with, for a multiplier, less the price of leaving out.
    pub(super) fn length_factor(&self, multiplier: f64) -> f64 {
        match self.constraint {
            Constraint::Counted { .. } => -self.price - multiplier,
            _ => -self.price,
        }
    }

    /// The price of rows whose uᵢ have these squared lengths.
    pub(super) fn left_out(&self, lengths: &[f64]) -> f64 {
        if self.price == 0.0 {
            return 0.0;
        }
        self.price * (self.size as f64 - lengths.iter().sum::<f64>())
    }

    /// A bound that costs nothing: λ = s e and z = the row sums of |G|, by diagonal dominance. F is never negative.
    pub(crate) fn first_bound(&self) -> f64 {
        let n = self.size as f64;
        let total: f64 = self.gram.iter().map(|value| value.abs()).sum();
        let has_unit_rows =
            self.anchor.iter().zip(&self.own).all(|(a, b)| a * b == 0.0 && a * a + b * b == 1.0);
        if !has_unit_rows || total.is_nan() || total <= 0.0 {
            return 0.0;
        }
        let share = (n / total).min(1.0);
        (share * n - 0.5 * share * share * total).max(0.0)
    }

    /// Σ wᵢuᵢ of rows u of the given width.
    pub(super) fn balance_sum(&self, u: &[f64], width: usize) -> Vec<f64> {
        let mut sum = vec![0.0; width];
        for (u, balance) in u.chunks_exact(width).zip(&self.balance) {
            sum.iter_mut().zip(u).for_each(|(sum, u)| *sum += balance * u);
        }
        sum
    }

    /// Whether some uᵢ have a part of v₀.
    pub(super) fn is_anchored(&self) -> bool {
        self.anchor.iter().any(|a| *a != 0.0)
    }

    /// Moves vectors towards the inside of the constraint, but for v₀ where rows refer to it; their lengths change.
    pub(super) fn move_inside(&self, v: &mut [f64], width: usize, share: f64) {
        let mut u = vec![0.0; self.size * width];
        let toward: Vec<f64> = match self.constraint {
            Constraint::Free => return,
            Constraint::Sum { .. } => {
                self.combine(v, width, &mut u);
                let sum = self.balance_sum(&u, width);
                sum.iter().map(|sum| -sum / self.size as f64).collect()
            }
            Constraint::Counted { .. } => v[..width].to_vec(),
        };
        for v in v.chunks_exact_mut(width).skip(usize::from(self.is_anchored())) {
            v.iter_mut().zip(&toward).for_each(|(v, toward)| *v += share * toward);
        }
    }

    /// uᵢ of all variables, for vectors v (or directions) of the given width.
    pub(super) fn combine(&self, v: &[f64], width: usize, u: &mut [f64]) {
        for (i, u) in u.chunks_exact_mut(width).enumerate() {
            let (a, b) = (self.anchor[i], self.own[i]);
            let own = &v[self.vertex[i] * width..][..width];
            for ((u, anchor), own) in u.iter_mut().zip(&v[..width]).zip(own) {
                *u = a * anchor + b * own;
            }
        }
    }

    /// The transpose of [`combine`](Self::combine): derivatives by v from those by u.
    pub(super) fn scatter(&self, u: &[f64], width: usize, v: &mut [f64]) {
        v.fill(0.0);
        for (i, u) in u.chunks_exact(width).enumerate() {
            let (a, b) = (self.anchor[i], self.own[i]);
            if a != 0.0 {
                v[..width].iter_mut().zip(u).for_each(|(v, u)| *v += a * u);
            }
            let own = &mut v[self.vertex[i] * width..][..width];
            own.iter_mut().zip(u).for_each(|(v, u)| *v += b * u);
        }
    }
}

fn balance(imbalance: Option<f64>) -> Constraint {
    imbalance.map_or(Constraint::Free, |most| Constraint::Sum { limit: most * most })
}

#[cfg(test)]
mod tests {
    use super::super::{Options, relax};
    use super::*;
    use crate::context::Context;

    #[test]
    fn one_label_makes_clustering_whose_sign_is_known() {
        let rows: [[f64; 2]; 8] =
            [[0., 0.], [1., 0.], [0., 1.], [1., 1.], [4., 3.], [5., 3.], [4., 4.], [6., 5.]];
        let kernel = |a: [f64; 2], b: [f64; 2]| {
            (-((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)) / 9.0).exp()
        };
        let gram: Vec<f64> =
            rows.iter().flat_map(|a| rows.iter().map(move |b| kernel(*a, *b))).collect();
        let half: Vec<f64> = gram.iter().map(|value| 0.5 * value).collect();
        let known = [1, 0, 0, 0, 0, 0, 0, 0];
        // By Clarabel, an interior-point solver, for labels that add up to at most 1 (Xu's 3.5).
        let expected = 1.406_387_1;
        for (problem, factor) in [
            (Problem::clustering(gram.clone(), 8, Some(1.0)), 1.0),
            (Problem::semi_supervised(&gram, &known, &[1.0; 8], -1.0), 1.0),
            // Σ cλ − ½ Σ Kc²λλyy = c (Σ λ − ½ Σ cKλλyy).
            (Problem::semi_supervised(&half, &known, &[2.0; 8], -1.0), 2.0),
        ] {
            let found = relax(&problem, &Options::default(), &Context::new());
            let value = factor * expected;
            assert!((found.value - value).abs() < 3e-6, "{} for {value}", found.value);
            assert!((found.bound - value).abs() < 3e-6, "{} for {value}", found.bound);
        }
    }
}
