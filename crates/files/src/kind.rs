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
    /// Compressed with gzip.
    Gzip,
    /// Compressed with Zstandard.
    Zstd,
    /// Compressed with xz.
    Xz,
    /// Compressed with bzip2.
    Bzip2,
    /// Compressed with LZ4.
    Lz4,
    /// A trace of Windows, e.g. by `pktmon` or `netsh trace`.
    EventTrace,
    /// Packets in Microsoft Network Monitor's format.
    NetMon,
    /// Packets in snoop's format (RFC 1761).
    Snoop,
    /// Packets in Endace's format.
    Erf,
    /// Packets in the format of another program, which `editcap` may read.
    OtherCapture,
    /// Packets as tshark or tcpdump prints them.
    PrintedPackets,
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
        // Classic pcap, microseconds and nanoseconds, in both byte orders, and Kuznetzov's; pcapng's section header.
        const CAPTURES: [[u8; 4]; 6] = [
            [0xa1, 0xb2, 0xc3, 0xd4],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0xa1, 0xb2, 0x3c, 0x4d],
            [0x4d, 0x3c, 0xb2, 0xa1],
            [0x34, 0xcd, 0xb2, 0xa1],
            [0x0a, 0x0d, 0x0d, 0x0a],
        ];
        if CAPTURES.iter().any(|magic| first.starts_with(magic)) {
            return Some(Kind::Capture);
        }
        foreign(first).or_else(|| text(first))
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
            Kind::Gzip => "a file compressed with gzip",
            Kind::Zstd => "a file compressed with Zstandard",
            Kind::Xz => "a file compressed with xz",
            Kind::Bzip2 => "a file compressed with bzip2",
            Kind::Lz4 => "a file compressed with LZ4",
            Kind::EventTrace => "an event trace of Windows (.etl)",
            Kind::NetMon => "a capture of Microsoft Network Monitor",
            Kind::Snoop => "a capture in snoop's format",
            Kind::Erf => "a capture in Endace's format (.erf)",
            Kind::OtherCapture => "a capture in a format other than pcap and pcapng",
            Kind::PrintedPackets => "the printed output of tshark or tcpdump",
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
            Kind::Zip => "unpack it, or give the folder of stored runs to the command that wrote it",
            Kind::Gzip => "unpack it with `gunzip`",
            Kind::Zstd => "unpack it with `unzstd`",
            Kind::Xz => "unpack it with `unxz`",
            Kind::Bzip2 => "unpack it with `bunzip2`",
            Kind::Lz4 => "unpack it with `unlz4`",
            Kind::EventTrace => {
                "convert it: `pktmon etl2pcap FILE.etl` for a trace of pktmon, Microsoft's etl2pcapng for one of \
                 `netsh trace`"
            }
            Kind::NetMon | Kind::Snoop | Kind::Erf | Kind::OtherCapture => {
                "convert it with Wireshark's `editcap -F pcap IN OUT.pcap`"
            }
            Kind::PrintedPackets => {
                "save the packets themselves: `tshark -w FILE.pcapng` or `tcpdump -w FILE.pcap`"
            }
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

/// Which file of another program begins with this.
fn foreign(first: &[u8]) -> Option<Kind> {
    const MAGICS: [(&[u8], Kind); 19] = [
        (b"\x1f\x8b", Kind::Gzip),
        (b"\x28\xb5\x2f\xfd", Kind::Zstd),
        (b"\xfd7zXZ\0", Kind::Xz),
        (b"BZh", Kind::Bzip2),
        (b"\x04\x22\x4d\x18", Kind::Lz4),
        (b"snoop\0\0\0", Kind::Snoop),
        (b"GMBU", Kind::NetMon),
        (b"RTSS", Kind::NetMon),
        // pcap by Kuznetzov in the other byte order; IXIA's lcap in both forms.
        (b"\xa1\xb2\xcd\x34", Kind::OtherCapture),
        (b"\x1c\0\x01\xab", Kind::OtherCapture),
        (b"\x1c\0\x01\xac", Kind::OtherCapture),
        (b"\xab\x01\0\x1c", Kind::OtherCapture),
        (b"\xac\x01\0\x1c", Kind::OtherCapture),
        (b"iptrace ", Kind::OtherCapture),
        (b"TRSNIFF data    \x1a", Kind::OtherCapture),
        (b"XCP\0", Kind::OtherCapture),
        (b"ObserverPktBuffe", Kind::OtherCapture),
        (b"\x7fver", Kind::OtherCapture),
        (b"\x05VNF", Kind::OtherCapture),
    ];
    let known = MAGICS.iter().find(|(magic, _)| first.starts_with(magic)).map(|(_, kind)| *kind);
    known
        .or_else(|| is_event_trace(first).then_some(Kind::EventTrace))
        .or_else(|| is_erf(first).then_some(Kind::Erf))
}

/// Whether the first event behind the first buffer's header of 72 bytes is the trace's own (`SYSTEM_TRACE_HEADER`): version 2,
/// and type 1 or 2 for 32 or 64 bits with the flags 0xc0.
fn is_event_trace(first: &[u8]) -> bool {
    matches!(first.get(72..76), Some([2, 0, 1 | 2, 0xc0]))
}

/// Whether the first two records are Endace's: a known type, a length, and times between 1990 and 2100 that do not go back far.
fn is_erf(first: &[u8]) -> bool {
    const YEARS_S: std::ops::Range<u32> = 631_152_000..4_102_444_800;
    let record = |at: usize| -> Option<(u32, usize)> {
        let header = first.get(at..at + 16)?;
        let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let length = usize::from(u16::from_be_bytes([header[10], header[11]]));
        let valid = (1..=48).contains(&(header[8] & 0x7f)) && length > 16 && YEARS_S.contains(&seconds);
        valid.then_some((seconds, length))
    };
    record(0).is_some_and(|(one, length)| record(length).is_some_and(|(two, _)| one.abs_diff(two) < 3600))
}

/// Whether the text is packets as a program prints them.
fn is_printed(text: &str) -> bool {
    // tshark -T json, ek, pdml and psml, and -V; then its summary lines, and those of tcpdump.
    let start = text.trim_start();
    let json = start.starts_with(['[', '{']) && text.contains("\"_index\"") && text.contains("packets-");
    if json || text.contains("<pdml") || text.contains("<psml") || start.starts_with("Frame 1: ") {
        return true;
    }
    let words: Vec<&str> = start.lines().next().unwrap_or_default().split_whitespace().take(8).collect();
    let time = |word: &str| {
        word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte))
    };
    let arrow = |word: &&str| ["\u{2192}", "->", "<-", "\u{2190}"].contains(word);
    let tshark = words.first().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        && words.iter().skip(2).any(arrow);
    let tcpdump = words.iter().take(3).any(|word| time(word))
        && words.iter().take(7).any(|word| ["IP", "IP6", "ARP,"].contains(word));
    tshark || tcpdump
}

/// Which text file begins with this.
fn text(first: &[u8]) -> Option<Kind> {
    let valid = crate::text::decode_beginning(first)?;
    if is_printed(&valid) {
        return Some(Kind::PrintedPackets);
    }
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
    fn foreign_files_are_named_with_remedy() {
        let sentence = |content: &[u8]| Kind::of_bytes(content).expect("a known kind").sentence();
        assert!(sentence(b"\x1f\x8b\x08").ends_with("gzip; unpack it with `gunzip`"));
        assert!(sentence(b"\x28\xb5\x2f\xfd\0").ends_with("`unzstd`"));
        assert!(sentence(b"snoop\0\0\0\0").ends_with("editcap -F pcap IN OUT.pcap`"));
        assert!(sentence(b"GMBU\0\x02").contains("Network Monitor"));
        let trace = [&[0; 72][..], &[2, 0, 2, 0xc0, 0]].concat();
        assert!(sentence(&trace).contains("pktmon etl2pcap") && sentence(&trace).contains("etl2pcapng"));
        let record =
            [&[0; 4][..], &1_700_000_000u32.to_le_bytes(), &[2, 4, 0, 20, 0, 0, 0, 4], &[0; 4]].concat();
        assert_eq!(Kind::of_bytes(&record.repeat(2)), Some(Kind::Erf));
        assert_eq!(Kind::of_bytes(&record), None);
    }

    #[test]
    fn printed_packets_are_no_capture() {
        for text in [
            "    1   0.000000     10.0.0.1 \u{2192} 10.0.0.2     TCP 74 443 \u{2192} 80 [SYN]\n",
            "1 0.000000000 10.0.0.1 -> 10.0.0.2 TCP 74\n",
            "[\n  {\n    \"_index\": \"packets-2024-01-01\",\n    \"_source\": {\"layers\": {}}}]",
            "{\"index\":{\"_index\":\"packets-2024-01-01\",\"_type\":\"doc\"}}\n{}",
            "<?xml version=\"1.0\"?>\n<pdml version=\"0\">",
            "Frame 1: 74 bytes on wire (592 bits)\n",
            "12:34:56.789012 IP 10.0.0.1.443 > 10.0.0.2.80: Flags [S]\n",
            "2024-01-01 12:34:56.789012 IP6 ::1.443 > ::1.80: Flags [S]\n",
            "1700000000.123456 IP 10.0.0.1.443 > 10.0.0.2.80: Flags [S]\n",
            "12:34:56.789012 eth0  In  IP 10.0.0.1.443 > 10.0.0.2.80: Flags [S]\n",
        ] {
            assert_eq!(Kind::of_bytes(text.as_bytes()), Some(Kind::PrintedPackets), "{text}");
            let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let powershell = [&b"\xff\xfe"[..], &utf16].concat();
            assert_eq!(Kind::of_bytes(&powershell), Some(Kind::PrintedPackets), "{text}");
        }
        assert_eq!(Kind::of_bytes(b"1\n2\n"), Some(Kind::Deliveries));
        assert_eq!(Kind::of_bytes(b"rate,rtt\n10 mbit,1.5\n"), None);
    }

    #[test]
    fn non_regular_file_is_not_opened() {
        assert_eq!(Kind::of(Path::new("/dev/zero")), None);
        assert_eq!(Kind::of(Path::new("/")), None);
        assert_eq!(Kind::of(Path::new("there is no such file")), None);
    }
}
