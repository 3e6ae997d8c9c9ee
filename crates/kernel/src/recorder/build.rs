//! Compiles the recorder's C source with clang at first use, and keeps the object in the user's cache.
//!
//! Source and object travel through pipes. A cached file is the object and a checksum of it, and it gets its name when it
//! is complete. A file that is damaged, or that others could have written, is replaced. Where the cache cannot be
//! written, every recording compiles.

use std::ffi::CString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, io};

use fullpipe_replay::Ops;

use super::Missing;
use crate::sys;

/// The parts, one after the other: there is no file that could include another. Messages name part and line.
const SOURCE: &str = concat!(
    "#line 1 \"kernel.bpf.h\"\n",
    include_str!("kernel.bpf.h"),
    "#line 1 \"record.bpf.h\"\n",
    include_str!("record.bpf.h"),
    "#line 1 \"missed.bpf.h\"\n",
    include_str!("missed.bpf.h"),
    "#line 1 \"recorder.bpf.c\"\n",
    include_str!("recorder.bpf.c"),
);
const OPTIONS: &str = "-O2 -g -target bpf -mcpu=v3 -x c -c - -o -";

/// The object file for an algorithm, from the cache or compiled.
pub(crate) fn object(ops: Ops) -> Result<Vec<u8>, Missing> {
    cached_or(cache_file(ops), || compile(ops, &[]))
}

/// The object in that file, or a new one, which is then kept there.
fn cached_or(
    file: Option<PathBuf>,
    compile: impl FnOnce() -> Result<Vec<u8>, Missing>,
) -> Result<Vec<u8>, Missing> {
    if let Some(object) = file.as_deref().and_then(read_own) {
        return Ok(object);
    }
    let object = compile()?;
    if let Some(file) = file {
        // If this fails, the next recording compiles again: slower, but correct.
        let _ = keep(&file, &object);
    }
    Ok(object)
}

/// Where the object for an algorithm is kept. The name contains a fingerprint of the source and the options.
fn cache_file(ops: Ops) -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let key = fnv1a([OPTIONS.as_bytes(), SOURCE.as_bytes()]);
    Some(caches.join("fullpipe").join(format!("record-{}-{key:016x}.o", ops.name())))
}

/// FNV-1a, 64 bits. No version of anything changes it. Every step is a bijection of the hash, so that it always differs
/// when a single byte does.
fn fnv1a<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Length of the checksum behind the object.
const CHECKSUM_BYTES: usize = 8;
/// An object has some 50 KB. A longer file is none of ours.
const MOST_BYTES: u64 = 1 << 20;

/// Reads an object that only this user can have written, because it is loaded into the kernel. `None` if it is missing,
/// damaged or another's.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    // Opening a FIFO would wait for its writer.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let about = file.metadata().ok()?;
    let others_write = about.mode() & 0o022 != 0;
    if !about.is_file() || about.uid() != sys::effective_ids().0 || others_write {
        return None;
    }
    let mut object = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut object).ok()?;
    let checksum = object.split_off(object.len().checked_sub(CHECKSUM_BYTES)?);
    (!object.is_empty() && checksum == fnv1a([&object]).to_le_bytes()).then_some(object)
}

/// Writes an object and its checksum, completely or not at all, in place of a file that cannot be used.
fn keep(path: &Path, object: &[u8]) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let nameless = OpenOptions::new().write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder);
    let mut file = nameless?;
    file.write_all(object)?;
    file.write_all(&fnv1a([object]).to_le_bytes())?;
    // A folder goes only if it is empty: what is in it was not put there by us.
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    sys::link_file(&file, &CString::new(path.as_os_str().as_bytes())?)
}

/// Compiles the source for an algorithm, with additional options.
pub(super) fn compile(ops: Ops, options: &[&str]) -> Result<Vec<u8>, Missing> {
    let mut clang = Command::new("clang");
    clang.args(OPTIONS.split(' ')).arg(format!("-D{}", ops.name().to_uppercase())).args(options);
    clang.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: an async-signal-safe call that allocates nothing.
    unsafe { clang.pre_exec(sys::die_with_parent_thread) };
    let mut running = clang.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Missing::package("clang is not installed", "clang"),
        _ => Missing::other(format!("clang cannot be run: {error}"), INSTALL_CLANG),
    })?;
    // If it stops reading, its error message says why.
    let _ = running.stdin.take().map(|mut input| input.write_all(SOURCE.as_bytes()));
    let finished = running
        .wait_with_output()
        .map_err(|error| Missing::other(format!("clang cannot be run: {error}"), INSTALL_CLANG))?;
    if finished.status.success() && !finished.stdout.is_empty() {
        return Ok(finished.stdout);
    }
    let messages = String::from_utf8_lossy(&finished.stderr);
    let first = messages.lines().find(|line| line.contains("error")).or(messages.lines().next());
    let reason = format!("clang cannot compile the recorder: {}", first.unwrap_or("it gives no reason"));
    Err(Missing::other(reason, INSTALL_CLANG))
}

const INSTALL_CLANG: &str =
    "use clang 12 or newer that knows the target bpf (Debian, Ubuntu: `apt install clang`)";

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;

    /// A cache file in a folder of the test's own; `None` where the file system has no nameless files.
    fn cache(test: &str) -> Option<PathBuf> {
        let folder = env::temp_dir().join(format!("fullpipe-cache-{}-{test}", std::process::id()));
        let path = folder.join("object.o");
        if let Err(error) = keep(&path, OBJECT) {
            println!("skipped: {error}");
            return None;
        }
        Some(path)
    }

    const OBJECT: &[u8] = b"a compiled recorder";

    /// Whether a recording that finds this file compiles. It gets the whole object either way.
    fn compiles(path: &Path) -> bool {
        let compiled = Cell::new(false);
        let object = cached_or(Some(path.to_owned()), || {
            compiled.set(true);
            Ok(OBJECT.to_vec())
        });
        assert_eq!(object.unwrap(), OBJECT);
        compiled.get()
    }

    #[test]
    fn compiler_output_names_source_part() {
        for (broken, part) in [("jiffies64", "kernel.bpf.h:"), ("catch_up", "missed.bpf.h:")] {
            let reason = compile(Ops::Bbr, &[&format!("-D{broken}=1")]).unwrap_err().reason;
            if reason.contains("not installed") {
                println!("skipped: {reason}");
                return;
            }
            assert!(reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn fingerprints_are_fnv1a() {
        assert_eq!(fnv1a([b"", b""]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a([b"a"]), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(fnv1a([b"a", b"b"]), fnv1a([b"b", b"a"]));
    }

    #[test]
    fn damaged_objects_are_rebuilt_once() {
        let Some(path) = cache("damaged") else { return };
        assert!(!compiles(&path), "a whole one is read");
        let whole = fs::read(&path).unwrap();
        let flipped = (0..whole.len()).map(|position| {
            let mut bytes = whole.clone();
            bytes[position] ^= 1;
            bytes
        });
        let truncated = (0..whole.len()).map(|length| whole[..length].to_vec());
        let longer = [whole.as_slice(), b"more"].concat();
        for damaged in flipped.chain(truncated).chain([longer, vec![0; 64]]) {
            fs::write(&path, damaged).unwrap();
            assert!(compiles(&path));
            assert!(!compiles(&path), "the rebuilt one is read");
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn foreign_cache_entry_is_replaced() {
        let Some(path) = cache("replaced") else { return };
        fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(compiles(&path), "others can write it");
        assert!(!compiles(&path));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(compiles(&path), "it is a folder");
        assert!(!compiles(&path));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(compiles(&path), "it is a link to a device");
        assert!(!compiles(&path));
        assert!(fs::metadata("/dev/null").is_ok_and(|about| !about.is_file()), "the link's target stays");
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(compiles(&path), "it is a FIFO, which must not be waited for");
        assert!(!compiles(&path));
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn nonempty_directory_stays_recordings_compile() {
        let Some(path) = cache("folder") else { return };
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("theirs"), b"kept").unwrap();
        assert!(compiles(&path) && compiles(&path));
        assert_eq!(fs::read(path.join("theirs")).unwrap(), b"kept");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
