//! Scenarios and delivery traces that are read from files.

use std::fs;

use super::*;

/// A folder of its own for a test, removed at its end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fullpipe-scenario-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: &[u8]) -> std::path::PathBuf {
        fs::write(self.0.join(name), content).unwrap();
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DELIVERIES: &str =
    "compare = [\"bbr1\"]\n[path]\ndeliveries = \"t.deliveries\"\nrtt = \"40 ms\"\nbuffer = \"1 bdp\"\n";

#[test]
fn delivery_trace_loads_relative_to_scenario() {
    let folder = Folder::new("good");
    folder.write("t.deliveries", b"1\n1\n2\n4\n");
    let scenario = folder.write("s.toml", DELIVERIES.as_bytes());
    let specs = resolve_file(&scenario).unwrap();
    let ElementConfig::DeliveryTrace { opportunities_ms, queue, .. } = &specs[0].1.forward[0] else {
        panic!("{specs:?}")
    };
    assert_eq!(**opportunities_ms, [1, 1, 2, 4]);
    // One packet a millisecond on average, for 40 ms.
    assert_eq!(queue.bytes, Bytes::new(60_000));
    assert_eq!(resolve(DELIVERIES, Format::Toml, Some(&folder.0)).unwrap(), specs[0].1);
    assert_eq!(Spec::from_json(&specs[0].1.to_json()).unwrap(), specs[0].1);
}

#[test]
fn bad_delivery_trace_is_an_error() {
    let folder = Folder::new("bad");
    let error_of = |content: &[u8]| {
        folder.write("t.deliveries", content);
        resolve(DELIVERIES, Format::Toml, Some(&folder.0)).unwrap_err().to_string()
    };
    for content in ["", "1\nx\n", "5\n4\n", "0\n", "-1\n", "1.5\n", "1\n\n2\n", "99999999999999999999999\n"] {
        let error = error_of(content.as_bytes());
        assert_all(&error, &["path.deliveries: ", "is not a delivery trace", "expected", "fix the file"]);
    }
    assert_all(&error_of(b"\xff\xfe\n"), &["path.deliveries: ", "cannot be read", "UTF-8"]);
    fs::remove_file(folder.0.join("t.deliveries")).unwrap();
    let missing = resolve(DELIVERIES, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&missing, &["path.deliveries: ", "cannot be read: No such file", "check the path"]);
    fs::create_dir(folder.0.join("t.deliveries")).unwrap();
    let directory = resolve(DELIVERIES, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&directory, &["path.deliveries: ", "is not a regular file"]);
    fs::remove_dir(folder.0.join("t.deliveries")).unwrap();
    // A file with a hole takes no space.
    fs::File::create(folder.0.join("t.deliveries")).unwrap().set_len(bounds::MAX_TRACE_FILE + 1).unwrap();
    let large = resolve(DELIVERIES, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&large, &["path.deliveries: ", "is too large", "200 MB"]);
}

#[test]
fn delivery_trace_excludes_rate_and_changes() {
    let folder = Folder::new("excluded");
    folder.write("t.deliveries", b"1\n2\n");
    let with = |lines: &str| {
        let text = DELIVERIES.replace("rtt", &format!("{lines}\nrtt"));
        resolve(&text, Format::Toml, Some(&folder.0)).unwrap_err().to_string()
    };
    assert_all(&with("rate = \"1 Mbit/s\""), &["path.deliveries", "either rate or deliveries"]);
    assert_all(&with("burst = \"1 MB\""), &["path.burst", "together with deliveries"]);
    assert_all(
        &with("changes = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]"),
        &["path.changes", "cannot change a delivery trace"],
    );
}

#[test]
fn reverse_path_uses_own_delivery_trace() {
    let folder = Folder::new("reverse");
    folder.write("t.deliveries", b"1\n1\n2\n4\n");
    let with = |lines: &str| {
        let text = format!("[path]\nrate = \"1 Mbit/s\"\nrtt = \"40 ms\"\n[path.reverse]\n{lines}\n{FLOW}");
        resolve(&text, Format::Toml, Some(&folder.0)).map_err(|error| error.to_string())
    };
    let spec = with("deliveries = \"t.deliveries\"\nbuffer = \"1 bdp\"\nloss = \"10 %\"").unwrap();
    let [ElementConfig::DeliveryTrace { name, opportunities_ms, queue }, ElementConfig::Loss { .. }, _] =
        &spec.reverse[..]
    else {
        panic!("{:?}", spec.reverse)
    };
    assert_eq!((name.as_str(), opportunities_ms.as_slice()), ("reverse", &[1, 1, 2, 4][..]));
    // One packet a millisecond on average, for 40 ms.
    assert_eq!(queue.bytes, Bytes::new(60_000));

    let spec = with("deliveries = \"t.deliveries\"").unwrap();
    let ElementConfig::DeliveryTrace { queue, .. } = &spec.reverse[0] else { panic!("{:?}", spec.reverse) };
    assert_eq!(queue.packets, Some(1000));

    let both = with("deliveries = \"t.deliveries\"\nrate = \"1 Mbit/s\"").unwrap_err();
    assert_all(&both, &["path.reverse.deliveries", "either rate or deliveries"]);
    let change =
        with("deliveries = \"t.deliveries\"\nchanges = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]").unwrap_err();
    assert_all(&change, &["path.reverse.changes", "cannot change a delivery trace", "loss only"]);
    assert_all(
        &with("deliveries = \"none.deliveries\"").unwrap_err(),
        &["path.reverse.deliveries", "none.deliveries"],
    );
}

#[test]
fn an_unreadable_scenario_names_the_file() {
    let missing = resolve_file(Path::new("/nonexistent/s.toml")).unwrap_err().to_string();
    assert_all(&missing, &["scenario: \"/nonexistent/s.toml\" cannot be read", "check the path"]);
    for irregular in ["/", "/dev/zero"] {
        assert_all(&resolve_file(Path::new(irregular)).unwrap_err().to_string(), &["is not a regular file"]);
    }
}

#[test]
fn file_error_names_file_and_line() {
    let folder = Folder::new("placed");
    let message = |name: &str, text: &str| resolve_file(&folder.write(name, text.as_bytes())).unwrap_err();
    let error =
        message("s.toml", "compare = [\"bbr1\"]\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"40 parsecs\"\n");
    let shown = folder.0.join("s.toml").display().to_string();
    assert!(error.to_string().starts_with(&format!("{shown}:4: path.rtt: \"40 parsecs\" is not")), "{error}");
    assert_eq!(error.field, "path.rtt");
    let missing = message("s.toml", "compare = [\"bbr1\"]\n[path]\nrate = \"1 Mbit/s\"\n").to_string();
    assert!(missing.starts_with(&format!("{shown}:2: path.rtt: nothing is given")), "{missing}");
    let syntax = message("s.toml", "name = \"a\"\n[path\n").to_string();
    assert!(syntax.starts_with(&format!("{shown}:2:6: \"[path\" is not TOML")), "{syntax}");
    let key = message("s.toml", "\n\nnmae = 1\n").to_string();
    assert!(key.starts_with(&format!("{shown}:3: nmae: ")), "{key}");
    let json = message("s.json", "{\n\"compare\": [\"bbr1\"],\n\"path\": {\"rate\": 1}}").to_string();
    assert!(json.starts_with(&format!("{}:3: path.", folder.0.join("s.json").display())), "{json}");
}

/// A stranger's scenario may name any file as its deliveries.
#[test]
fn trace_outside_scenario_directory_is_unquoted() {
    let folder = Folder::new("stranger");
    fs::create_dir_all(folder.0.join("mine")).unwrap();
    let trace_error = |content: &str, name: &str| {
        folder.write("secret", content.as_bytes());
        let text = DELIVERIES.replace("t.deliveries", name);
        resolve(&text, Format::Toml, Some(&folder.0.join("mine"))).unwrap_err().to_string()
    };
    std::os::unix::fs::symlink("../secret", folder.0.join("mine/link")).unwrap();
    for name in ["../secret", folder.0.join("secret").to_str().unwrap(), "link", "../mine/../secret"] {
        let error = trace_error("1\nroot:x\n", name);
        assert_all(&error, &["path.deliveries: ", "line 2 is not a time in whole milliseconds"]);
        assert!(!error.contains("root"), "{error}");
        let error = trace_error("1\n7777777777777\n5555555555555\n", name);
        assert_all(&error, &["line 3 has an earlier time than the line before"]);
        assert!(!error.contains("7777777777777") && !error.contains("5555555555555"), "{error}");
    }
    folder.write("mine/own", b"1\nx1x\n");
    let own = DELIVERIES.replace("t.deliveries", "own");
    let own = resolve(&own, Format::Toml, Some(&folder.0.join("mine"))).unwrap_err().to_string();
    assert_all(&own, &["x1x"]);
}

#[test]
fn all_traces_together_are_bounded() {
    let folder = Folder::new("together");
    folder.write("long.deliveries", "1\n".repeat(1_000_000).as_bytes());
    let element = "{ kind = \"delivery_trace\", deliveries = \"long.deliveries\", buffer = \"1 MB\" },";
    let text =
        format!("{FLOW}\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 s\"\nafter = [{}]\n", element.repeat(25));
    let error = resolve(&text, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&error, &["path.after[20].deliveries", "makes 21000000 opportunities", "at most 20000000"]);
}

#[test]
fn capture_as_trace_suggests_flows_command() {
    let folder = Folder::new("other-kind");
    folder.write("t.deliveries", b"\xd4\xc3\xb2\xa1\x02\0\x04\0");
    let error = resolve(DELIVERIES, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&error, &["path.deliveries: ", "is a packet capture", "`fullpipe flows`"]);
}
