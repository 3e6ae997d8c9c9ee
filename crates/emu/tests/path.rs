//! A path and whatever sends over it, each in a fresh process: the examples, built next to this test.
//!
//! A machine whose processors are shared gives no exact numbers, so only physical bounds are asserted. Where paths are
//! not permitted, a test prints why and passes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fullpipe_emu::namespace::enter_new_network;

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
fn any_sender_gets_requested_path() {
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

/// Gives the test's thread, and what it starts, a network namespace of its own, so that it never sees a device of another
/// shell on this machine. Without the right to do so, a shell makes no device in its caller's namespace either.
fn work_alone() -> bool {
    let entered = enter_new_network();
    if let Err(error) = &entered {
        println!("in the machine's network namespace: {error}");
    }
    entered.is_ok()
}

/// Whether a shell printed that shells are not possible here.
fn is_skipped(err: &str) -> bool {
    let skipped = err.contains("not permitted") || err.contains("/dev/net/tun");
    if skipped {
        println!("skipped: {err}");
    }
    skipped
}

/// Devices of shells in the namespace of the calling thread. `/sys/class/net` would show the machine's.
fn shell_devices() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = table.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    names.filter(|name| name.starts_with("fullpipe")).map(str::to_owned).collect()
}

fn assert_no_device_remains() {
    for _ in 0..200 {
        if shell_devices().is_empty() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("devices remain: {:?}", shell_devices());
}

#[test]
fn shell_command_reaches_server_returns_code() {
    let Some(shell) = example("shell") else { return };
    work_alone();
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
    if is_skipped(&err) {
        return;
    }
    assert_eq!((output.status.code(), &*out), (Some(42), "hello"), "{err}");
    assert_no_device_remains();
}

/// A shell's server has a network namespace of its own: a port that is in use on the machine is free there.
#[test]
fn server_port_may_be_used_outside() {
    let Some(shell) = example("shell") else { return };
    work_alone();
    let _in_use = std::net::TcpListener::bind("0.0.0.0:10000").unwrap();
    let server = "exec python3 -c 'import os, socket; s=socket.create_server((\"\", int(os.environ[\"FULLPIPE_PORT\"]))); \
                  c,_=s.accept(); c.sendall(b\"hello\")' {port}";
    let script =
        "exec 3<>/dev/tcp/$FULLPIPE_SERVER/$FULLPIPE_PORT && head -c 5 <&3 && echo \" on $FULLPIPE_PORT\"";
    let output = Command::new(shell)
        .args(["10", "20", "100000", "--server", server, "--", "bash", "-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !is_skipped(&err) {
        assert_eq!(&*out, "hello on 10000\n", "{err}");
    }
}

/// IPv6 goes through the path like IPv4, also through that of a shell around it, and sends nothing by itself.
#[test]
fn ipv6_works_through_nested_shells() {
    let Some(shell) = example("shell") else { return };
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        return println!("skipped: this kernel has no IPv6");
    }
    work_alone();
    let server = r#"exec python3 -c 'import socket; s=socket.create_server(("::", 9753), family=socket.AF_INET6); c,_=s.accept(); c.sendall(b"hello")'"#;
    let client = r#"import os, socket
print(socket.create_connection((os.environ["OUTER"], 9753)).recv(5).decode())
print(*{line.split()[2] for line in open("/proc/net/igmp6")}, *{line[:4] for line in open("/proc/net/if_inet6")})"#;
    let inner =
        format!("OUTER=$FULLPIPE_SERVER6 exec {} 10 20 100000 -- python3 -c '{client}'", shell.display());
    let output = Command::new(&shell)
        .args(["10", "20", "100000", "--server", server, "--", "sh", "-c", &inner])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if is_skipped(&err) {
        return;
    }
    let mut words = out.split_whitespace();
    assert_eq!(words.next(), Some("hello"), "{err}");
    // Nothing makes a device send by itself: no group but those of all nodes (RFC 3810 section 6), no link-local address.
    let quiet = ["ff020000000000000000000000000001", "ff010000000000000000000000000001", "fd3f", "0000"];
    assert!(words.all(|word| quiet.contains(&word)), "{out}");
}

/// Shells that start at the same time in one namespace do not choose the same addresses.
#[test]
fn concurrent_shells_have_distinct_addresses() {
    let Some(shell) = example("shell") else { return };
    if !work_alone() {
        return println!("skipped: without rights, each shell has a network namespace of its own");
    }
    let start = |_| {
        Command::new(&shell)
            .args(["10", "20", "100000", "--", "sh", "-c", "echo $FULLPIPE_SERVER; read wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut shells: Vec<_> = (0..6).map(start).collect();
    let mut addresses = BTreeSet::new();
    for shell in &mut shells {
        let mut address = String::new();
        BufReader::new(shell.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        if address.is_empty() {
            return println!("skipped: shells are not permitted here");
        }
        addresses.insert(address);
    }
    for mut shell in shells {
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
    assert_eq!(addresses.len(), 6, "{addresses:?}");
}

#[test]
fn killing_shell_kills_its_processes() {
    let Some(shell) = example("shell") else { return };
    work_alone();
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
            assert_no_device_remains();
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{} processes outlived the shell", running());
}
