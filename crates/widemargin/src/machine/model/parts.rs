//! The parts of a model file: named arrays of numbers and a header, in a `safetensors` document.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::data::{Csr, Dense, Matrix};

/// What reading or writing a part of a file gives, or what is wrong with it.
pub(crate) type PartsResult<T> = Result<T, String>;

/// A number that `safetensors` can hold, little-endian.
pub(crate) trait Element: Copy {
    /// Its name there.
    const DTYPE: Dtype;
    /// Appends its bytes.
    fn put(self, out: &mut Vec<u8>);
    /// Reads all numbers of a byte string.
    fn get_all(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! element {
    ($type:ty, $dtype:ident) => {
        impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get_all(bytes: &[u8]) -> Vec<Self> {
                let (numbers, _) = bytes.as_chunks();
                numbers.iter().map(|number| Self::from_le_bytes(*number)).collect()
            }
        }
    };
}

element!(f32, F32);
element!(f64, F64);
element!(u32, U32);
element!(u64, U64);

/// Arrays to be written.
#[derive(Default)]
pub(crate) struct PartsWriter {
    arrays: Vec<(String, Dtype, Vec<usize>, Vec<u8>)>,
}

impl PartsWriter {
    /// Adds an array; `shape` multiplies to the number of values.
    pub(crate) fn put<T: Element>(
        &mut self,
        name: impl Into<String>,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = T>,
    ) {
        let count: usize = shape.iter().product();
        let mut bytes = Vec::with_capacity(count * size_of::<T>());
        values.into_iter().for_each(|value| value.put(&mut bytes));
        self.arrays.push((name.into(), T::DTYPE, shape, bytes));
    }

    /// Adds an array of one dimension.
    pub(crate) fn put_list<T: Element>(
        &mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) {
        let values: Vec<T> = values.into_iter().collect();
        self.put(name, vec![values.len()], values);
    }

    /// Adds whole numbers.
    pub(crate) fn put_indices(&mut self, name: impl Into<String>, indices: &[usize]) {
        self.put_list(name, indices.iter().map(|&index| index as u64));
    }

    /// Adds a table: `NAME.values` (dense: rows × columns), and for sparse tables `NAME.indptr` and
    /// `NAME.indices`. The number of columns belongs into the header.
    pub(crate) fn put_matrix(&mut self, name: &str, matrix: &Matrix) {
        fn dense<T: Element>(parts: &mut PartsWriter, name: &str, matrix: &Dense<T>) {
            let shape = vec![matrix.rows(), matrix.columns()];
            parts.put(format!("{name}.values"), shape, matrix.values().iter().copied());
        }
        fn sparse<T: Element>(parts: &mut PartsWriter, name: &str, matrix: &Csr<T>) {
            parts.put_indices(format!("{name}.indptr"), matrix.indptr());
            parts.put_list(format!("{name}.indices"), matrix.indices().iter().copied());
            parts.put_list(format!("{name}.values"), matrix.values().iter().copied());
        }
        match matrix {
            Matrix::DenseF32(matrix) => dense(self, name, matrix),
            Matrix::DenseF64(matrix) => dense(self, name, matrix),
            Matrix::SparseF32(matrix) => sparse(self, name, matrix),
            Matrix::SparseF64(matrix) => sparse(self, name, matrix),
        }
    }

    /// The document, with `header` as its metadata.
    pub(crate) fn finish(self, header: String) -> PartsResult<Vec<u8>> {
        let views = self.arrays.iter().map(|(name, dtype, shape, bytes)| {
            TensorView::new(*dtype, shape.clone(), bytes).map(|view| (name, view))
        });
        let views = views.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let metadata = HashMap::from([(HEADER.to_owned(), header)]);
        safetensors::serialize(views, Some(metadata)).map_err(|e| e.to_string())
    }
}

const HEADER: &str = "widemargin";

/// Arrays of a document that was read, each to be taken once.
pub(crate) struct PartsReader<'a> {
    arrays: BTreeMap<String, TensorView<'a>>,
}

impl<'a> PartsReader<'a> {
    /// Finds the arrays and the header of a document.
    pub(crate) fn open(document: &'a [u8]) -> PartsResult<(Self, String)> {
        let (_, metadata) =
            SafeTensors::read_metadata(document).map_err(|error| error.to_string())?;
        let header = metadata.metadata().as_ref().and_then(|entries| entries.get(HEADER).cloned());
        let header = header.ok_or_else(|| format!("no '{HEADER}' entry in its metadata"))?;
        let tensors = SafeTensors::deserialize(document).map_err(|error| error.to_string())?;
        Ok((Self { arrays: tensors.tensors().into_iter().collect() }, header))
    }

    /// Gives an array, if it is there, another name.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        if let Some(view) = self.arrays.remove(from) {
            self.arrays.insert(to.to_owned(), view);
        }
    }

    /// Takes a table of this many columns.
    pub(crate) fn take_matrix(&mut self, name: &str, columns: usize) -> PartsResult<Matrix> {
        fn dense<T: Element>(
            parts: &mut PartsReader<'_>,
            name: &str,
            expected: usize,
        ) -> PartsResult<Dense<T>> {
            let ([rows, columns], values) = parts.take::<T, 2>(&format!("{name}.values"))?;
            if columns != expected {
                return Err(format!("{name}: expected {expected} features, found {columns}"));
            }
            Dense::new(rows, columns, values).map_err(|error| error.to_string())
        }
        fn sparse<T: Element>(
            parts: &mut PartsReader<'_>,
            name: &str,
            columns: usize,
        ) -> PartsResult<Csr<T>> {
            let starts = parts.take_indices(&format!("{name}.indptr"))?;
            let indices = parts.take_list::<u32>(&format!("{name}.indices"))?;
            let values = parts.take_list::<T>(&format!("{name}.values"))?;
            Csr::new(columns, starts, indices, values).map_err(|error| error.to_string())
        }
        let is_sparse = self.arrays.contains_key(&format!("{name}.indptr"));
        match (self.arrays.get(&format!("{name}.values")).map(TensorView::dtype), is_sparse) {
            (Some(Dtype::F32), false) => dense(self, name, columns).map(Matrix::DenseF32),
            (Some(Dtype::F32), true) => sparse(self, name, columns).map(Matrix::SparseF32),
            (_, false) => dense(self, name, columns).map(Matrix::DenseF64),
            (_, true) => sparse(self, name, columns).map(Matrix::SparseF64),
        }
    }

    /// Takes an array of `N` dimensions.
    pub(crate) fn take<T: Element, const N: usize>(
        &mut self,
        name: &str,
    ) -> PartsResult<([usize; N], Vec<T>)> {
        let view = self.arrays.remove(name).ok_or_else(|| format!("array '{name}' is missing"))?;
        if view.dtype() != T::DTYPE {
            let (expected, found) = (T::DTYPE, view.dtype());
            return Err(format!("array '{name}': expected {expected:?} numbers, found {found:?}"));
        }
        let found = view.shape().len();
        let shape = <[usize; N]>::try_from(view.shape())
            .map_err(|_| format!("array '{name}': expected {N} dimensions, found {found}"))?;
        Ok((shape, T::get_all(view.data())))
    }

    /// Takes an array of one dimension.
    pub(crate) fn take_list<T: Element>(&mut self, name: &str) -> PartsResult<Vec<T>> {
        self.take::<T, 1>(name).map(|(_, values)| values)
    }

    /// Takes a list of whole numbers that must be indices on this machine.
    pub(crate) fn take_indices(&mut self, name: &str) -> PartsResult<Vec<usize>> {
        self.take_list::<u64>(name)?.into_iter().map(|value| to_index(name, value)).collect()
    }

    /// Takes an array that must be empty, if it is there.
    pub(crate) fn take_empty(&mut self, name: &str) -> PartsResult<()> {
        match self.arrays.remove(name) {
            Some(view) if !view.data().is_empty() => Err(format!("unknown array '{name}'")),
            _ => Ok(()),
        }
    }

    /// Checks that every array was taken.
    pub(crate) fn finish(self) -> PartsResult<()> {
        match self.arrays.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("unknown array '{name}'")),
        }
    }
}

/// A whole number as an index.
pub(crate) fn to_index(name: &str, value: u64) -> PartsResult<usize> {
    usize::try_from(value).map_err(|_| format!("array '{name}': {value} is too large an index"))
}

/// The header of a body as a value.
pub(crate) fn to_header(header: &impl Serialize) -> PartsResult<Value> {
    serde_json::to_value(header).map_err(|error| error.to_string())
}

/// The header of a body from a value.
pub(crate) fn from_header<T: DeserializeOwned>(header: Value) -> PartsResult<T> {
    serde_json::from_value(header).map_err(|error| format!("header: {error}").replace('`', "'"))
}
