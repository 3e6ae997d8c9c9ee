//! What a kernel and a machine must have so that a BPF program can be a congestion control, and how to get what is missing.

use std::path::Path;

use fullpipe_emu::namespace::effective_capabilities;

use crate::sys;

/// The first kernel that passes the ACK to `cong_control`. Since 6.4 a registration can end with a descriptor.
const FIRST_KERNEL: (u32, u32) = (6, 10);
/// The kernel's description of its own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The fix where rights are missing.
pub(crate) const BECOME_ROOT: &str =
    "run as root, outside of any user namespace (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN)";

/// One thing that is missing.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) reason: String,
    /// A package of Debian that has it.
    package: Option<&'static str>,
    fix: String,
}

impl Missing {
    pub(crate) fn package(reason: impl Into<String>, package: &'static str) -> Missing {
        Missing { reason: reason.into(), package: Some(package), fix: String::new() }
    }

    pub(crate) fn other(reason: impl Into<String>, fix: impl Into<String>) -> Missing {
        Missing { reason: reason.into(), package: None, fix: fix.into() }
    }

    /// Everything that is missing, in one sentence, and how to get it.
    pub(crate) fn all(missing: &[Missing]) -> (String, String) {
        let reasons: Vec<&str> = missing.iter().map(|one| one.reason.as_str()).collect();
        let packages: Vec<&str> = missing.iter().filter_map(|one| one.package).collect();
        let others = missing.iter().map(|one| one.fix.clone()).filter(|fix| !fix.is_empty());
        let mut fixes: Vec<String> = others.collect();
        if !packages.is_empty() {
            fixes.push(format!(
                "install what is missing (Debian, Ubuntu: `apt install {}`)",
                packages.join(" ")
            ));
        }
        (reasons.join("; "), fixes.join("; "))
    }
}

/// What the kernel lacks, as far as it can be seen without trying.
pub(crate) fn in_kernel() -> Vec<Missing> {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21; // Implies CAP_BPF and CAP_PERFMON, and namespaces need it anyway.
    let mut missing = Vec::new();
    if effective_capabilities() & (NET_ADMIN | SYS_ADMIN) != NET_ADMIN | SYS_ADMIN {
        missing.push(Missing::other("loading BPF programs is not permitted", BECOME_ROOT));
    }
    let release = sys::host_and_kernel().1;
    if version(&release).is_some_and(|version| version < FIRST_KERNEL) {
        let (major, minor) = FIRST_KERNEL;
        missing.push(Missing::other(
            format!("Linux {release} is too old"),
            format!("boot Linux {major}.{minor} or newer"),
        ));
    }
    if !Path::new(TYPES).exists() {
        missing.push(Missing::other(
            format!("{TYPES} is missing, so the kernel does not describe its types"),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions build them",
        ));
    }
    missing
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-anything"), Some((6, 18)));
        assert_eq!(version("5.4-rc1"), Some((5, 4)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.12").unwrap() > FIRST_KERNEL && version("6.9").unwrap() < FIRST_KERNEL);
    }
}
