//! Standard output and standard error: text that survives a closed pipe, and warnings.
//!
//! Names and labels come from files and may hold anything; what would command a terminal (escape
//! sequences, other control characters, marks that turn the direction of text) is written out.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use widemargin::Error;

use crate::failure::{CommandResult, Failure};

/// Whether a character commands a terminal instead of being shown.
fn is_command(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with characters that command a terminal written as in JSON, `\u001b`, other than those to keep.
fn without_commands<'a>(text: &'a str, keep: &[char]) -> Cow<'a, str> {
    let unfit = |c: char| is_command(c) && !keep.contains(&c);
    if !text.contains(unfit) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' if unfit(c) => shown.push_str("\\n"),
            '\r' if unfit(c) => shown.push_str("\\r"),
            '\t' if unfit(c) => shown.push_str("\\t"),
            c if unfit(c) => {
                let _ = write!(shown, "\\u{:04x}", c as u32);
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// A name or label that takes one field of one line, whatever it holds.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    without_commands(text, &[])
}

/// Writes to standard output at once.
pub(crate) fn print(text: &str) -> CommandResult<()> {
    let text = without_commands(text, &['\n', '\t']);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| Failure::from(Error::io("-", e)))
}

/// Writes a JSON document to standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> CommandResult<()> {
    print(&format!("{value:#}\n"))
}

/// Tells the user something that is not the result; a closed standard error is ignored.
pub(crate) fn note(text: &str) {
    write_line("", text);
}

fn write_line(mark: &str, text: &str) {
    let text = without_commands(text, &['\n', '\t']);
    let _ = writeln!(io::stderr().lock(), "{mark}{text}");
}

/// Tells the user about something that went on regardless.
pub(crate) fn warn(text: &str) {
    if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        write_line("\u{1b}[1;33mwarning\u{1b}[0m: ", text);
    } else {
        write_line("warning: ", text);
    }
}

/// Tells the user why the command failed.
pub(crate) fn report(failure: &Failure) {
    if matches!(failure, Failure::BrokenPipe) {
        return;
    }
    note(&format!("error: {failure}"));
    if let Some(hint) = failure.hint() {
        note(&format!("hint: {hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_the_terminal_are_written_out() {
        assert_eq!(one_line("plain, äöü"), "plain, äöü");
        assert_eq!(one_line("two\nlines\tand\r"), "two\\nlines\\tand\\r");
        assert_eq!(without_commands("two\nlines", &['\n']), "two\nlines");
        assert_eq!(one_line("\u{1b}[2J\u{9b}31m\u{7f}"), "\\u001b[2J\\u009b31m\\u007f");
        assert_eq!(one_line("abc\u{202e}fed"), "abc\\u202efed");
        let json = format!("{:#}", serde_json::json!({ "name": "a\u{9b}b" }));
        let shown = without_commands(&json, &['\n']).into_owned();
        let back: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(back["name"], "a\u{9b}b");
    }
}
