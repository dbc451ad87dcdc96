//! The parameters of string kernels in a kernel expression, such as `spectrum(length=4)`.

use super::kernel_expression::Parser;
use crate::data::Matrix;
use crate::error::Result;
use crate::kernel::{StringKernel, StringSimilarity};

/// Reads the parameters of a kernel, of which the parser has read the name.
///
/// # Errors
/// [`Error::Parameter`](crate::Error::Parameter) naming the place of what does not fit.
pub(super) fn parameters(
    parser: &mut Parser<'_>,
    similarity: StringSimilarity,
) -> Result<StringKernel> {
    let mut kernel = StringKernel { similarity, normalize: true };
    let mut shortest = None;
    if parser.eat('(') && !parser.eat(')') {
        loop {
            let name = parser.name(names(&similarity))?;
            match name {
                "shortest" => shortest = Some(whole(parser)?),
                "normalize" => kernel.normalize = parser.truth()?,
                _ => parameter(parser, name, &mut kernel.similarity)?,
            }
            if parser.eat(')') {
                break;
            }
            if !parser.eat(',') {
                return Err(parser.unexpected("',' or ')'"));
            }
        }
    }
    if let StringSimilarity::Spectrum { length, shortest: least } = &mut kernel.similarity {
        *least = shortest.unwrap_or(*length);
    }
    Ok(kernel)
}

/// The kernel for a table: an alphabet that was not given is that of its strings.
pub(super) fn resolved(kernel: &StringKernel, features: &Matrix) -> StringKernel {
    let mut kernel = *kernel;
    if let StringSimilarity::Mismatch { alphabet: alphabet @ 0, .. } = &mut kernel.similarity {
        let mut seen: Vec<u32> = Vec::new();
        for row in 0..features.rows() {
            features.for_each_nonzero(row, |_, value| seen.push(value as u32));
            // Rows are long and alphabets small.
            seen.sort_unstable();
            seen.dedup();
        }
        *alphabet = (seen.len() as u32).max(2);
    }
    kernel
}

fn names(similarity: &StringSimilarity) -> &'static [&'static str] {
    match similarity {
        StringSimilarity::Spectrum { .. } => &["length", "shortest", "normalize"],
        StringSimilarity::Mismatch { .. } => &["length", "mismatches", "alphabet", "normalize"],
        StringSimilarity::Subsequence { .. } => &["length", "decay", "normalize"],
        _ => &["match", "mismatch", "open", "extend", "beta", "log", "normalize"],
    }
}

fn parameter(parser: &mut Parser<'_>, name: &str, similarity: &mut StringSimilarity) -> Result<()> {
    match similarity {
        StringSimilarity::Spectrum { length, .. } => *length = whole(parser)?,
        StringSimilarity::Mismatch { length, mismatches, alphabet } => match name {
            "length" => *length = whole(parser)?,
            "mismatches" => *mismatches = whole(parser)?,
            _ => *alphabet = whole(parser)?,
        },
        StringSimilarity::Subsequence { length, decay } => match name {
            "length" => *length = whole(parser)?,
            _ => *decay = parser.number(|_| true, "a number")?,
        },
        StringSimilarity::Alignment { reward, penalty, open, extend, beta, log } => {
            let number = match name {
                "match" => reward,
                "mismatch" => penalty,
                "open" => open,
                "extend" => extend,
                "beta" => beta,
                _ => {
                    *log = parser.truth()?;
                    return Ok(());
                }
            };
            *number = parser.number(|_| true, "a number")?;
        }
    }
    Ok(())
}

fn whole(parser: &mut Parser<'_>) -> Result<u32> {
    let whole = |v: f64| v >= 0.0 && v.fract() == 0.0 && v <= f64::from(u32::MAX);
    Ok(parser.number(whole, "a whole number of at least 0")? as u32)
}
