//! Writing artifacts: aside, then renamed, so that an output file is whole at every moment.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where artifacts go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output, one after another.
    Stdout,
    /// One file, artifacts one after another.
    File(PathBuf),
    /// A folder, a file each.
    Folder(PathBuf),
}

impl Destination {
    /// What `-o TEXT` means: `-`, a folder that exists or is written with a slash at its end, or a file.
    pub fn of(text: &str) -> Self {
        let path = Path::new(text);
        // Written as a file, the name would be replaced, not what it leads to.
        if text == "-" || text == "/dev/stdout" {
            Destination::Stdout
        } else if text.ends_with('/') || path.is_dir() {
            Destination::Folder(path.to_owned())
        } else {
            Destination::File(path.to_owned())
        }
    }
}

/// One output file: name within a folder, and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// `mont_mul_512.e600.rs`.
    pub name: String,
    /// Contents.
    pub text: String,
}

/// Writes everything, or says what could not be written.
///
/// # Errors
/// The path and the system's reason. Files written before stay whole; a file that exists is either the old or the new one.
pub fn write(destination: &Destination, files: &[OutputFile]) -> Result<(), (PathBuf, io::Error)> {
    match destination {
        Destination::Stdout => {
            let mut stdout = io::stdout().lock();
            let result = files.iter().try_for_each(|file| stdout.write_all(file.text.as_bytes())).and_then(|()| stdout.flush());
            match result {
                // The reader has seen enough (`kgen emit … | head`): not an error of ours.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(|error| (PathBuf::from("<stdout>"), error)),
            }
        }
        Destination::File(path) => {
            let text: String = files.iter().map(|file| file.text.as_str()).collect();
            replace(path, &text).map_err(|error| (path.clone(), error))
        }
        Destination::Folder(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| (folder.clone(), error))?;
            files.iter().try_for_each(|file| {
                let path = folder.join(&file.name);
                replace(&path, &file.text).map_err(|error| (path, error))
            })
        }
    }
}

/// Files of a folder or a file that are not what they would be written as; standard output holds nothing.
pub fn stale(destination: &Destination, files: &[OutputFile]) -> Vec<PathBuf> {
    let differs = |path: &Path, text: &str| !holds(path, text);
    match destination {
        Destination::Stdout => Vec::new(),
        Destination::File(path) => {
            let text: String = files.iter().map(|file| file.text.as_str()).collect();
            if differs(path, &text) { vec![path.clone()] } else { Vec::new() }
        }
        Destination::Folder(folder) => {
            let paths = files.iter().map(|file| (folder.join(&file.name), &file.text));
            paths.filter(|(path, text)| differs(path, text)).map(|(path, _)| path).collect()
        }
    }
}

/// The path is a file of this text. Devices and pipes are not read: some never end.
fn holds(path: &Path, text: &str) -> bool {
    path.is_file() && std::fs::read(path).is_ok_and(|old| old == text.as_bytes())
}

/// The paths of what is written there.
pub fn paths(destination: &Destination, files: &[OutputFile]) -> Vec<PathBuf> {
    match destination {
        Destination::Stdout => Vec::new(),
        Destination::File(path) => vec![path.clone()],
        Destination::Folder(folder) => files.iter().map(|file| folder.join(&file.name)).collect(),
    }
}

/// Replaces a file by a new one of this text, unless it holds the same text already (build systems look at times).
///
/// # Errors
/// The system's reason; the file is then what it was.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    if holds(path, text) {
        return Ok(());
    }
    // A link stays one: what it leads to is replaced.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.exists() && !path.is_file() {
        // `/dev/null`, a pipe: there is nothing to rename over.
        return std::fs::write(path, text);
    }
    let mut aside = tempfile::Builder::new().prefix(".kgen-").tempfile_in(folder)?;
    aside.write_all(text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map_or(0o644, |metadata| metadata.permissions().mode());
        std::fs::set_permissions(aside.path(), std::fs::Permissions::from_mode(mode))?;
    }
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Destination, OutputFile, write};

    fn file(name: &str, text: &str) -> OutputFile {
        OutputFile { name: name.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.s");
        std::fs::write(&path, "old").unwrap();
        write(&Destination::File(path.clone()), &[file("a", "new "), file("b", "text")]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new text");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_output_that_cannot_be_written_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("a.s");
        let (named, _) = write(&Destination::File(path.clone()), &[file("a", "x")]).unwrap_err();
        assert_eq!(named, path);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_a_device_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.s"), folder.path().join("link.s"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&Destination::File(link.clone()), &[file("a", "new")]).unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        write(&Destination::File("/dev/null".into()), &[file("a", "new")]).unwrap();
    }

    #[test]
    fn a_folder_gets_a_file_each() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("new");
        write(&Destination::Folder(inner.clone()), &[file("a.s", "1"), file("a.h", "2")]).unwrap();
        assert_eq!(std::fs::read_to_string(inner.join("a.h")).unwrap(), "2");
    }
}
