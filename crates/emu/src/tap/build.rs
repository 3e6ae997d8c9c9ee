//! From C source to the object file that is loaded: compiled by clang at first use and kept in the user's cache.
//!
//! Nothing but the finished object is ever written to disk: source and object travel through pipes, and the object
//! gets its name when it is complete. Where there is no cache to write to, every recording compiles.

use std::ffi::CString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, io};

use fullpipe_cc::replay::Ops;

use super::Missing;
use crate::sys;

const SOURCE: &str = include_str!("tap.bpf.c");
const OPTIONS: &str = "-O2 -g -target bpf -mcpu=v3 -x c -c - -o -";

/// The object file for an algorithm, from the cache or compiled.
pub(crate) fn object(ops: Ops) -> Result<Vec<u8>, Missing> {
    let path = cached(ops);
    if let Some(object) = path.as_deref().and_then(read_own) {
        return Ok(object);
    }
    let object = compile(ops)?;
    if let Some(path) = path {
        // Without it the next recording compiles again, which is no harm.
        let _ = keep(&path, &object);
    }
    Ok(object)
}

/// Where the object for an algorithm is kept. What it is made from is part of its name.
fn cached(ops: Ops) -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let key = fingerprint([OPTIONS, SOURCE]);
    Some(caches.join("fullpipe").join(format!("record-{}-{key:016x}.o", ops.name())))
}

/// FNV-1a: the same on every version of everything.
fn fingerprint(texts: [&str; 2]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Reads a file that nobody but us can have written: what is in it is loaded into the kernel.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    let others_write = about.mode() & 0o022 != 0;
    if !about.is_file() || about.uid() != sys::effective_ids().0 || others_write {
        return None;
    }
    let mut object = Vec::new();
    file.read_to_end(&mut object).ok()?;
    Some(object)
}

/// Writes the file, complete or not at all.
fn keep(path: &Path, object: &[u8]) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let nameless = OpenOptions::new().write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder);
    let mut file = nameless?;
    file.write_all(object)?;
    sys::link_file(&file, &CString::new(path.as_os_str().as_bytes())?)
}

fn compile(ops: Ops) -> Result<Vec<u8>, Missing> {
    let mut clang = Command::new("clang");
    clang.args(OPTIONS.split(' ')).arg(format!("-D{}", ops.name().to_uppercase()));
    clang.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: an async-signal-safe call that allocates nothing.
    unsafe { clang.pre_exec(sys::die_with_parent_thread) };
    let mut running = clang.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Missing::package("clang is not installed", "clang"),
        _ => Missing::other(format!("clang cannot be run: {error}"), INSTALL_CLANG),
    })?;
    // If it does not read, it has something to say.
    let _ = running.stdin.take().map(|mut input| input.write_all(SOURCE.as_bytes()));
    let finished = running
        .wait_with_output()
        .map_err(|error| Missing::other(format!("clang cannot be run: {error}"), INSTALL_CLANG))?;
    if finished.status.success() && !finished.stdout.is_empty() {
        return Ok(finished.stdout);
    }
    let said = String::from_utf8_lossy(&finished.stderr);
    let first = said.lines().find(|line| line.contains("error")).or(said.lines().next());
    let reason = format!("clang cannot compile the recorder: {}", first.unwrap_or("it does not say why"));
    Err(Missing::other(reason, INSTALL_CLANG))
}

const INSTALL_CLANG: &str =
    "use clang 12 or newer that knows the target bpf (Debian, Ubuntu: `apt install clang`)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_keyed_by_what_it_is_made_from() {
        assert_eq!(fingerprint(["", ""]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(["a", ""]), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(fingerprint(["a", "b"]), fingerprint(["b", "a"]));
    }

    #[test]
    fn objects_that_others_could_have_written_are_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = env::temp_dir().join(format!("fullpipe-cache-{}", std::process::id()));
        let path = folder.join("object");
        if keep(&path, b"ours").is_err() {
            println!("skipped: no files without names here");
            return;
        }
        assert_eq!(read_own(&path).unwrap(), b"ours");
        assert!(keep(&path, b"again").is_err(), "what is there stays");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(read_own(&path).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
