//! What is searched: named parameters with the values they may take.

use std::fmt;

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::numeric::random::Generator;

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A name, such as that of a kernel.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

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
}

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
}

impl Axis {
    /// Any values.
    pub fn list(name: impl Into<String>, values: Vec<Value>) -> Self {
        Self { name: name.into(), values }
    }

    /// `count` numbers from `low` to `high`, their logarithms equally far apart.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 < `low` < `high` and `count` is at least 2.
    pub fn logarithmic(name: impl Into<String>, low: f64, high: f64, count: usize) -> Result<Self> {
        let name = name.into();
        if !(low > 0.0 && low < high && high.is_finite() && count >= 2) {
            let found = format!("{low}:{high}:{count} for {name}");
            return Err(Error::parameter("range", "0 < low < high and at least 2 values", found));
        }
        let step = (high / low).ln() / (count - 1) as f64;
        let value = |i: usize| match i {
            0 => low,
            i if i + 1 == count => high,
            i => low * (step * i as f64).exp(),
        };
        Ok(Self { name, values: (0..count).map(|i| Value::Number(value(i))).collect() })
    }

    /// Its numbers, if it has nothing else.
    fn numbers(&self) -> Option<Vec<f64>> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        };
        self.values.iter().map(number).collect()
    }

    /// Where it is a range of positive numbers: its ends, as logarithms.
    pub(super) fn log_range(&self) -> Option<(f64, f64)> {
        let numbers = self.numbers()?;
        let (low, high) = (*numbers.first()?, *numbers.last()?);
        (low > 0.0 && high > low).then(|| (low.ln(), high.ln()))
    }

    /// Mean distance of neighbours, of logarithms where all numbers are positive.
    fn step(&self) -> Option<f64> {
        let (low, high) = self.log_range()?;
        Some((high - low) / (self.values.len() - 1) as f64)
    }

    /// A value by a number from 0 to 1: anywhere in a range, one of the values otherwise.
    pub(super) fn at(&self, share: f64) -> Value {
        match self.log_range() {
            Some((low, high)) => Value::Number((low + share * (high - low)).exp()),
            None => {
                let last = self.values.len() - 1;
                self.values[((share * self.values.len() as f64) as usize).min(last)].clone()
            }
        }
    }

    /// Where a value lies, from 0 to 1.
    pub(super) fn share(&self, value: &Value) -> f64 {
        match (self.log_range(), value) {
            (Some((low, high)), Value::Number(number)) => (number.ln() - low) / (high - low),
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

impl Space {
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

    /// The same space around `best` with half the distance between neighbours: axes of numbers are
    /// narrowed to the cells beside it (and continue beyond an end that it lies on), others keep
    /// its value.
    pub(super) fn refined(&self, best: &Point) -> Self {
        let refined = |(axis, (_, value)): (&Axis, &(String, Value))| {
            let values = match (axis.step(), value) {
                (Some(step), Value::Number(centre)) => {
                    let offsets = [-1.0, -0.5, 0.0, 0.5, 1.0];
                    offsets.map(|o: f64| Value::Number((centre.ln() + o * step).exp())).to_vec()
                }
                _ => vec![value.clone()],
            };
            Axis { name: axis.name.clone(), values }
        };
        Self { axes: self.axes.iter().zip(&best.0).map(refined).collect() }
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
    fn shares_and_points_are_inverse() {
        let space = space();
        for point in space.grid() {
            let again = space.at(&space.shares(&point));
            let Some(Value::Number(c)) = point.get("c") else { panic!() };
            let Some(Value::Number(found)) = again.get("c") else { panic!() };
            assert!((c / found - 1.0).abs() < 1e-12);
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
        let numbers = refined.axes[1].numbers().unwrap();
        for (found, expected) in numbers.iter().zip([16.0, 32.0, 64.0, 128.0, 256.0]) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{numbers:?}");
        }
    }

    #[test]
    fn impossible_ranges_are_refused() {
        for (low, high, count) in [(0.0, 1.0, 3), (2.0, 1.0, 3), (1.0, 2.0, 1), (1.0, f64::NAN, 3)]
        {
            assert!(Axis::logarithmic("c", low, high, count).is_err());
        }
    }
}
