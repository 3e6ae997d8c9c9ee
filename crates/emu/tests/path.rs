//! A path and whatever sends over it, each in a fresh process: the examples, built next to this test.
//!
//! A machine whose processors are shared gives no exact numbers, so only physical bounds are asserted. Where paths are
//! not permitted, a test prints why and passes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

const NOT_PERMITTED: i32 = 3;

/// The example's binary: `target/<profile>/examples`, seen from `target/<profile>/deps/<test>`.
fn example(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let binary = test.parent()?.parent()?.join("examples").join(name);
    assert!(binary.exists(), "{} is not built; cargo test builds it", binary.display());
    Some(binary)
}

/// The number behind `key`.
fn number(text: &str, key: &str) -> u64 {
    let mut words = text.split_whitespace().skip_while(|word| *word != key).skip(1);
    words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no {key} in {text}"))
}

/// What an example prints; `None` where it is not built or no path can be made.
fn printed_by(name: &str) -> Option<String> {
    let output = Command::new(example(name)?).stdin(Stdio::null()).output().unwrap();
    let (text, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOT_PERMITTED) {
        // Where the kernel world must run, as on a machine that tests it, its absence is a failure.
        assert!(std::env::var_os("FULLPIPE_REQUIRE_KERNEL").is_none(), "no path can be made: {err}");
        println!("skipped: {err}");
        return None;
    }
    assert!(output.status.success(), "{text}{err}");
    println!("{text}");
    Some(text.into_owned())
}

/// Neither TCP nor this crate sends here, so a QUIC stack or any other program can take its place.
#[test]
fn any_sender_gets_the_path_it_asked_for() {
    let Some(text) = printed_by("datagrams") else { return };
    let (sent, echoed) = (number(&text, "sent"), number(&text, "echoed"));
    assert_eq!((number(&text, "arrived"), number(&text, "dropped")), (sent, sent - echoed), "{text}");
    assert!((20..sent).contains(&echoed), "{text}");
    assert_eq!(number(&text, "back"), echoed, "{text}");
    // A millisecond on the link and 20 ms each way.
    assert!(number(&text, "first_rtt_ns") >= 41_000_000, "{text}");
}

/// What the path says that it has marked is what the far host's kernel counts, which checks the header's checksum first.
#[test]
fn marks_are_conserved_and_checksums_hold() {
    let Some(text) = printed_by("marks") else { return };
    let marked = number(&text, "marked");
    assert!(marked > 0, "{text}");
    assert_eq!(number(&text, "InCEPkts"), marked, "{text}");
    assert_eq!(
        number(&text, "InECT0Pkts"),
        number(&text, "left") - marked - number(&text, "plain"),
        "{text}"
    );
    // What is not ECN-capable is never marked.
    assert_eq!(number(&text, "InNoECTPkts"), number(&text, "plain"), "{text}");
    assert_eq!((number(&text, "InHdrErrors"), number(&text, "InCsumErrors")), (0, 0), "{text}");
}

fn network_devices() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Shells have their outer end in our own namespace, so only one runs at a time.
static SHELLS: Mutex<()> = Mutex::new(());

fn assert_no_device_left() {
    for _ in 0..200 {
        if !network_devices().iter().any(|name| name.starts_with("fullpipe")) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("a device is left: {:?}", network_devices());
}

#[test]
fn a_command_in_a_shell_reaches_its_server_and_its_exit_code_comes_back() {
    let Some(shell) = example("shell") else { return };
    let _alone = SHELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let script = "exec 3<>/dev/tcp/$FULLPIPE_SERVER/9753 && head -c 5 <&3 && exit 42";
    let server = r#"python3 -c 'import socket; s=socket.create_server(("", 9753)); c,_=s.accept(); c.sendall(b"hello")'"#;
    let wait = format!(
        "for i in $(seq 100); do ({script}); code=$?; [ $code = 42 ] && exit 42; sleep 0.05; done; exit 1"
    );
    let output = Command::new(shell)
        .args(["10", "20", "100000", "--server", server, "--", "bash", "-c", &wait])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if err.contains("not permitted") || err.contains("/dev/net/tun") {
        println!("skipped: {err}");
        return;
    }
    assert_eq!((output.status.code(), &*out), (Some(42), "hello"), "{err}");
    assert_no_device_left();
}

#[test]
fn killing_a_shell_kills_everything_in_it() {
    let Some(shell) = example("shell") else { return };
    let _alone = SHELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let marker = format!("{}.25", 1_000_000 + std::process::id());
    let script = format!("sleep {marker} & setsid sleep {marker} & echo ready; wait");
    let mut child = Command::new(shell)
        .args(["10", "20", "100000", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = [0; 5];
    if std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).is_err() {
        println!("skipped: shells are not permitted here");
        child.wait().unwrap();
        return;
    }
    let running = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let command = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).ok();
        processes.filter_map(command).filter(|line| line == format!("sleep\0{marker}\0").as_bytes()).count()
    };
    for _ in 0..100 {
        if running() == 2 {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert_eq!(running(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    for _ in 0..200 {
        if running() == 0 {
            assert_no_device_left();
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{} processes outlived the shell", running());
}
