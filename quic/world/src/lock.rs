//! Which version of a dependency a program is built with, by its `Cargo.lock`. For `build.rs`: a developer's program has a lock
//! file of its own, and may have other versions than `quic/Cargo.lock`.

/// The package whose dependencies are looked up.
const OURS: &str = "fullpipe-quic";

/// The version of `name` that `fullpipe-quic` depends on; `None` if that is no lock file of a program with `fullpipe-quic` in it.
pub(crate) fn version(lock: &str, name: &str) -> Option<String> {
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    let ours = packages.iter().find(|package| value(package, "name") == Some(OURS))?;
    // "noq-proto", and where there are several "noq-proto 1.4.0", perhaps with a source behind it.
    let mut dependency = ours
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .map(|entry| entry.split(' '))
        .find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
    if let Some(version) = dependency.next() {
        return Some(version.to_owned());
    }
    let package = packages.iter().find(|package| value(package, "name") == Some(name))?;
    value(package, "version").map(str::to_owned)
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
    fn the_version_is_the_one_that_we_depend_on() {
        assert_eq!(version(LOCK, "noq-proto").as_deref(), Some("1.5.2"));
        assert_eq!(version(LOCK, "quinn-proto").as_deref(), Some("0.11.19"));
        assert_eq!(version(LOCK, "noq-proto-more"), None, "it is not among the packages");
        assert_eq!(version(LOCK, "0.1.0"), None);
    }

    #[test]
    fn what_is_no_lock_file_of_ours_has_no_version() {
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
        }
    }
}
