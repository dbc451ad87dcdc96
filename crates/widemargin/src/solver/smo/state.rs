//! The point, its gradient and what can be read off them.

use super::problem::Problem;

/// Variables that loops take at a time.
const LANES: usize = 8;

/// Arrays over the active variables, in step.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Position of each active variable in the full problem.
    pub(super) index: Vec<u32>,
    pub(super) beta: Vec<f64>,
    /// f = (K + diag(r))β + p.
    pub(super) gradient: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    /// Diagonal of K + diag(r).
    pub(super) diagonal: Vec<f64>,
    pub(super) ridge: Option<Vec<f64>>,
    /// Group of each variable; empty when there is one group.
    pub(super) groups: Vec<u8>,
    pub(super) group_count: usize,
}

/// m and M of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes {
    /// max of −f over variables below their upper bound.
    pub(super) up: f64,
    /// min of −f over variables above their lower bound.
    pub(super) down: f64,
}

impl Extremes {
    const NONE: Self = Self { up: f64::NEG_INFINITY, down: f64::INFINITY };

    /// m − M, 0 when a group cannot move.
    pub(super) fn violation(self) -> f64 {
        (self.up - self.down).max(0.0)
    }
}

/// Gives every variable below `len` to one of the lanes.
#[inline(always)]
fn in_lanes(len: usize, mut take: impl FnMut(usize, usize)) {
    let whole = len / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            take(lane, start + lane);
        }
    }
    for v in whole..len {
        take(v - whole, v);
    }
}

/// m and M of variables of one group, in lanes that the compiler turns into vectors.
pub(super) fn extremes_of(
    beta: &[f64],
    gradient: &[f64],
    lower: &[f64],
    upper: &[f64],
) -> Extremes {
    let len = beta.len();
    let (gradient, lower, upper) = (&gradient[..len], &lower[..len], &upper[..len]);
    let (mut up, mut down) = ([f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]);
    let take = |lane: usize, v: usize| {
        let value = -gradient[v];
        let rise = if beta[v] < upper[v] { value } else { f64::NEG_INFINITY };
        let fall = if beta[v] > lower[v] { value } else { f64::INFINITY };
        up[lane] = if rise > up[lane] { rise } else { up[lane] };
        down[lane] = if fall < down[lane] { fall } else { down[lane] };
    };
    in_lanes(len, take);
    Extremes {
        up: up.into_iter().fold(f64::NEG_INFINITY, f64::max),
        down: down.into_iter().fold(f64::INFINITY, f64::min),
    }
}

impl State {
    pub(super) fn new(problem: &Problem, gradient: Vec<f64>, diagonal: Vec<f64>) -> Self {
        let mut state = Self { diagonal, ..Self::default() };
        state.begin(problem, problem.start.clone(), gradient);
        state
    }

    /// Makes it that of a problem at a point, in the memory it has; the diagonal stays.
    pub(super) fn begin(&mut self, problem: &Problem, beta: Vec<f64>, gradient: Vec<f64>) {
        self.index.clear();
        self.index.extend(0..problem.linear.len() as u32);
        (self.beta, self.gradient) = (beta, gradient);
        self.lower.clone_from(&problem.lower);
        self.upper.clone_from(&problem.upper);
        self.ridge.clone_from(&problem.ridge);
        self.groups.clear();
        self.groups.extend(problem.groups.iter().flatten());
        self.group_count = self.groups.iter().copied().max().map_or(1, |g| usize::from(g) + 1);
    }

    pub(super) fn len(&self) -> usize {
        self.beta.len()
    }

    pub(super) fn group(&self, v: usize) -> usize {
        self.groups.get(v).map_or(0, |&g| usize::from(g))
    }

    pub(super) fn can_rise(&self, v: usize) -> bool {
        self.beta[v] < self.upper[v]
    }

    pub(super) fn can_fall(&self, v: usize) -> bool {
        self.beta[v] > self.lower[v]
    }

    /// The variables strictly inside their boxes, ascending.
    pub(super) fn inside(&self) -> Vec<u32> {
        let boxes = self.lower.iter().zip(&self.upper);
        let (mut inside, mut count) = (vec![0; self.len()], 0);
        for (v, (beta, (lower, upper))) in self.beta.iter().zip(boxes).enumerate() {
            inside[count] = v as u32;
            count += usize::from((beta > lower) & (beta < upper));
        }
        inside.truncate(count);
        inside
    }

    /// How many variables are strictly inside their boxes.
    pub(super) fn inside_count(&self) -> usize {
        let boxes = self.lower.iter().zip(&self.upper);
        let is_inside = |(beta, (lower, upper)): (&f64, (&f64, &f64))| {
            usize::from((beta > lower) & (beta < upper))
        };
        self.beta.iter().zip(boxes).map(is_inside).sum()
    }

    /// The mean of the diagonal; not positive where the matrix is far from definite.
    pub(super) fn mean_diagonal(&self) -> f64 {
        self.diagonal.iter().sum::<f64>() / self.len().max(1) as f64
    }

    /// The largest distance of a variable from the nearer one of its bounds.
    pub(super) fn room(&self) -> f64 {
        let boxes = self.lower.iter().zip(&self.upper);
        let room = |(beta, (lower, upper)): (&f64, (&f64, &f64))| (beta - lower).min(upper - beta);
        self.beta.iter().zip(boxes).map(room).fold(0.0, f64::max)
    }

    /// m and M of every group.
    pub(super) fn extremes(&self) -> [Extremes; 2] {
        let mut extremes = [Extremes::NONE; 2];
        if self.group_count == 1 {
            extremes[0] = extremes_of(&self.beta, &self.gradient, &self.lower, &self.upper);
            return extremes;
        }
        for v in 0..self.len() {
            let value = -self.gradient[v];
            let e = &mut extremes[self.group(v)];
            if self.can_rise(v) {
                e.up = e.up.max(value);
            }
            if self.can_fall(v) {
                e.down = e.down.min(value);
            }
        }
        extremes
    }

    /// ½βᵀ(K + diag(r))β + pᵀβ = ½ Σ β (f + p).
    pub(super) fn objective(&self, linear: &[f64]) -> f64 {
        let term = |v: usize| self.beta[v] * (self.gradient[v] + linear[self.index[v] as usize]);
        0.5 * (0..self.len()).map(term).sum::<f64>()
    }

    /// Multiplier of each group: the mean of f over variables strictly inside their box, or the
    /// middle of the interval the optimality conditions leave when there is none (LIBSVM's rule).
    /// Variables within `share` of their box's width from a bound count as on it.
    pub(super) fn multipliers(&self, share: f64) -> Vec<f64> {
        let margin = |v: usize| {
            let width = self.upper[v] - self.lower[v];
            if width.is_finite() { share * width } else { 0.0 }
        };
        let rises = |v: usize| self.can_rise(v) && self.beta[v] < self.upper[v] - margin(v);
        let falls = |v: usize| self.can_fall(v) && self.beta[v] > self.lower[v] + margin(v);
        let inside = self.inside();
        let of_group = |g: usize| {
            let (mut sum, mut count) = (0.0, 0.0);
            for &v in &inside {
                let v = v as usize;
                if self.group(v) == g && rises(v) && falls(v) {
                    sum += self.gradient[v];
                    count += 1.0;
                }
            }
            if count > 0.0 {
                return sum / count;
            }
            let mut e = Extremes::NONE;
            for v in (0..self.len()).filter(|&v| self.group(v) == g) {
                if rises(v) {
                    e.up = e.up.max(-self.gradient[v]);
                }
                if falls(v) {
                    e.down = e.down.min(-self.gradient[v]);
                }
            }
            match (-e.up, -e.down) {
                (a, b) if a.is_finite() && b.is_finite() => 0.5 * (a + b),
                (a, _) if a.is_finite() => a,
                (_, b) if b.is_finite() => b,
                _ => 0.0,
            }
        };
        (0..self.group_count).map(of_group).collect()
    }

    /// Extremes that count every variable at a bound as inactive that its group's multiplier holds there.
    pub(super) fn held_at_bounds(&self) -> [Extremes; 2] {
        let multipliers = self.multipliers(0.0);
        std::array::from_fn(|g| {
            let value = -multipliers.get(g).copied().unwrap_or(0.0);
            Extremes { up: value, down: value }
        })
    }

    /// Gap between the objective and its lower bound by the multipliers.
    ///
    /// Per variable, with reduced gradient s = f − ρ (ridge excluded, r the ridge):
    /// (β − l) max(0, s) + (u − β) max(0, −s) for a finite box without ridge; with a ridge the
    /// infinite side contributes ½ (max(0, −s) − rβ)² / r, which is the squared-hinge loss against
    /// its conjugate.
    pub(super) fn gap(&self, multipliers: &[f64]) -> f64 {
        if self.ridge.is_none() && self.groups.is_empty() {
            return gap_of_boxes(self, multipliers[0]);
        }
        let mut gap = 0.0;
        for v in 0..self.len() {
            let reduced = self.gradient[v] - multipliers[self.group(v)];
            let (beta, lower, upper) = (self.beta[v], self.lower[v], self.upper[v]);
            let ridge = self.ridge.as_ref().map_or(0.0, |r| r[v]);
            gap += if ridge > 0.0 && (upper.is_infinite() || lower.is_infinite()) {
                let sign = if upper.is_infinite() { 1.0 } else { -1.0 };
                let (beta, slack) = (sign * beta, -sign * (reduced - ridge * beta));
                let loss = slack.max(0.0);
                0.5 * loss * loss / ridge - beta * slack + 0.5 * ridge * beta * beta
            } else {
                box_gap(beta, lower, upper, reduced)
            };
        }
        gap
    }

    /// The active variables named by `keep`.
    pub(super) fn select(&self, keep: &[u32]) -> Self {
        let mut part = Self::default();
        self.select_into(keep, &mut part);
        part
    }

    /// The same in the memory of another.
    pub(super) fn select_into(&self, keep: &[u32], part: &mut Self) {
        pick(&self.index, keep, &mut part.index);
        pick(&self.beta, keep, &mut part.beta);
        pick(&self.gradient, keep, &mut part.gradient);
        pick(&self.lower, keep, &mut part.lower);
        pick(&self.upper, keep, &mut part.upper);
        pick(&self.diagonal, keep, &mut part.diagonal);
        match &self.ridge {
            Some(ridge) => pick(ridge, keep, part.ridge.get_or_insert_default()),
            None => part.ridge = None,
        }
        match self.groups.is_empty() {
            true => part.groups.clear(),
            false => pick(&self.groups, keep, &mut part.groups),
        }
        part.group_count = self.group_count;
    }
}

fn pick<T: Copy>(values: &[T], places: &[u32], picked: &mut Vec<T>) {
    picked.clear();
    picked.extend(places.iter().map(|&v| values[v as usize]));
}

/// What a variable of a box adds to the gap.
#[inline(always)]
fn box_gap(beta: f64, lower: f64, upper: f64, reduced: f64) -> f64 {
    // A variable at its bound adds nothing, even where the other one is infinite.
    let above = if reduced > 0.0 { beta - lower } else { 0.0 };
    let below = if reduced < 0.0 { beta - upper } else { 0.0 };
    (above + below) * reduced
}

/// The gap of variables of one group without a ridge, in lanes that the compiler turns into vectors.
fn gap_of_boxes(state: &State, multiplier: f64) -> f64 {
    let len = state.len();
    let (beta, gradient) = (&state.beta[..len], &state.gradient[..len]);
    let (lower, upper) = (&state.lower[..len], &state.upper[..len]);
    let mut sums = [0.0; LANES];
    let take = |lane: usize, v: usize| {
        sums[lane] += box_gap(beta[v], lower[v], upper[v], gradient[v] - multiplier);
    };
    in_lanes(len, take);
    sums.iter().sum()
}
