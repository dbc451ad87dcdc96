//! The dual of the relaxation by an interior point, for problems that descent over few columns does not close.
//!
//! The dual maximises d = c + κt + Σz over λ in the box, t ≥ 0 and z with S = A(λ, t) − diag z ⪰ 0, where c + ⟨A, X⟩ is
//! the Lagrangian. A is concave in λ, and so is ln det S: Newton's method follows the maxima of
//! d + μ (ln det S + Σ ln λ + Σ ln(1 − λ) + ln t) as μ falls (Nesterov and Nemirovskii 1994). On that path X = μ S⁻¹
//! has ones on its diagonal, satisfies the constraint, and its value is at most μ (N + 2n + 1) above d.
//!
//! With u = P v and M = P S⁻¹ Pᵀ, the derivative of A by λᵢ is ½ Pᵀ(eᵢhᵢᵀ + hᵢeᵢᵀ)P, hᵢ being column i of
//! H = I − diag(λ) G, and the second derivatives of −ln det S are ½ (KᵢⱼKⱼᵢ + QᵢⱼMᵢⱼ) + GᵢⱼMᵢⱼ with K = HᵀM
//! and Q = HᵀMH.

use super::certificate::{lagrangian, proven_shift};
use super::problem::{Constraint, Problem};
use crate::context::Context;
use crate::error::Result;
use crate::numeric::algebra::{Cholesky, add, add_products, dot, times_transposed, transposed};

/// What μ falls by once its maximum is nearly reached: some five Newton steps each.
const BARRIER_FACTOR: f64 = 0.1;

/// Newton decrement at which μ falls, from which Newton's method converges fast, and at which the last maximum
/// counts as reached.
const CENTRED_DECREMENT: f64 = 0.3;
const SMALL: f64 = 1e-3;
const FINAL_DECREMENT: f64 = 1e-9;

/// Shares of the gap at the first and the last μ whose maximum is kept. The gap of X is some times the one of the
/// path where few variables are between their bounds, and the smaller μ, the larger the rounding error of X.
const FIRST_END: f64 = 0.5;
const LAST_END: f64 = 0.005;

/// Newton steps in all; some sixty are usual.
const MAX_STEPS: usize = 300;

/// Share of the way to a bound that a step may go.
const TO_BOUND: f64 = 0.95;

/// Share of the increase that the gradient predicts from which a step is taken.
const ACCEPTED: f64 = 0.01;

/// Most that the diagonal of the second derivatives grows by, relative, where rounding made them indefinite.
const LARGEST_RIDGE: f64 = 1e-6;

/// The end of the path.
pub(super) struct Interior {
    /// A proven lower bound.
    pub bound: f64,
    /// The multipliers λ.
    pub lambda: Vec<f64>,
    /// V with VVᵀ = X, N × N.
    pub vectors: Vec<f64>,
}

/// Follows the path to a relative gap, or as far as rounding and the context allow. Its last points, of which any may be
/// the best; nothing where the problem has no interior or there was no time for a single maximum.
pub(super) fn solve(problem: &Problem, gap: f64, context: &Context) -> Vec<Interior> {
    if matches!(problem.constraint, Constraint::Sum { limit } if limit <= 0.0) {
        return Vec::new();
    }
    let mut path = Path::new(problem, context);
    let count = (problem.vertices + 2 * problem.size + 1) as f64;
    let mut before = f64::INFINITY;
    let (mut ends, mut last) = (Vec::new(), None);
    for _ in 0..MAX_STEPS {
        let Ok(Some(newton)) = path.newton() else { break };
        let decrement = newton.decrement;
        let left = path.mu * count / (gap * path.dual.value(problem).abs());
        // Newton's method squares a small decrement until rounding keeps it from falling.
        let settled =
            decrement <= FINAL_DECREMENT || (decrement <= SMALL && decrement > 0.5 * before);
        before = decrement;
        if settled && left <= FIRST_END {
            ends.extend(path.interior(&newton).ok());
        }
        if settled && left <= LAST_END {
            break;
        } else if settled || (left > FIRST_END && decrement <= CENTRED_DECREMENT) {
            path.mu *= BARRIER_FACTOR;
            before = f64::INFINITY;
        } else if !path.ascend(&newton) {
            last = Some(newton);
            break;
        }
        last = Some(newton);
        if context.stop_request().is_some() {
            break;
        }
    }
    if ends.is_empty() {
        ends.extend(last.and_then(|newton| path.interior(&newton).ok()));
    }
    ends
}

/// A point of the dual.
#[derive(Clone)]
struct Dual {
    lambda: Vec<f64>,
    z: Vec<f64>,
    /// The multiplier t; 0 without a constraint.
    slope: f64,
}

impl Dual {
    fn value(&self, problem: &Problem) -> f64 {
        let fixed = problem.price * problem.size as f64 + constraint_value(problem) * self.slope;
        fixed + self.z.iter().sum::<f64>()
    }

    /// S, N × N.
    fn slack(&self, problem: &Problem) -> Vec<f64> {
        let mut slack = lagrangian(problem, &self.lambda, self.slope);
        let order = problem.vertices;
        self.z.iter().enumerate().for_each(|(k, z)| slack[k * order + k] -= z);
        slack
    }

    fn moved(&self, step: &[f64], length: f64) -> Self {
        let mut moved = self.clone();
        let (z, rest) = step.split_at(self.z.len());
        let (lambda, slope) = rest.split_at(self.lambda.len());
        add(&mut moved.z, z, length);
        add(&mut moved.lambda, lambda, length);
        moved.slope += length * slope.first().unwrap_or(&0.0);
        moved
    }

    /// The longest step that leaves λ in its box and t above 0.
    fn longest(&self, step: &[f64]) -> f64 {
        let (lambda, slope) = step[self.z.len()..].split_at(self.lambda.len());
        let mut longest = f64::INFINITY;
        for (l, d) in self.lambda.iter().zip(lambda) {
            longest = longest.min(if *d < 0.0 { -l / d } else { (1.0 - l) / d });
        }
        match slope.first() {
            Some(d) if *d < 0.0 => longest.min(-self.slope / d),
            _ => longest,
        }
    }
}

/// The factor κ of t in the dual.
fn constraint_value(problem: &Problem) -> f64 {
    match problem.constraint {
        Constraint::Free => 0.0,
        Constraint::Sum { limit } => -limit,
        Constraint::Counted { least } => least,
    }
}

/// A Newton step in (z, λ, t).
struct Newton {
    step: Vec<f64>,
    gradient: Vec<f64>,
    decrement: f64,
    mu: f64,
    /// L⁻¹ of S = L Lᵀ.
    inverse_lower: Vec<f64>,
}

struct Path<'a> {
    problem: &'a Problem,
    context: &'a Context,
    dual: Dual,
    mu: f64,
}

impl<'a> Path<'a> {
    /// A point inside: z so low that S is diagonally dominant.
    fn new(problem: &'a Problem, context: &'a Context) -> Self {
        let (n, order) = (problem.size, problem.vertices);
        let lambda: Vec<f64> =
            (0..n).map(|i| 1.0 / problem.gram[i * n + i].clamp(2.0, 1e3)).collect();
        let scale = lambda.iter().sum::<f64>() / n as f64;
        let slope = match problem.constraint {
            Constraint::Free => 0.0,
            Constraint::Sum { limit } => scale / limit,
            Constraint::Counted { .. } => scale / n as f64,
        };
        let matrix = lagrangian(problem, &lambda, slope);
        let lowest = |(k, row): (usize, &[f64])| {
            let around: f64 = row.iter().map(|value| value.abs()).sum();
            row[k] + row[k].abs() - around - scale
        };
        let z = matrix.chunks_exact(order).enumerate().map(lowest).collect();
        Self { problem, context, dual: Dual { lambda, z, slope }, mu: scale }
    }

    fn constrained(&self) -> bool {
        self.problem.constraint != Constraint::Free
    }

    /// The function that Newton's method maximises, over μ; `None` outside of its domain.
    fn merit_at(&self, dual: &Dual) -> Option<f64> {
        let factor = self.factor(dual).ok()??;
        let mut barrier = factor.log_determinant();
        barrier += dual.lambda.iter().map(|l| l.ln() + (-l).ln_1p()).sum::<f64>();
        if self.constrained() {
            barrier += dual.slope.ln();
        }
        let merit = dual.value(self.problem) / self.mu + barrier;
        merit.is_finite().then_some(merit)
    }

    fn factor(&self, dual: &Dual) -> Result<Option<Cholesky>> {
        Cholesky::interruptible(dual.slack(self.problem), self.problem.vertices, self.context)
    }

    /// Goes along the step while the function rises; false where rounding lets it rise no more.
    fn ascend(&mut self, newton: &Newton) -> bool {
        let Some(merit) = self.merit_at(&self.dual) else { return false };
        let rise = dot(&newton.step, &newton.gradient);
        let mut length = (TO_BOUND * self.dual.longest(&newton.step)).min(1.0);
        while length > 1e-10 {
            let moved = self.dual.moved(&newton.step, length);
            if let Some(next) = self.merit_at(&moved)
                && next >= merit + ACCEPTED * length * rise
            {
                self.dual = moved;
                return true;
            }
            length *= 0.5;
        }
        false
    }

    /// The point as a bound with its proof, and X.
    fn interior(&self, newton: &Newton) -> Result<Interior> {
        let order = self.problem.vertices;
        let slack = self.dual.slack(self.problem);
        let bound = match proven_shift(&slack, order, 0.0, self.context)? {
            Some(shift) => self.dual.value(self.problem) - order as f64 * shift,
            None => f64::NEG_INFINITY,
        };
        let root = newton.mu.sqrt();
        let vectors = self.corrected(newton)?.iter().map(|value| root * value).collect();
        Ok(Interior { bound, lambda: self.dual.lambda.clone(), vectors })
    }

    /// V of μ S⁻¹ = VVᵀ, over √μ, moved as the Newton step that is left moves it: μ (S⁻¹ − S⁻¹ ΔS S⁻¹) satisfies all
    /// conditions to second order, where rounding keeps μ S⁻¹ itself from satisfying them (Benson, Ye and Zhang 2000).
    fn corrected(&self, newton: &Newton) -> Result<Vec<f64>> {
        let (order, context) = (self.problem.vertices, self.context);
        let upper = transposed(&newton.inverse_lower, order, order);
        if newton.decrement > CENTRED_DECREMENT {
            return Ok(upper);
        }
        let moved = self.dual.moved(&newton.step, 1.0).slack(self.problem);
        let change = difference(&moved, &self.dual.slack(self.problem));
        let half = times_transposed(&newton.inverse_lower, &change, order, context)?;
        let inner = times_transposed(&half, &newton.inverse_lower, order, context)?;
        let shift = times_transposed(&upper, &inner, order, context)?;
        Ok(upper.iter().zip(&shift).map(|(value, shift)| value - 0.5 * shift).collect())
    }

    /// Gradient and second derivatives, both over μ, and the step; `None` where rounding has the last word.
    fn newton(&self) -> Result<Option<Newton>> {
        let Self { problem, context, .. } = *self;
        let order = problem.vertices;
        let Some(factor) = self.factor(&self.dual)? else { return Ok(None) };
        let inverse_lower = factor.inverse_lower(context)?;
        drop(factor);
        let mut w = vec![0.0; order * order];
        add_products(&mut w, order, &transposed(&inverse_lower, order, order), order, context)?;
        (0..order).for_each(|i| (0..i).for_each(|j| w[j * order + i] = w[i * order + j]));
        let parts = Parts::new(problem, &self.dual.lambda, &w, context)?;
        let gradient = self.gradient(&w, &parts);
        let mut matrix = self.curvature(&w, &parts);
        let total = gradient.len();
        let mut ridge = 0.0;
        let factor = loop {
            if let Some(factor) = Cholesky::interruptible(matrix.clone(), total, context)? {
                break factor;
            }
            if ridge > LARGEST_RIDGE {
                return Ok(None);
            }
            let more = (9.0 * ridge).max(f64::EPSILON * total as f64);
            (0..total).for_each(|i| matrix[i * total + i] *= 1.0 + more);
            ridge += more;
        };
        let mut step = gradient.clone();
        factor.solve(&mut step);
        let decrement = dot(&step, &gradient).max(0.0).sqrt();
        let mu = self.mu;
        Ok(decrement.is_finite().then_some(Newton { step, gradient, decrement, mu, inverse_lower }))
    }

    fn gradient(&self, w: &[f64], parts: &Parts) -> Vec<f64> {
        let (n, order) = (self.problem.size, self.problem.vertices);
        let mut gradient: Vec<f64> = (0..order).map(|k| 1.0 / self.mu - w[k * order + k]).collect();
        let lambda = self.dual.lambda.iter().enumerate();
        gradient.extend(lambda.map(|(i, l)| parts.k[i * n + i] + 1.0 / l - 1.0 / (1.0 - l)));
        let trace = match self.problem.constraint {
            Constraint::Free => return gradient,
            Constraint::Sum { .. } => dot(&self.weighted_sums(&parts.m), &self.problem.balance),
            Constraint::Counted { .. } => -(0..n).map(|i| parts.m[i * n + i]).sum::<f64>(),
        };
        gradient.push(constraint_value(self.problem) / self.mu + trace + 1.0 / self.dual.slope);
        gradient
    }

    /// The second derivatives with the opposite sign, their lower triangle.
    fn curvature(&self, w: &[f64], parts: &Parts) -> Vec<f64> {
        let (n, order) = (self.problem.size, self.problem.vertices);
        let total = order + n + usize::from(self.constrained());
        let mut matrix = vec![0.0; total * total];
        for (row, w) in matrix.chunks_exact_mut(total).zip(w.chunks_exact(order)) {
            row.iter_mut().zip(w).for_each(|(out, w)| *out = w * w);
        }
        let Parts { m, k, q, r, hr } = parts;
        for (i, row) in matrix.chunks_exact_mut(total).skip(order).take(n).enumerate() {
            let (z, lambda) = row.split_at_mut(order);
            let each = z.iter_mut().zip(&r[i * order..]).zip(&hr[i * order..]);
            each.for_each(|((out, r), hr)| *out = -r * hr);
            for (j, out) in lambda[..=i].iter_mut().enumerate() {
                let (place, turned) = (i * n + j, j * n + i);
                *out = 0.5 * (k[place] * k[turned] + q[place] * m[place])
                    + self.problem.gram[place] * m[place];
            }
            let l = self.dual.lambda[i];
            lambda[i] += (l * l).recip() + ((1.0 - l) * (1.0 - l)).recip();
        }
        if self.constrained() {
            let last = &mut matrix[(total - 1) * total..];
            self.constraint_curvature(last, parts);
        }
        matrix
    }

    /// Σⱼ wⱼ times column j of a matrix of order n, w being the balance.
    fn weighted_sums(&self, matrix: &[f64]) -> Vec<f64> {
        matrix.chunks_exact(self.problem.size).map(|row| dot(row, &self.problem.balance)).collect()
    }

    /// The row of t in the second derivatives.
    fn constraint_curvature(&self, row: &mut [f64], parts: &Parts) {
        let (n, order) = (self.problem.size, self.problem.vertices);
        let Parts { m, k, r, .. } = parts;
        let (z, rest) = row.split_at_mut(order);
        let (lambda, own) = rest.split_at_mut(n);
        own[0] = (self.dual.slope * self.dual.slope).recip();
        if let Constraint::Sum { .. } = self.problem.constraint {
            let sums = self.weighted_sums(m);
            let total = self.problem.balance_sum(r, order);
            z.iter_mut().zip(&total).for_each(|(out, total)| *out = -total * total);
            for ((out, sum), turned) in lambda.iter_mut().zip(&sums).zip(self.weighted_sums(k)) {
                *out = sum * turned;
            }
            own[0] += dot(&sums, &self.problem.balance).powi(2);
        } else {
            for r in r.chunks_exact(order) {
                z.iter_mut().zip(r).for_each(|(out, r)| *out += r * r);
            }
            for (i, out) in lambda.iter_mut().enumerate() {
                *out = -dot(&k[i * n..][..n], &m[i * n..][..n]);
            }
            own[0] += dot(m, m);
        }
    }
}

/// Products of W = S⁻¹ that the derivatives consist of.
struct Parts {
    /// M = P W Pᵀ, n × n.
    m: Vec<f64>,
    /// K = HᵀM, n × n.
    k: Vec<f64>,
    /// Q = HᵀMH, n × n.
    q: Vec<f64>,
    /// R = P W, n × N.
    r: Vec<f64>,
    /// HᵀR, n × N.
    hr: Vec<f64>,
}

impl Parts {
    fn new(problem: &Problem, lambda: &[f64], w: &[f64], context: &Context) -> Result<Self> {
        let (n, order) = (problem.size, problem.vertices);
        let mut r = vec![0.0; n * order];
        problem.combine(w, order, &mut r);
        // R and S⁻¹ are of symmetric matrices: column k of R is P times row k of W.
        let columns = transposed(&r, n, order);
        let weighted = scaled_columns(&columns, lambda);
        let hr = difference(&r, &times_transposed(&problem.gram, &weighted, n, context)?);
        let onto_rows = |table: &[f64]| -> Vec<f64> {
            let rows = table.chunks_exact(order);
            rows.flat_map(|row| {
                let of =
                    |j: usize| problem.anchor[j] * row[0] + problem.own[j] * row[problem.vertex[j]];
                (0..n).map(of).collect::<Vec<f64>>()
            })
            .collect()
        };
        let (m, k) = (onto_rows(&r), onto_rows(&hr));
        let weighted = scaled_columns(&k, lambda);
        let q = difference(&k, &times_transposed(&weighted, &problem.gram, n, context)?);
        Ok(Self { m, k, q, r, hr })
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Every row times `factors`, entry by entry.
fn scaled_columns(rows: &[f64], factors: &[f64]) -> Vec<f64> {
    let rows = rows.chunks_exact(factors.len());
    rows.flat_map(|row| row.iter().zip(factors).map(|(value, factor)| value * factor)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::relax::{Options, relax};
    use super::*;
    use crate::numeric::random::Generator;
    use crate::outcome::Status;

    /// A Gram matrix of rank `rank`.
    fn gram(n: usize, rank: usize, seed: u64) -> Vec<f64> {
        let mut generator = Generator::new(seed);
        let x: Vec<f64> = (0..n * rank).map(|_| generator.normal()).collect();
        times_transposed(&x, &x, rank, &Context::new()).unwrap()
    }

    /// The interior point's value and bound, which no descent contradicts.
    fn assert_closed(problem: &Problem, what: &str) {
        let what = format!("{what}, {:?}", problem.constraint);
        // The end of the path misses an active constraint by rounding, and moving inside costs value.
        let gap = if problem.constraint == Constraint::Free { 1e-7 } else { 1e-4 };
        // No round of descent: the interior point alone.
        let options = Options { gap, rounds: 0 };
        let exact = relax(problem, &options, &Context::new());
        assert_eq!(exact.status, Status::Solved, "{what}: {} {}", exact.value, exact.bound);
        let descent = relax(problem, &Options::default(), &Context::new());
        let rounding = 1e-9 * exact.value.abs();
        assert!(descent.value >= exact.bound - rounding, "{what}: {}", descent.value);
        assert!(descent.bound <= exact.value + rounding, "{what}: {}", descent.bound);
    }

    #[test]
    fn value_and_bound_meet_whatever_the_rank_and_the_constraint() {
        for (n, rank, seed) in [(2, 1, 1), (8, 2, 2), (9, 9, 3), (24, 3, 4), (40, 40, 5)] {
            let least = 0.7 * n as f64;
            for problem in [
                Problem::clustering(gram(n, rank, seed), n, None),
                Problem::clustering(gram(n, rank, seed), n, Some(1.0)),
                Problem::robust(gram(n, rank, seed), n, None),
                Problem::robust(gram(n, rank, seed), n, Some(least)),
            ] {
                assert_closed(&problem, &format!("n = {n}, rank {rank}"));
            }
        }
    }

    #[test]
    fn value_and_bound_meet_where_some_labels_are_known_and_costs_differ() {
        for (n, rank, seed) in [(3, 1, 1), (8, 2, 2), (9, 9, 3), (40, 40, 5)] {
            let known: Vec<i8> = (0..n).map(|i| [1, -1, 0][i.min(2)]).collect();
            let costs: Vec<f64> = (0..n).map(|i| [0.3, 1.0, 2.0][i % 3]).collect();
            // One row more is −1 than +1 where their number is odd.
            let sum = if n % 2 == 0 { 0.0 } else { -1.0 };
            let problem = Problem::semi_supervised(&gram(n, rank, seed), &known, &costs, sum);
            assert_closed(&problem, &format!("n = {n}, rank {rank}"));
        }
    }
}
