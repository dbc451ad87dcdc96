//! What the columns of a table look like: how each was read, its gaps, and signs that it is not what it
//! was read as (identifiers, dates, numbers written with commas).

use serde::Serialize;

use super::raw::{MISSING, RawColumn, RawTable};
use super::{Role, TableEncoding};

/// Values below which all being different says nothing.
const FEWEST_IDENTIFIERS: usize = 20;

/// How a column was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ColumnRole {
    /// The labels.
    Label,
    /// One feature.
    Number,
    /// One feature for each word.
    Words,
    /// A feature for each place of its strings.
    Text,
    /// Left out.
    Ignored,
}

/// What the values of a column look like although they were read as something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Appearance {
    /// More than nine of ten words are different, or whole numbers that count the rows.
    Identifier,
    /// Dates such as 2024-02-29, 29.2.2024 or 20240229.
    Date,
    /// Numbers with a decimal comma, read as words: 3,14.
    DecimalComma,
    /// Numbers whose thousands are separated, read as words: 1,234,567.
    ThousandsSeparator,
}

/// One column of a table, in file order.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnProfile {
    /// Its name.
    pub name: String,
    /// How it was read.
    pub role: ColumnRole,
    /// Values that are missing; 0 for a column that was left out.
    pub missing: usize,
    /// Different words, for a column that was read as words.
    pub words: Option<usize>,
    /// What its values look like, when that is something else.
    pub appearance: Option<Appearance>,
    /// One of its values, where `appearance` needs one to be understood.
    pub example: Option<String>,
}

/// Looks at the columns of `table`; `places` as for [`encode`](super::encode).
pub(super) fn profile(
    table: &RawTable<'_>,
    encoding: &TableEncoding,
    places: &[Option<usize>],
) -> Vec<ColumnProfile> {
    let columns = encoding.columns.iter().zip(places);
    let present = columns.filter_map(|(column, place)| Some((column, (*place)?)));
    present
        .map(|(column, place)| {
            let values = &table.columns[place];
            let role = match (&column.role, values) {
                (_, RawColumn::Skipped) => ColumnRole::Ignored,
                (Role::Label, _) => ColumnRole::Label,
                (Role::Text { .. }, _) => ColumnRole::Text,
                (_, RawColumn::Words { .. }) => ColumnRole::Words,
                (_, RawColumn::Numbers(_)) => ColumnRole::Number,
            };
            let (missing, words) = match values {
                RawColumn::Skipped => (0, None),
                RawColumn::Numbers(values) => (values.iter().filter(|v| v.is_nan()).count(), None),
                RawColumn::Words { codes, words } => {
                    (codes.iter().filter(|code| **code == MISSING).count(), Some(words.len()))
                }
            };
            let appearance = match role {
                ColumnRole::Text => None,
                _ => appearance(values, role, table.rows - missing),
            };
            let example = match (values, appearance) {
                (RawColumn::Words { words, .. }, Some(_)) => words.first().cloned(),
                _ => None,
            };
            ColumnProfile {
                name: table.names[place].clone(),
                role,
                missing,
                words,
                appearance,
                example,
            }
        })
        .collect()
}

fn appearance(values: &RawColumn, role: ColumnRole, present: usize) -> Option<Appearance> {
    match values {
        RawColumn::Skipped => None,
        RawColumn::Words { words, .. } if !words.is_empty() => {
            if words.iter().all(|word| is_date(word)) {
                return Some(Appearance::Date);
            }
            if let Some(found) = commas(words) {
                return Some(found);
            }
            let many = present >= FEWEST_IDENTIFIERS && words.len() * 10 > present * 9;
            (many && role != ColumnRole::Label).then_some(Appearance::Identifier)
        }
        RawColumn::Words { .. } => None,
        RawColumn::Numbers(_) if role == ColumnRole::Label => None,
        RawColumn::Numbers(values) => {
            let known = || values.iter().copied().filter(|v| !v.is_nan());
            if present < FEWEST_IDENTIFIERS || !known().all(|v| v.fract() == 0.0) {
                None
            } else if known().all(is_date_number) {
                Some(Appearance::Date)
            } else {
                counts_rows(known()).then_some(Appearance::Identifier)
            }
        }
    }
}

/// Whether whole numbers go up or down by one from row to row.
fn counts_rows(values: impl Iterator<Item = f64> + Clone) -> bool {
    let steps = values.clone().zip(values.skip(1)).map(|(a, b)| b - a);
    steps.clone().all(|step| step == 1.0) || steps.clone().all(|step| step == -1.0)
}

/// Whether words are numbers with commas: all of them numbers, some with a comma.
fn commas(words: &[String]) -> Option<Appearance> {
    if !words.iter().any(|word| word.contains(',')) {
        let spaced = |word: &String| is_grouped(word, &[' ', '\u{a0}', '\u{202f}', '\'']);
        let plain = |word: &String| word.parse::<f64>().is_ok();
        let all = words.iter().all(|word| spaced(word) || plain(word));
        return (all && words.iter().any(spaced)).then_some(Appearance::ThousandsSeparator);
    }
    let plain = |word: &String| word.parse::<f64>().is_ok();
    if words.iter().all(|word| plain(word) || is_grouped(word, &[','])) {
        return Some(Appearance::ThousandsSeparator);
    }
    words.iter().all(|word| has_decimal_comma(word)).then_some(Appearance::DecimalComma)
}

/// Whether `word` is a number with its thousands separated: 1,234 or 1,234,567.8.
fn is_grouped(word: &str, separators: &[char]) -> bool {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let mut groups = whole.split(separators);
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().unwrap_or("");
    let rest: Vec<&str> = groups.collect();
    let starts = (1..=3).contains(&first.len()) && digits(first);
    let goes_on = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && digits(group));
    starts && goes_on && digits(fraction)
}

/// Whether `word` is a whole number or one with a decimal comma: 3, 3,14 or 1.234,5.
fn has_decimal_comma(word: &str) -> bool {
    let (whole, fraction) = word.split_once(',').unwrap_or((word, "0"));
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(fraction) && (digits(unsigned) || is_grouped(&whole.replace('.', ","), &[',']))
}

/// Whether `word` is a date: year, month and day with '-', '/' or '.' between, a time after them or not.
fn is_date(word: &str) -> bool {
    let date = word.split(['T', ' ']).next().unwrap_or("");
    let Some(separator) = date.chars().find(|c| matches!(c, '-' | '/' | '.')) else { return false };
    let parts: Vec<Option<u32>> = date.split(separator).map(|part| part.parse().ok()).collect();
    let [Some(a), Some(b), Some(c)] = parts[..] else { return false };
    let day = |month: u32, day: u32| (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_year = |year: u32| (1000..3000).contains(&year);
    (is_year(a) && day(b, c)) || (is_year(c) && (day(b, a) || day(a, b)))
}

/// Whether a number is a date written without separators: 20240229.
fn is_date_number(value: f64) -> bool {
    if !(19_000_101.0..21_000_000.0).contains(&value) {
        return false;
    }
    let digits = value as u32;
    (1..=12).contains(&(digits / 100 % 100)) && (1..=31).contains(&(digits % 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_words(words: &[&str]) -> Option<Appearance> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let codes = (0..words.len() as u32).collect();
        let rows = words.len();
        appearance(&RawColumn::Words { codes, words }, ColumnRole::Words, rows)
    }

    fn of_numbers(values: impl IntoIterator<Item = f64>) -> Option<Appearance> {
        let values: Vec<f64> = values.into_iter().collect();
        let rows = values.len();
        appearance(&RawColumn::Numbers(values), ColumnRole::Number, rows)
    }

    #[test]
    fn dates_are_known_in_their_usual_spellings() {
        assert_eq!(of_words(&["2024-02-29", "1999-12-01"]), Some(Appearance::Date));
        assert_eq!(of_words(&["2024-02-29T12:00:00", "2024-03-01 08:15"]), Some(Appearance::Date));
        assert_eq!(of_words(&["29.2.2024", "1.12.1999"]), Some(Appearance::Date));
        assert_eq!(of_words(&["2/29/2024", "12/31/1999"]), Some(Appearance::Date));
        assert_eq!(of_words(&["2024-13-41", "1999-12-01"]), None);
        assert_eq!(of_words(&["a-b-c"]), None);
        let days = (1..=25).map(|day| 20_240_100.0 + f64::from(day));
        assert_eq!(of_numbers(days), Some(Appearance::Date));
    }

    #[test]
    fn commas_of_decimals_and_thousands_are_told_apart() {
        assert_eq!(of_words(&["3,14", "2", "-0,5"]), Some(Appearance::DecimalComma));
        assert_eq!(of_words(&["1.234,50", "2,25"]), Some(Appearance::DecimalComma));
        assert_eq!(
            of_words(&["1,234", "12,345,678.5", "99"]),
            Some(Appearance::ThousandsSeparator)
        );
        assert_eq!(of_words(&["1 234", "12"]), Some(Appearance::ThousandsSeparator));
        assert_eq!(of_words(&["red, green", "blue"]), None);
        assert_eq!(of_words(&["1,2,3", "4"]), None);
    }

    #[test]
    fn identifiers_are_words_that_differ_and_numbers_that_count() {
        let names: Vec<String> = (0..40).map(|i| format!("customer {i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(of_words(&names), Some(Appearance::Identifier));
        assert_eq!(of_words(&names[..10]), None);
        assert_eq!(of_numbers((0..40).map(f64::from)), Some(Appearance::Identifier));
        assert_eq!(of_numbers((0..40).rev().map(f64::from)), Some(Appearance::Identifier));
        assert_eq!(of_numbers((0..40).map(|i| f64::from(i * i))), None);
        assert_eq!(of_numbers((0..40).map(|i| f64::from(i) + 0.5)), None);
        let codes = (0..40).map(|i| i % 3).collect();
        let words = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(appearance(&RawColumn::Words { codes, words }, ColumnRole::Words, 40), None);
    }
}
