//! What is searched: named parameters with the values they may take.
//!
//! Numbers are searched between the ends of their values, at equal ratios; whole numbers stay whole.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::machine::Specification;
use crate::machine::specification::{Domain, Value, number};
use crate::numeric::random::Generator;
use crate::numeric::spacing::logarithmic;

/// Points that a search may have: more than anybody waits for.
const MOST_POINTS: usize = 1_000_000;

/// Parameters with one value each, in the order of the axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Point(pub Vec<(String, Value)>);

impl Point {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name} = {value}")?;
        }
        Ok(())
    }
}

/// Makes machines: what the parameters of a point mean.
pub trait Family: Sync {
    /// The machine of a point.
    ///
    /// # Errors
    /// A parameter it does not know, or a value that it cannot have.
    fn machine(&self, point: &Point) -> Result<Box<dyn Machine>>;

    /// What decides the scores of its machines beside the parameters `searched`, by name; a journal
    /// keeps it and is refused to another family. `None`, as for functions: its searches have no
    /// journal.
    fn identity(&self, searched: &[&str]) -> Option<Identity> {
        let _ = searched;
        None
    }
}

/// Names and values that identify a family.
pub type Identity = BTreeMap<String, String>;

impl<F: Fn(&Point) -> Result<Box<dyn Machine>> + Sync> Family for F {
    fn machine(&self, point: &Point) -> Result<Box<dyn Machine>> {
        self(point)
    }
}

/// One parameter and where it is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the parameter.
    pub name: String,
    /// The values of a grid; numbers ascending.
    pub values: Vec<Value>,
    /// The smallest and largest number that the parameter can be.
    limits: (f64, f64),
}

impl Axis {
    /// Any values; where all are [`Value::Integer`], what is tried between them is whole too.
    pub fn list(name: impl Into<String>, values: Vec<Value>) -> Self {
        Self { name: name.into(), values, limits: (f64::MIN, f64::MAX) }
    }

    /// `count` numbers from `low` to `high`, their logarithms equally far apart.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < `low` < `high` and `count` is at least 2 and at most a million.
    pub fn logarithmic(name: impl Into<String>, low: f64, high: f64, count: usize) -> Result<Self> {
        let name = name.into();
        if !(low > 0.0 && low < high && high.is_finite() && count >= 2) {
            let found = format!("{low}:{high}:{count} for {name}");
            return Err(Error::parameter("range", "0 < low < high and at least 2 values", found));
        }
        check_points("range", count)?;
        let values = logarithmic(low, high, count).into_iter().map(Value::Real);
        Ok(Self::list(name, values.collect()))
    }

    /// Reads `NAME=LOW:HIGH:COUNT` or `NAME=VALUE,VALUE,...` for a parameter of a machine.
    ///
    /// # Errors
    /// [`Error::UnknownParameter`] when the machine does not have it, [`Error::Parameter`] for values
    /// that it cannot have.
    pub fn parse(specification: &Specification, text: &str) -> Result<Self> {
        let Some((name, values)) = text.split_once('=') else {
            let expected = "NAME=LOW:HIGH:COUNT or NAME=VALUE,VALUE,...";
            return Err(Error::parameter("grid", expected, text));
        };
        let parameter = specification.parameter(name)?;
        let limits = parameter.domain.limits().unwrap_or((f64::MIN, f64::MAX));
        let parts: Vec<&str> = values.split(':').collect();
        let axis = match (parts.as_slice(), parameter.domain) {
            ([low, high, count], Domain::Real { .. } | Domain::Integer { .. }) => {
                let real = |text: &str| number(text).and_then(|value| value.number());
                let (Some(low), Some(high), Ok(count)) = (real(low), real(high), count.parse())
                else {
                    return Err(Error::parameter("grid", "numbers LOW:HIGH:COUNT", values));
                };
                Self::logarithmic(name, low, high, count)?
            }
            _ => {
                let values = values.split(',').map(|text| parameter.parse(text));
                Self::list(name, values.collect::<Result<_>>()?)
            }
        };
        let whole = matches!(parameter.domain, Domain::Integer { .. });
        let typed = |value: Value| match value.number() {
            Some(number) if whole => parameter.check(Value::Real(number.round())),
            _ => parameter.check(value),
        };
        let mut values = axis.values.into_iter().map(typed).collect::<Result<Vec<_>>>()?;
        values.dedup();
        Ok(Self { name: axis.name, values, limits })
    }

    /// Whether it has whole numbers only.
    fn is_whole(&self) -> bool {
        self.values.iter().all(|value| matches!(value, Value::Integer(_)))
    }

    /// The value of a number, whole where the axis is.
    fn typed(&self, number: f64) -> Value {
        if self.is_whole() { Value::Integer(number.round() as u64) } else { Value::Real(number) }
    }

    /// Where it is a range of positive numbers: its ends, as logarithms of base 2.
    pub(super) fn log_range(&self) -> Option<(f64, f64)> {
        let numbers: Option<Vec<f64>> = self.values.iter().map(Value::number).collect();
        let numbers = numbers?;
        let low = numbers.iter().copied().reduce(f64::min)?;
        let high = numbers.iter().copied().reduce(f64::max)?;
        (low > 0.0 && high > low).then(|| (low.log2(), high.log2()))
    }

    /// The axis around one of its values with half the distance between neighbours, which are equal ratios
    /// where all are positive and equal differences otherwise: numbers are narrowed to the cells beside the
    /// value (and continue beyond an end that it lies on, as far as the parameter can go), anything else
    /// keeps the value.
    pub fn refined(&self, best: &Value) -> Self {
        let numbers: Option<Vec<f64>> = self.values.iter().map(Value::number).collect();
        let (Some(numbers), Some(centre)) = (numbers, best.number()) else {
            return Self { values: vec![best.clone()], ..self.clone() };
        };
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let steps = numbers.len().saturating_sub(1).max(1) as f64;
        let near = |offset: f64| match low > 0.0 {
            true => (centre.log2() + offset * (high.log2() - low.log2()) / steps).exp2(),
            false => centre + offset * (high - low) / steps,
        };
        let offsets: &[f64] = if high > low { &[-1.0, -0.5, 0.0, 0.5, 1.0] } else { &[0.0] };
        let value = |&offset: &f64| match offset {
            0.0 => best.clone(),
            offset => self.typed(near(offset)),
        };
        let least =
            if self.is_whole() && low > 0.0 { self.limits.0.max(1.0) } else { self.limits.0 };
        let inside = |value: &Value| {
            value.number().is_some_and(|number| (least..=self.limits.1).contains(&number))
        };
        let mut values: Vec<Value> = offsets.iter().map(value).filter(inside).collect();
        values.dedup();
        Self { values, ..self.clone() }
    }

    /// Whether the parameter can be a number.
    fn contains(&self, number: f64) -> bool {
        let least = if self.is_whole() { self.limits.0.max(1.0) } else { self.limits.0 };
        (least..=self.limits.1).contains(&number)
    }

    /// With another value beyond the end that a value lies at: at an equal ratio where all are positive, as far
    /// as the parameter can go.
    fn beyond(&self, best: &Value) -> Self {
        let mut wider = self.clone();
        let numbers: Option<Vec<f64>> = self.values.iter().map(Value::number).collect();
        let count = self.values.len();
        let Some(numbers) = numbers.filter(|numbers| count > 1 && numbers[0] > 0.0) else {
            return wider;
        };
        let ends = [
            (0, numbers[0] * numbers[0] / numbers[1]),
            (count - 1, numbers[count - 1] * numbers[count - 1] / numbers[count - 2]),
        ];
        for (place, number) in ends {
            let value = self.typed(number);
            let number = value.number().unwrap_or(f64::NAN);
            if self.values[place] == *best && self.contains(number) && !self.values.contains(&value)
            {
                wider.values.insert(if place == 0 { 0 } else { count }, value);
            }
        }
        wider
    }

    /// A value by a number from 0 to 1: anywhere in a range, one of the values otherwise.
    pub(super) fn at(&self, share: f64) -> Value {
        match self.log_range() {
            Some((low, high)) => self.typed((low + share * (high - low)).exp2()),
            None => {
                let last = self.values.len() - 1;
                self.values[((share * self.values.len() as f64) as usize).min(last)].clone()
            }
        }
    }

    /// Where a value lies, from 0 to 1.
    pub(super) fn share(&self, value: &Value) -> f64 {
        match (self.log_range(), value.number()) {
            (Some((low, high)), Some(number)) => (number.log2() - low) / (high - low),
            _ => {
                let at = self.values.iter().position(|own| own == value).unwrap_or(0);
                (at as f64 + 0.5) / self.values.len() as f64
            }
        }
    }
}

/// The parameters that are searched together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    /// One axis per parameter.
    pub axes: Vec<Axis>,
}

/// Refuses more points than a search may have.
fn check_points(what: &'static str, count: usize) -> Result<()> {
    match count <= MOST_POINTS {
        true => Ok(()),
        false => Err(Error::parameter(what, format!("at most {MOST_POINTS} points"), count)),
    }
}

impl Space {
    /// Refuses a space that has no points, or more in its grid or of those to be drawn than a search may have.
    pub(super) fn check(&self, drawn: Option<usize>) -> Result<()> {
        if let Some(axis) = self.axes.iter().find(|axis| axis.values.is_empty()) {
            let found = format!("none for {}", axis.name);
            return Err(Error::parameter("grid", "at least one value of every parameter", found));
        }
        let values = self.axes.iter().map(|axis| axis.values.len());
        match drawn {
            Some(points) => check_points("points", points),
            None => check_points("grid", values.fold(1, usize::saturating_mul)),
        }
    }

    /// Every combination of values, the last axis varying fastest.
    pub fn grid(&self) -> Vec<Point> {
        let mut points = vec![Point(Vec::new())];
        for axis in &self.axes {
            let longer = |point: &Point, value: &Value| {
                let mut longer = point.clone();
                longer.0.push((axis.name.clone(), value.clone()));
                longer
            };
            points = points
                .iter()
                .flat_map(|point| axis.values.iter().map(move |value| longer(point, value)))
                .collect();
        }
        points
    }

    /// A point by a number from 0 to 1 per axis.
    pub(super) fn at(&self, shares: &[f64]) -> Point {
        let value = |(axis, &share): (&Axis, &f64)| (axis.name.clone(), axis.at(share));
        Point(self.axes.iter().zip(shares).map(value).collect())
    }

    /// Where a point lies on every axis, from 0 to 1.
    pub(super) fn shares(&self, point: &Point) -> Vec<f64> {
        self.axes.iter().zip(&point.0).map(|(axis, (_, value))| axis.share(value)).collect()
    }

    /// `count` points at random.
    pub(super) fn random(&self, count: usize, generator: &mut Generator) -> Vec<Point> {
        (0..count)
            .map(|_| {
                let shares: Vec<f64> = self.axes.iter().map(|_| generator.unit()).collect();
                self.at(&shares)
            })
            .collect()
    }

    /// The same space around `best` with half the distance between neighbours; see [`Axis::refined`].
    pub(super) fn refined(&self, best: &Point) -> Self {
        let axes = self.axes.iter().zip(&best.0);
        Self { axes: axes.map(|(axis, (_, value))| axis.refined(value)).collect() }
    }

    /// The space with another value beyond every end that a point lies at, at the distance of the two values
    /// there, and the points that this adds.
    pub(super) fn beyond(&self, point: &Point) -> (Self, Vec<Point>) {
        let longer = |(axis, (_, value)): (&Axis, &(String, Value))| axis.beyond(value);
        let wider = Self { axes: self.axes.iter().zip(&point.0).map(longer).collect() };
        let is_new = |point: &Point| {
            self.axes.iter().zip(&point.0).any(|(axis, (_, value))| !axis.values.contains(value))
        };
        let fresh = wider.grid().into_iter().filter(is_new).collect();
        (wider, fresh)
    }

    /// The point in the middle of all axes, and the steps of the grid as powers of 2.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an axis that is no range of positive numbers.
    pub(super) fn middle(&self) -> Result<(Point, Vec<f64>)> {
        let mut steps = Vec::with_capacity(self.axes.len());
        for axis in &self.axes {
            let Some((low, high)) = axis.log_range() else {
                let expected = "ranges of positive numbers for a pattern search";
                return Err(Error::parameter("grid", expected, axis.name.clone()));
            };
            steps.push((high - low) / (axis.values.len() - 1) as f64);
        }
        Ok((self.at(&vec![0.5; self.axes.len()]), steps))
    }

    /// The points one step up and down on every axis, as far as the parameters can go.
    pub(super) fn around(&self, point: &Point, steps: &[f64]) -> Vec<Point> {
        let mut points = Vec::new();
        for (i, (axis, step)) in self.axes.iter().zip(steps).enumerate() {
            let Some(centre) = point.0[i].1.number() else { continue };
            for sign in [-1.0, 1.0] {
                let value = axis.typed(centre * (sign * step).exp2());
                let is_inside = value.number().is_some_and(|number| axis.contains(number));
                if is_inside && value != point.0[i].1 {
                    let mut moved = point.clone();
                    moved.0[i].1 = value;
                    points.push(moved);
                }
            }
        }
        points
    }

    /// The axes of numbers at whose first or last value a point lies.
    pub fn ends(&self, point: &Point) -> Vec<&str> {
        let at_end = |axis: &Axis, value: &Value| {
            axis.log_range().is_some()
                && (axis.values.first() == Some(value) || axis.values.last() == Some(value))
        };
        let axes = self.axes.iter().zip(&point.0);
        axes.filter(|(axis, (_, v))| at_end(axis, v)).map(|(axis, _)| &axis.name[..]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let kernels = ["rbf", "poly"].map(|name| Value::Text(name.into())).to_vec();
        let c = Axis::logarithmic("c", 0.25, 64.0, 5).unwrap();
        Space { axes: vec![Axis::list("kernel", kernels), c] }
    }

    #[test]
    fn a_grid_has_every_combination_once() {
        let points = space().grid();
        assert_eq!(points.len(), 10);
        assert_eq!(points[6].to_string(), "kernel = poly, c = 1");
        let (mut sorted, all) = (points.iter().map(Point::to_string).collect::<Vec<_>>(), 10);
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), all);
    }

    #[test]
    fn more_points_than_anybody_waits_for_are_refused_before_they_are_made() {
        let svc = Specification::new(crate::machine::MachineKind::CSvc);
        let count = Axis::parse(&svc, "c=1:10:1000000000000").unwrap_err().to_string();
        assert!(count.contains("at most 1000000 points"), "{count}");
        let axes = ["c=1:10:2000", "gamma=1:10:2000"].map(|text| Axis::parse(&svc, text).unwrap());
        let space = Space { axes: axes.to_vec() };
        let product = space.check(None).unwrap_err().to_string();
        assert_eq!(product, "parameter grid: expected at most 1000000 points, found 4000000");
        assert!(space.check(Some(40)).is_ok() && space.check(Some(usize::MAX)).is_err());
    }

    #[test]
    fn shares_and_points_are_inverse() {
        let space = space();
        for point in space.grid() {
            let again = space.at(&space.shares(&point));
            let c = |point: &Point| point.get("c").and_then(Value::number).unwrap();
            assert!((c(&point) / c(&again) - 1.0).abs() < 1e-12);
            assert_eq!(point.get("kernel"), again.get("kernel"));
        }
    }

    #[test]
    fn refining_halves_the_distance_and_passes_ends() {
        let space = space();
        let best = space.grid().pop().unwrap();
        assert_eq!(space.ends(&best), ["c"]);
        let refined = space.refined(&best);
        assert_eq!(refined.axes[0].values, [Value::Text("poly".into())]);
        let numbers: Vec<f64> = refined.axes[1].values.iter().filter_map(Value::number).collect();
        for (found, expected) in numbers.iter().zip([16.0, 32.0, 64.0, 128.0, 256.0]) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{numbers:?}");
        }
    }

    #[test]
    fn whole_numbers_stay_whole_in_every_search() {
        let mut svc = Specification::new(crate::machine::MachineKind::CSvc);
        svc.set("kernel", "poly").unwrap();
        let knn = Specification::new("knn".parse().unwrap());
        let mixture = Specification::new("gmm-bayes".parse().unwrap());
        for (specification, text) in [
            (&svc, "degree=2,3,4"),
            (&svc, "degree=1:8:5"),
            (&knn, "neighbours=1,3,5,9,15,25"),
            (&mixture, "components=1,2,3,5"),
        ] {
            let space = Space { axes: vec![Axis::parse(specification, text).unwrap()] };
            let mut points = space.grid();
            points.extend(space.random(50, &mut Generator::new(1)));
            for best in space.grid() {
                points.extend(space.refined(&best).grid());
            }
            for point in points {
                let (name, value) = &point.0[0];
                assert!(matches!(value, Value::Integer(1..)), "{text}: {value:?}");
                specification.clone().set(name, value.clone()).unwrap();
            }
        }
        let refused = Axis::parse(&svc, "degree=1.5,2").unwrap_err().to_string();
        assert!(refused.contains("whole number"), "{refused}");
        assert!(Axis::parse(&svc, "neighbours=1,2").is_err());
    }

    #[test]
    fn refining_stays_inside_what_the_parameter_can_be() {
        let nu = Specification::new(crate::machine::MachineKind::NuSvc);
        let space = Space { axes: vec![Axis::parse(&nu, "nu=0.1:1:4").unwrap()] };
        for point in space.refined(&space.grid().pop().unwrap()).grid() {
            nu.clone().set("nu", point.0[0].1.clone()).unwrap();
        }
    }

    #[test]
    fn refining_numbers_that_are_not_positive_halves_their_differences() {
        let real = |values: &[f64]| values.iter().map(|&v| Value::Real(v)).collect::<Vec<_>>();
        let axis = Axis::list("coef0", real(&[-1.0, 0.0, 1.0]));
        assert_eq!(axis.refined(&Value::Real(1.0)).values, real(&[0.0, 0.5, 1.0, 1.5, 2.0]));
        let whole = Axis::list("k", vec![Value::Integer(0), Value::Integer(4)]);
        let found = whole.refined(&Value::Integer(4)).values;
        assert_eq!(found, [0, 2, 4, 6, 8].map(Value::Integer));
        let one = Axis::list("c", real(&[3.0]));
        assert_eq!(one.refined(&Value::Real(3.0)).values, real(&[3.0]));
    }

    #[test]
    fn powers_of_two_are_exact() {
        let svc = Specification::new(crate::machine::MachineKind::CSvc);
        let axis = Axis::parse(&svc, "c=2^-5:2^15:11").unwrap();
        let expected = (0..11).map(|i| Value::Real(2f64.powi(2 * i - 5))).collect::<Vec<_>>();
        assert_eq!(axis.values, expected);
    }

    #[test]
    fn impossible_ranges_are_refused() {
        for (low, high, count) in [(0.0, 1.0, 3), (2.0, 1.0, 3), (1.0, 2.0, 1), (1.0, f64::NAN, 3)]
        {
            assert!(Axis::logarithmic("c", low, high, count).is_err());
        }
    }
}
