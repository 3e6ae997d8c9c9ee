//! A fingerprint of the sources that decide what a run gives, so that stored runs of another version are not taken for runs of
//! this one: ours, those of the crates of this repository that we depend on (`crates/py/sources.rs`), and the versions of all
//! others. And the versions of the stacks, for records and reports.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use self::sources::{ROOT, closure, collect, fingerprint, members};

#[path = "src/lock.rs"]
mod lock;
#[path = "../../crates/py/sources.rs"]
mod sources;

const STACKS: [&str; 2] = ["noq-proto", "quinn-proto"];
const OUR_LOCK: &str = "../Cargo.lock";

fn main() -> io::Result<()> {
    let mut members = members(Path::new(ROOT))?;
    members.extend(self::members(Path::new(".."))?);
    members.insert(lock::OURS.to_owned(), PathBuf::from("."));
    let folders = closure(lock::OURS, &members)?;
    let mut files = Vec::new();
    for folder in folders.values() {
        for part in ["Cargo.toml", "build.rs", "src"] {
            collect(&folder.join(part), &BTreeSet::new(), &mut files)?;
        }
    }
    // Features, profiles and flags.
    let manifests = [&format!("{ROOT}/Cargo.toml"), "../Cargo.toml", ".cargo/config.toml"];
    files.extend(manifests.map(PathBuf::from));

    let (lock, text) = find_lock();
    files.push(lock.clone());
    println!("cargo::rustc-env=FULLPIPE_QUIC_BUILD={}", fingerprint(&files)?);

    // A developer's program may have other features, profiles and patches; and what has no checksum may be a folder.
    let ours: BTreeSet<&str> = folders.keys().map(String::as_str).collect();
    let is_ours = lock.canonicalize()? == Path::new(OUR_LOCK).canonicalize()?;
    let is_whole = is_ours && lock::unpinned(&text, &ours).is_empty();
    println!("cargo::rustc-env=FULLPIPE_QUIC_BUILD_IS={}", if is_whole { "whole" } else { "part" });
    for stack in STACKS {
        let version = lock::version(&text, stack).expect("it was found");
        // Cargo warns of it, and the program would test the released stack instead of the developer's.
        if let Some(unused) = lock::unused_patch(&text, stack) {
            return Err(io::Error::other(format!(
                "[patch.crates-io] names {stack} {unused}, which is incompatible with {version}, that this Fullpipe is for; check \
                 out a branch of {stack} with a compatible version"
            )));
        }
        println!("cargo::rustc-env=FULLPIPE_{}={version}", stack.replace('-', "_").to_uppercase());
    }

    // The program says so, too (`QuicError::Build`), but only once all is compiled.
    if std::env::var("CARGO_CFG_GETRANDOM_BACKEND").as_deref() != Ok("custom") {
        println!(
            "cargo::warning=this build lacks --cfg getrandom_backend=\"custom\", and its program will refuse to run: copy \
             quic/world/.cargo/config.toml into the folder in which you run cargo, as .cargo/config.toml"
        );
    }
    Ok(())
}

/// The lock file of whatever is being built, and its text.
///
/// Cargo, our parent, looks for it from `--manifest-path`, or from where it runs. If it cannot be asked: a target folder is inside
/// the workspace unless somebody chose another one. Two workspaces outside of this repository that share a target folder share what
/// this script says, too: then the versions may be those of the first one.
fn find_lock() -> (PathBuf, String) {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let parent = PathBuf::from(format!("/proc/{}", std::os::unix::process::parent_id()));
    let here = fs::read_link(parent.join("cwd")).unwrap_or_default();
    let named = manifest_path(&fs::read(parent.join("cmdline")).unwrap_or_default());
    let named = named.map(|path| here.join(path)).unwrap_or_default();
    let folders = named.ancestors().chain(here.ancestors()).chain(out.ancestors()).chain([Path::new("..")]);
    folders
        .map(|folder| folder.join("Cargo.lock"))
        .filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text)))
        .find(|(_, text)| STACKS.iter().all(|stack| lock::version(text, stack).is_some()))
        .expect("../Cargo.lock, at least, has the stacks")
}

/// What a command line, whose words end with zeros, has as `--manifest-path`.
fn manifest_path(command: &[u8]) -> Option<PathBuf> {
    const OPTION: &[u8] = b"--manifest-path";
    let mut words = command.split(|byte| *byte == 0);
    let path = words.find_map(|word| match word.strip_prefix(OPTION)? {
        [] => Some(None),
        [b'=', path @ ..] => Some(Some(path)),
        _ => None,
    })?;
    let path = path.or_else(|| words.next())?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())))
}
