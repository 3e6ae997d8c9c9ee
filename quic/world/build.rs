//! A fingerprint of the sources that decide what a run gives, so that stored runs of another version are not taken for runs of
//! this one: ours, those of the crates of this repository that we depend on, and the versions of all others. And the versions of the
//! stacks, for records and reports.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/lock.rs"]
mod lock;

const SOURCES: [&str; 17] = [
    "../Cargo.lock",
    "../driver/Cargo.toml",
    "../driver/src",
    "../noq/Cargo.toml",
    "../noq/src",
    "../world/Cargo.toml",
    "../world/.cargo/config.toml",
    "../world/src",
    "../../crates/units/src",
    "../../crates/cc/Cargo.toml",
    "../../crates/cc/src",
    "../../crates/path/Cargo.toml",
    "../../crates/path/src",
    "../../crates/scenario/src",
    "../../crates/record/Cargo.toml",
    "../../crates/record/src",
    "../../crates/files/src",
];

const STACKS: [&str; 2] = ["noq-proto", "quinn-proto"];

fn main() {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        let mut files = Vec::new();
        collect(Path::new(source), &mut files);
        assert!(!files.is_empty(), "{source} is missing");
        files.sort();
        for file in files {
            let content = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let name = file.to_string_lossy().into_owned();
            // FNV-1a.
            for byte in name.bytes().chain([0]).chain(content).chain([0]) {
                hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            }
        }
    }
    println!("cargo::rustc-env=FULLPIPE_QUIC_BUILD={hash:032x}");
    tell_versions();
    // The program says so, too (`QuicError::Build`), but only once all is compiled.
    if std::env::var("CARGO_CFG_GETRANDOM_BACKEND").as_deref() != Ok("custom") {
        println!(
            "cargo::warning=this build lacks --cfg getrandom_backend=\"custom\", and its program will refuse to run: copy \
             quic/world/.cargo/config.toml into the folder in which you run cargo, as .cargo/config.toml"
        );
    }
}

/// Hands the versions of the stacks to `src/options.rs`. They are those of the lock file of whatever is being built.
fn tell_versions() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    // A target folder is inside the workspace unless somebody chose another one; then cargo, our parent, most likely runs there.
    let parent = PathBuf::from(format!("/proc/{}/cwd", std::os::unix::process::parent_id()));
    let here = fs::read_link(parent).unwrap_or_default();
    let folders = out.ancestors().chain(here.ancestors()).chain([Path::new("..")]);
    let (path, text) = folders
        .map(|folder| folder.join("Cargo.lock"))
        .filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text)))
        .find(|(_, text)| STACKS.iter().all(|stack| lock::version(text, stack).is_some()))
        .expect("../Cargo.lock, at least, has the stacks");
    println!("cargo::rerun-if-changed={}", path.display());
    for stack in STACKS {
        let version = lock::version(&text, stack).expect("it was found");
        println!("cargo::rustc-env=FULLPIPE_{}={version}", stack.replace('-', "_").to_uppercase());
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(path) else {
        if path.is_file() {
            files.push(path.to_owned());
        }
        return;
    };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}
