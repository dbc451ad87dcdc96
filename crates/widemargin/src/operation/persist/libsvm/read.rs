//! Reads LIBSVM's model files; every mistake in them is reported with line and column.
//!
//! As in LIBSVM the header's keys may stand in any order that puts `nr_class` before the lists it
//! counts, and line breaks in it do not matter. Feature indices count from 1, or from 0 when the
//! file uses index 0, as LIBSVM allows.

use std::path::Path;

use super::super::tokens::{Token, Tokens};
use super::{KERNELS, KEYS, MACHINES};
use crate::data::read::{DEFAULT_MAX_COLUMNS, IndexBase};
use crate::data::{Csr, Label, Layout, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::{
    Calibration, ClassTable, DecisionFunction, KernelExpansion, MachineKind, Model, Part,
    Precision, Preparation, Scheme, reason,
};

/// The model in a file's bytes.
pub(in super::super) fn read(path: &Path, bytes: &[u8]) -> Result<Model> {
    let mut tokens = Tokens::new(path, bytes);
    let header = Header::read(&mut tokens)?;
    let kind = header.kind(&tokens)?;
    let kernel = header.kernel(&tokens)?;
    let classes = header.classes(&tokens, kind)?;
    let vectors = Vectors::read(&mut tokens, &header, kernel == Kernel::Precomputed)?;
    let functions = header.functions(&classes, &vectors);
    let index_base = (kernel != Kernel::Precomputed).then(|| vectors.index_base());
    let (support, support_rows) = vectors.into_matrix(index_base)?;
    let precision = Precision::F64;
    let body = KernelExpansion { kernel, precision, support, support_rows, functions };
    let model = Model {
        calibration: header.calibration(&tokens, kind)?,
        classes,
        preparation: Preparation { index_base, ..Preparation::default() },
        ..Model::new(kind, body)
    };
    match model.validate() {
        Ok(()) => Ok(model),
        Err(error) => Err(Error::Format { path: path.into(), message: reason(error) }),
    }
}

/// Keys and values, each with the place of its key.
#[derive(Default)]
struct Header<'a> {
    svm_type: Option<Token<'a>>,
    kernel_type: Option<Token<'a>>,
    degree: Option<u32>,
    gamma: Option<f64>,
    coef0: Option<f64>,
    nr_class: Option<usize>,
    total_sv: Option<usize>,
    rho: Option<Vec<f64>>,
    label: Option<Vec<i64>>,
    prob_a: Option<Vec<f64>>,
    prob_b: Option<Vec<f64>>,
    marks: Option<Vec<f64>>,
    nr_sv: Option<Vec<usize>>,
    /// Where the header ended.
    end: (usize, usize),
}

/// Number of density marks in every one-class model.
const DENSITY_MARKS: usize = 10;

impl<'a> Header<'a> {
    fn read(tokens: &mut Tokens<'a>) -> Result<Self> {
        let mut header = Self::default();
        let mut seen = Vec::new();
        loop {
            let key = tokens.next().ok_or_else(|| tokens.missing("'SV' and support vectors"))?;
            if seen.contains(&key.text) {
                return Err(tokens.unexpected(key, "every key once"));
            }
            seen.push(key.text);
            match key.text {
                b"svm_type" => header.svm_type = Some(value(tokens, "a machine")?),
                b"kernel_type" => header.kernel_type = Some(value(tokens, "a kernel")?),
                b"degree" => header.degree = Some(whole(tokens, "a whole number of at least 0")?),
                b"gamma" => header.gamma = Some(finite(tokens)?),
                b"coef0" => header.coef0 = Some(finite(tokens)?),
                b"nr_class" => {
                    let token = value(tokens, "a number of classes")?;
                    let count: u32 = tokens.parse(token, "a number of classes")?;
                    if count == 0 {
                        return Err(tokens.unexpected(token, "at least one class"));
                    }
                    header.nr_class = Some(count as usize);
                }
                b"total_sv" => header.total_sv = Some(whole(tokens, "a number of vectors")?),
                b"rho" => header.rho = Some(list(tokens, header.pairs(tokens, key)?, finite)?),
                b"probA" => header.prob_a = Some(list(tokens, header.pairs(tokens, key)?, finite)?),
                b"probB" => header.prob_b = Some(list(tokens, header.pairs(tokens, key)?, finite)?),
                b"prob_density_marks" => header.marks = Some(list(tokens, DENSITY_MARKS, finite)?),
                b"label" => {
                    let count = header.count(tokens, key)?;
                    header.label = Some(list(tokens, count, |t| whole(t, "a whole number"))?);
                }
                b"nr_sv" => {
                    let count = header.count(tokens, key)?;
                    header.nr_sv = Some(list(tokens, count, |t| whole(t, "a number of vectors"))?);
                }
                b"SV" => {
                    header.end = (key.line, key.column);
                    return match tokens.next_on_line() {
                        None => Ok(header),
                        Some(token) => Err(tokens.unexpected(token, "the end of the line")),
                    };
                }
                _ => {
                    let expected = format!("one of {}", KEYS.join(", "));
                    return Err(tokens.unexpected(key, expected));
                }
            }
        }
    }

    /// `nr_class`, which must come before `key`.
    fn count(&self, tokens: &Tokens<'_>, key: Token<'_>) -> Result<usize> {
        self.nr_class.ok_or_else(|| tokens.unexpected(key, "nr_class first"))
    }

    /// Number of pairs of classes.
    fn pairs(&self, tokens: &Tokens<'_>, key: Token<'_>) -> Result<usize> {
        let classes = self.count(tokens, key)? as u64;
        usize::try_from(classes * (classes - 1) / 2)
            .map_err(|_| tokens.unexpected(key, "fewer classes"))
    }

    /// An error for a header that lacks something.
    fn lacks(&self, tokens: &Tokens<'_>, expected: &str) -> Error {
        tokens.error(self.end.0, self.end.1, expected, "none before 'SV'".into())
    }

    fn kind(&self, tokens: &Tokens<'_>) -> Result<MachineKind> {
        let token = self.svm_type.ok_or_else(|| self.lacks(tokens, "svm_type"))?;
        let known = MACHINES.iter().find(|(name, _)| name.as_bytes() == token.text);
        let names = MACHINES.map(|(name, _)| name).join(", ");
        known
            .map(|&(_, kind)| kind)
            .ok_or_else(|| tokens.unexpected(token, format!("one of {names}")))
    }

    fn kernel(&self, tokens: &Tokens<'_>) -> Result<Kernel> {
        let token = self.kernel_type.ok_or_else(|| self.lacks(tokens, "kernel_type"))?;
        let gamma = || self.gamma.ok_or_else(|| self.lacks(tokens, "gamma"));
        let coef0 = || self.coef0.ok_or_else(|| self.lacks(tokens, "coef0"));
        let degree = || self.degree.ok_or_else(|| self.lacks(tokens, "degree"));
        Ok(match token.text {
            b"linear" => Kernel::Linear,
            b"polynomial" => {
                Kernel::Polynomial { gamma: gamma()?, coef0: coef0()?, degree: degree()? }
            }
            b"rbf" => Kernel::Gaussian { gamma: gamma()? },
            b"sigmoid" => Kernel::Sigmoid { gamma: gamma()?, coef0: coef0()? },
            b"precomputed" => Kernel::Precomputed,
            _ => return Err(tokens.unexpected(token, format!("one of {}", KERNELS.join(", ")))),
        })
    }

    fn classes(&self, tokens: &Tokens<'_>, kind: MachineKind) -> Result<Option<ClassTable>> {
        let count = self.nr_class.ok_or_else(|| self.lacks(tokens, "nr_class"))?;
        let total = self.total_sv.ok_or_else(|| self.lacks(tokens, "total_sv"))?;
        if self.rho.is_none() {
            return Err(self.lacks(tokens, "rho"));
        }
        if !kind.is_classifier() {
            return if count == 2 {
                Ok(None)
            } else {
                let (line, column) = self.end;
                Err(tokens.error(line, column, "nr_class 2 for this machine", count.to_string()))
            };
        }
        let labels = self.label.as_ref().ok_or_else(|| self.lacks(tokens, "label"))?;
        let support = self.nr_sv.as_ref().ok_or_else(|| self.lacks(tokens, "nr_sv"))?;
        let sum = support.iter().try_fold(0_usize, |sum, &n| sum.checked_add(n));
        if sum != Some(total) {
            let expected = format!("nr_sv that adds up to total_sv {total}");
            let found = sum.map_or("far more".into(), |sum| sum.to_string());
            return Err(tokens.error(self.end.0, self.end.1, expected, found));
        }
        Ok(Some(ClassTable {
            names: labels.iter().map(|&label| Label::Int(label)).collect(),
            scheme: Scheme::OneVsOne,
            support: support.clone(),
        }))
    }

    /// The functions, by LIBSVM's placement of coefficients.
    fn functions(&self, classes: &Option<ClassTable>, vectors: &Vectors) -> Vec<DecisionFunction> {
        let offsets = self.rho.as_deref().unwrap_or_default();
        let Some(table) = classes else {
            let range = 0..vectors.count();
            let parts =
                vec![Part { coefficients: vectors.coefficients(range.clone(), 0), support: range }];
            return offsets
                .iter()
                .map(|&offset| DecisionFunction { parts: parts.clone(), offset })
                .collect();
        };
        let mut starts = vec![0];
        for count in &table.support {
            starts.push(starts[starts.len() - 1] + count);
        }
        let run = |class: usize| starts[class]..starts[class + 1];
        let pairs =
            (0..table.names.len()).flat_map(|i| (i + 1..table.names.len()).map(move |j| (i, j)));
        let parts = pairs.map(|(i, j)| {
            [(i, j - 1), (j, i)]
                .into_iter()
                .map(|(class, place)| Part {
                    support: run(class),
                    coefficients: vectors.coefficients(run(class), place),
                })
                .collect()
        });
        parts.zip(offsets).map(|(parts, &offset)| DecisionFunction { parts, offset }).collect()
    }

    fn calibration(&self, tokens: &Tokens<'_>, kind: MachineKind) -> Result<Option<Calibration>> {
        let Self { prob_a, prob_b, marks, .. } = self;
        let odd = |found: &str| {
            let expected = format!("the probability entries of {kind}");
            Err(tokens.error(self.end.0, self.end.1, expected, found.into()))
        };
        Ok(match (prob_a, prob_b, marks) {
            (None, None, None) => None,
            (Some(a), Some(b), None) if kind.is_classifier() => {
                Some(Calibration::Sigmoid { a: a.clone(), b: b.clone() })
            }
            (Some(scale), None, None) if kind.is_regressor() => {
                Some(Calibration::Laplace { scale: scale[0] })
            }
            (None, None, Some(marks)) if kind == MachineKind::OneClass => {
                Some(Calibration::Density { marks: marks.clone() })
            }
            (Some(_), None, None) => return odd("probA alone"),
            (None, Some(_), None) => return odd("probB alone"),
            (Some(_), Some(_), None) => return odd("probA and probB"),
            (_, _, Some(_)) => return odd("prob_density_marks"),
        })
    }
}

fn value<'a>(tokens: &mut Tokens<'a>, expected: &str) -> Result<Token<'a>> {
    tokens.next().ok_or_else(|| tokens.missing(expected))
}

fn whole<T: std::str::FromStr>(tokens: &mut Tokens<'_>, expected: &str) -> Result<T> {
    let token = value(tokens, expected)?;
    tokens.parse(token, expected)
}

fn finite(tokens: &mut Tokens<'_>) -> Result<f64> {
    let token = value(tokens, "a finite number")?;
    tokens.parse_finite(token, "a finite number")
}

fn list<'a, T>(
    tokens: &mut Tokens<'a>,
    count: usize,
    mut item: impl FnMut(&mut Tokens<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    // Collecting results does not reserve room, so an absurd count costs nothing.
    (0..count).map(|_| item(tokens)).collect()
}

/// The lines after `SV`.
struct Vectors {
    /// Coefficients on each line.
    width: usize,
    /// Coefficients of all lines.
    coefficients: Vec<f64>,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    /// Serial numbers, for a precomputed kernel.
    serials: Vec<u32>,
}

impl Vectors {
    fn read(tokens: &mut Tokens<'_>, header: &Header<'_>, precomputed: bool) -> Result<Self> {
        let total = header.total_sv.unwrap_or(0);
        let mut vectors = Self {
            width: header.nr_class.unwrap_or(2) - 1,
            coefficients: Vec::new(),
            starts: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
            serials: Vec::new(),
        };
        for done in 0..total {
            if !tokens.next_line() {
                let expected = format!("{total} support vectors as total_sv says");
                let (line, column) = header.end;
                let found = if done == 0 { "none".into() } else { format!("only {done}") };
                return Err(tokens.error(line, column, expected, found));
            }
            for _ in 0..vectors.width {
                let token = tokens.next_on_line().ok_or_else(|| tokens.missing("a coefficient"))?;
                vectors.coefficients.push(tokens.parse_finite(token, "a finite coefficient")?);
            }
            if precomputed {
                vectors.read_serial(tokens)?;
            } else {
                vectors.read_pairs(tokens)?;
            }
        }
        if tokens.next_line()
            && let Some(token) = tokens.next()
        {
            let expected = format!("the end after {total} support vectors as total_sv says");
            return Err(tokens.unexpected(token, expected));
        }
        Ok(vectors)
    }

    fn read_pairs(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        let mut least = 0_u32;
        while let Some(token) = tokens.next_on_line() {
            let (index, value) = split_pair(tokens, token)?;
            let number: u32 = tokens.parse(index, "a feature index")?;
            if number < least {
                let expected = format!("ascending feature indices, here at least {least}");
                return Err(tokens.unexpected(index, expected));
            }
            if number as usize > DEFAULT_MAX_COLUMNS {
                let expected = format!("a feature index of at most {DEFAULT_MAX_COLUMNS}");
                return Err(tokens.unexpected(index, expected));
            }
            least = number + 1;
            self.indices.push(number);
            self.values.push(tokens.parse_finite(value, "a finite value")?);
        }
        self.starts.push(self.indices.len());
        Ok(())
    }

    fn read_serial(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        let expected = "0:serial, the training row of a precomputed kernel from 1,";
        let token = tokens.next_on_line().ok_or_else(|| tokens.missing(expected))?;
        let (index, value) = split_pair(tokens, token)?;
        let serial: u32 = tokens.parse(value, expected)?;
        if index.text != b"0" || serial == 0 {
            return Err(tokens.unexpected(token, expected));
        }
        self.serials.push(serial - 1);
        self.starts.push(0);
        match tokens.next_on_line() {
            None => Ok(()),
            Some(token) => Err(tokens.unexpected(token, "the end of the line")),
        }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn coefficients(&self, rows: std::ops::Range<usize>, place: usize) -> Vec<f64> {
        rows.map(|row| self.coefficients[row * self.width + place]).collect()
    }

    fn index_base(&self) -> IndexBase {
        if self.indices.contains(&0) { IndexBase::Zero } else { IndexBase::One }
    }

    /// The table and the training rows; no base means a precomputed kernel.
    fn into_matrix(self, base: Option<IndexBase>) -> Result<(Matrix, Vec<usize>)> {
        let Self { starts, mut indices, values, serials, .. } = self;
        if base.is_none() {
            let rows: Vec<usize> = serials.into_iter().map(|serial| serial as usize).collect();
            let columns = rows.iter().max().map_or(1, |last| last + 1);
            let matrix = Csr::new(columns, starts, Vec::new(), Vec::new())?;
            return Ok((Matrix::SparseF64(matrix), rows));
        }
        if base == Some(IndexBase::One) {
            indices.iter_mut().for_each(|index| *index -= 1);
        }
        let columns = indices.iter().max().map_or(1, |&last| last as usize + 1);
        let matrix = Matrix::SparseF64(Csr::new(columns, starts, indices, values)?);
        Ok((matrix.into_layout(Layout::Auto), Vec::new()))
    }
}

/// The two sides of `index:value`.
fn split_pair<'a>(tokens: &Tokens<'_>, token: Token<'a>) -> Result<(Token<'a>, Token<'a>)> {
    let colon = token.text.iter().position(|&b| b == b':');
    let colon = colon.ok_or_else(|| tokens.unexpected(token, "index:value"))?;
    let value = Token { text: &token.text[colon + 1..], column: token.column + colon + 1, ..token };
    Ok((Token { text: &token.text[..colon], ..token }, value))
}
