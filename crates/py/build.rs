//! Fingerprints of the sources that decide what a run in each world gives, so that stored runs of another version are not
//! taken for runs of this one. Sources, not the library's file: two builds of the same sources give the same runs.
//! How: `sources.rs`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use self::sources::{ROOT, closure, collect, fingerprint, members};

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
        more: &["src/controller.rs", "../../python/fullpipe/scenario/controllers.py"],
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
    "crates/scenario/src/declared.rs",
    "crates/scenario/src/document.rs",
    "crates/scenario/src/elements.rs",
    "crates/scenario/src/format.rs",
    "crates/scenario/src/place.rs",
    "crates/scenario/src/quantity.rs",
    "crates/scenario/src/queue.rs",
    "crates/scenario/src/reader.rs",
    "crates/scenario/src/resolve",
    "crates/scenario/src/resolve.rs",
    "crates/scenario/src/change_text.rs",
    "crates/scenario/src/schema.rs",
    "crates/scenario/src/unit.rs",
    "crates/sim/src/change_text.rs",
];

/// What decides whether a spec may run, and in which words it is refused; not what its run gives.
const REFUSALS: &[&str] = &[
    "crates/scenario/src/bounds.rs",
    "crates/scenario/src/check.rs",
    "crates/scenario/src/error.rs",
    "crates/scenario/src/key.rs",
    "crates/scenario/src/stack.rs",
    "crates/scenario/src/validate.rs",
];

/// What writes logs. It only looks on: a run gives the same whether it is logged or not.
const LOGS: &[&str] = &["crates/export/src"];

/// What replays recorded decisions of a kernel; no world's runs depend on it. A recording is no run.
const RECORDINGS: &[&str] = &["crates/replay/src"];

/// What our controllers decide. The kernel world runs Linux's own and takes from that crate only what a controller is
/// called and whether it needs pacing; what follows from the kernel's reports is not in this folder. A kernel run takes as long as
/// it lasts.
const DECISIONS: &[&str] = &["crates/cc/src/controllers"];

fn main() -> io::Result<()> {
    let members = members(Path::new(ROOT))?;
    for world in WORLDS {
        let unread = world.unread.iter().copied().chain([RECORDINGS, LOGS]).flatten();
        let unread: BTreeSet<PathBuf> = unread.map(|path| Path::new(ROOT).join(path)).collect();
        let gone = unread.iter().find(|path| !path.exists());
        assert!(gone.is_none(), "{gone:?} is gone; remove it from the list in crates/py/build.rs");
        let mut files = vec![Path::new(ROOT).join("Cargo.lock"), Path::new(ROOT).join("Cargo.toml")];
        for folder in closure(world.member, &members)?.values() {
            for part in ["Cargo.toml", "build.rs", "src"] {
                collect(&folder.join(part), &unread, &mut files)?;
            }
        }
        files.extend(world.more.iter().map(PathBuf::from));
        println!("cargo:rustc-env={}={}", world.variable, fingerprint(&files)?);
    }
    Ok(())
}
