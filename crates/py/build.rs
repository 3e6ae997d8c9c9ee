//! Fingerprints of the sources that decide what a run in each world gives, so that stored runs of another version are not
//! taken for runs of this one. Sources, not the library's file: two builds of the same sources give the same runs.
//! How: `sources.rs`.

use std::io;
use std::path::{Path, PathBuf};

use self::sources::{Fnv, LOGS, RECORDINGS, REFUSALS, ROOT, WORDS, closure, collect, members, unread};

mod sources;

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
    let members = members(Path::new(ROOT))?;
    for world in WORLDS {
        let unread = unread(&[world.unread, &[RECORDINGS, LOGS]].concat());
        let mut files = vec![Path::new(ROOT).join("Cargo.lock"), Path::new(ROOT).join("Cargo.toml")];
        for folder in closure(world.member, &members)?.values() {
            for part in ["Cargo.toml", "build.rs", "src"] {
                collect(&folder.join(part), &unread, &mut files)?;
            }
        }
        files.extend(world.more.iter().map(PathBuf::from));
        files.sort();
        let mut print = Fnv::default();
        for file in files {
            print.take_file(&file.to_string_lossy(), &file)?;
        }
        println!("cargo:rustc-env={}={:032x}", world.variable, print.0);
    }
    Ok(())
}
