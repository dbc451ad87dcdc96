//! Data files that are written, in the format asked for or that their name tells, and never over a file
//! that the same command reads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use widemargin::Error;
use widemargin::data::Dataset;
use widemargin::data::read::is_standard_stream;
use widemargin::data::write::{save_csv, save_libsvm, save_npy, save_npy_labels};

use crate::failure::{CommandResult, Failure};

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WrittenFormat {
    /// LIBSVM / SVMlight text
    Libsvm,
    /// Comma-separated text with a header
    Csv,
    /// Tab-separated text with a header
    Tsv,
    /// NumPy array of the features; labels go to --output-labels
    Npy,
}

/// Endings of compressed files, which are read but not written.
const PACKED: [&str; 4] = ["gz", "xz", "zst", "bz2"];

/// Endings of formats that are not written: a name with one promises what the content would not be.
const OTHER_FORMATS: [&str; 35] = [
    "arff", "arrow", "avro", "db", "dta", "feather", "h5", "hdf5", "html", "idx", "ipc", "json",
    "jsonl", "mat", "md", "ndjson", "npz", "ods", "onnx", "orc", "parquet", "pdf", "pickle", "pkl",
    "png", "pq", "rds", "sas7bdat", "sav", "sqlite", "svg", "xls", "xlsx", "xml", "zip",
];

/// Endings of tables, which data is written as but models are not.
const TABLES: [&str; 4] = ["csv", "tsv", "tab", "npy"];

/// Whether an ending in lower case belongs to a format that is not written.
pub(crate) fn is_other_format(ending: &str) -> bool {
    OTHER_FORMATS.contains(&ending)
}

/// Whether the name of a model promises something else.
pub(crate) fn is_no_model(path: &Path) -> bool {
    ending(path).is_some_and(|ending| {
        let ending = ending.as_str();
        is_other_format(ending) || TABLES.contains(&ending) || PACKED.contains(&ending)
    })
}

/// Refuses names of comma-separated tables that promise something else.
pub(crate) fn check_table(path: Option<&Path>) -> CommandResult<()> {
    match path {
        Some(path) if is_no_model(path) && ending(path).is_some_and(|ending| ending != "csv") => {
            Err(Failure::usage(format!(
                "{}: the table is written as comma-separated text; give the file a name that ends in .csv",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// The ending of a name, in lower case.
pub(crate) fn ending(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase())
}

/// Refuses names that promise a packed file.
fn check_unpacked(path: &Path) -> CommandResult<()> {
    match ending(path) {
        Some(ending) if PACKED.contains(&ending.as_str()) => Err(Failure::usage(format!(
            "{}: files are written uncompressed; write to '-' and pipe into a compressor",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Refuses names of pictures that promise something else than SVG.
pub(crate) fn check_picture(path: Option<&Path>) -> CommandResult<()> {
    match path.and_then(|path| Some((path, ending(path)?))) {
        Some((path, ending)) if ending != "svg" => Err(Failure::usage(format!(
            "{}: pictures are written as SVG; give the file a name that ends in .svg",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// What makes two paths the same file: where it is on the disk, links followed, or, for one that is
/// still to be written, its folder and name.
#[derive(PartialEq)]
enum Identity {
    #[cfg(unix)]
    OnDisk(u64, u64),
    Path(PathBuf),
}

/// The identity of a file or folder; nothing for pipes, terminals and devices, which writing does not
/// destroy.
fn identity(path: &Path, standard: &Path) -> Option<Identity> {
    let path = if is_standard_stream(path) { standard } else { path };
    match fs::metadata(path) {
        Ok(about) if !about.is_file() && !about.is_dir() => None,
        #[cfg(unix)]
        Ok(about) => {
            use std::os::unix::fs::MetadataExt;
            Some(Identity::OnDisk(about.dev(), about.ino()))
        }
        #[cfg(not(unix))]
        Ok(_) => fs::canonicalize(path).ok().map(Identity::Path),
        Err(_) => {
            let folder = fs::canonicalize(folder(path)).ok()?;
            Some(Identity::Path(folder.join(path.file_name()?)))
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a path that no file can be written to: a folder, or one in a folder that is not there.
pub(crate) fn check_place(path: &Path) -> CommandResult<()> {
    if is_standard_stream(path) {
        return Ok(());
    }
    if path.is_dir() {
        return Err(Error::io(path, io::ErrorKind::IsADirectory.into()).into());
    }
    let folder = folder(path);
    if !folder.is_dir() {
        let (path, folder) = (path.display(), folder.display());
        return Err(Failure::Message(format!("{path}: there is no folder '{folder}'")));
    }
    Ok(())
}

/// Refuses outputs, named with their options, that cannot be written or are inputs of the same command,
/// lie in a folder that is read, or are the same file as another output: writing one would destroy the
/// other.
pub(crate) fn check_outputs<'a>(
    outputs: &[(&str, Option<&'a Path>)],
    inputs: &[Option<&'a Path>],
) -> CommandResult<()> {
    let input_of = |path: &Path| identity(path, Path::new("/dev/stdin"));
    let output_of = |path: &Path| identity(path, Path::new("/dev/stdout"));
    let mut earlier: Vec<(&str, Identity)> = Vec::new();
    for (option, path) in outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))) {
        check_place(path)?;
        let Some(own) = output_of(path) else { continue };
        let shown = path.display();
        for input in inputs.iter().flatten() {
            let same = input_of(input).is_some_and(|input| input == own);
            // Standard output that is redirected to a file was opened by the shell.
            if same && !is_standard_stream(path) {
                return Err(Failure::usage(format!(
                    "{option} {shown}: the command reads this file, and writing it would destroy it"
                )));
            }
            if input.is_dir() && output_of(folder(path)) == input_of(input) {
                return Err(Failure::usage(format!(
                    "{option} {shown}: the command reads all files of this folder"
                )));
            }
        }
        if let Some((other, _)) = earlier.iter().find(|(_, identity)| *identity == own) {
            return Err(Failure::usage(format!(
                "{option} {shown}: this is the same file as that of {other}"
            )));
        }
        earlier.push((option, own));
    }
    Ok(())
}

/// Where data goes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// File to write; '-': standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Its format [default: by its name: .csv, .tsv, .npy, else LIBSVM text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<WrittenFormat>,

    /// Where to write the labels of an NPY file
    #[arg(long, value_name = "FILE")]
    pub(crate) output_labels: Option<PathBuf>,
}

impl OutputArguments {
    /// The format requested or that of the name.
    fn format(&self) -> CommandResult<WrittenFormat> {
        if let Some(format) = self.to {
            return Ok(format);
        }
        match ending(&self.output).as_deref() {
            Some("csv") => Ok(WrittenFormat::Csv),
            Some("tsv" | "tab") => Ok(WrittenFormat::Tsv),
            Some("npy") => Ok(WrittenFormat::Npy),
            Some(ending) if ending == "wm" || is_other_format(ending) => {
                Err(Failure::usage(format!(
                    "{}: data is written as LIBSVM text, .csv, .tsv or .npy; --to names one of them for any \
                 file name",
                    self.output.display()
                )))
            }
            _ => Ok(WrittenFormat::Libsvm),
        }
    }

    /// Writes the data, whole or not at all; LIBSVM text counts features from `first_index`.
    pub(crate) fn save(&self, data: &Dataset, first_index: u32) -> CommandResult<()> {
        self.check()?;
        let path = &self.output;
        match self.format()? {
            WrittenFormat::Libsvm => save_libsvm(path, data, first_index)?,
            WrittenFormat::Csv => save_csv(path, data, b',')?,
            WrittenFormat::Tsv => save_csv(path, data, b'\t')?,
            WrittenFormat::Npy => save_npy(path, data.features())?,
        }
        if let Some(labels) = &self.output_labels {
            save_npy_labels(labels, data.labels())?;
        }
        Ok(())
    }

    /// Refuses what would lose something or cannot be written.
    pub(crate) fn check(&self) -> CommandResult<()> {
        check_unpacked(&self.output)?;
        let format = self.format()?;
        if self.output_labels.is_some() && format != WrittenFormat::Npy {
            return Err(Failure::usage("--output-labels goes with --to npy only"));
        }
        if self.output_labels.as_deref() == Some(Path::new("-")) {
            return Err(Failure::usage("--output-labels needs a file, not standard output"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_same_file_is_known_by_any_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("data"), "1 1:1\n").expect("a file");
        fs::write(at("other"), "1 1:1\n").expect("a file");
        std::os::unix::fs::symlink(at("data"), at("link")).expect("a link");
        fs::hard_link(at("data"), at("hard")).expect("a link");
        fs::create_dir(at("parts")).expect("a folder");
        let refused = |output: PathBuf, input: PathBuf| {
            check_outputs(&[("-o", Some(&output))], &[None, Some(&input)]).is_err()
        };
        for name in ["data", "link", "hard", "./data", "parts/../data"] {
            assert!(refused(at(name), at("data")), "{name}");
        }
        assert!(!refused(at("other"), at("data")));
        assert!(!refused(at("new"), at("data")));
        assert!(!refused("/dev/null".into(), "/dev/null".into()));
        assert!(!refused("-".into(), "-".into()));
        assert!(refused(at("parts/model"), at("parts")), "a folder of files");
        let (new, same) = (at("new"), at("parts/../new"));
        assert!(check_outputs(&[("-o", Some(&new)), ("--save", Some(&same))], &[]).is_err());
    }
}
