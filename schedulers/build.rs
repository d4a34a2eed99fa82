//! Embeds every file of `targets/`, so that a new machine is one new file.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("targets");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "target"));
    // Directory order is the file system's affair; ours is by name.
    files.sort();
    let mut text = String::from("&[\n");
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(text, "    ({name:?}, include_str!({:?})),", path.display().to_string()).map_err(io::Error::other)?;
    }
    text.push_str("]\n");
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("embedded_targets.rs"), text)
}
