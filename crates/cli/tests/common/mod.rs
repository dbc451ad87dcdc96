//! Runs the real program in a folder of its own.

#![allow(dead_code)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_widemargin");

/// What a run of the program left.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }

    /// Lines of standard output.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// A folder to work in, removed at the end.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, content).expect("a writable folder");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Copies one of the data sets of the project.
    pub(crate) fn copy(&self, name: &str) -> PathBuf {
        self.write(name, std::fs::read(shipped(name)).expect(name))
    }

    /// Names of the files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path())
            .expect("a readable folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program with words separated by blanks.
    pub(crate) fn run(&self, arguments: &str) -> Run {
        self.run_words(&arguments.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn run_words(&self, arguments: &[&str]) -> Run {
        self.command(arguments).output().expect("the program starts").into()
    }

    /// Runs the program with something on standard input.
    pub(crate) fn run_with_input(&self, arguments: &str, input: impl AsRef<[u8]>) -> Run {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let mut child = self
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A program that fails early closes its input.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_ref());
        child.wait_with_output().expect("the program ends").into()
    }
}

/// A data set of the project.
pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

/// Rows of Iris for which `keeps` is true, counted from 1, with the labels behind `mark` where `hides` is; and
/// those labels.
pub(crate) fn hidden_iris(
    folder: &Folder,
    mark: &str,
    keeps: impl Fn(usize) -> bool,
    hides: impl Fn(usize) -> bool,
) -> (String, Vec<String>) {
    folder.copy("iris.csv");
    let text = folder.read("iris.csv");
    let mut labels = Vec::new();
    let lines = text.lines().enumerate().filter(|(i, _)| *i == 0 || keeps(*i)).map(|(i, line)| {
        let (values, label) = line.rsplit_once(',').unwrap();
        if i > 0 && hides(i) {
            labels.push(label.to_owned());
            return format!("{values},{mark}\n");
        }
        format!("{line}\n")
    });
    let text = lines.collect();
    (text, labels)
}

/// How many predictions, one a line, are the labels.
pub(crate) fn right(predicted: &str, labels: &[String]) -> usize {
    assert_eq!(predicted.lines().count(), labels.len());
    predicted.lines().zip(labels).filter(|(a, b)| a == b).count()
}
