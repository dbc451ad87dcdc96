//! Named arrays of numbers inside a `safetensors` document.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// A number that `safetensors` can hold, little-endian.
pub(super) trait Element: Copy {
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
pub(super) struct ArrayWriter {
    arrays: Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)>,
}

impl ArrayWriter {
    /// Adds an array; `shape` multiplies to the number of values.
    pub(super) fn put<T: Element>(
        &mut self,
        name: &'static str,
        shape: Vec<usize>,
        values: impl IntoIterator<Item = T>,
    ) {
        let count: usize = shape.iter().product();
        let mut bytes = Vec::with_capacity(count * size_of::<T>());
        values.into_iter().for_each(|value| value.put(&mut bytes));
        self.arrays.push((name, T::DTYPE, shape, bytes));
    }

    /// The document, with `header` as its metadata.
    pub(super) fn finish(self, header: String) -> Result<Vec<u8>, String> {
        let views = self.arrays.iter().map(|(name, dtype, shape, bytes)| {
            TensorView::new(*dtype, shape.clone(), bytes).map(|view| (*name, view))
        });
        let views = views.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let metadata = HashMap::from([(HEADER.to_owned(), header)]);
        safetensors::serialize(views, Some(metadata)).map_err(|e| e.to_string())
    }
}

const HEADER: &str = "widemargin";

/// Arrays of a document that was read, each to be taken once.
pub(super) struct ArrayReader<'a> {
    arrays: BTreeMap<String, TensorView<'a>>,
}

impl<'a> ArrayReader<'a> {
    /// Finds the arrays and the header of a document.
    pub(super) fn open(document: &'a [u8]) -> Result<(Self, String), String> {
        let (_, metadata) =
            SafeTensors::read_metadata(document).map_err(|error| error.to_string())?;
        let header = metadata.metadata().as_ref().and_then(|entries| entries.get(HEADER).cloned());
        let header = header.ok_or_else(|| format!("no '{HEADER}' entry in its metadata"))?;
        let tensors = SafeTensors::deserialize(document).map_err(|error| error.to_string())?;
        Ok((Self { arrays: tensors.tensors().into_iter().collect() }, header))
    }

    /// Whether an array is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    /// The element type of an array.
    pub(super) fn dtype(&self, name: &str) -> Option<Dtype> {
        self.arrays.get(name).map(TensorView::dtype)
    }

    /// Takes an array of `N` dimensions.
    pub(super) fn take<T: Element, const N: usize>(
        &mut self,
        name: &str,
    ) -> Result<([usize; N], Vec<T>), String> {
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
    pub(super) fn take_list<T: Element>(&mut self, name: &str) -> Result<Vec<T>, String> {
        self.take::<T, 1>(name).map(|(_, values)| values)
    }

    /// Takes a list of whole numbers that must be indices on this machine.
    pub(super) fn take_indices(&mut self, name: &str) -> Result<Vec<usize>, String> {
        self.take_list::<u64>(name)?.into_iter().map(|value| to_index(name, value)).collect()
    }

    /// Checks that every array was taken.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.arrays.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("unknown array '{name}'")),
        }
    }
}

/// A whole number as an index.
pub(super) fn to_index(name: &str, value: u64) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| format!("array '{name}': {value} is too large an index"))
}
