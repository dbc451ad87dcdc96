//! What places that hold parts of the rows have to know of all rows: counts and moments, no rows.

use serde::{Deserialize, Serialize};

use super::{
    ClassOrder, Classes, Dataset, Dense, Label, Labels, Layout, Matrix, SPARSE_DENSITY, memory,
};
use crate::error::{Error, Result};

/// Counts and moments of the rows at one place, or at several together.
///
/// ```
/// use widemargin::data::{Census, Dataset, Dense, Labels, Matrix};
///
/// let part = |values: Vec<f64>, labels: Vec<i64>| {
///     let rows = Matrix::DenseF64(Dense::new(values.len(), 1, values)?);
///     Dataset::new(rows, Labels::Int(labels))
/// };
/// let north = Census::of(&part(vec![1.0, 2.0], vec![0, 0])?, true)?;
/// let south = Census::of(&part(vec![3.0], vec![1])?, true)?;
/// assert_eq!(north.joined(south)?.rows(), 3);
/// # Ok::<(), widemargin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Census {
    rows: usize,
    weight: f64,
    single: bool,
    /// Whether all tables are sparse.
    sparse: bool,
    nonzeros: usize,
    /// Mean of every column.
    means: Vec<f64>,
    /// Σ(x − mean)² of every column.
    deviations: Vec<f64>,
    /// Classes in the order of their first rows.
    classes: Vec<Class>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Class {
    name: Label,
    rows: usize,
    weight: f64,
}

impl Census {
    /// Of the rows of one place; its classes too if its labels are classes.
    ///
    /// # Errors
    /// [`Error::Labels`] for classes that are not there or are NaN, [`Error::NonFinite`], [`Error::TooLarge`].
    pub fn of(data: &Dataset, has_classes: bool) -> Result<Self> {
        let features = data.features();
        if data.rows() > 0 {
            features.validate()?;
        }
        let columns = features.columns();
        memory::check(|| format!("the counts of {columns} features"), 24 * columns as u128)?;
        let (means, deviations) = moments(features);
        let mut classes = Vec::new();
        if has_classes && data.rows() > 0 {
            let found = data.labels().classes(ClassOrder::Sorted)?;
            let of = |name: &Label| Class { name: name.clone(), rows: 0, weight: 0.0 };
            classes = found.names.iter().map(of).collect();
            for (row, &code) in found.codes.iter().enumerate() {
                let class: &mut Class = &mut classes[code as usize];
                class.rows += 1;
                class.weight += data.weight(row);
            }
            let mut first: Vec<usize> = vec![usize::MAX; classes.len()];
            for (row, &code) in found.codes.iter().enumerate().rev() {
                first[code as usize] = row;
            }
            let mut order: Vec<usize> = (0..classes.len()).collect();
            order.sort_by_key(|&class| first[class]);
            classes = order.into_iter().map(|class| classes[class].clone()).collect();
        }
        Ok(Self {
            rows: data.rows(),
            weight: (0..data.rows()).map(|row| data.weight(row)).sum(),
            single: matches!(features, Matrix::DenseF32(_) | Matrix::SparseF32(_)),
            sparse: features.is_sparse(),
            nonzeros: features.nonzeros(),
            means,
            deviations,
            classes,
        })
    }

    /// Of the rows of both (Chan, Golub and LeVeque 1979: the sums of squares of two parts and the
    /// distance of their means give that of both).
    ///
    /// # Errors
    /// [`Error::Length`] for other columns, unless both are sparse, and [`Error::Parameter`] for another number
    /// format.
    pub fn joined(mut self, mut other: Self) -> Result<Self> {
        let width = self.columns().max(other.columns());
        if self.columns() != other.columns() && !(self.sparse && other.sparse) {
            return Err(Error::length("columns of another site", self.columns(), other.columns()));
        }
        if self.single != other.single {
            let format = |single| if single { "single precision" } else { "double precision" };
            let expected = format!("{} at every site", format(self.single));
            return Err(Error::parameter("features", expected, format(other.single)));
        }
        for part in [&mut self, &mut other] {
            part.means.resize(width, 0.0);
            part.deviations.resize(width, 0.0);
        }
        let (a, b) = (self.rows as f64, other.rows as f64);
        let total = (a + b).max(1.0);
        for column in 0..width {
            let distance = other.means[column] - self.means[column];
            self.means[column] += distance * b / total;
            self.deviations[column] +=
                other.deviations[column] + distance * distance * a * b / total;
        }
        for class in other.classes {
            let same = |own: &&mut Class| own.name.order(&class.name).is_eq();
            match self.classes.iter_mut().find(same) {
                Some(own) => {
                    own.rows += class.rows;
                    own.weight += class.weight;
                }
                None => self.classes.push(class),
            }
        }
        self.rows += other.rows;
        self.weight += other.weight;
        self.nonzeros += other.nonzeros;
        self.sparse &= other.sparse;
        Ok(self)
    }

    /// The counts as bytes.
    ///
    /// # Errors
    /// [`Error::Message`] for numbers that cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|error| Error::message("counts that can be written", error))
    }

    /// The counts that bytes are.
    ///
    /// # Errors
    /// [`Error::Message`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| Error::message("counts of rows", error))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.means.len()
    }

    /// Σ weights of the rows.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    /// The rows of a place in the storage of all places: widened to the columns of all, sparse only if
    /// all are and few values are not 0.
    ///
    /// # Errors
    /// [`Error::Length`] for more columns than were counted.
    pub(crate) fn arranged(&self, data: Dataset) -> Result<Dataset> {
        let values = (self.rows * self.columns()).max(1) as f64;
        let sparse = self.sparse && (self.nonzeros as f64) < SPARSE_DENSITY * values;
        let layout = if sparse { Layout::Sparse } else { Layout::Dense };
        let features = data.features().clone().with_columns(self.columns())?.into_layout(layout);
        data.with_features(features)
    }

    /// A table without rows, stored as those of all places.
    pub(crate) fn no_rows(&self) -> Result<Dataset> {
        let columns = self.columns();
        let features = match self.single {
            true => Matrix::DenseF32(Dense::new(0, columns, Vec::new())?),
            false => Matrix::DenseF64(Dense::new(0, columns, Vec::new())?),
        };
        self.arranged(Dataset::new(features, Labels::None)?)
    }

    /// Two rows with the mean and the variance of every column, for rules that look at nothing else:
    /// μ ± σ.
    ///
    /// # Errors
    /// [`Error::Empty`] for no rows.
    pub(crate) fn stand_in(&self) -> Result<Matrix> {
        if self.rows == 0 {
            return Err(Error::Empty { what: "row" });
        }
        let deviation = |column: usize| (self.deviations[column] / self.rows as f64).sqrt();
        let row = |sign: f64| {
            (0..self.columns()).map(move |column| self.means[column] + sign * deviation(column))
        };
        Dense::new(2, self.columns(), row(-1.0).chain(row(1.0)).collect()).map(Matrix::DenseF64)
    }

    /// The names of all classes as labels.
    pub(crate) fn class_names(&self) -> Labels {
        let names: Vec<Label> = self.classes.iter().map(|class| class.name.clone()).collect();
        Labels::from_labels(&names)
    }

    /// The classes of all places, with those of the rows of one.
    ///
    /// # Errors
    /// [`Error::Labels`] for a label that was not counted.
    pub(crate) fn classes(&self, labels: &Labels, order: ClassOrder) -> Result<Classes> {
        let names = self.class_names().classes(order)?.names;
        if labels.is_empty() {
            return Ok(Classes { names, codes: Vec::new() });
        }
        let own = labels.classes(ClassOrder::Sorted)?;
        let place = |name: &Label| {
            let found = names.iter().position(|other| other.order(name).is_eq());
            let missing = || Error::labels("classes that were counted", format!("'{name}'"));
            found.map(|class| class as u32).ok_or_else(missing)
        };
        let places = own.names.iter().map(place).collect::<Result<Vec<u32>>>()?;
        let codes = own.codes.iter().map(|&code| places[code as usize]).collect();
        Ok(Classes { names, codes })
    }

    /// Rows of every class.
    pub(crate) fn class_rows(&self, names: &[Label]) -> Vec<f64> {
        names.iter().map(|name| self.class(name).map_or(0.0, |class| class.rows as f64)).collect()
    }

    /// The first class without a row of positive weight.
    pub(crate) fn class_without_weight<'a>(&self, names: &'a [Label]) -> Option<&'a Label> {
        names.iter().find(|name| self.class(name).is_none_or(|class| class.weight <= 0.0))
    }

    fn class(&self, name: &Label) -> Option<&Class> {
        self.classes.iter().find(|class| class.name.order(name).is_eq())
    }
}

/// Mean and Σ(x − mean)² of every column.
fn moments(features: &Matrix) -> (Vec<f64>, Vec<f64>) {
    let (rows, columns) = (features.rows(), features.columns());
    let mut means = vec![0.0; columns];
    for row in 0..rows {
        features.for_each_nonzero(row, |column, value| means[column] += value);
    }
    means.iter_mut().for_each(|sum| *sum /= rows.max(1) as f64);
    let (mut deviations, mut stored) = (vec![0.0; columns], vec![0_usize; columns]);
    for row in 0..rows {
        features.for_each_nonzero(row, |column, value| {
            deviations[column] += (value - means[column]) * (value - means[column]);
            stored[column] += 1;
        });
    }
    for column in 0..columns {
        let zeros = (rows - stored[column]) as f64;
        deviations[column] += zeros * means[column] * means[column];
    }
    (means, deviations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    fn table(rows: usize, generator: &mut Generator) -> Dataset {
        let mut value = || match generator.below(3) {
            0 => 0.0,
            _ => 1e3 + generator.normal(),
        };
        let values = (0..3 * rows).map(|_| value()).collect();
        let labels = (0..rows).map(|row| ["b", "a", "c"][row % 3].to_owned()).collect();
        let features = Matrix::DenseF64(Dense::new(rows, 3, values).unwrap());
        Dataset::new(features, Labels::Text(labels)).unwrap()
    }

    #[test]
    fn parts_joined_are_the_whole() {
        let mut generator = Generator::new(3);
        let all = table(60, &mut generator);
        let whole = Census::of(&all, true).unwrap();
        let part = |rows: std::ops::Range<usize>| {
            Census::of(&all.select_rows(&rows.collect::<Vec<_>>()), true).unwrap()
        };
        let joined = part(0..7).joined(part(7..7)).unwrap().joined(part(7..60)).unwrap();
        assert_eq!((joined.rows, joined.nonzeros), (whole.rows, whole.nonzeros));
        assert_eq!(joined.classes, whole.classes);
        assert_eq!(joined.class_names(), Labels::Text(["b", "a", "c"].map(String::from).to_vec()));
        for column in 0..3 {
            let pairs = [(&joined.means, &whole.means), (&joined.deviations, &whole.deviations)];
            for (found, expected) in pairs {
                let (found, expected) = (found[column], expected[column]);
                assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_stand_in_has_the_variance_of_any_columns() {
        use crate::machine::Gamma;
        let all = table(50, &mut Generator::new(4));
        let stand_in = Census::of(&all, true).unwrap().stand_in().unwrap();
        for columns in [0..3, 1..2, 0..2] {
            let of = |m: &Matrix| {
                Gamma::Scale.resolve(&m.select_columns(std::slice::from_ref(&columns)).unwrap())
            };
            let (found, expected) = (of(&stand_in), of(all.features()));
            assert!((found - expected).abs() <= 1e-12 * expected, "{found} {expected}");
        }
    }

    #[test]
    fn other_columns_and_formats_are_refused() {
        let mut generator = Generator::new(5);
        let census = Census::of(&table(4, &mut generator), true).unwrap();
        let of = |features: Matrix| {
            Census::of(&Dataset::new(features, Labels::None).unwrap(), false).unwrap()
        };
        let narrow = of(Matrix::DenseF64(Dense::new(1, 2, vec![1.0; 2]).unwrap()));
        let single = of(Matrix::DenseF32(Dense::new(1, 3, vec![1.0; 3]).unwrap()));
        assert!(census.clone().joined(narrow).unwrap_err().to_string().contains("columns"));
        assert!(census.joined(single).unwrap_err().to_string().contains("single precision"));
    }
}
