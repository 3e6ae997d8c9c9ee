//! What a program is built with, by its `Cargo.lock`. For `build.rs`: a developer's program has a lock file of its own, and may
//! have other versions than `quic/Cargo.lock`.

use std::collections::BTreeSet;

/// The package whose dependencies are looked up.
pub(crate) const OURS: &str = "fullpipe-quic";

/// The version of `name` that `fullpipe-quic` depends on; `None` if that is no lock file of a program with `fullpipe-quic` in it.
pub(crate) fn version(lock: &str, name: &str) -> Option<String> {
    let packages = packages(lock);
    let ours = packages.iter().find(|package| value(package, "name") == Some(OURS))?;
    let (_, version) = dependencies(ours).find(|(dependency, _)| *dependency == name)?;
    if let Some(version) = version {
        return Some(version.to_owned());
    }
    let package = packages.iter().find(|package| value(package, "name") == Some(name))?;
    value(package, "version").map(str::to_owned)
}

/// Of all that `fullpipe-quic` depends on, and that depends on, the packages whose sources the lock file does not determine: those
/// that are not `ours` and have no checksum of a registry. They may be folders, whose files can change.
pub(crate) fn unpinned<'a>(lock: &'a str, ours: &BTreeSet<&str>) -> BTreeSet<&'a str> {
    let packages = packages(lock);
    let mut waiting: Vec<(&str, Option<&str>)> = vec![(OURS, None)];
    let mut seen = BTreeSet::new();
    let mut unpinned = BTreeSet::new();
    while let Some((name, version)) = waiting.pop() {
        if !seen.insert((name, version)) {
            continue;
        }
        // Of one version, all sources: it is listed with its source only where there are several.
        for package in packages.iter().filter(|package| {
            value(package, "name") == Some(name)
                && (version.is_none() || value(package, "version") == version)
        }) {
            let registry = value(package, "source")
                .is_some_and(|source| source.starts_with("registry+") || source.starts_with("sparse+"));
            let is_pinned = registry && value(package, "checksum").is_some();
            if !is_pinned && !ours.contains(name) {
                unpinned.insert(name);
            }
            waiting.extend(dependencies(package));
        }
    }
    unpinned
}

/// The version of a developer's `name` that `[patch]` names and that nothing uses, because it is incompatible with ours.
pub(crate) fn unused_patch<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let patch = lock.split("[[patch.unused]]").skip(1).find(|patch| value(patch, "name") == Some(name))?;
    value(patch, "version")
}

/// The parts of a lock file that are about a package each.
fn packages(lock: &str) -> Vec<&str> {
    lock.split("[[package]]").skip(1).collect()
}

/// What a package depends on: "noq-proto", and where there are several "noq-proto 1.4.0", perhaps with a source behind it.
fn dependencies(package: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let entries = package.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    entries.filter_map(|entry| {
        let mut words = entry.split(' ');
        Some((words.next()?, words.next()))
    })
}

/// What a package has under `key`.
fn value<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| {
        line.strip_prefix(key)?
            .trim_start()
            .strip_prefix('=')?
            .trim_start()
            .strip_prefix('"')?
            .strip_suffix('"')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"version = 4

[[package]]
name = "fullpipe-noq"
version = "0.1.0"
dependencies = [
 "noq-proto 2.0.0",
]

[[package]]
name = "fullpipe-quic"
version = "0.1.0"
dependencies = [
 "getrandom 0.4.3",
 "noq-proto 1.5.2",
 "noq-proto-more",
 "quinn-proto",
]

[[package]]
name = "noq-proto"
version = "1.5.2"

[[package]]
name = "noq-proto"
version = "2.0.0"

[[package]]
name = "quinn-proto"
version = "0.11.19"
source = "registry+https://github.com/rust-lang/crates.io-index"
"#;

    #[test]
    fn version_is_that_of_dependency() {
        assert_eq!(version(LOCK, "noq-proto").as_deref(), Some("1.5.2"));
        assert_eq!(version(LOCK, "quinn-proto").as_deref(), Some("0.11.19"));
        assert_eq!(version(LOCK, "noq-proto-more"), None, "it is not among the packages");
        assert_eq!(version(LOCK, "0.1.0"), None);
    }

    #[test]
    fn patch_that_nothing_uses_is_found() {
        let patched = format!("{LOCK}\n[[patch.unused]]\nname = \"quinn-proto\"\nversion = \"0.12.0\"\n");
        assert_eq!(unused_patch(&patched, "quinn-proto"), Some("0.12.0"));
        assert_eq!(unused_patch(&patched, "noq-proto"), None);
        assert_eq!(unused_patch(LOCK, "quinn-proto"), None);
        assert_eq!(version(&patched, "quinn-proto").as_deref(), Some("0.11.19"));
    }

    #[test]
    fn package_without_checksum_is_undetermined() {
        const FROM: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        let pinned = format!("{FROM}checksum = \"00\"\n");
        let lock = |noq: &str, ring: &str| {
            format!(
                r#"version = 4

[[package]]
name = "fullpipe-quic"
version = "0.1.0"
dependencies = [
 "fullpipe-cc",
 "noq-proto 1.5.2",
]

[[package]]
name = "fullpipe-cc"
version = "0.1.0"

[[package]]
name = "noq-proto"
version = "1.5.2"
{noq}dependencies = [
 "ring",
]

[[package]]
name = "noq-proto"
version = "2.0.0"

[[package]]
name = "other"
version = "1.0.0"

[[package]]
name = "ring"
version = "0.17.0"
{ring}"#
            )
        };
        let ours = BTreeSet::from(["fullpipe-quic", "fullpipe-cc"]);
        let found = |text: &str| unpinned(text, &ours).into_iter().map(str::to_owned).collect::<Vec<_>>();
        // Nobody depends on what has none.
        assert_eq!(found(&lock(&pinned, &pinned)), [""; 0]);
        // A folder, directly or further down; from a repository; a registry without checksums.
        assert_eq!(found(&lock("", &pinned)), ["noq-proto"]);
        assert_eq!(found(&lock(&pinned, "")), ["ring"]);
        let git = "source = \"git+https://example.org/ring?branch=main#0123\"\n";
        assert_eq!(found(&lock(FROM, git)), ["noq-proto", "ring"]);
        // Somebody else's crate of that name is not ours.
        assert_eq!(unpinned(&lock(&pinned, &pinned), &BTreeSet::from(["fullpipe-quic"])).len(), 1);
    }

    #[test]
    fn foreign_lock_file_has_no_version() {
        for text in [
            "",
            "[[package]]",
            "[[package]]\nname",
            "[[package]]\nname = \"\"\n[[package]]\nname = \"fullpipe-quic\"",
            "[[package]]\nname = \"fullpipe-quic\"\ndependencies = [\n \"quinn-proto",
            "[[package]]\nname = \"fullpipe-quic\n\"quinn-proto\"",
            &LOCK.replace("fullpipe-quic", "other"),
            &LOCK.replace("name = \"quinn-proto\"", "name = \"quinn\""),
        ] {
            assert_eq!(version(text, "quinn-proto"), None, "{text}");
            // Neither ends it in a loop or a panic.
            let _ = unpinned(text, &BTreeSet::new());
        }
    }
}
