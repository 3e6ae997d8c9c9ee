//! Where congestion controls that stay have their names: the BPF file system.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use fullpipe_emu::sysctl::sysctl;

/// Where Linux has the file system.
pub(super) const BPFFS: &str = "/sys/fs/bpf";
/// Length of the text in the map `about`.
pub(super) const ABOUT_BYTES: usize = 1024;

/// The folder of all.
pub(super) fn root() -> PathBuf {
    Path::new(BPFFS).join("fullpipe")
}

/// The names of those that are loaded, in order.
pub(super) fn loaded() -> Vec<String> {
    let names = fs::read_dir(root()).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

pub(super) fn default() -> Option<String> {
    sysctl("net.ipv4.tcp_congestion_control")
}

/// A path for bpf(2).
pub(super) fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}
