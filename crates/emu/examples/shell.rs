//! Runs a command behind an emulated path, the same rate both ways:
//!
//! ```text
//! shell RATE_MBPS RTT_MS BUFFER_BYTES [--server "COMMAND"] [-- COMMAND...]
//! shell doctor
//! ```

use std::process::ExitCode;

use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{Format, ScenarioError, resolve};

fn main() -> ExitCode {
    fullpipe_emu::die_with_parent();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["doctor"] {
        for check in fullpipe_emu::doctor() {
            let mark = if check.ok { "ok" } else { "MISSING" };
            println!("{mark:8} {}: {}  {}", check.name, check.found, check.fix);
        }
        return ExitCode::SUCCESS;
    }
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (path, command) = (&arguments[..end], arguments.get(end + 1..).unwrap_or_default());
    let server: Option<Vec<String>> = match path.get(3..) {
        Some([flag, server]) if flag == "--server" => {
            Some(["/bin/sh", "-c", server].map(str::to_owned).into())
        }
        _ => None,
    };
    let [rate, rtt, buffer] = path.get(..3).unwrap_or_default() else {
        eprintln!("usage: shell RATE_MBPS RTT_MS BUFFER_BYTES [--server COMMAND] [-- COMMAND...]");
        return ExitCode::from(2);
    };
    let spec = match spec_of(rate, rtt, buffer) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match fullpipe_emu::shell(&spec, command, server.as_deref()) {
        Ok(code) => ExitCode::from(code as u8),
        Err(error) => {
            eprintln!("error: {error}\n  {}", error.fix());
            ExitCode::from(2)
        }
    }
}

fn spec_of(rate_mbps: &str, rtt_ms: &str, buffer_bytes: &str) -> Result<Spec, ScenarioError> {
    let way = format!(r#"rate = "{rate_mbps} Mbit/s", buffer = "{buffer_bytes} B""#);
    let text = format!(
        "path = {{ {way}, rtt = \"{rtt_ms} ms\", reverse = {{ {way} }} }}\n[[flows]]\ncontroller = \"reno\"\n"
    );
    resolve(&text, Format::Toml, None)
}
