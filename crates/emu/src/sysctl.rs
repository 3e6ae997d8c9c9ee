//! Settings of the kernel, read; and those that keep an ordinary user from making namespaces.

use std::fs;

pub(crate) fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// Reads a setting of the calling thread's namespace; tabs become spaces.
pub fn sysctl(name: &str) -> Option<String> {
    fs::read_to_string(path(name)).ok().map(|text| text.trim().replace('\t', " "))
}

/// What keeps an ordinary user from making namespaces here, and how to allow it.
pub(crate) fn how_to_permit() -> String {
    how_to_permit_with(sysctl)
}

/// The settings that forbid it, the value that does, and the value that allows it.
const FORBIDDING: [(&str, &str, &str); 3] = [
    ("user.max_user_namespaces", "0", "10000"),
    ("kernel.unprivileged_userns_clone", "0", "1"), // Debian and Arch
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"), // Ubuntu
];

fn how_to_permit_with(sysctl: impl Fn(&str) -> Option<String>) -> String {
    let forbidding = FORBIDDING.iter().filter(|(name, forbids, _)| sysctl(name).as_deref() == Some(forbids));
    let commands: Vec<String> =
        forbidding.map(|(name, _, allows)| format!("`sysctl -w {name}={allows}`")).collect();
    if commands.is_empty() {
        return "run as root; no sysctl forbids user namespaces here, so a container or a security policy does (in a \
                container: `--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined`)"
            .to_owned();
    }
    format!("run as root, or allow user namespaces once, as root: {}", commands.join(", "))
}

#[cfg(test)]
mod tests {
    use super::how_to_permit_with;

    #[test]
    fn fix_names_only_forbidding_settings() {
        let ubuntu = |name: &str| match name {
            "kernel.apparmor_restrict_unprivileged_userns" => Some("1".to_owned()),
            "user.max_user_namespaces" => Some("96365".to_owned()),
            _ => None,
        };
        let fix = how_to_permit_with(ubuntu);
        assert!(fix.contains("`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"), "{fix}");
        assert!(!fix.contains("max_user_namespaces") && !fix.contains("userns_clone"), "{fix}");
        let none = how_to_permit_with(|name| (name == "user.max_user_namespaces").then(|| "0".to_owned()));
        assert!(none.contains("`sysctl -w user.max_user_namespaces=10000`"), "{none}");
    }

    #[test]
    fn without_forbidding_setting_container_is_suspected() {
        let fix = how_to_permit_with(|_| None);
        assert!(!fix.contains("sysctl -w") && fix.contains("container"), "{fix}");
    }
}
