//! Files that are either completely written or not touched at all.
//!
//! The content goes to a temporary file in the same folder, is forced to the disk and then takes
//! the place of the old file in one rename, which POSIX and Windows both make indivisible.
//! A process that is killed leaves its temporary file; the next one that writes the same file removes
//! it. Temporary files are locked while they are written, so that those in use are not removed.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Calls `write` and puts what it wrote at `path`, all of it or nothing.
///
/// A file already there survives every failure, a full disk and a killed process included, and
/// hands its permissions on. A symbolic link is followed. Devices and pipes (`/dev/null`,
/// `/dev/stdout`) are written to directly, and `-` is standard output.
///
/// # Errors
/// [`Error::Io`] when the folder or the disk refuses, or when `write` fails.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let outcome = if path.as_os_str() == "-" {
        write_through(io::stdout().lock(), write)
    } else {
        write_file(path, write)
    };
    outcome.map_err(|source| Error::io(path, source))
}

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let existing = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => {
            return write_through(File::options().write(true).open(path)?, write);
        }
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // Replacing a link by a file would leave the linked file stale.
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    replace(&target, existing, write)
}

fn replace(
    target: &Path,
    existing: Option<Metadata>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut prefix = std::ffi::OsString::from(".");
    // A long name plus the random part must stay below the usual limit of 255 bytes.
    if name.len() < 200 {
        prefix.push(name);
        prefix.push(".");
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    fs::metadata(&folder)?;
    remove_abandoned(&folder, &prefix);
    let mut temporary = locked_file(&builder, &folder)?;
    write_through(temporary.as_file_mut(), write)?;
    if let Some(metadata) = existing {
        temporary.as_file().set_permissions(metadata.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(target).map_err(|error| error.error)?;
    sync_folder(&folder);
    Ok(())
}

const SUFFIX: &str = ".tmp";

/// Random characters of a temporary file's name.
const RANDOM: usize = 6;

/// A temporary file that is locked, so that no process removes it as abandoned.
fn locked_file(builder: &tempfile::Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    loop {
        // Only the kind of error: its text names the temporary file, which means nothing to the user.
        let temporary =
            builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
        // Some network file systems have no locks; nothing is removed there either.
        let _ = temporary.as_file().lock();
        // Another process may have removed it between the two.
        if temporary.path().exists() {
            return Ok(temporary);
        }
    }
}

/// Removes temporary files of killed processes, which the system has unlocked.
fn remove_abandoned(folder: &Path, prefix: &OsStr) {
    // Files with names too long for a prefix of their own share this one with any hidden file.
    if prefix == "." {
        return;
    }
    let ours = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(prefix.as_encoded_bytes())
            && name.ends_with(SUFFIX.as_bytes())
            && name.len() == prefix.len() + RANDOM + SUFFIX.len()
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if ours(&entry.file_name())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // If it cannot be removed now, the next save tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_through(
    file: impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::with_capacity(1 << 16, file);
    write(&mut buffered)?;
    buffered.flush()
}

/// Makes the rename itself survive a power cut, where folders can be synced.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        // Some network file systems refuse to sync folders; the file itself is already safe.
        let _ = File::open(folder).and_then(|handle| handle.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let error = write_atomically(&path, |out| {
            out.write_all(&[b'x'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(error.unwrap_err().to_string().starts_with(path.to_str().unwrap()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["model"]);
        write_atomically(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["model"]);
    }

    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_those_in_use_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let write = |name: &str| fs::write(folder.path().join(name), b"half").unwrap();
        for name in [".model.aB3dE9.tmp", ".model.other.aB3dE9.tmp", ".model.mine.tmp", "model.tmp"]
        {
            write(name);
        }
        write(".model.inUse0.tmp");
        let in_use = File::open(folder.path().join(".model.inUse0.tmp")).unwrap();
        in_use.lock().unwrap();
        write_atomically(&path, |out| {
            // While one is being written, another process writes the same file.
            write_atomically(&path, |other| other.write_all(b"1")).map_err(io::Error::other)?;
            out.write_all(b"2")
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        let left = [".model.inUse0.tmp", ".model.mine.tmp", ".model.other.aB3dE9.tmp"];
        assert_eq!(names(folder.path()), [&left[..], &["model", "model.tmp"]].concat());
    }

    #[test]
    fn folders_and_missing_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
        assert!(write_atomically(&folder.path().join("a/b"), |_| Ok(())).is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        write_atomically(&path, |out| out.write_all(b"1")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_atomically(&link, |out| out.write_all(b"2")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_are_written_not_replaced() {
        write_atomically(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = write_atomically(Path::new("/dev/full"), |out| out.write_all(b"no room"));
        assert!(full.is_err());
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
