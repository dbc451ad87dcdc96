//! A file of LIBSVM text read block by block, so that its text never is in memory as a whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::super::assemble::Real;
use super::super::options::{ReadOptions, StoredPrecision};
use super::super::source::{Compression, without_byte_order_mark};
use super::line::{Parsed, parse_lines};
use super::rules::Rules;
use super::{Extent, LibsvmText, groups, join, labels};
use crate::error::Result;

/// Bytes of a block, which stays in the second-level cache between reading and parsing.
const BLOCK: usize = 1 << 18;

/// Reads a plain file as [`read`](super::read) reads its bytes, or gives nothing where those are
/// needed as a whole: to report a fault and its place, for labels that are words, for packed files,
/// or to be parsed by several threads.
///
/// # Errors
/// [`Error::TooLarge`](crate::Error::TooLarge).
pub(in super::super) fn read_file(
    path: &Path,
    options: &ReadOptions,
) -> Result<Option<LibsvmText>> {
    if rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1 {
        return Ok(None);
    }
    match options.precision {
        StoredPrecision::F32 => read_as::<f32>(path, options),
        StoredPrecision::Auto | StoredPrecision::F64 => read_as::<f64>(path, options),
    }
}

fn read_as<T: Real>(path: &Path, options: &ReadOptions) -> Result<Option<LibsvmText>> {
    let rules = Rules::new(options);
    let Ok(Some(parsed)) = parse_file::<T>(path, &rules, BLOCK) else { return Ok(None) };
    let parts = vec![parsed];
    let extent = Extent::of(&parts, options);
    if extent.rows == 0 || extent.columns > rules.columns {
        return Ok(None);
    }
    match (labels(&parts, options), groups(&parts)) {
        (Some(labels), Ok(groups)) => join(parts, &extent, labels, groups, options).map(Some),
        _ => Ok(None),
    }
}

/// The rows of a plain file without a fault.
fn parse_file<T: Real>(path: &Path, rules: &Rules, block: usize) -> io::Result<Option<Parsed<T>>> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(None);
    }
    let mut parsed = Parsed::new(0, usize::try_from(about.len()).unwrap_or(0));
    let mut text = vec![0; block];
    let (mut filled, mut begun) = (0, false);
    loop {
        let count = file.read(&mut text[filled..])?;
        filled += count;
        if count > 0 && filled < Compression::SIGNATURE {
            continue;
        }
        if !begun {
            if Compression::detect(&text[..filled]) != Compression::None {
                return Ok(None);
            }
            let marked = filled - without_byte_order_mark(&text[..filled]).len();
            text.copy_within(marked..filled, 0);
            filled -= marked;
            begun = true;
        }
        let whole = match memchr::memrchr(b'\n', &text[..filled]) {
            _ if count == 0 => filled,
            Some(newline) => newline + 1,
            None => 0,
        };
        if parse_lines(&text[..whole], rules, &mut parsed).is_err() {
            return Ok(None);
        }
        if count == 0 {
            return Ok(Some(parsed));
        }
        text.copy_within(whole..filled, 0);
        filled -= whole;
        if filled == text.len() {
            text.resize(2 * filled, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::read::libsvm::{LabelColumn, read};

    proptest! {
        #[test]
        fn a_file_in_blocks_is_the_file(
            lines in prop::collection::vec(
                prop::sample::select(vec![
                    "1 1:2 5:0.25", "-1 2:3", "", "# note", "+1 4:1e-3 7:0", "2\r", "0 1:1 2:2",
                    "0.5 9:9", "1 0:3 2:1", "3 qid:7 2:2",
                ]),
                1..30,
            ),
            block in 6_usize..60,
            labelled in any::<bool>(),
            marked in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            let mark = if marked { "\u{feff}" } else { "" };
            std::fs::write(&path, format!("{mark}{}", lines.join("\n"))).unwrap();
            let column = if labelled { LabelColumn::Auto } else { LabelColumn::Absent };
            let options = ReadOptions::new().label_column(column);
            let bytes = crate::data::read::source::read_all(&path).unwrap();
            let whole = read(&bytes, &path, &options);
            let rules = Rules::new(&options);
            let parsed = parse_file::<f64>(&path, &rules, block).unwrap();
            if let (Some(parsed), Ok(whole)) = (parsed, whole) {
                let parts = vec![parsed];
                let extent = Extent::of(&parts, &options);
                let found = labels(&parts, &options).unwrap();
                let groups = groups(&parts).ok().unwrap();
                let own = join(parts, &extent, found, groups, &options).unwrap();
                prop_assert_eq!(own.dataset, whole.dataset);
                prop_assert_eq!(own.base, whole.base);
            } else {
                prop_assert!(read_file(&path, &options).unwrap().is_none());
            }
        }
    }
}
