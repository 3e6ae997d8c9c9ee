//! Collects the scenarios that the package ships, and bounds the memory of the module.

use std::path::{Path, PathBuf};
use std::{env, fs};

const SCENARIOS: &str = "../../scenarios";
/// The most memory that the module may have, bytes: a browser's tab should survive what a link asks for.
const MOST_MEMORY: u64 = 1 << 30;

fn main() {
    println!("cargo::rerun-if-changed={SCENARIOS}");
    let folder = Path::new(SCENARIOS).canonicalize().expect("the scenarios are beside the crates");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let name = |file: &Path| file.file_stem().expect("it has an extension").to_string_lossy().into_owned();
    let lines = files.iter().map(|file| format!("    ({:?}, include_str!({file:?})),\n", name(file)));
    let list = format!("&[\n{}]\n", lines.collect::<String>());
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("scenarios.rs"), list).expect("cargo made it");
    if env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-cdylib-link-arg=--max-memory={MOST_MEMORY}");
    }
}
