//! Errors of the library as exceptions of the kind scikit-learn raises.

use pyo3::PyErr;
use pyo3::exceptions::{
    PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError,
};
use widemargin::Error;

/// The exception for an error: `ValueError` for bad data and parameters, `OSError` for files,
/// `MemoryError` for what would not fit.
pub(crate) fn exception(error: Error) -> PyErr {
    match error {
        Error::Io { path, source } => {
            // With a number and a path Python picks FileNotFoundError and its siblings by itself.
            let path = path.display().to_string();
            match source.raw_os_error() {
                Some(code) => PyOSError::new_err((code, system_message(&source), path)),
                None => PyOSError::new_err(format!("{path}: {source}")),
            }
        }
        Error::TooLarge { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Threads { .. } => PyRuntimeError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::InfeasibleNu { nu, reason } => {
            PyValueError::new_err(format!("specified nu is infeasible: nu = {nu}, but {reason}"))
        }
        other => PyValueError::new_err(other.to_string()),
    }
}

fn system_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
