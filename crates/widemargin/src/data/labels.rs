//! Labels as the user wrote them, and the classes they stand for.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One label as given: a whole number, a real number or a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// A whole number.
    Int(i64),
    /// A real number.
    Real(f64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(v) => write!(f, "{v}"),
            Self::Real(v) => write!(f, "{v}"),
            Self::Text(v) => f.write_str(v),
        }
    }
}

impl Label {
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Text(_), _) => Ordering::Greater,
            (_, Self::Text(_)) => Ordering::Less,
            (a, b) => a.number().total_cmp(&b.number()),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Self::Int(v) => *v as f64,
            Self::Real(v) => *v,
            Self::Text(_) => f64::NAN,
        }
    }
}

/// The labels of a data set, kept as given.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// The file has none.
    None,
    /// Whole numbers.
    Int(Vec<i64>),
    /// Real numbers.
    Real(Vec<f64>),
    /// Words.
    Text(Vec<String>),
}

/// Which class comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassOrder {
    /// Numbers ascending, words in alphabetical order (scikit-learn's rule).
    #[default]
    Sorted,
    /// In order of first appearance, but +1 before −1 when those two are all (LIBSVM's rule).
    FirstSeen,
}

/// The distinct labels of a data set and the class of every row.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// Distinct labels; a class is an index into this list.
    pub names: Vec<Label>,
    /// Class of each row.
    pub codes: Vec<u32>,
}

/// Checks that there are two classes.
pub(crate) fn check_two_classes(names: &[Label]) -> Result<()> {
    match names {
        [] => Err(Error::OneClass { label: String::new() }),
        [only] => Err(Error::OneClass { label: only.to_string() }),
        _ => Ok(()),
    }
}

impl Classes {
    /// Number of classes.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Rows of each class, ascending.
    pub fn rows_by_class(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.names.len()];
        for (row, &code) in self.codes.iter().enumerate() {
            rows[code as usize].push(row);
        }
        rows
    }
}

impl Labels {
    /// Number of labels.
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Int(v) => v.len(),
            Self::Real(v) => v.len(),
            Self::Text(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Label of row `i`.
    pub fn get(&self, i: usize) -> Option<Label> {
        match self {
            Self::None => None,
            Self::Int(v) => v.get(i).copied().map(Label::Int),
            Self::Real(v) => v.get(i).copied().map(Label::Real),
            Self::Text(v) => v.get(i).cloned().map(Label::Text),
        }
    }

    /// Collects single labels; whole and real numbers together become real, words win over both.
    pub fn from_labels(labels: &[Label]) -> Self {
        let as_int = |l: &Label| if let Label::Int(v) = l { Some(*v) } else { None };
        if labels.is_empty() {
            Self::None
        } else if let Some(v) = labels.iter().map(as_int).collect() {
            Self::Int(v)
        } else if labels.iter().all(|l| !matches!(l, Label::Text(_))) {
            Self::Real(labels.iter().map(Label::number).collect())
        } else {
            Self::Text(labels.iter().map(Label::to_string).collect())
        }
    }

    /// The labels of the rows named by `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::None => Self::None,
            Self::Int(v) => Self::Int(indices.iter().map(|&i| v[i]).collect()),
            Self::Real(v) => Self::Real(indices.iter().map(|&i| v[i]).collect()),
            Self::Text(v) => Self::Text(indices.iter().map(|&i| v[i].clone()).collect()),
        }
    }

    /// The rows whose label is written as `mark`, ascending.
    pub(crate) fn rows_marked(&self, mark: &Label) -> Vec<usize> {
        let mark = mark.to_string();
        let is_marked = |row: &usize| match self {
            Self::Text(words) => words[*row] == mark,
            labels => labels.get(*row).is_some_and(|label| label.to_string() == mark),
        };
        (0..self.len()).filter(is_marked).collect()
    }

    /// The labels without the mark of rows that have none. Where that had made words of numbers they are numbers
    /// again, those of the marked rows 0.
    pub(crate) fn without_mark(&self, mark: &Label) -> Cow<'_, Self> {
        fn spelled<T: Default + FromStr>(words: &[String], marked: &[usize]) -> Option<Vec<T>> {
            let value = |(row, word): (usize, &String)| match marked.binary_search(&row) {
                Ok(_) => Some(T::default()),
                Err(_) => word.trim().parse().ok(),
            };
            words.iter().enumerate().map(value).collect()
        }
        let (Self::Text(words), marked) = (self, self.rows_marked(mark)) else {
            return Cow::Borrowed(self);
        };
        if marked.is_empty() {
            return Cow::Borrowed(self);
        }
        let finite = |values: &Vec<f64>| values.iter().all(|value| value.is_finite());
        let whole = spelled(words, &marked).map(Self::Int);
        let numbers = whole.or_else(|| spelled(words, &marked).filter(finite).map(Self::Real));
        numbers.map_or(Cow::Borrowed(self), Cow::Owned)
    }

    /// The classes the labels stand for.
    ///
    /// # Errors
    /// [`Error::Labels`] when there are no labels or one is NaN.
    pub fn classes(&self, order: ClassOrder) -> Result<Classes> {
        let expected = || "one class label per row".to_owned();
        let (mut names, codes) = match self {
            Self::None => {
                return Err(Error::Labels { expected: expected(), found: "no labels".into() });
            }
            Self::Int(v) => match index_close(v) {
                Some((numbers, codes)) => (numbers.into_iter().map(Label::Int).collect(), codes),
                None => index_by(v, |x| *x, |x| Label::Int(*x)),
            },
            Self::Real(v) => {
                if let Some(row) = v.iter().position(|x| x.is_nan()) {
                    let found = format!("NaN in row {}", row + 1);
                    return Err(Error::Labels { expected: expected(), found });
                }
                // Adding zero merges -0 and 0, which compare equal but differ in their bits.
                index_by(v, |x| (x + 0.0).to_bits(), |x| Label::Real(x + 0.0))
            }
            Self::Text(v) => index_by(v, String::as_str, |x| Label::Text(x.clone())),
        };
        let mut permutation: Vec<usize> = (0..names.len()).collect();
        match order {
            ClassOrder::Sorted => permutation.sort_by(|&a, &b| names[a].order(&names[b])),
            ClassOrder::FirstSeen => {
                let value = |i: usize| names[i].number();
                if names.len() == 2 && value(0) == -1.0 && value(1) == 1.0 {
                    permutation.swap(0, 1);
                }
            }
        }
        let mut rank = vec![0_u32; names.len()];
        for (new, &old) in permutation.iter().enumerate() {
            rank[old] = new as u32;
        }
        let codes = codes.into_iter().map(|c| rank[c as usize]).collect();
        names = permutation.into_iter().map(|old| names[old].clone()).collect();
        Ok(Classes { names, codes })
    }

    /// The labels as regression targets.
    ///
    /// # Errors
    /// [`Error::Labels`] when there are none, one is a word, or one is not finite.
    pub fn values(&self) -> Result<Vec<f64>> {
        let expected = "one finite number per row";
        let fail = |found: String| Err(Error::Labels { expected: expected.into(), found });
        match self {
            Self::None => fail("no labels".into()),
            Self::Int(v) => Ok(v.iter().map(|&x| x as f64).collect()),
            Self::Real(v) => match v.iter().position(|x| !x.is_finite()) {
                Some(row) => fail(format!("{} in row {}", v[row], row + 1)),
                None => Ok(v.clone()),
            },
            Self::Text(v) => match v.first() {
                Some(word) => fail(format!("the word '{word}'")),
                None => fail("no labels".into()),
            },
        }
    }
}

/// The different numbers in order of appearance and the place of each value among them, without a
/// search where they are close to each other.
fn index_close(values: &[i64]) -> Option<(Vec<i64>, Vec<u32>)> {
    const WIDEST: usize = 1 << 12;
    const NEW: u32 = u32::MAX;
    let (least, most) =
        values.iter().fold((i64::MAX, i64::MIN), |(least, most), &v| (v.min(least), v.max(most)));
    let width = usize::try_from(most.checked_sub(least)?).ok().filter(|width| *width < WIDEST)?;
    let (mut places, mut numbers) = (vec![NEW; width + 1], Vec::new());
    let codes = values.iter().map(|&value| {
        let place = &mut places[(value - least) as usize];
        if *place == NEW {
            *place = numbers.len() as u32;
            numbers.push(value);
        }
        *place
    });
    let codes = codes.collect();
    Some((numbers, codes))
}

fn index_by<'a, T, K: std::hash::Hash + Eq>(
    values: &'a [T],
    key: impl Fn(&'a T) -> K,
    name: impl Fn(&'a T) -> Label,
) -> (Vec<Label>, Vec<u32>) {
    let mut seen = KeyCodes { few: Vec::new(), all: HashMap::new() };
    let mut names = Vec::new();
    let codes = values.iter().map(|value| {
        seen.code(key(value), || {
            names.push(name(value));
            names.len() as u32 - 1
        })
    });
    let codes = codes.collect();
    (names, codes)
}

/// Keys whose code is searched in a list, which takes less time than a hash.
const LISTED_KEYS: usize = 16;

/// The codes of keys.
struct KeyCodes<K> {
    few: Vec<K>,
    all: HashMap<K, u32>,
}

impl<K: std::hash::Hash + Eq> KeyCodes<K> {
    /// The code of a key, or the one it gets because it is new: these are 0, 1, …
    fn code(&mut self, key: K, new: impl FnOnce() -> u32) -> u32 {
        if let Some(code) = self.few.iter().position(|known| *known == key) {
            return code as u32;
        }
        if self.few.len() < LISTED_KEYS {
            self.few.push(key);
            return new();
        }
        *self.all.entry(key).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes by comparison with all names.
    fn expected(labels: &Labels, names: &[Label]) -> Vec<u32> {
        let code = |i: usize| names.iter().position(|name| *name == labels.get(i).unwrap());
        (0..labels.len()).map(|i| code(i).unwrap() as u32).collect()
    }

    #[test]
    fn codes_name_the_labels_however_they_are_looked_for() {
        let spread = |step: i64| (0..500_i64).map(|i| (i * i * 7 % 61 - 30) * step).collect();
        let close: Vec<i64> = spread(1);
        let words = close.iter().map(|v| format!("word {v}")).collect();
        let reals = close.iter().map(|v| *v as f64 / 2.0).collect();
        let extremes = vec![i64::MAX, 0, i64::MIN, 0, i64::MAX];
        for labels in [
            Labels::Int(close.clone()),
            Labels::Int(spread(1 << 40)),
            Labels::Int(extremes),
            Labels::Text(words),
            Labels::Real(reals),
        ] {
            let seen = labels.classes(ClassOrder::FirstSeen).unwrap();
            let mut first: Vec<Label> = Vec::new();
            for label in (0..labels.len()).map(|i| labels.get(i).unwrap()) {
                if !first.contains(&label) {
                    first.push(label);
                }
            }
            assert_eq!(seen.names, first);
            assert_eq!(seen.codes, expected(&labels, &seen.names));
            let sorted = labels.classes(ClassOrder::Sorted).unwrap();
            assert!(sorted.names.is_sorted_by(|a, b| a.order(b) == Ordering::Less));
            assert_eq!(sorted.codes, expected(&labels, &sorted.names));
        }
    }
}
