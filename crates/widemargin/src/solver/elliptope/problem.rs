//! The family of saddle problems as data.

/// The linear inequality on X.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constraint {
    /// None.
    Free,
    /// ‖Σ uᵢ‖² ≤ `limit`: balance of two clusters, the limit being the square of the largest difference of
    /// their sizes.
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
        }
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
        let has_unit_rows = self.anchor.iter().zip(&self.own).all(|(a, b)| a * b == 0.0);
        if !has_unit_rows || total.is_nan() || total <= 0.0 {
            return 0.0;
        }
        let share = (n / total).min(1.0);
        (share * n - 0.5 * share * share * total).max(0.0)
    }

    /// Moves vectors towards the inside of the constraint; their lengths change.
    pub(super) fn move_inside(&self, v: &mut [f64], width: usize, share: f64) {
        let mut u = vec![0.0; self.size * width];
        let toward: Vec<f64> = match self.constraint {
            Constraint::Free => return,
            Constraint::Sum { .. } => {
                self.combine(v, width, &mut u);
                let mean =
                    |k: usize| -u.iter().skip(k).step_by(width).sum::<f64>() / self.size as f64;
                (0..width).map(mean).collect()
            }
            Constraint::Counted { .. } => v[..width].to_vec(),
        };
        for v in v.chunks_exact_mut(width) {
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
