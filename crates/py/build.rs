//! Fingerprints of the sources that decide what a run in each world gives, so that stored runs can be told from those
//! of another version. Sources, not the library's file: two builds of the same sources give the same runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What both worlds read: the path, the record with its measures, and the specs. What a document means is not here,
/// because a stored run is also known by its spec.
const SHARED: [&str; 6] = [
    "Cargo.lock",
    "crates/units/src",
    "crates/path/src",
    "crates/record/src",
    "crates/scenario/src/spec.rs",
    "crates/scenario/src/controller.rs",
];
const SIM: [&str; 2] = ["crates/cc/src", "crates/sim/src"];
/// Not our controllers: the kernel world runs Linux's own, and a kernel run is dear.
const KERNEL: [&str; 1] = ["crates/emu/src"];

fn main() -> io::Result<()> {
    for (variable, own) in [("FULLPIPE_SIM_BUILD", &SIM[..]), ("FULLPIPE_KERNEL_BUILD", &KERNEL[..])] {
        let mut files = Vec::new();
        for part in SHARED.iter().chain(own) {
            println!("cargo:rerun-if-changed=../../{part}");
            collect(&Path::new("../..").join(part), &mut files)?;
        }
        files.sort();
        let mut print = Fnv::default();
        for file in files {
            print.take(file.to_string_lossy().as_bytes());
            print.take(&fs::read(&file)?);
        }
        println!("cargo:rustc-env={variable}={:032x}", print.0);
    }
    Ok(())
}

/// Every file at or below `path`.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// FNV-1a with 128 bits (draft-eastlake-fnv): sources are nobody's attack, and `std` promises no stable hash.
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
