//! Short forms of what messages carry often: row numbers as differences, coefficients at a common bound
//! without their value, and round numbers in a few bytes.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Differences of ascending numbers; the first is a difference from −1, so that none is 0.
fn differences(numbers: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let mut next = 0_u64;
    let difference = |number: u64| {
        let difference = number.checked_sub(next)?.checked_add(1)?;
        next = number.checked_add(1)?;
        Some(difference)
    };
    numbers.map(difference).collect()
}

/// The numbers with these differences.
fn numbers(differences: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let mut next = 0_u64;
    let number = |difference: u64| {
        next = next.checked_add(difference)?;
        next.checked_sub(1).filter(|_| difference > 0)
    };
    differences.map(number).collect()
}

/// Ascending row numbers.
pub(super) mod ascending {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        ids: &[u64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let ids = ids.iter().copied();
        differences(ids).ok_or_else(|| S::Error::custom("rows out of order"))?.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u64>, D::Error> {
        let differences = Vec::<u64>::deserialize(deserializer)?;
        numbers(differences.into_iter()).ok_or_else(|| D::Error::custom("rows out of order"))
    }
}

/// Coefficients by row: a number of each row that tells its difference from the one before, the sign, and
/// whether the coefficient has the largest size, which those at a common bound have.
#[derive(Serialize, Deserialize)]
struct Packed<T> {
    largest: f64,
    marks: Vec<u64>,
    /// Sizes of the coefficients that are smaller.
    others: Vec<T>,
}

const NEGATIVE: u64 = 1;
const AT_BOUND: u64 = 2;
const FLAGS: u32 = 2;

impl<T: Copy> Packed<T> {
    fn new(coefficients: &[(u64, f64)], narrow: fn(f64) -> T) -> Option<Self> {
        let largest = coefficients.iter().map(|(_, value)| value.abs()).fold(0.0, f64::max);
        let mut marks = differences(coefficients.iter().map(|(id, _)| *id))?;
        let mut others = Vec::new();
        for (mark, (_, value)) in marks.iter_mut().zip(coefficients) {
            let mut flags = if value.is_sign_negative() { NEGATIVE } else { 0 };
            if value.abs() == largest {
                flags |= AT_BOUND;
            } else {
                others.push(narrow(value.abs()));
            }
            *mark = mark.checked_mul(1 << FLAGS)? | flags;
        }
        Some(Self { largest, marks, others })
    }

    fn coefficients(&self, widen: fn(T) -> f64) -> Option<Vec<(u64, f64)>> {
        let ids = numbers(self.marks.iter().map(|mark| mark >> FLAGS))?;
        let mut others = self.others.iter();
        let pairs = ids.into_iter().zip(&self.marks).map(|(id, mark)| {
            let at_bound = mark & AT_BOUND != 0;
            let size = if at_bound { self.largest } else { widen(*others.next()?) };
            Some((id, if mark & NEGATIVE != 0 { -size } else { size }))
        });
        let pairs = pairs.collect::<Option<Vec<_>>>()?;
        others.next().is_none().then_some(pairs)
    }
}

macro_rules! coefficients {
    ($name:ident, $number:ty, $narrow:expr, $widen:expr, $doc:literal) => {
        #[doc = $doc]
        pub(super) mod $name {
            use super::*;

            pub(in super::super) fn serialize<S: Serializer>(
                coefficients: &[(u64, f64)],
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let packed = Packed::<$number>::new(coefficients, $narrow);
                packed.ok_or_else(|| S::Error::custom("rows out of order"))?.serialize(serializer)
            }

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Vec<(u64, f64)>, D::Error> {
                let packed = Packed::<$number>::deserialize(deserializer)?;
                packed.coefficients($widen).ok_or_else(|| D::Error::custom("other coefficients"))
            }
        }
    };
}

coefficients!(exact, f64, |v| v, |v| v, "Coefficients by row, exactly.");
coefficients!(
    rounded,
    f32,
    |v| v as f32,
    f64::from,
    "Coefficients by row in single precision, but for those of the largest size."
);

/// A number that mostly is small and whole: its bytes, the least significant last, as a variable-length integer.
pub(super) mod short {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        number: &f64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        number.to_bits().swap_bytes().serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<f64, D::Error> {
        Ok(f64::from_bits(u64::deserialize(deserializer)?.swap_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        #[serde(with = "ascending")]
        ids: Vec<u64>,
        #[serde(with = "exact")]
        exact: Vec<(u64, f64)>,
        #[serde(with = "rounded")]
        rounded: Vec<(u64, f64)>,
        #[serde(with = "short")]
        label: f64,
    }

    #[test]
    fn short_forms_come_back_as_they_were() {
        let rounded = [(0, -0.1), (1, 0.25), (9, 0.1)];
        let all = All {
            ids: vec![0, 1, 70_000, 1 << 60],
            exact: vec![(0, 0.3), (5, -10.0), (6, 1e-300), (1 << 40, 10.0), (1 << 41, -0.0)],
            rounded: rounded.iter().map(|&(id, v)| (id, f64::from(v as f32))).collect(),
            label: -3.7e-9,
        };
        let bytes = postcard::to_allocvec(&all).unwrap();
        assert_eq!(postcard::from_bytes::<All>(&bytes).unwrap(), all);
        assert!(all.exact[4].1.is_sign_negative());
    }

    #[test]
    fn coefficients_at_a_bound_take_a_byte_and_others_four_more() {
        let bytes = |coefficients: Vec<(u64, f64)>| {
            let all = All { ids: Vec::new(), exact: Vec::new(), rounded: coefficients, label: 2.0 };
            postcard::to_allocvec(&all).unwrap().len()
        };
        let none = bytes(Vec::new());
        assert!(bytes((0..100).map(|id| (2 * id, 0.3)).collect()) <= none + 100);
        let different = (0..100).map(|id| (2 * id, 1.0 / (id + 1) as f64)).collect();
        assert!(bytes(different) <= none + 100 * 5);
    }

    #[test]
    fn rows_out_of_order_and_lists_of_other_lengths_are_refused() {
        let unordered = All { ids: vec![3, 3], exact: Vec::new(), rounded: Vec::new(), label: 0.0 };
        assert!(postcard::to_allocvec(&unordered).is_err());
        for differences in [vec![1_u64, 0], vec![u64::MAX, u64::MAX]] {
            assert_eq!(numbers(differences.into_iter()), None);
        }
        let packed = |marks: Vec<u64>, others: Vec<f64>| Packed { largest: 1.0, marks, others };
        assert!(packed(vec![4, 6], vec![0.5]).coefficients(|v| v).is_some());
        assert!(packed(vec![4, 6], vec![]).coefficients(|v| v).is_none());
        assert!(packed(vec![4, 6], vec![0.5, 0.5]).coefficients(|v| v).is_none());
    }
}
