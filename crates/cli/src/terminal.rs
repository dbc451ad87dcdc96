//! Standard output and standard error: text that survives a closed pipe, and warnings.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use widemargin::Error;

use crate::failure::{CommandResult, Failure};

/// Text for people, with characters that a terminal would obey instead of showing (escape sequences
/// in names of classes, features and files) spelled out; line breaks stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && c != '\n';
    if !text.contains(obeyed) {
        return text.into();
    }
    let spell = |c: char| if obeyed(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(spell).collect::<String>().into()
}

/// Writes to standard output at once.
pub(crate) fn print(text: &str) -> CommandResult<()> {
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
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Tells the user about something that went on regardless.
pub(crate) fn warn(text: &str) {
    let text = visible(text);
    if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        note(&format!("\u{1b}[1;33mwarning\u{1b}[0m: {text}"));
    } else {
        note(&format!("warning: {text}"));
    }
}

/// Tells the user why the command failed.
pub(crate) fn report(failure: &Failure) {
    if matches!(failure, Failure::BrokenPipe) {
        return;
    }
    note(&visible(&format!("error: {failure}")));
    if let Some(hint) = failure.hint() {
        note(&format!("hint: {hint}"));
    }
}
