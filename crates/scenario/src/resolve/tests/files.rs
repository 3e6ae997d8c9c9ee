//! Scenarios and delivery traces that are read from files.

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

const TRACE: &str =
    "compare = [\"bbr1\"]\n[path]\ntrace = \"t.trace\"\nrtt = \"40 ms\"\nbuffer = \"1 bdp\"\n";

#[test]
fn a_trace_is_read_beside_the_scenario_and_has_a_mean_rate() {
    let folder = Folder::new("good");
    folder.write("t.trace", b"1\n1\n2\n4\n");
    let scenario = folder.write("s.toml", TRACE.as_bytes());
    let specs = resolve_file(&scenario).unwrap();
    let ElementConfig::DeliveryTrace { opportunities_ms, queue, .. } = &specs[0].1.forward[0] else {
        panic!("{specs:?}")
    };
    assert_eq!(**opportunities_ms, [1, 1, 2, 4]);
    // One packet a millisecond on average, for 40 ms.
    assert_eq!(queue.bytes, Bytes::new(60_000));
    assert_eq!(resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap(), specs[0].1);
    assert_eq!(Spec::from_json(&specs[0].1.to_json()).unwrap(), specs[0].1);
}

#[test]
fn a_bad_trace_names_the_file_and_the_line() {
    let folder = Folder::new("bad");
    let trace_error = |content: &[u8]| {
        folder.write("t.trace", content);
        resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string()
    };
    for content in ["", "1\nx\n", "5\n4\n", "0\n", "-1\n", "1.5\n", "1\n\n2\n", "99999999999999999999999\n"] {
        let error = trace_error(content.as_bytes());
        assert_all(&error, &["path.trace: ", "is not a delivery trace", "expected", "mend the file"]);
    }
    assert_all(&trace_error(b"\xff\xfe\n"), &["path.trace: ", "cannot be read", "UTF-8"]);
    fs::remove_file(folder.0.join("t.trace")).unwrap();
    let missing = resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&missing, &["path.trace: ", "cannot be read: No such file", "check the path"]);
    fs::create_dir(folder.0.join("t.trace")).unwrap();
    let directory = resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&directory, &["path.trace: ", "is not a regular file"]);
    fs::remove_dir(folder.0.join("t.trace")).unwrap();
    // A file with a hole takes no space.
    fs::File::create(folder.0.join("t.trace")).unwrap().set_len(bounds::MAX_TRACE_FILE + 1).unwrap();
    let large = resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&large, &["path.trace: ", "is too large", "200 MB"]);
}

#[test]
fn a_trace_excludes_a_rate_and_its_changes() {
    let folder = Folder::new("excluded");
    folder.write("t.trace", b"1\n2\n");
    let with = |lines: &str| {
        let text = TRACE.replace("rtt", &format!("{lines}\nrtt"));
        resolve(&text, Format::Toml, Some(&folder.0)).unwrap_err().to_string()
    };
    assert_all(&with("rate = \"1 Mbit/s\""), &["path.trace", "either rate or trace"]);
    assert_all(&with("burst = \"1 MB\""), &["path.burst", "beside a trace"]);
    assert_all(
        &with("changes = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]"),
        &["path.changes", "cannot change a trace"],
    );
}

#[test]
fn an_unreadable_scenario_names_the_file() {
    let missing = resolve_file(Path::new("/nonexistent/s.toml")).unwrap_err().to_string();
    assert_all(&missing, &["scenario: \"/nonexistent/s.toml\" cannot be read", "check the path"]);
    assert_all(&resolve_file(Path::new("/")).unwrap_err().to_string(), &["is not a regular file"]);
}
