//! Fingerprints of sources, shared by the build scripts of this crate and of `quic/world`.
//!
//! The list of sources follows from the dependency graph: all of a world's crate and of every crate of this repository that it
//! depends on. Only what a script lists as unread is left out, so that a new file counts until somebody decides otherwise.
//! What is in the files counts, and not where they are, how they are laid out or what their comments say (`tokens.rs`). A module
//! that moves still changes the lines of `use` that name it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[path = "tokens.rs"]
mod tokens;

/// The repository, from the folder of either crate.
pub(crate) const ROOT: &str = "../..";

/// The own crates of a workspace that others may depend on, and their folders.
pub(crate) fn members(workspace: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut members = BTreeMap::new();
    for (name, value) in dependencies(&workspace.join("Cargo.toml"), "[workspace.dependencies]")? {
        if let Some((_, rest)) = value.split_once("path = \"") {
            let folder = rest.split('"').next().unwrap_or_default();
            members.insert(name, workspace.join(folder));
        }
    }
    Ok(members)
}

/// A crate and all that it depends on among the members, with their folders.
pub(crate) fn closure(
    member: &str,
    members: &BTreeMap<String, PathBuf>,
) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut waiting = vec![member.to_string()];
    let mut folders = BTreeMap::new();
    while let Some(name) = waiting.pop() {
        let folder =
            members.get(&name).unwrap_or_else(|| panic!("{name} is not in [workspace.dependencies]"));
        if folders.insert(name, folder.clone()).is_some() {
            continue;
        }
        for (name, value) in dependencies(&folder.join("Cargo.toml"), "[dependencies]")? {
            assert!(!value.contains("path ="), "{name}: name the path in [workspace.dependencies]");
            if name.starts_with("fullpipe-") {
                waiting.push(name);
            }
        }
    }
    Ok(folders)
}

/// Name and value of each line of a section, as this workspace writes them: a dependency a line.
fn dependencies(manifest: &Path, section: &str) -> io::Result<Vec<(String, String)>> {
    let text = fs::read_to_string(manifest)?;
    let lines = text.lines().map(str::trim).skip_while(|line| *line != section).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    Ok(pairs
        .map(|(name, value)| (name.trim().trim_end_matches(".workspace").to_string(), value.to_string()))
        .collect())
}

/// Every file at or below `path` that exists, is read and is no test.
pub(crate) fn collect(path: &Path, unread: &BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
    if unread.contains(path) || is_test || !path.exists() {
        return Ok(());
    }
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    // New files appear in folders.
    println!("cargo:rerun-if-changed={}", path.display());
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), unread, files)?;
    }
    Ok(())
}

/// The fingerprint of these files: of what is in them, whatever their names and order.
pub(crate) fn fingerprint(files: &[PathBuf]) -> io::Result<String> {
    let mut prints = files.iter().map(|file| content(file)).collect::<io::Result<Vec<u128>>>()?;
    prints.sort_unstable();
    let mut print = Fnv::default();
    for one in prints {
        print.take(&one.to_be_bytes());
    }
    Ok(format!("{:032x}", print.0))
}

/// The fingerprint of what a file does: of its tokens, and of every byte where we do not know the language.
fn content(file: &Path) -> io::Result<u128> {
    println!("cargo:rerun-if-changed={}", file.display());
    let named = |error| io::Error::other(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(named)?;
    let tokens = match file.extension().and_then(OsStr::to_str) {
        Some("rs") => tokens::rust(&text),
        Some("py") => tokens::python(&text),
        _ => vec![text.as_str()],
    };
    let mut print = Fnv::default();
    for token in tokens {
        print.take(token.as_bytes());
    }
    Ok(print.0)
}

/// FNV-1a with 128 bits (draft-eastlake-fnv): nobody attacks with sources, and `std` promises no stable hash.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    /// Takes a part; its length first, so that parts cannot run into each other.
    fn take(&mut self, part: &[u8]) {
        for byte in (part.len() as u64).to_be_bytes().iter().chain(part) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}
