//! Fingerprints of the sources that decide what a run in each world gives, so that stored runs of another version are not
//! taken for runs of this one. Sources, not the library's file: two builds of the same sources give the same runs.
//!
//! The list of sources follows from the dependency graph: all of the world's crate and of every workspace crate that it
//! depends on. Only what is listed as `unread` is left out, so that a new file counts until somebody decides otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const ROOT: &str = "../..";

/// A world: its crate, what its runs do not depend on, and on which sources outside of the graph they do.
struct World {
    variable: &'static str,
    member: &'static str,
    unread: &'static [&'static [&'static str]],
    more: &'static [&'static str],
}

const WORLDS: [World; 2] = [
    World {
        variable: "FULLPIPE_SIM_BUILD",
        member: "fullpipe-sim",
        unread: &[WORDS, REFUSALS],
        // What a controller in Python is told, and what its limits mean.
        more: &["src/controller.rs", "../../python/fullpipe/ask/controllers.py"],
    },
    World {
        variable: "FULLPIPE_KERNEL_BUILD",
        member: "fullpipe-kernel",
        unread: &[WORDS, REFUSALS, DECISIONS],
        more: &[],
    },
];

/// What turns words into specs. A stored run is also known by its spec, so that it does not matter how that came about.
const WORDS: &[&str] = &[
    "crates/files/src",
    "crates/scenario/src/document.rs",
    "crates/scenario/src/elements.rs",
    "crates/scenario/src/place.rs",
    "crates/scenario/src/quantity.rs",
    "crates/scenario/src/queue.rs",
    "crates/scenario/src/reader.rs",
    "crates/scenario/src/resolve",
    "crates/scenario/src/resolve.rs",
    "crates/scenario/src/said.rs",
    "crates/scenario/src/schema.rs",
    "crates/sim/src/said.rs",
];

/// What decides whether a spec may run, and in which words it is refused; not what its run gives.
const REFUSALS: &[&str] = &[
    "crates/scenario/src/bounds.rs",
    "crates/scenario/src/check.rs",
    "crates/scenario/src/error.rs",
    "crates/scenario/src/stack.rs",
];

/// What writes logs. It only looks on: a run gives the same whether it is logged or not.
const LOGS: &[&str] = &["crates/export/src"];

/// What replays recorded decisions of a kernel; no world's runs depend on it. A recording is no run.
const RECORDINGS: &[&str] = &["crates/replay/src"];

/// What our controllers decide. The kernel world runs Linux's own and takes from that crate only what a controller is
/// called, whether it needs pacing, and the name of its phase. A kernel run takes as long as it lasts.
const DECISIONS: &[&str] = &[
    "crates/cc/src/bbr",
    "crates/cc/src/bbr.rs",
    "crates/cc/src/bbr1",
    "crates/cc/src/bbr3",
    "crates/cc/src/bbr3.rs",
    "crates/cc/src/byte_window.rs",
    "crates/cc/src/copa.rs",
    "crates/cc/src/cubic.rs",
    "crates/cc/src/cubic9438.rs",
    "crates/cc/src/dctcp.rs",
    "crates/cc/src/delivery.rs",
    "crates/cc/src/fixed.rs",
    "crates/cc/src/hystart.rs",
    "crates/cc/src/hystartpp.rs",
    "crates/cc/src/newreno.rs",
    "crates/cc/src/ordered.rs",
    "crates/cc/src/recovery.rs",
    "crates/cc/src/reno.rs",
    "crates/cc/src/testing.rs",
    "crates/cc/src/vegas.rs",
    "crates/cc/src/windowed.rs",
];

fn main() -> io::Result<()> {
    let members = members()?;
    for world in WORLDS {
        let unread = world.unread.iter().copied().chain([RECORDINGS, LOGS]).flatten();
        let unread: BTreeSet<PathBuf> = unread.map(|path| Path::new(ROOT).join(path)).collect();
        let gone = unread.iter().find(|path| !path.exists());
        assert!(gone.is_none(), "{gone:?} is gone; remove it from the list in crates/py/build.rs");
        let mut files = vec![Path::new(ROOT).join("Cargo.lock"), Path::new(ROOT).join("Cargo.toml")];
        for folder in closure(world.member, &members)? {
            for part in ["Cargo.toml", "build.rs", "src"] {
                collect(&folder.join(part), &unread, &mut files)?;
            }
        }
        files.extend(world.more.iter().map(PathBuf::from));
        files.sort();
        let mut print = Fnv::default();
        for file in files {
            println!("cargo:rerun-if-changed={}", file.display());
            print.take(file.to_string_lossy().as_bytes());
            print.take(&fs::read(&file)?);
        }
        println!("cargo:rustc-env={}={:032x}", world.variable, print.0);
    }
    // New files appear in folders.
    println!("cargo:rerun-if-changed={ROOT}/crates");
    Ok(())
}

/// The workspace's own crates that others may depend on, and their folders.
fn members() -> io::Result<BTreeMap<String, PathBuf>> {
    let mut members = BTreeMap::new();
    for (name, value) in dependencies(&Path::new(ROOT).join("Cargo.toml"), "[workspace.dependencies]")? {
        if let Some((_, rest)) = value.split_once("path = \"") {
            let folder = rest.split('"').next().unwrap_or_default();
            members.insert(name, Path::new(ROOT).join(folder));
        }
    }
    Ok(members)
}

/// The folders of a crate and of all that it depends on in the workspace.
fn closure(member: &str, members: &BTreeMap<String, PathBuf>) -> io::Result<BTreeSet<PathBuf>> {
    let mut waiting = vec![member.to_string()];
    let mut folders = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let folder =
            members.get(&name).unwrap_or_else(|| panic!("{name} is not in [workspace.dependencies]"));
        if !folders.insert(folder.clone()) {
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
fn collect(path: &Path, unread: &BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
    if unread.contains(path) || is_test || !path.exists() {
        return Ok(());
    }
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), unread, files)?;
    }
    Ok(())
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
