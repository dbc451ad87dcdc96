//! Files of one number a line.

use std::path::Path;

use widemargin::Error;
use widemargin::data::read::source::read_all;

use crate::failure::CommandResult;

/// Reads sample weights; blank lines and text after `#` do not count.
pub(crate) fn read_weights(path: &Path) -> CommandResult<Vec<f64>> {
    let bytes = read_all(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut weights = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let word = line.split('#').next().unwrap_or_default().trim();
        if word.is_empty() {
            continue;
        }
        match word.parse::<f64>() {
            Ok(weight) if weight.is_finite() && weight >= 0.0 => weights.push(weight),
            _ => {
                return Err(Error::Parse {
                    path: path.to_owned(),
                    line: index + 1,
                    column: line.len() - line.trim_start().len() + 1,
                    expected: "a weight of at least 0".into(),
                    found: format!("'{word}'"),
                }
                .into());
            }
        }
    }
    Ok(weights)
}
