//! The small problems over the weights alone: the lowest point of the cuts, and the point of a level set that
//! is nearest to another.
//!
//! ```text
//! minimise θ            or   ½‖µ − µ̂‖²
//! subject to θ + qᵀµ ≥ c    (θ fixed to the level) for every objective cut
//!            vᵀµ ≥ 0        for every cut of the cone
//!            Σµ = 1,  low ≤ µ ≤ high elementwise
//! ```
//!
//! Mehrotra's predictor-corrector method; bounds enter the normal equations as a diagonal, so that their order
//! is the number of cuts, not of weights. The lower bound is computed from the multipliers of the cuts in
//! closed form and holds however inaccurate these are.

use crate::context::Context;
use crate::numeric::algebra::{Cholesky, add, dot};

/// Steps of the interior-point method; ten to twenty are usual.
const MAX_STEPS: usize = 80;

/// Complementarity and residuals, relative to the scaled problem, at which it ends.
const TOLERANCE: f64 = 1e-11;

/// Part of the way to the boundary that a step takes.
const STEP_SHARE: f64 = 0.995;

/// Steps that balance the multipliers; two take rounding out.
const BALANCING_STEPS: usize = 3;

/// Rounds without a multiplier after which a cut is dropped.
const MAX_INACTIVE_ROUNDS: usize = 25;

/// Share of the multipliers below which a cut counts as inactive.
const INACTIVE_SHARE: f64 = 1e-9;

/// slack = coefficients · µ + θ − constant ≥ 0, or without θ for a cut of the cone.
#[derive(Clone)]
struct Row {
    coefficients: Vec<f64>,
    constant: f64,
    is_objective: bool,
    inactive_rounds: usize,
}

/// The cuts collected so far.
pub(super) struct Master {
    rows: Vec<Row>,
    /// Ranges of the weights; the upper ends may all be infinite.
    low: Vec<f64>,
    high: Vec<f64>,
}

/// Objective of a solve of the cuts.
#[derive(Clone, Copy)]
enum Goal<'a> {
    Lowest,
    Nearest { to: &'a [f64], level: f64 },
}

/// The lowest point of the cuts.
pub(super) struct Lowest {
    pub(super) weights: Vec<f64>,
    /// Certified lower bound of θ.
    pub(super) bound: f64,
}

impl Master {
    pub(super) fn new(low: Vec<f64>, high: Vec<f64>) -> Self {
        Self { rows: Vec::new(), low, high }
    }

    /// θ ≥ `constant` − `coefficients` · µ.
    pub(super) fn add_objective(&mut self, coefficients: Vec<f64>, constant: f64) {
        self.rows.push(Row { coefficients, constant, is_objective: true, inactive_rounds: 0 });
    }

    /// `coefficients` · µ ≥ 0.
    pub(super) fn add_cone(&mut self, mut coefficients: Vec<f64>) {
        let largest = coefficients.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        if largest > 0.0 {
            coefficients.iter_mut().for_each(|v| *v /= largest);
            self.rows.push(Row {
                coefficients,
                constant: 0.0,
                is_objective: false,
                inactive_rounds: 0,
            });
        }
    }

    /// The lowest point, starting the search from `inside`, which is strictly inside the range.
    pub(super) fn lowest(&mut self, inside: &[f64], context: &Context) -> Lowest {
        let mut search = Search::new(self, Goal::Lowest, inside);
        search.run(context);
        let Search { mut multipliers, weights, scale, .. } = search;
        // Objective cuts were divided by the scale, those of the cone were not.
        for (y, _) in multipliers.iter_mut().zip(&self.rows).filter(|(_, row)| !row.is_objective) {
            *y *= scale;
        }
        let mut bound = self.bound(&multipliers);
        if self.high[0].is_finite() {
            bound = bound.max(self.bound(&self.balanced(&multipliers, context)));
        }
        let total: f64 = multipliers.iter().sum();
        for (row, y) in self.rows.iter_mut().zip(&multipliers) {
            row.inactive_rounds =
                if *y > INACTIVE_SHARE * total { 0 } else { row.inactive_rounds + 1 };
        }
        self.rows.retain(|row| row.inactive_rounds <= MAX_INACTIVE_ROUNDS);
        Lowest { weights, bound }
    }

    /// Multipliers near `multipliers` with which all weights cost the same. Their range, which is wide where a
    /// cone bounds it, multiplies what they cost more or less in the [bound](Self::bound): that has to be far
    /// smaller than the residuals that the search ends with. Every step solves By = (0, …, 0, 1) with the
    /// least change in relation to y, y + diag(y²)Bᵀw, the rows of B being differences of coefficients and, last,
    /// which rows are objective cuts.
    fn balanced(&self, multipliers: &[f64], context: &Context) -> Vec<f64> {
        let n = self.low.len();
        let mut y: Vec<f64> = multipliers.iter().map(|y| y.max(0.0)).collect();
        let equations: Vec<Vec<f64>> = self
            .rows
            .iter()
            .map(|row| {
                let last = row.coefficients[n - 1];
                let mut own: Vec<f64> = row.coefficients.iter().map(|a| a - last).collect();
                own[n - 1] = f64::from(u8::from(row.is_objective));
                own
            })
            .collect();
        for _ in 0..BALANCING_STEPS {
            let mut missing = vec![0.0; n];
            missing[n - 1] = 1.0;
            let mut matrix = vec![0.0; n * n];
            for (own, y) in equations.iter().zip(&y) {
                add(&mut missing, own, -y);
                for i in 0..n {
                    add(&mut matrix[i * n..(i + 1) * n], own, y * y * own[i]);
                }
            }
            let units: Vec<f64> = (0..n).map(|i| matrix[i * n + i].sqrt().recip()).collect();
            if units.iter().any(|unit| !unit.is_finite()) {
                break;
            }
            for i in 0..n {
                (0..n).for_each(|j| matrix[i * n + j] *= units[i] * units[j]);
                matrix[i * n + i] += f64::EPSILON;
                missing[i] *= units[i];
            }
            let Some(factor) = Cholesky::new(matrix, n, context) else { break };
            factor.solve(&mut missing);
            missing.iter_mut().zip(&units).for_each(|(w, unit)| *w *= unit);
            for (own, y) in equations.iter().zip(&mut y) {
                *y = (*y + *y * *y * dot(own, &missing)).max(0.0);
            }
        }
        y
    }

    /// The point nearest to `to` where no cut is above `level`.
    pub(super) fn nearest(
        &self,
        to: &[f64],
        level: f64,
        inside: &[f64],
        context: &Context,
    ) -> Vec<f64> {
        let mut search = Search::new(self, Goal::Nearest { to, level }, inside);
        search.run(context);
        search.weights
    }

    /// The smallest value that θ can have, given any non-negative multipliers of the rows: the minimum of
    /// Σ y (constant − coefficients · µ) over Σµ = 1 and the range, the y of objective cuts summing to 1.
    fn bound(&self, multipliers: &[f64]) -> f64 {
        let objective = self.rows.iter().zip(multipliers).filter(|(row, _)| row.is_objective);
        let total: f64 = objective.map(|(_, y)| y.max(0.0)).sum();
        if !(total.is_finite() && total > 0.0) {
            return f64::NEG_INFINITY;
        }
        let kernels = self.rows[0].coefficients.len();
        let (mut gradient, mut constant) = (vec![0.0; kernels], 0.0);
        for (row, y) in self.rows.iter().zip(multipliers) {
            let y = y.max(0.0) / total;
            constant += y * row.constant;
            add(&mut gradient, &row.coefficients, -y);
        }
        let mut order: Vec<usize> = (0..kernels).collect();
        order.sort_by(|&a, &b| gradient[a].total_cmp(&gradient[b]));
        let mut left = 1.0 - self.low.iter().sum::<f64>();
        for i in order {
            let more = left.min(self.high[i] - self.low[i]).max(0.0);
            constant += gradient[i] * (self.low[i] + more);
            left -= more;
        }
        constant
    }
}

/// One run of the interior-point method.
struct Search<'a> {
    rows: &'a [Row],
    goal: Goal<'a>,
    low: &'a [f64],
    high: &'a [f64],
    /// Objective cuts are divided by it.
    scale: f64,
    weights: Vec<f64>,
    height: f64,
    slack: Vec<f64>,
    multipliers: Vec<f64>,
    below: Vec<f64>,
    above: Vec<f64>,
    sum_multiplier: f64,
}

/// A direction of all variables.
#[derive(Default)]
struct Direction {
    weights: Vec<f64>,
    height: f64,
    slack: Vec<f64>,
    multipliers: Vec<f64>,
    below: Vec<f64>,
    above: Vec<f64>,
    sum_multiplier: f64,
}

/// The factored Newton equations at a point, over the rows or over the weights, whichever are fewer: with more
/// cuts than weights the equations over the rows are singular at the optimum.
enum Normal {
    /// Order: number of rows.
    Rows {
        inverse_diagonal: Vec<f64>,
        factor: Cholesky,
        /// A D⁻¹ 1, and M⁻¹ of it and of the column of θ.
        border: Vec<f64>,
        solved_border: Vec<f64>,
        solved_height: Vec<f64>,
    },
    /// Order: number of weights, and one for θ.
    Weights {
        factor: Cholesky,
        /// Multiplier over slack of every row.
        ratios: Vec<f64>,
        /// H⁻¹ of ones in the places of the weights.
        solved_ones: Vec<f64>,
        /// Factor of 11ᵀ in H, which makes it regular where only Σ dµ decides and changes nothing else.
        penalty: f64,
    },
}

/// The right sides of the Newton equations.
struct RightSides {
    weights: Vec<f64>,
    rows: Vec<f64>,
    sum: f64,
    height: f64,
}

/// The unknowns that the Newton equations are solved for.
struct NewtonStep {
    weights: Vec<f64>,
    height: f64,
    multipliers: Vec<f64>,
    sum_multiplier: f64,
}

impl<'a> Search<'a> {
    fn new(master: &'a Master, goal: Goal<'a>, inside: &[f64]) -> Self {
        let rows = &master.rows[..];
        let objective = rows.iter().filter(|row| row.is_objective);
        let scale = objective.fold(f64::MIN_POSITIVE, |most: f64, row| {
            let values = row.coefficients.iter().chain([&row.constant]);
            values.fold(most, |most, v| most.max(v.abs()))
        });
        let mut search = Self {
            rows,
            goal,
            low: &master.low,
            high: &master.high,
            scale,
            weights: inside.to_vec(),
            height: 0.0,
            slack: Vec::new(),
            multipliers: vec![1.0; rows.len()],
            below: inside
                .iter()
                .zip(&master.low)
                .map(|(w, low)| (w - low).recip().min(1.0))
                .collect(),
            above: inside
                .iter()
                .zip(&master.high)
                .map(|(w, high)| (high - w).recip().min(1.0))
                .collect(),
            sum_multiplier: 0.0,
        };
        let objective = rows.iter().filter(|row| row.is_objective).count().max(1) as f64;
        for (y, row) in search.multipliers.iter_mut().zip(rows) {
            *y = if row.is_objective { 1.0 / objective } else { 1.0 };
        }
        if search.has_height() {
            let values = search.row_values();
            let lowest = values.iter().zip(rows).filter(|(_, row)| row.is_objective);
            let lowest = lowest.fold(f64::INFINITY, |low, (value, _)| low.min(*value));
            search.height = 0.1 - lowest;
        }
        search.slack = search.row_values().iter().map(|value| value.max(0.1)).collect();
        search
    }

    fn has_height(&self) -> bool {
        matches!(self.goal, Goal::Lowest)
    }

    /// Factor of the scale of a row.
    fn unit(&self, row: &Row) -> f64 {
        if row.is_objective { 1.0 / self.scale } else { 1.0 }
    }

    /// What the rows are without their slack.
    fn row_values(&self) -> Vec<f64> {
        let value = |row: &Row| {
            let unit = self.unit(row);
            let fixed = match self.goal {
                _ if !row.is_objective => 0.0,
                Goal::Lowest => self.height,
                Goal::Nearest { level, .. } => level * unit,
            };
            (dot(&row.coefficients, &self.weights) - row.constant) * unit + fixed
        };
        self.rows.iter().map(value).collect()
    }

    /// Whether θ stands in a row.
    fn height_column(&self) -> Vec<f64> {
        let of = |row: &Row| if row.is_objective && self.has_height() { 1.0 } else { 0.0 };
        self.rows.iter().map(of).collect()
    }

    fn curvature(&self) -> f64 {
        if self.has_height() { 0.0 } else { 1.0 }
    }

    fn bounded_above(&self) -> bool {
        self.high[0].is_finite()
    }

    fn run(&mut self, context: &Context) {
        for _ in 0..MAX_STEPS {
            let residuals = self.residuals();
            let complementarity = self.complementarity();
            if complementarity <= TOLERANCE && residuals.largest() <= TOLERANCE {
                break;
            }
            let Some(normal) = self.normal(context) else { break };
            let none = Direction::default();
            let affine = self.direction(&normal, &residuals, 0.0, &none);
            let step = self.step(&affine);
            let after = self.complementarity_after(&affine, step);
            let centring = (after / complementarity).powi(3).min(1.0);
            let target = centring * complementarity;
            let direction = self.direction(&normal, &residuals, target, &affine);
            let step = (STEP_SHARE * self.step(&direction)).min(1.0);
            if !(step > 1e-12 && direction.height.is_finite()) {
                break;
            }
            self.take(&direction, step);
        }
    }

    fn residuals(&self) -> Residuals {
        let mut weights: Vec<f64> = match self.goal {
            Goal::Lowest => vec![0.0; self.weights.len()],
            Goal::Nearest { to, .. } => self.weights.iter().zip(to).map(|(a, b)| a - b).collect(),
        };
        for (row, y) in self.rows.iter().zip(&self.multipliers) {
            add(&mut weights, &row.coefficients, -y * self.unit(row));
        }
        for (i, residual) in weights.iter_mut().enumerate() {
            *residual += self.above[i] - self.below[i] - self.sum_multiplier;
        }
        let column = self.height_column();
        Residuals {
            weights,
            height: if self.has_height() { 1.0 - dot(&column, &self.multipliers) } else { 0.0 },
            slack: self.row_values().iter().zip(&self.slack).map(|(v, s)| v - s).collect(),
            sum: 1.0 - self.weights.iter().sum::<f64>(),
        }
    }

    fn pairs(&self) -> f64 {
        let bounds = self.weights.len() * if self.bounded_above() { 2 } else { 1 };
        (self.rows.len() + bounds) as f64
    }

    fn complementarity(&self) -> f64 {
        self.complementarity_after(&Direction::default(), 0.0)
    }

    fn complementarity_after(&self, d: &Direction, step: f64) -> f64 {
        let moved = |value: f64, by: &[f64], i: usize| value + step * by.get(i).unwrap_or(&0.0);
        let mut total = 0.0;
        for r in 0..self.rows.len() {
            let (s, y) = (self.slack[r], self.multipliers[r]);
            total += moved(s, &d.slack, r) * moved(y, &d.multipliers, r);
        }
        for i in 0..self.weights.len() {
            let weight = moved(self.weights[i], &d.weights, i);
            total += (weight - self.low[i]) * moved(self.below[i], &d.below, i);
            if self.bounded_above() {
                total += (self.high[i] - weight) * moved(self.above[i], &d.above, i);
            }
        }
        total / self.pairs()
    }

    fn normal(&self, context: &Context) -> Option<Normal> {
        let diagonal = (0..self.weights.len()).map(|i| {
            let mut d = self.curvature() + self.below[i] / (self.weights[i] - self.low[i]);
            if self.bounded_above() {
                d += self.above[i] / (self.high[i] - self.weights[i]);
            }
            d
        });
        let diagonal: Vec<f64> = diagonal.collect();
        match self.rows.len() < self.weights.len() {
            true => self.normal_rows(&diagonal, context),
            false => self.normal_weights(&diagonal, context),
        }
    }

    fn normal_rows(&self, diagonal: &[f64], context: &Context) -> Option<Normal> {
        let inverse_diagonal: Vec<f64> = diagonal.iter().map(|d| 1.0 / d).collect();
        let order = self.rows.len();
        let mut matrix = vec![0.0; order * order];
        for (r, row) in self.rows.iter().enumerate() {
            let unit = self.unit(row);
            let scaled = row.coefficients.iter().zip(&inverse_diagonal).map(|(a, d)| a * d * unit);
            let scaled: Vec<f64> = scaled.collect();
            for (c, other) in self.rows[..=r].iter().enumerate() {
                matrix[r * order + c] = dot(&scaled, &other.coefficients) * self.unit(other);
            }
            matrix[r * order + r] += self.slack[r] / self.multipliers[r];
        }
        let factor = Cholesky::new(matrix, order, context)?;
        let border =
            self.rows.iter().map(|r| dot(&r.coefficients, &inverse_diagonal) * self.unit(r));
        let border: Vec<f64> = border.collect();
        let (mut solved_border, mut solved_height) = (border.clone(), self.height_column());
        factor.solve(&mut solved_border);
        factor.solve(&mut solved_height);
        Some(Normal::Rows { inverse_diagonal, factor, border, solved_border, solved_height })
    }

    fn normal_weights(&self, diagonal: &[f64], context: &Context) -> Option<Normal> {
        let n = self.weights.len();
        let order = n + usize::from(self.has_height());
        let ratios: Vec<f64> =
            self.multipliers.iter().zip(&self.slack).map(|(y, s)| y / s).collect();
        let mut matrix = vec![0.0; order * order];
        for (i, d) in diagonal.iter().enumerate() {
            matrix[i * order + i] = *d;
        }
        for (row, ratio) in self.rows.iter().zip(&ratios) {
            let unit = self.unit(row);
            let mut entries: Vec<f64> = row.coefficients.iter().map(|a| a * unit).collect();
            if self.has_height() {
                entries.push(if row.is_objective { 1.0 } else { 0.0 });
            }
            for i in 0..order {
                add(&mut matrix[i * order..=i * order + i], &entries[..=i], ratio * entries[i]);
            }
        }
        let penalty = (0..n).fold(0.0_f64, |most, i| most.max(matrix[i * order + i]));
        for i in 0..n {
            matrix[i * order..=i * order + i].iter_mut().for_each(|entry| *entry += penalty);
        }
        let factor = Cholesky::new(matrix, order, context)?;
        let mut solved_ones = vec![1.0; n];
        solved_ones.resize(order, 0.0);
        factor.solve(&mut solved_ones);
        Some(Normal::Weights { factor, ratios, solved_ones, penalty })
    }

    /// D dµ − Aᵀdy − dw = f,  A dµ + τ dθ + (s/y) dy = h,  Σ dµ = e,  τᵀdy = g.
    fn newton(&self, normal: &Normal, right: RightSides) -> NewtonStep {
        match normal {
            Normal::Rows { .. } => self.newton_rows(normal, right),
            Normal::Weights { factor, ratios, solved_ones, penalty } => {
                let n = self.weights.len();
                let RightSides { mut weights, rows, sum, height } = right;
                let weighted: Vec<f64> = rows.iter().zip(ratios).map(|(h, r)| h * r).collect();
                for (row, value) in self.rows.iter().zip(&weighted) {
                    add(&mut weights, &row.coefficients, value * self.unit(row));
                }
                weights.iter_mut().for_each(|weight| *weight += penalty * sum);
                if self.has_height() {
                    weights.push(dot(&self.height_column(), &weighted) - height);
                }
                factor.solve(&mut weights);
                let missing = sum - weights[..n].iter().sum::<f64>();
                let sum_multiplier = missing / solved_ones[..n].iter().sum::<f64>();
                add(&mut weights, solved_ones, sum_multiplier);
                let height = if self.has_height() { weights[n] } else { 0.0 };
                weights.truncate(n);
                let column = self.height_column();
                let multipliers = self.rows.iter().enumerate().map(|(r, row)| {
                    let moved = dot(&row.coefficients, &weights) * self.unit(row);
                    ratios[r] * (rows[r] - moved - column[r] * height)
                });
                let multipliers = multipliers.collect();
                NewtonStep { weights, height, multipliers, sum_multiplier }
            }
        }
    }

    fn newton_rows(&self, normal: &Normal, right: RightSides) -> NewtonStep {
        let Normal::Rows { inverse_diagonal, factor, border, solved_border, solved_height } =
            normal
        else {
            unreachable!("equations over the rows")
        };
        let RightSides { mut weights, rows, sum, height } = right;
        let scaled: Vec<f64> = weights.iter().zip(inverse_diagonal).map(|(f, d)| f * d).collect();
        let own = |(row, h): (&Row, &f64)| h - dot(&row.coefficients, &scaled) * self.unit(row);
        let mut dy: Vec<f64> = self.rows.iter().zip(&rows).map(own).collect();
        factor.solve(&mut dy);
        let column = self.height_column();
        let a = inverse_diagonal.iter().sum::<f64>() - dot(border, solved_border);
        let b = sum - scaled.iter().sum::<f64>() - dot(border, &dy);
        let (sum_multiplier, height) = if self.has_height() {
            // a w − mixed θ = b and mixed w + own θ = c.
            let mixed = dot(&column, solved_border);
            let own = dot(&column, solved_height);
            let c = dot(&column, &dy) - height;
            let determinant = a * own + mixed * mixed;
            ((b * own + mixed * c) / determinant, (a * c - mixed * b) / determinant)
        } else {
            (b / a, 0.0)
        };
        add(&mut dy, solved_border, -sum_multiplier);
        add(&mut dy, solved_height, -height);
        for (row, dy) in self.rows.iter().zip(&dy) {
            add(&mut weights, &row.coefficients, dy * self.unit(row));
        }
        let step = weights.iter().zip(inverse_diagonal).map(|(f, d)| (f + sum_multiplier) * d);
        NewtonStep { weights: step.collect(), height, multipliers: dy, sum_multiplier }
    }

    /// Newton's direction towards complementarity `target`, with the second-order terms of `affine`.
    fn direction(
        &self,
        normal: &Normal,
        residuals: &Residuals,
        target: f64,
        affine: &Direction,
    ) -> Direction {
        let second = |a: &[f64], b: &[f64], i: usize| match (a.get(i), b.get(i)) {
            (Some(a), Some(b)) => a * b,
            _ => 0.0,
        };
        let n = self.weights.len();
        let of_slack: Vec<f64> = (0..self.rows.len())
            .map(|r| {
                target
                    - self.slack[r] * self.multipliers[r]
                    - second(&affine.slack, &affine.multipliers, r)
            })
            .collect();
        let room = |i: usize| (self.weights[i] - self.low[i], self.high[i] - self.weights[i]);
        let of_below: Vec<f64> = (0..n)
            .map(|i| target - room(i).0 * self.below[i] - second(&affine.weights, &affine.below, i))
            .collect();
        let of_above: Vec<f64> = match self.bounded_above() {
            true => (0..n)
                .map(|i| {
                    target - room(i).1 * self.above[i] + second(&affine.weights, &affine.above, i)
                })
                .collect(),
            false => vec![0.0; n],
        };
        let of_weights = (0..n).map(|i| {
            let above = if self.bounded_above() { of_above[i] / room(i).1 } else { 0.0 };
            of_below[i] / room(i).0 - above - residuals.weights[i]
        });
        let of_rows =
            (0..self.rows.len()).map(|r| of_slack[r] / self.multipliers[r] - residuals.slack[r]);
        let right = RightSides {
            weights: of_weights.collect(),
            rows: of_rows.collect(),
            sum: residuals.sum,
            height: residuals.height,
        };
        let NewtonStep { weights, height, multipliers: dy, sum_multiplier } =
            self.newton(normal, right);
        let below =
            (0..n).map(|i| (of_below[i] - self.below[i] * weights[i]) / room(i).0).collect();
        let above = match self.bounded_above() {
            true => {
                (0..n).map(|i| (of_above[i] + self.above[i] * weights[i]) / room(i).1).collect()
            }
            false => vec![0.0; n],
        };
        let slack = (0..self.rows.len())
            .map(|r| (of_slack[r] - self.slack[r] * dy[r]) / self.multipliers[r])
            .collect();
        Direction { weights, height, slack, multipliers: dy, below, above, sum_multiplier }
    }

    /// The longest step that keeps slacks, multipliers and weights inside.
    fn step(&self, d: &Direction) -> f64 {
        let mut longest = 1.0_f64;
        let mut limit = |value: f64, change: f64| {
            if change < 0.0 {
                longest = longest.min(-value / change);
            }
        };
        for r in 0..self.rows.len() {
            limit(self.slack[r], d.slack[r]);
            limit(self.multipliers[r], d.multipliers[r]);
        }
        for i in 0..self.weights.len() {
            limit(self.weights[i] - self.low[i], d.weights[i]);
            limit(self.below[i], d.below[i]);
            if self.bounded_above() {
                limit(self.high[i] - self.weights[i], -d.weights[i]);
                limit(self.above[i], d.above[i]);
            }
        }
        longest
    }

    fn take(&mut self, d: &Direction, step: f64) {
        add(&mut self.weights, &d.weights, step);
        add(&mut self.slack, &d.slack, step);
        add(&mut self.multipliers, &d.multipliers, step);
        add(&mut self.below, &d.below, step);
        add(&mut self.above, &d.above, step);
        self.height += step * d.height;
        self.sum_multiplier += step * d.sum_multiplier;
    }
}

/// What is missing to feasibility.
struct Residuals {
    weights: Vec<f64>,
    height: f64,
    slack: Vec<f64>,
    sum: f64,
}

impl Residuals {
    fn largest(&self) -> f64 {
        let all = self.weights.iter().chain(&self.slack).chain([&self.height, &self.sum]);
        all.fold(0.0, |most, value| most.max(value.abs()))
    }
}
