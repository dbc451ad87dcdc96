//! Kernels written as text, such as `rbf`, `poly(degree=2, gamma=auto)` or
//! `0.5*rbf(gamma=0.1) + linear*cosine`.
//!
//! A sum has terms, a term is a product of kernels, numbers and parenthesised sums, the numbers
//! being the term's weight; a kernel takes the parameters `gamma`, `coef0` and `degree` in
//! parentheses, and those it does not name from the defaults.

use std::fmt;
use std::ops::Range;

use super::Gamma;
use super::kernel_list::kernel_texts;
use super::string_expression;
use crate::data::Matrix;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, StringKernel, StringSimilarity};

const DEPTH_LIMIT: usize = 32;
const NAMES: &str = "linear, poly, rbf, sigmoid, laplacian, chi2, cosine, spectrum, mismatch, \
                     subsequence, alignment, precomputed or view";

/// Parameters of a kernel that does not name its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelDefaults {
    /// γ of every kernel that has one.
    pub gamma: Gamma,
    /// c₀ of the polynomial and sigmoid kernels.
    pub coef0: f64,
    /// Exponent of the polynomial kernel.
    pub degree: u32,
}

impl Default for KernelDefaults {
    fn default() -> Self {
        Self { gamma: Gamma::Scale, coef0: 0.0, degree: 3 }
    }
}

/// A kernel whose γ may still depend on the data.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelExpression(Node);

#[derive(Clone, Copy, Debug, PartialEq)]
enum KernelName {
    Linear,
    Polynomial,
    Gaussian,
    Sigmoid,
    Laplacian,
    ChiSquared,
    Cosine,
    Precomputed,
}

impl KernelName {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "linear" => Self::Linear,
            "poly" | "polynomial" => Self::Polynomial,
            "rbf" | "gaussian" => Self::Gaussian,
            "sigmoid" => Self::Sigmoid,
            "laplacian" => Self::Laplacian,
            "chi2" => Self::ChiSquared,
            "cosine" => Self::Cosine,
            "precomputed" => Self::Precomputed,
            _ => return None,
        })
    }

    fn takes(self, parameter: &str) -> bool {
        match self {
            Self::Linear | Self::Cosine | Self::Precomputed => false,
            Self::Gaussian | Self::Laplacian | Self::ChiSquared => parameter == "gamma",
            Self::Sigmoid => matches!(parameter, "gamma" | "coef0"),
            Self::Polynomial => matches!(parameter, "gamma" | "coef0" | "degree"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Leaf(KernelName, KernelDefaults),
    String(StringKernel),
    Sum(Vec<(f64, Node)>),
    Product(Vec<Node>),
    View(Vec<Range<usize>>, Box<Node>),
}

impl Node {
    fn resolve(&self, features: &Matrix) -> Kernel {
        match self {
            Self::Leaf(family, parameters) => {
                let KernelDefaults { coef0, degree, .. } = *parameters;
                let gamma = || parameters.gamma.resolve(features);
                match family {
                    KernelName::Linear => Kernel::Linear,
                    KernelName::Polynomial => Kernel::Polynomial { gamma: gamma(), coef0, degree },
                    KernelName::Gaussian => Kernel::Gaussian { gamma: gamma() },
                    KernelName::Sigmoid => Kernel::Sigmoid { gamma: gamma(), coef0 },
                    KernelName::Laplacian => Kernel::Laplacian { gamma: gamma() },
                    KernelName::ChiSquared => Kernel::ChiSquared { gamma: gamma() },
                    KernelName::Cosine => Kernel::Cosine,
                    KernelName::Precomputed => Kernel::Precomputed,
                }
            }
            Self::String(kernel) => Kernel::String(string_expression::resolved(kernel, features)),
            Self::Sum(terms) => {
                Kernel::Sum(terms.iter().map(|(w, k)| (*w, k.resolve(features))).collect())
            }
            Self::Product(factors) => {
                Kernel::Product(factors.iter().map(|k| k.resolve(features)).collect())
            }
            Self::View(columns, inner) => {
                // Columns that do not exist are refused when rows are packed.
                let kernel = match features.select_columns(columns) {
                    Ok(view) => inner.resolve(&view),
                    Err(_) => inner.resolve(features),
                };
                Kernel::View { columns: columns.clone(), kernel: Box::new(kernel) }
            }
        }
    }
}

impl KernelExpression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`Error::Parameter`] naming the place of the first thing that does not fit.
    pub fn parse(text: &str, defaults: KernelDefaults) -> Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0, defaults };
        let node = parser.sum()?;
        match parser.rest() {
            "" => Ok(Self(node)),
            _ => Err(parser.unexpected("'+', '*' or the end")),
        }
    }

    /// Reads several expressions with commas between them. `gamma=LOW:HIGH:COUNT` stands for a kernel with
    /// each of so many γ of equal ratios, `degree=LOW:HIGH` for one with each degree.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub(crate) fn parse_list(text: &str, defaults: KernelDefaults) -> Result<Vec<Self>> {
        let text = &kernel_texts(text)?.join(",");
        let mut parser = Parser { text, at: 0, depth: 0, defaults };
        let mut list = vec![Self(parser.sum()?)];
        while parser.eat(',') {
            list.push(Self(parser.sum()?));
        }
        match parser.rest() {
            "" => Ok(list),
            _ => Err(parser.unexpected("'+', '*', ',' or the end")),
        }
    }

    /// Whether it compares strings, here or in a view.
    pub fn compares_strings(&self) -> bool {
        fn strings(node: &Node) -> bool {
            match node {
                Node::Leaf(..) => false,
                Node::String(_) => true,
                Node::Sum(terms) => terms.iter().any(|(_, node)| strings(node)),
                Node::Product(factors) => factors.iter().any(strings),
                Node::View(_, node) => strings(node),
            }
        }
        strings(&self.0)
    }

    /// The columns of a view.
    pub(crate) fn columns(&self) -> Option<&[Range<usize>]> {
        match &self.0 {
            Node::View(columns, _) => Some(columns),
            _ => None,
        }
    }

    /// The kernel for a table: `gamma=scale` and `gamma=auto` become numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`] or [`Error::Kernel`] for parameters out of range, see
    /// [`Kernel::validate`].
    pub fn resolve(&self, features: &Matrix) -> Result<Kernel> {
        let kernel = self.0.resolve(features);
        kernel.validate()?;
        Ok(kernel)
    }
}

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    defaults: KernelDefaults,
}

impl<'a> Parser<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    pub(super) fn eat(&mut self, symbol: char) -> bool {
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len_utf8();
        }
        found
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = &rest[..rest.find(|c| !inside(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// The longest run that can be a number, signs only at the start or after an exponent.
    fn number_text(&mut self) -> &'a str {
        let rest = self.rest();
        let mut previous = ' ';
        let end = rest.find(|c: char| {
            let sign = matches!(c, '+' | '-') && matches!(previous, ' ' | 'e' | 'E');
            previous = c;
            !(sign || c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E'))
        });
        let text = &rest[..end.unwrap_or(rest.len())];
        self.at += text.len();
        text
    }

    pub(super) fn unexpected(&mut self, expected: &str) -> Error {
        let rest = self.rest();
        let found = match rest.chars().next() {
            Some(_) => format!("'{rest}' at character {}", self.at + 1),
            None => format!("the end of '{}'", self.text),
        };
        Error::parameter("kernel", expected, found)
    }

    fn sum(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(self.unexpected("fewer nested parentheses"));
        }
        let mut terms = vec![self.term()?];
        while self.eat('+') {
            terms.push(self.term()?);
        }
        self.depth -= 1;
        Ok(match terms.pop() {
            Some((weight, node)) if weight == 1.0 && terms.is_empty() => node,
            last => {
                terms.extend(last);
                Node::Sum(terms)
            }
        })
    }

    fn term(&mut self) -> Result<(f64, Node)> {
        let mut weight = 1.0;
        let mut factors = Vec::new();
        loop {
            match self.rest().chars().next() {
                Some('(') => {
                    self.eat('(');
                    factors.push(self.sum()?);
                    if !self.eat(')') {
                        return Err(self.unexpected("')'"));
                    }
                }
                Some(c) if c.is_ascii_digit() || matches!(c, '.' | '-' | '+') => {
                    weight *= self.number(|value| value > 0.0, "a weight above 0")?;
                }
                _ => factors.push(self.leaf()?),
            }
            if !self.eat('*') {
                break;
            }
        }
        match factors.pop() {
            None => Err(self.unexpected("'*' and a kernel after the weight")),
            Some(factor) if factors.is_empty() => Ok((weight, factor)),
            Some(factor) => {
                factors.push(factor);
                Ok((weight, Node::Product(factors)))
            }
        }
    }

    pub(super) fn number(&mut self, accept: impl Fn(f64) -> bool, expected: &str) -> Result<f64> {
        self.rest();
        let start = self.at;
        match self.number_text().parse::<f64>() {
            Ok(value) if value.is_finite() && accept(value) => Ok(value),
            _ => {
                self.at = start;
                Err(self.unexpected(expected))
            }
        }
    }

    fn leaf(&mut self) -> Result<Node> {
        self.rest();
        let start = self.at;
        let word = self.word();
        if word == "view" {
            return self.view();
        }
        if let Some(similarity) = StringSimilarity::named(word) {
            return string_expression::parameters(self, similarity).map(Node::String);
        }
        let Some(family) = KernelName::named(word) else {
            self.at = start;
            return Err(self.unexpected(NAMES));
        };
        let mut parameters = self.defaults;
        if self.eat('(') && !self.eat(')') {
            loop {
                self.parameter(family, &mut parameters)?;
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected("',' or ')'"));
                }
            }
        }
        Ok(Node::Leaf(family, parameters))
    }

    /// The columns, counted from 1, and the kernel of a view: `(1-4, 7: rbf)`.
    fn view(&mut self) -> Result<Node> {
        if !self.eat('(') {
            return Err(self.unexpected("'('"));
        }
        let mut columns: Vec<Range<usize>> = Vec::new();
        loop {
            let first = self.column(columns.last().map_or(1, |range| range.end + 1))?;
            let last = if self.eat('-') { self.column(first)? } else { first };
            columns.push(first - 1..last);
            if !self.eat(',') {
                break;
            }
        }
        if !self.eat(':') {
            return Err(self.unexpected("',' or ':'"));
        }
        let kernel = self.sum()?;
        if !self.eat(')') {
            return Err(self.unexpected("')'"));
        }
        Ok(Node::View(columns, Box::new(kernel)))
    }

    fn column(&mut self, least: usize) -> Result<usize> {
        let whole = |v: f64| v >= least as f64 && v.fract() == 0.0 && v <= f64::from(u32::MAX);
        let expected = format!("the number of a column of at least {least}");
        Ok(self.number(whole, &expected)? as usize)
    }

    /// The name of one of these parameters and the sign after it.
    pub(super) fn name(&mut self, known: &[&str]) -> Result<&'a str> {
        self.rest();
        let start = self.at;
        let name = self.word();
        if !known.contains(&name) {
            self.at = start;
            let expected = format!("a parameter this kernel has ({})", known.join(", "));
            return Err(self.unexpected(&expected));
        }
        if self.eat('=') { Ok(name) } else { Err(self.unexpected("'='")) }
    }

    pub(super) fn truth(&mut self) -> Result<bool> {
        self.rest();
        let start = self.at;
        match self.word() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => {
                self.at = start;
                Err(self.unexpected("true or false"))
            }
        }
    }

    fn parameter(&mut self, family: KernelName, parameters: &mut KernelDefaults) -> Result<()> {
        self.rest();
        let start = self.at;
        let name = self.word();
        if !family.takes(name) {
            self.at = start;
            return Err(self.unexpected("a parameter this kernel has (gamma, coef0, degree)"));
        }
        if !self.eat('=') {
            return Err(self.unexpected("'='"));
        }
        match name {
            "gamma" => parameters.gamma = self.gamma()?,
            "coef0" => parameters.coef0 = self.number(|_| true, "a number")?,
            _ => {
                let whole = |v: f64| v >= 0.0 && v.fract() == 0.0 && v <= f64::from(u32::MAX);
                parameters.degree = self.number(whole, "a whole number of at least 0")? as u32;
            }
        }
        Ok(())
    }

    fn gamma(&mut self) -> Result<Gamma> {
        let start = self.at;
        match self.word() {
            "scale" => Ok(Gamma::Scale),
            "auto" => Ok(Gamma::Auto),
            "median" => Ok(Gamma::Median),
            _ => {
                self.at = start;
                let expected = "scale, auto, median or a number of at least 0";
                let value = self.number(|v| v >= 0.0, expected)?;
                Ok(Gamma::Value(value))
            }
        }
    }
}

impl fmt::Display for Kernel {
    /// Writes the kernel so that [`KernelExpression::parse`] reads it back; a user's own function
    /// is written by its name only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Polynomial { gamma, coef0, degree } => {
                write!(f, "poly(gamma={gamma}, coef0={coef0}, degree={degree})")
            }
            Self::Gaussian { gamma } | Self::Laplacian { gamma } | Self::ChiSquared { gamma } => {
                write!(f, "{}(gamma={gamma})", self.name())
            }
            Self::Sigmoid { gamma, coef0 } => write!(f, "sigmoid(gamma={gamma}, coef0={coef0})"),
            Self::Sum(terms) => {
                for (i, (weight, kernel)) in terms.iter().enumerate() {
                    f.write_str(if i > 0 { " + " } else { "" })?;
                    match kernel {
                        Self::Sum(_) => write!(f, "{weight}*({kernel})")?,
                        _ => write!(f, "{weight}*{kernel}")?,
                    }
                }
                Ok(())
            }
            Self::Product(factors) => {
                for (i, kernel) in factors.iter().enumerate() {
                    f.write_str(if i > 0 { "*" } else { "" })?;
                    match kernel {
                        Self::Sum(_) | Self::Product(_) => write!(f, "({kernel})")?,
                        _ => write!(f, "{kernel}")?,
                    }
                }
                Ok(())
            }
            Self::View { columns, kernel } => {
                f.write_str("view(")?;
                for (i, range) in columns.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    match range.len() {
                        1 => write!(f, "{}", range.end)?,
                        _ => write!(f, "{}-{}", range.start + 1, range.end)?,
                    }
                }
                write!(f, ": {kernel})")
            }
            Self::String(kernel) => write!(f, "{kernel}"),
            _ => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::Dense;

    fn table() -> Matrix {
        let values = vec![0.0, 2.0, 0.0, 2.0];
        Matrix::DenseF64(Dense::new(2, 2, values).expect("four values"))
    }

    fn read(text: &str) -> Result<Kernel> {
        KernelExpression::parse(text, KernelDefaults::default())?.resolve(&table())
    }

    #[test]
    fn gamma_comes_from_the_kernel_or_the_defaults() {
        assert_eq!(read("rbf").unwrap(), Kernel::Gaussian { gamma: 0.5 });
        assert_eq!(read("rbf(gamma=auto)").unwrap(), Kernel::Gaussian { gamma: 0.5 });
        assert_eq!(read("laplacian(gamma=1e-2)").unwrap(), Kernel::Laplacian { gamma: 0.01 });
        assert_eq!(
            read("poly( degree = 2 , coef0=-1, gamma=3 )").unwrap(),
            Kernel::Polynomial { gamma: 3.0, coef0: -1.0, degree: 2 }
        );
    }

    #[test]
    fn numbers_weigh_terms_and_products_bind_tighter() {
        let expected = Kernel::Sum(vec![
            (0.5, Kernel::Gaussian { gamma: 0.1 }),
            (1.0, Kernel::Product(vec![Kernel::Linear, Kernel::Cosine])),
        ]);
        assert_eq!(read("0.5*rbf(gamma=0.1) + linear*cosine").unwrap(), expected);
        assert_eq!(read("rbf(gamma=0.1)*0.5+linear*cosine").unwrap(), expected);
        let grouped = Kernel::Product(vec![
            Kernel::Linear,
            Kernel::Sum(vec![(1.0, Kernel::Cosine), (2.0, Kernel::Linear)]),
        ]);
        assert_eq!(read("linear*(cosine+2*linear)").unwrap(), grouped);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, message) in [
            ("", "the end of ''"),
            ("rbff", "'rbff' at character 1"),
            ("rbf(gama=1)", "'gama=1)' at character 5"),
            ("rbf(gamma=-1)", "'-1)' at character 11"),
            ("linear(gamma=1)", "'gamma=1)' at character 8"),
            ("poly(degree=1.5)", "'1.5)' at character 13"),
            ("rbf(gamma=1", "',' or ')'"),
            ("rbf+", "the end of 'rbf+'"),
            ("-1*rbf", "a weight above 0"),
            ("2", "a kernel after the weight"),
            ("rbf rbf", "'rbf' at character 5"),
            ("linear+precomputed", "to stand alone"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let deep = format!("{}rbf{}", "(".repeat(100), ")".repeat(100));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn a_view_is_a_kernel_of_some_columns_and_lists_have_commas() {
        let view = |columns: Vec<Range<usize>>, kernel| Kernel::View { columns, kernel };
        let text =
            "linear, view(2: rbf(gamma=auto)),view(1, 2-2: poly(gamma=1, degree=2) + linear)";
        let list = KernelExpression::parse_list(text, KernelDefaults::default()).unwrap();
        let list: Vec<Kernel> = list.iter().map(|one| one.resolve(&table()).unwrap()).collect();
        assert_eq!(list[0], Kernel::Linear);
        // γ is that of the one column that the kernel sees.
        let second = std::iter::once(1..2).collect();
        assert_eq!(list[1], view(second, Box::new(Kernel::Gaussian { gamma: 1.0 })));
        assert_eq!(read(&list[2].to_string()).unwrap(), list[2]);
        for (text, message) in [
            ("linear,", "the end of 'linear,'"),
            ("linear; rbf", "',' or the end"),
            ("view(2-1: rbf)", "a column of at least 2"),
            ("view(3,2: rbf)", "a column of at least 4"),
            ("view(0: rbf)", "a column of at least 1"),
            ("view(1 rbf)", "',' or ':'"),
        ] {
            let error = KernelExpression::parse_list(text, KernelDefaults::default()).unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }

    fn kernels() -> impl Strategy<Value = Kernel> {
        let number = 1e-6..1e6_f64;
        let leaf = prop_oneof![
            Just(Kernel::Linear),
            Just(Kernel::Cosine),
            number.clone().prop_map(|gamma| Kernel::Gaussian { gamma }),
            number.clone().prop_map(|gamma| Kernel::ChiSquared { gamma }),
            (number.clone(), -9.0..9.0_f64)
                .prop_map(|(gamma, coef0)| Kernel::Sigmoid { gamma, coef0 }),
            (number.clone(), 0..9_u32).prop_map(|(gamma, degree)| Kernel::Polynomial {
                gamma,
                coef0: 1.0,
                degree
            }),
        ];
        leaf.prop_recursive(3, 12, 3, move |inner| {
            prop_oneof![
                prop::collection::vec((number.clone(), inner.clone()), 1..4).prop_map(Kernel::Sum),
                prop::collection::vec(inner, 2..4).prop_map(Kernel::Product),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(kernel in kernels()) {
            prop_assert_eq!(read(&kernel.to_string()).unwrap(), kernel);
        }

        #[test]
        fn no_text_panics(text in "[a-z0-9+*(),.=éx-]{0,30}") {
            let _ = read(&text);
        }
    }
}
