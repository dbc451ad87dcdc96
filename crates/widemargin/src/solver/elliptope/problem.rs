//! The family of saddle problems as data.

/// The linear inequality on X.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constraint {
    /// None.
    Free,
    /// ‖Σ wᵢuᵢ‖² ≤ `limit`, w being the balance: balance of two clusters, the limit being the square of the largest difference of
    /// their sizes.
    Sum {
        /// The limit.
        limit: f64,
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
            constraint: balance(imbalance),
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
