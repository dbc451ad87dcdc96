//! The exact maximum over all dual variables of one example.
//!
//! With the others fixed the dual is l·x − ½k(a‖x‖² + b(s·x)²) over the box 0 ≤ x ≤ U or the simplex
//! x ≥ 0, Σx ≤ U. For a given t = s·x it falls apart into clipped lines, so that t is the root of a
//! monotone piecewise linear function; on the face Σx = U the same holds for the common threshold.

use super::multiclass_loss::Curvature;

/// Kernel values up to this share of one are taken for zero.
pub(in crate::solver::s2do) const NO_CURVATURE: f64 = 1e-12;

/// Evaluations after which a root is taken as found.
const ROOT_STEPS: usize = 200;

/// One example's problem, component by component.
#[derive(Debug, Default)]
pub(in crate::solver::s2do) struct Example {
    /// Class of every component.
    pub(in crate::solver::s2do) classes: Vec<u32>,
    /// Gradient, then the linear term l.
    pub(in crate::solver::s2do) linear: Vec<f64>,
    /// Signs s.
    pub(in crate::solver::s2do) signs: Vec<f64>,
    /// The variables as they are.
    pub(in crate::solver::s2do) now: Vec<f64>,
    /// The maximiser.
    pub(in crate::solver::s2do) best: Vec<f64>,
    order: Vec<u32>,
    sums: Vec<f64>,
}

impl Example {
    /// Takes the components `of` names among `classes` classes: whether the class has one, its
    /// gradient, its sign and its variable.
    #[inline(always)]
    pub(in crate::solver::s2do) fn fill(
        &mut self,
        classes: usize,
        of: impl Fn(usize) -> (bool, f64, f64, f64),
    ) {
        self.classes.resize(classes, 0);
        self.linear.resize(classes, 0.0);
        self.signs.resize(classes, 0.0);
        self.now.resize(classes, 0.0);
        let (names, linear) = (&mut self.classes[..classes], &mut self.linear[..classes]);
        let (signs, now) = (&mut self.signs[..classes], &mut self.now[..classes]);
        let mut used = 0;
        for c in 0..classes {
            let has;
            names[used] = c as u32;
            (has, linear[used], signs[used], now[used]) = of(c);
            used += usize::from(has);
        }
        self.classes.truncate(used);
        self.linear.truncate(used);
        self.signs.truncate(used);
        self.now.truncate(used);
    }

    /// How far the components, whose gradients are still in `linear`, violate the optimality
    /// conditions of a box, or of a simplex whose variables sum to `sum`.
    #[inline(always)]
    pub(in crate::solver::s2do) fn violation(&self, upper: f64, sum: Option<f64>) -> f64 {
        let (mut up, mut low, mut rise) = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
        for (&g, &alpha) in self.linear.iter().zip(&self.now) {
            up = if g > up { g } else { up };
            let held = if alpha > 0.0 { g } else { f64::INFINITY };
            low = if held < low { held } else { low };
            let free = if alpha < upper { g } else { 0.0 };
            rise = if free > rise { free } else { rise };
        }
        let up = match sum {
            None => rise,
            Some(sum) if sum < upper => up,
            Some(_) => up - low,
        };
        up.max(-low).max(0.0)
    }

    /// Puts the maximiser into `best`; returns whether it lies on the face Σx = `upper` of a
    /// simplex.
    #[inline(always)]
    pub(in crate::solver::s2do) fn solve(
        &mut self,
        k: f64,
        curvature: Curvature,
        upper: f64,
        simplex: bool,
    ) -> bool {
        let (ka, kb) = (k * curvature.identity, k * curvature.common);
        let now_t: f64 = self.now.iter().zip(&self.signs).map(|(x, s)| x * s).sum();
        for p in 0..self.now.len() {
            self.linear[p] += ka * self.now[p] + kb * self.signs[p] * now_t;
        }
        self.best.clear();
        self.best.extend_from_slice(&self.now);
        if k <= NO_CURVATURE {
            return self.solve_linear(upper, simplex);
        }
        let mixed = self.signs.iter().any(|s| *s != self.signs[0]);
        if simplex && !mixed && kb >= 0.0 {
            return self.solve_simplex(ka, kb, upper);
        }
        if kb == 0.0 {
            for p in 0..self.best.len() {
                self.best[p] = (self.linear[p] / ka).max(0.0).min(upper);
            }
        } else {
            self.solve_box(ka, kb, upper, now_t);
        }
        if !simplex || self.best.iter().sum::<f64>() <= upper {
            return false;
        }
        match self.signs.iter().position(|&s| s > 0.0) {
            Some(own) if mixed => self.solve_mixed_face(ka, kb, upper, own),
            _ => self.solve_face(ka, upper, f64::NEG_INFINITY),
        }
        true
    }

    /// No curvature: every variable goes where its gradient points.
    fn solve_linear(&mut self, upper: f64, simplex: bool) -> bool {
        if !simplex {
            for p in 0..self.best.len() {
                match self.linear[p] {
                    l if l > 0.0 => self.best[p] = upper,
                    l if l < 0.0 => self.best[p] = 0.0,
                    _ => {}
                }
            }
            return false;
        }
        let largest = self.linear.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for p in 0..self.best.len() {
            if largest > 0.0 || self.linear[p] < 0.0 {
                self.best[p] = 0.0;
            }
        }
        if largest > 0.0
            && let Some(p) = self.linear.iter().position(|&l| l == largest)
        {
            self.best[p] = upper;
            return true;
        }
        false
    }

    #[inline(always)]
    fn solve_box(&mut self, ka: f64, kb: f64, upper: f64, start: f64) {
        let (linear, signs, best) = (&self.linear[..], &self.signs[..], &mut self.best[..]);
        let n = best.len();
        let (linear, signs) = (&linear[..n], &signs[..n]);
        let positive = signs.iter().filter(|s| **s > 0.0).count() as f64;
        let range = ((positive - n as f64) * upper, positive * upper);
        root(range, start, upper, |t| {
            let (mut value, mut free) = (-t, 0.0);
            for p in 0..n {
                let x = (linear[p] - kb * signs[p] * t) / ka;
                let inside = x > 0.0 && x < upper;
                let x = x.max(0.0).min(upper);
                free += if inside { 1.0 } else { 0.0 };
                best[p] = x;
                value += signs[p] * x;
            }
            (value, -1.0 - free * kb / ka)
        });
    }

    /// Equal signs and kb ≥ 0 over the simplex: x = (l − θ)₊/ka, where θ = kb Σx grows as components
    /// fall below it, unless Σx = `upper` asks for more.
    #[inline(always)]
    fn solve_simplex(&mut self, ka: f64, kb: f64, upper: f64) -> bool {
        let mut threshold = 0.0;
        loop {
            let (sum, count) = self.above(threshold);
            let next = kb * sum / (ka + kb * count);
            // Also ends where a number is not finite.
            if !(next > threshold && next.is_finite()) {
                break;
            }
            threshold = next;
        }
        let mut total = 0.0;
        for (x, &l) in self.best.iter_mut().zip(&self.linear) {
            *x = (l - threshold).max(0.0) / ka;
            total += *x;
        }
        if total <= upper {
            return false;
        }
        self.solve_face(ka, upper, threshold);
        true
    }

    /// Sum and number of the linear terms above a threshold.
    #[inline(always)]
    fn above(&self, threshold: f64) -> (f64, f64) {
        let (mut sum, mut count) = (0.0, 0.0);
        for &l in &self.linear {
            let above = l > threshold;
            sum += if above { l } else { 0.0 };
            count += if above { 1.0 } else { 0.0 };
        }
        (sum, count)
    }

    /// Σx = `upper` with equal signs: lines above a common threshold (Michelot's projection), which
    /// is at least `threshold`.
    #[inline(always)]
    fn solve_face(&mut self, ka: f64, upper: f64, mut threshold: f64) {
        loop {
            let (sum, count) = self.above(threshold);
            let next = (sum - ka * upper) / count;
            if !(next > threshold && next.is_finite()) || count <= 1.0 {
                threshold = threshold.max(next);
                break;
            }
            threshold = next;
        }
        for p in 0..self.best.len() {
            self.best[p] = ((self.linear[p] - threshold) / ka).max(0.0).min(upper);
        }
    }

    /// Σx = `upper` where component `own` alone has a positive sign: a root in its value.
    fn solve_mixed_face(&mut self, ka: f64, kb: f64, upper: f64, own: usize) {
        let n = self.best.len();
        self.order.clear();
        self.order.extend((0..n as u32).filter(|&p| p as usize != own));
        let linear = &self.linear;
        self.order.sort_by(|&a, &b| linear[b as usize].total_cmp(&linear[a as usize]));
        self.sums.clear();
        let mut sum = 0.0;
        for &p in &self.order {
            sum += linear[p as usize];
            self.sums.push(sum);
        }
        let (order, sums) = (&self.order, &self.sums);
        // The threshold of the others when they sum to `rest`, and how many are above it.
        let threshold = |rest: f64| {
            let mut m = 1;
            while m < order.len() {
                let level = (sums[m - 1] - ka * rest) / m as f64;
                if linear[order[m] as usize] <= level {
                    break;
                }
                m += 1;
            }
            ((sums[m - 1] - ka * rest) / m as f64, m as f64)
        };
        let z = root((0.0, upper), self.now[own].min(upper), upper, |z| {
            let (level, count) = threshold(upper - z);
            let value = linear[own] - ka * z - 2.0 * kb * (2.0 * z - upper) - level;
            (value, -ka - 4.0 * kb - ka / count)
        });
        let (level, _) = threshold(upper - z);
        for p in 0..n {
            let x = ((self.linear[p] - level) / ka).max(0.0).min(upper);
            self.best[p] = if p == own { z } else { x };
        }
    }
}

/// The root of a non-increasing, piecewise linear function on `range`: Newton's steps kept inside a
/// shrinking bracket. `f` returns value and slope; the last point it was called at is returned.
#[inline(always)]
fn root(range: (f64, f64), start: f64, scale: f64, mut f: impl FnMut(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = range;
    let mut t = start.max(low).min(high);
    let small = 1e-15 * scale.max(low.abs()).max(high.abs());
    // Whether the function was evaluated at the ends of the bracket.
    let (mut low_known, mut high_known) = (false, false);
    for _ in 0..ROOT_STEPS {
        let (value, slope) = f(t);
        if value.abs() <= small * slope.abs().max(1e-3) {
            break;
        }
        if value > 0.0 {
            (low, low_known) = (t, true);
        } else {
            (high, high_known) = (t, true);
        }
        let newton = t - value / slope;
        let next = if newton > low && newton < high && slope < -1e-9 {
            newton
        } else if value > 0.0 && newton >= high && !high_known {
            high
        } else if value < 0.0 && newton <= low && !low_known {
            low
        } else {
            0.5 * (low + high)
        };
        if next == t || high - low <= small {
            break;
        }
        t = next;
    }
    t
}
