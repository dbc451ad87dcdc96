//! Strings as rows of numbers: one column for each place, holding the code point of its character plus 1.
//!
//! A row is as long as its string and 0 from there on, so that strings of all lengths make one sparse
//! table. Other sequences of symbols are rows of the same form: whole numbers of at least 1.

use super::memory;
use super::{Csr, Matrix};
use crate::error::{Error, Result};

/// The largest symbol: that of the last code point.
pub(crate) const LARGEST_SYMBOL: u32 = char::MAX as u32 + 1;

/// The number that stands for a character.
pub(crate) fn symbol(character: char) -> u32 {
    u32::from(character) + 1
}

impl Matrix {
    /// A row for each string, as wide as the longest of them, for the string kernels.
    ///
    /// ```
    /// use widemargin::data::Matrix;
    /// let rows = Matrix::of_strings(["ab", "", "né"])?;
    /// assert_eq!((rows.rows(), rows.columns()), (3, 2));
    /// let mut row = [0.0; 2];
    /// rows.copy_row(2, &mut row);
    /// assert_eq!(row, [111.0, 234.0]);
    /// # Ok::<(), widemargin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] when they do not fit in memory, [`Error::Length`] for a string of more than
    /// 2³² characters.
    pub fn of_strings<S: AsRef<str>>(strings: impl IntoIterator<Item = S>) -> Result<Self> {
        let (mut starts, mut places, mut symbols) = (vec![0], Vec::new(), Vec::new());
        let mut longest = 1;
        for string in strings {
            let string = string.as_ref();
            if symbols.len() + string.len() > symbols.capacity() {
                let bytes = 16 * (symbols.len() + string.len()) as u128;
                memory::check(|| "rows of characters".into(), bytes)?;
            }
            symbols.extend(string.chars().map(|c| symbol(c) as f32));
            let length = symbols.len() - places.len();
            let end = u32::try_from(length)
                .map_err(|_| Error::length("characters of a string", u32::MAX as usize, length))?;
            places.extend(0..end);
            starts.push(places.len());
            longest = longest.max(length);
        }
        Csr::new(longest, starts, places, symbols).map(Self::SparseF32)
    }
}
