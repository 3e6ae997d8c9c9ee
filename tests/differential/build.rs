//! Finds Linux's source, unpacks what is needed of it into the build folder and compiles it with the stubs in `c/`.
//!
//! Nothing of Linux is kept in the repository. Whole files are compiled as they are; of the large ones (`tcp_input.c`,
//! `tcp_output.c`, `tcp_recovery.c`, `tcp_cong.c`, the headers) functions and structures are extracted by name.
//! Without a source the program is built all the same, and says what is missing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What is read of the source.
const FILES: [&str; 18] = [
    "Makefile",
    "include/linux/tcp.h",
    "include/linux/win_minmax.h",
    "include/net/tcp.h",
    "include/uapi/linux/inet_diag.h",
    "include/uapi/linux/tcp.h",
    "lib/win_minmax.c",
    "net/ipv4/tcp_bbr.c",
    "net/ipv4/tcp_cong.c",
    "net/ipv4/tcp_cubic.c",
    "net/ipv4/tcp_dctcp.c",
    "net/ipv4/tcp_dctcp.h",
    "net/ipv4/tcp_input.c",
    "net/ipv4/tcp_output.c",
    "net/ipv4/tcp_rate.c",
    "net/ipv4/tcp_recovery.c",
    "net/ipv4/tcp_vegas.c",
    "net/ipv4/tcp_vegas.h",
];

/// Headers that those files include, each of which is `c/kernel.h`.
const HEADERS: [&str; 13] = [
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/inet.h",
    "linux/inet_diag.h",
    "linux/math64.h",
    "linux/mm.h",
    "linux/module.h",
    "linux/random.h",
    "linux/skbuff.h",
    "linux/types.h",
    "net/tcp.h",
    "tcp_dctcp.h",
    "trace/events/tcp.h",
];

const UNITS: [&str; 9] = ["bbr", "bbr3", "core", "cubic", "dctcp", "minmax", "rate", "reno", "vegas"];

fn main() {
    for changed in ["build.rs", "c", "/usr/src"] {
        println!("cargo::rerun-if-changed={changed}");
    }
    println!("cargo::rerun-if-env-changed=LINUX_SOURCE");
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rerun-if-env-changed=GOOGLE_BBR");
    println!("cargo::rustc-check-cfg=cfg(google_bbr)");
    println!("cargo::rustc-check-cfg=cfg(linux_source)");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let missing = match build(&out) {
        Ok(version) => {
            println!("cargo::rustc-cfg=linux_source");
            println!("cargo::rustc-env=LINUX_VERSION={version}");
            return;
        }
        Err(missing) => missing,
    };
    println!("cargo::rustc-env=LINUX_MISSING={}", missing.replace('\n', " "));
}

/// Google's `tcp_bbr.c`, which `GOOGLE_BBR` names, or why there is none.
fn google_bbr() -> Result<PathBuf, String> {
    let named = env::var_os("GOOGLE_BBR").filter(|named| !named.is_empty());
    let path = PathBuf::from(named.ok_or("GOOGLE_BBR names no tcp_bbr.c of Google's branch v3")?);
    let path = fs::canonicalize(&path).map_err(|error| format!("GOOGLE_BBR={}: {error}", path.display()))?;
    let text =
        fs::read_to_string(&path).map_err(|error| format!("GOOGLE_BBR={}: {error}", path.display()))?;
    let version = text.lines().any(|line| line.split_whitespace().eq(["#define", "BBR_VERSION", "3"]));
    if version { Ok(path) } else { Err(format!("GOOGLE_BBR={} is no BBR of version 3", path.display())) }
}

/// The version of the source, or what is missing.
fn build(out: &Path) -> Result<String, String> {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    if Command::new(&compiler).arg("--version").output().is_err() {
        return Err(format!("there is no C compiler ({compiler})"));
    }
    let source = unpacked(out)?;
    let read = |file: &str| {
        fs::read_to_string(source.join(file))
            .map_err(|error| format!("{}: {error}", source.join(file).display()))
    };
    let texts: Vec<String> = FILES.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let text = |file: &str| &texts[FILES.iter().position(|known| *known == file).unwrap()];
    write_headers(out, &text)?;
    let google = google_bbr();
    match &google {
        Ok(path) => {
            println!("cargo::rustc-cfg=google_bbr");
            println!("cargo::rerun-if-changed={}", path.display());
            println!("cargo::rustc-env=GOOGLE_BBR_FILE={}", path.display());
        }
        Err(missing) => println!("cargo::rustc-env=GOOGLE_BBR_MISSING={missing}"),
    }
    compile(out, &source, &compiler, google.ok().as_deref());
    Ok(version(text("Makefile")))
}

/// The folder of the source: `LINUX_SOURCE`, or the newest in /usr/src, unpacked if it is a tarball.
fn unpacked(out: &Path) -> Result<PathBuf, String> {
    let found = match env::var_os("LINUX_SOURCE") {
        Some(path) => PathBuf::from(path),
        None => {
            newest().ok_or("there is no /usr/src/linux-source-*, and LINUX_SOURCE names no other place")?
        }
    };
    if found.is_dir() {
        return Ok(found);
    }
    if !found.is_file() {
        return Err(format!("{} is neither a folder nor a tarball", found.display()));
    }
    let folder = out.join("linux");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let members = FILES.map(|file| format!("*/{file}"));
    let done = Command::new("tar")
        .arg("-xf")
        .arg(&found)
        .arg("-C")
        .arg(&folder)
        .args(["--strip-components=1", "--wildcards", "--no-wildcards-match-slash"])
        .args(&members)
        .output()
        .map_err(|error| format!("tar: {error}"))?;
    if !done.status.success() {
        return Err(format!(
            "{} cannot be unpacked: {}",
            found.display(),
            String::from_utf8_lossy(&done.stderr)
        ));
    }
    Ok(folder)
}

fn newest() -> Option<PathBuf> {
    let entries = fs::read_dir("/usr/src").ok()?.flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let unpacked = path.join("net/ipv4/tcp_bbr.c").is_file();
            name.starts_with("linux-source-") && (unpacked || name.contains(".tar."))
        })
        .collect();
    found.sort();
    found.pop()
}

fn version(makefile: &str) -> String {
    let value = |key: &str| {
        let line = makefile.lines().find(|line| line.starts_with(&format!("{key} =")));
        line.map_or("", |line| line.split('=').nth(1).unwrap_or("").trim()).to_string()
    };
    format!("{}.{}.{}", value("VERSION"), value("PATCHLEVEL"), value("SUBLEVEL"))
}

fn compile(out: &Path, source: &Path, compiler: &str, google: Option<&Path>) {
    let mut objects = Vec::new();
    for unit in UNITS {
        let object = out.join(format!("{unit}.o"));
        let status = Command::new(compiler)
            .args(["-std=gnu11", "-O2", "-g1", "-fwrapv", "-fno-strict-aliasing", "-Wno-unused", "-w", "-c"])
            .args(["-D_GNU_SOURCE", "-Ic"])
            .arg(format!("-I{}", out.join("include").display()))
            .arg(format!("-I{}", source.display()))
            .args(google.map(|path| format!("-DGOOGLE_BBR=\"{}\"", path.display())))
            .arg(format!("c/{unit}.c"))
            .arg("-o")
            .arg(&object)
            .status()
            .expect("the compiler was there a moment ago");
        assert!(status.success(), "c/{unit}.c does not compile with {}", source.display());
        objects.push(object);
    }
    let library = out.join("liblinux_tcp.a");
    let _ = fs::remove_file(&library);
    let status =
        Command::new("ar").arg("crs").arg(&library).args(&objects).status().expect("ar comes with gcc");
    assert!(status.success());
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=linux_tcp");
}

fn write_headers<'a>(out: &Path, text: &dyn Fn(&str) -> &'a String) -> Result<(), String> {
    let include = out.join("include");
    let write = |name: &str, content: &str| {
        let path = include.join(name);
        fs::create_dir_all(path.parent().unwrap()).map_err(|error| error.to_string())?;
        fs::write(&path, content).map_err(|error| error.to_string())
    };
    for header in HEADERS {
        write(header, "#include \"kernel.h\"\n")?;
    }
    write("linux/win_minmax.h", text("include/linux/win_minmax.h"))?;
    write("linux_tcp.h", &linux_tcp(text)?)?;
    write("linux_cong.h", &linux_cong(text)?)?;
    write("linux_core.h", &linux_core(text)?)
}

/// Structures, constants and inline functions of the headers.
fn linux_tcp<'a>(text: &dyn Fn(&str) -> &'a String) -> Result<String, String> {
    let tcp = text("include/net/tcp.h");
    let mut header = String::new();
    header += &block(text("include/uapi/linux/tcp.h"), "enum tcp_ca_state")?;
    for name in ["struct tcpvegas_info", "struct tcp_dctcp_info", "struct tcp_bbr_info"] {
        header += &block(text("include/uapi/linux/inet_diag.h"), name)?;
    }
    for name in ["MAX_TCP_HEADER", "TCP_INIT_CWND", "TCP_INFINITE_SSTHRESH"] {
        header += &defines(tcp, name)?;
    }
    header += &defines(text("include/linux/tcp.h"), "TCP_RACK_RECOVERY_THRESH")?;
    header += &function(tcp, "before")?;
    header += &defines(tcp, "after(")?;
    for name in ["enum tcp_skb_cb_sacked_flags", "struct tcp_skb_cb"] {
        header += &block(tcp, name)?;
    }
    header += &defines(tcp, "TCP_SKB_CB(")?;
    for name in ["enum tcp_ca_event", "struct ack_sample", "struct rate_sample"] {
        header += &block(tcp, name)?;
    }
    header += "union tcp_cc_info;\n";
    header += &block(tcp, "struct tcp_congestion_ops")?;
    for name in [
        "tcp_min_rtt",
        "tcp_left_out",
        "tcp_packets_in_flight",
        "tcp_snd_cwnd",
        "tcp_snd_cwnd_set",
        "tcp_in_slow_start",
        "tcp_in_cwnd_reduction",
        "tcp_current_ssthresh",
        "tcp_is_cwnd_limited",
        "tcp_wnd_end",
        "tcp_ca_event",
        "tcp_stamp_us_delta",
        "tcp_skb_timestamp_us",
        "tcp_skb_sent_after",
    ] {
        header += &function(tcp, name)?;
    }
    Ok(header)
}

fn linux_cong<'a>(text: &dyn Fn(&str) -> &'a String) -> Result<String, String> {
    let names = [
        "tcp_set_ca_state",
        "tcp_slow_start",
        "tcp_cong_avoid_ai",
        "tcp_reno_cong_avoid",
        "tcp_reno_ssthresh",
        "tcp_reno_undo_cwnd",
    ];
    names.iter().map(|name| function(text("net/ipv4/tcp_cong.c"), name)).collect()
}

/// The core's functions. Those that Rust has to hear of are wrapped: the wrapper notes the call and makes it.
fn linux_core<'a>(text: &dyn Fn(&str) -> &'a String) -> Result<String, String> {
    let (input, output) = (text("net/ipv4/tcp_input.c"), text("net/ipv4/tcp_output.c"));
    let recovery = text("net/ipv4/tcp_recovery.c");
    let mut core = defines(input, "FLAG_")? + &defines(input, "REXMIT_")?;
    core += &block(input, "struct tcp_sacktag_state")?;
    core += &function(input, "tcp_init_cwnd")?;
    core += &function(output, "tcp_cwnd_restart")?;
    core += &function(text("include/net/tcp.h"), "tcp_slow_start_after_idle_check")?;
    core += &wrapped(
        &function(input, "tcp_undo_cwnd_reduction")?,
        "tcp_undo_cwnd_reduction",
        "struct sock *sk, bool unmark_loss",
        "note_undo(sk);",
        "sk, unmark_loss",
    );
    for name in [
        "tcp_may_undo",
        "tcp_init_undo",
        "tcp_try_undo_recovery",
        "tcp_try_undo_dsack",
        "tcp_try_undo_loss",
        "tcp_init_cwnd_reduction",
        "tcp_cwnd_reduction",
        "tcp_end_cwnd_reduction",
        "tcp_enter_cwr",
        "tcp_try_keep_open",
        "tcp_try_to_open",
    ] {
        core += &function(input, name)?;
    }
    // Later versions have it.
    core += &function(input, "tcp_retrans_stamp_cleanup").unwrap_or_default();
    for name in ["tcp_enter_recovery", "tcp_try_undo_partial", "tcp_time_to_recover", "tcp_process_loss"] {
        core += &function(input, name)?;
    }
    core += &wrapped(
        &function(input, "tcp_fastretrans_alert")?,
        "tcp_fastretrans_alert",
        "struct sock *sk, const u32 prior_snd_una, int num_dupack, int *ack_flag, int *rexmit",
        "note_marks(sk, *ack_flag);",
        "sk, prior_snd_una, num_dupack, ack_flag, rexmit",
    );
    for name in ["tcp_enter_loss", "tcp_update_pacing_rate"] {
        core += &function(input, name)?;
    }
    core += &with_notes_of_probes(&function(input, "tcp_process_tlp_ack")?)?;
    core += &function(input, "tcp_may_raise_cwnd")?;
    core += &function(input, "tcp_cong_avoid")?;
    core += &wrapped(
        &function(input, "tcp_cong_control")?,
        "tcp_cong_control",
        "struct sock *sk, u32 ack, u32 acked_sacked, int flag, const struct rate_sample *rs",
        "note_ack(sk, ack, acked_sacked, flag, rs);",
        "sk, ack, acked_sacked, flag, rs",
    );
    for name in ["tcp_newly_delivered", "tcp_ack_is_dubious", "tcp_ack"] {
        core += &function(input, name)?;
    }
    core += &function(recovery, "tcp_rack_reo_timeout")?;
    core += &wrapped(
        &function(output, "tcp_cwnd_application_limited")?,
        "tcp_cwnd_application_limited",
        "struct sock *sk",
        "note_unused(sk);",
        "sk",
    );
    core += &function(output, "tcp_cwnd_validate")?;
    core += &function(output, "tcp_event_data_sent")?;
    Ok(core)
}

/// What Google's core adds to the answer of a tail probe: it tells of a repaired loss, and of an ACK that may answer the probe.
fn with_notes_of_probes(definition: &str) -> Result<String, String> {
    let reduction = "\t\ttcp_init_cwnd_reduction(sk);\n";
    let end = "\t}\n}\n";
    if definition.matches(reduction).count() != 1 || !definition.ends_with(end) {
        return Err("tcp_process_tlp_ack of this source is another one".into());
    }
    let noted = definition.replace(reduction, &format!("\t\tnote_repair(sk);\n{reduction}"));
    Ok(format!("{}\t}} else {{\n\t\tnote_may_answer_probe();\n\t}}\n}}\n", noted.strip_suffix(end).unwrap()))
}

fn wrapped(definition: &str, name: &str, parameters: &str, note: &str, arguments: &str) -> String {
    format!(
        "#define {name} linux_{name}\n{definition}#undef {name}\n\
         static void {name}({parameters})\n{{\n\t{note}\n\tlinux_{name}({arguments});\n}}\n"
    )
}

/// The definition of a function: from the line that names it, at the margin, to the closing brace there.
fn function(text: &str, name: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let names = [format!(" {name}("), format!("*{name}(")];
    for (first, line) in lines.iter().enumerate() {
        let at_margin = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !at_margin || !names.iter().any(|name| line.contains(name)) {
            continue;
        }
        let head = lines[first..].iter().position(|line| *line == "{" || line.ends_with(';'));
        let Some(head) = head.filter(|head| lines[first + head] == "{") else { continue };
        let Some(end) = lines[first + head..].iter().position(|line| *line == "}") else { continue };
        return Ok(lines[first..=first + head + end].join("\n") + "\n");
    }
    Err(format!("this source has no function {name}"))
}

/// A structure or an enumeration.
fn block(text: &str, name: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| *line == format!("{name} {{"));
    let first = first.ok_or_else(|| format!("this source has no {name}"))?;
    let end = lines[first..].iter().position(|line| line.starts_with('}'));
    let end = end.ok_or_else(|| format!("{name} has no end"))?;
    Ok(lines[first..=first + end].join("\n") + "\n")
}

/// The constants whose name begins so, each of one line.
fn defines(text: &str, name: &str) -> Result<String, String> {
    let mut found = String::new();
    for line in text.lines() {
        let defined = line.strip_prefix("#define").map(str::trim_start);
        if defined.is_some_and(|defined| defined.starts_with(name)) && !line.ends_with('\\') {
            // A comment that goes on in the next line ends here.
            let line = match line.split_once("/*") {
                Some((code, _)) => code,
                None => line,
            };
            writeln!(found, "{line}").unwrap();
        }
    }
    if found.is_empty() { Err(format!("this source defines no {name}")) } else { Ok(found) }
}
