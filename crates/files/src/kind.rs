//! Which kind of file a file is, by its content, so that an error can say which command takes it.
//!
//! Names decide nothing here: files from older versions and from other programs have any suffix. Only the first and the
//! last bytes are read, and none of them is ever printed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of the beginning and of the end decides.
const LOOK: usize = 64 << 10;

/// A kind of file that Fullpipe reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Decisions of a kernel's congestion control, call by call (Parquet).
    Recording,
    /// Flows and when they arrive (Parquet).
    FlowList,
    /// A table of a run's samples (Parquet).
    Series,
    /// Parquet of any other origin.
    OtherParquet,
    /// Packets: pcap or pcapng.
    Capture,
    /// A delivery trace in Mahimahi's format: one whole millisecond a line.
    Deliveries,
    /// A scenario, TOML or JSON.
    Scenario,
    /// A grid of scenarios, TOML.
    Grid,
    /// A stored run, or any other zip archive.
    Zip,
}

impl Kind {
    /// The kind of a file; `None` if it is of no known kind, or no regular file, or cannot be read.
    pub fn of(path: &Path) -> Option<Kind> {
        read_ends(path).ok().and_then(|(first, last)| Kind::of_ends(&first, &last))
    }

    /// The kind of a file whose content is known.
    pub fn of_bytes(content: &[u8]) -> Option<Kind> {
        let first = &content[..content.len().min(LOOK)];
        let last = &content[content.len().saturating_sub(LOOK)..];
        Kind::of_ends(first, last)
    }

    fn of_ends(first: &[u8], last: &[u8]) -> Option<Kind> {
        if first.starts_with(b"PAR1") {
            return Some(parquet(last));
        }
        if first.starts_with(b"PK\x03\x04") {
            return Some(Kind::Zip);
        }
        // Classic pcap, microseconds and nanoseconds, in both byte orders; the section header of pcapng.
        const CAPTURES: [[u8; 4]; 5] = [
            [0xa1, 0xb2, 0xc3, 0xd4],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0xa1, 0xb2, 0x3c, 0x4d],
            [0x4d, 0x3c, 0xb2, 0xa1],
            [0x0a, 0x0d, 0x0d, 0x0a],
        ];
        if CAPTURES.iter().any(|magic| first.starts_with(magic)) {
            return Some(Kind::Capture);
        }
        text(first)
    }

    /// What it is, with its article.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Recording => "a recording of kernel decisions",
            Kind::FlowList => "a flow list",
            Kind::Series => "a time series of a run",
            Kind::OtherParquet => "a Parquet file that Fullpipe did not write",
            Kind::Capture => "a packet capture",
            Kind::Deliveries => "a delivery trace in Mahimahi's format",
            Kind::Scenario => "a scenario",
            Kind::Grid => "a grid of scenarios",
            Kind::Zip => "a zip archive, as stored runs are",
        }
    }

    /// Which command or key takes it.
    pub const fn fix(self) -> &'static str {
        match self {
            Kind::Recording => "replay it with `fullpipe replay`",
            Kind::FlowList => "name it in FULLPIPE_FLOWS for `fullpipe study run ccwg25.short`",
            Kind::Series => "read it with any program that reads Parquet",
            Kind::OtherParquet => "read it with the program that wrote it",
            Kind::Capture => "list its flows with `fullpipe flows`",
            Kind::Deliveries => "give it to a scenario as path.deliveries",
            Kind::Scenario => "run it with `fullpipe run`",
            Kind::Grid => "run it with `fullpipe agree`",
            Kind::Zip => "give the folder of stored runs to the command that wrote it",
        }
    }

    /// "it is a packet capture; list its flows with `fullpipe flows`".
    pub fn sentence(self) -> String {
        format!("it is {}; {}", self.name(), self.fix())
    }
}

fn read_ends(path: &Path) -> io::Result<(Vec<u8>, Vec<u8>)> {
    // A pipe could block for ever, as could a file below /proc, which has no length; reading a device can have effects.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let mut first = Vec::new();
    file.by_ref().take(LOOK as u64).read_to_end(&mut first)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LOOK as u64)))?;
    let mut last = Vec::new();
    file.take(LOOK as u64).read_to_end(&mut last)?;
    Ok((first, last))
}

/// Which Parquet file has this end. The metadata holds the names of keys and columns as they are.
fn parquet(last: &[u8]) -> Kind {
    let has = |name: &str| last.windows(name.len()).any(|window| window == name.as_bytes());
    if has("fullpipe.trace") {
        Kind::Recording
    } else if has("fullpipe.table") {
        Kind::Series
    } else if ["start_ns", "pause_ns", "bytes"].into_iter().all(has) {
        Kind::FlowList
    } else {
        Kind::OtherParquet
    }
}

/// Which text file begins with this.
fn text(first: &[u8]) -> Option<Kind> {
    let valid = crate::text::decode_beginning(first)?;
    let numbers = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    // The last line may be cut.
    if valid.lines().next().is_some_and(numbers) && valid.lines().take(100).all(numbers) {
        return Some(Kind::Deliveries);
    }
    let lines = || valid.lines().map(str::trim_start);
    let opens = |names: &[&str]| lines().any(|line| names.iter().any(|name| line.starts_with(name)));
    if opens(&["[[cells]]", "[defaults]"]) {
        return Some(Kind::Grid);
    }
    let toml = opens(&["[path]", "[path.", "path.", "path =", "[[flows]]", "compare ="]);
    let json = valid.trim_start().starts_with('{') && valid.contains("\"path\"");
    (toml || json).then_some(Kind::Scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn repository(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
    }

    #[test]
    fn shipped_files_are_of_their_kind() {
        for (folder, suffix, kind) in [
            ("scenarios", "toml", Kind::Scenario),
            ("scenarios/grids", "toml", Kind::Grid),
            ("scenarios/deliveries", "deliveries", Kind::Deliveries),
            ("tests/recordings", "recording", Kind::Recording),
        ] {
            let mut found = 0;
            for entry in std::fs::read_dir(repository(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == suffix) {
                    assert_eq!(Kind::of(&path), Some(kind), "{}", path.display());
                    found += 1;
                }
            }
            assert!(found > 0, "{folder}");
        }
    }

    #[test]
    fn content_decides() {
        let kind = |content: &[u8]| Kind::of_bytes(content);
        assert_eq!(kind(b"\xd4\xc3\xb2\xa1\x02\0\x04\0"), Some(Kind::Capture));
        assert_eq!(kind(b"\x0a\x0d\x0d\x0a\x1c\0\0\0"), Some(Kind::Capture));
        assert_eq!(kind(b"PK\x03\x04..."), Some(Kind::Zip));
        assert_eq!(kind(b"PAR1 flow start_ns pause_ns bytes PAR1"), Some(Kind::FlowList));
        assert_eq!(kind(b"PAR1 fullpipe.trace PAR1"), Some(Kind::Recording));
        assert_eq!(kind(b"PAR1 colour PAR1"), Some(Kind::OtherParquet));
        assert_eq!(kind(b"1\r\n2\r\n"), Some(Kind::Deliveries));
        // Windows PowerShell's `>` writes UTF-16 with a byte order mark.
        assert_eq!(kind(b"\xff\xfe1\0\r\0\n\x002\0"), Some(Kind::Deliveries));
        assert_eq!(kind(b"\xef\xbb\xbf[path]\n"), Some(Kind::Scenario));
        assert_eq!(kind(br#"{"path": {"rate": "1 Mbit/s"}}"#), Some(Kind::Scenario));
        for unknown in [&b""[..], b"\n", b"hello\n", b"\xff\xfe", b"root:x:0:0:", b"-1\n"] {
            assert_eq!(kind(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        assert_eq!(Kind::of(Path::new("/dev/zero")), None);
        assert_eq!(Kind::of(Path::new("/")), None);
        assert_eq!(Kind::of(Path::new("there is no such file")), None);
    }
}
