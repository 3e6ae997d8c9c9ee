//! Runs a command behind an emulated path, the same rate both ways:
//!
//! ```text
//! shell RATE_MBPS RTT_MS BUFFER_BYTES [--server "COMMAND"] [-- COMMAND...]
//! shell doctor
//! ```

use std::process::ExitCode;

#[allow(dead_code, reason = "shared with the other example")]
mod common;

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
    let words = ["reno", rate, rtt, buffer, "0", "1"].map(str::to_owned);
    let Some((mut spec, _)) = common::spec_of(&words) else {
        eprintln!("a number is malformed");
        return ExitCode::from(2);
    };
    spec.flows.clear();
    spec.reverse.insert(0, spec.forward[0].clone());
    match fullpipe_emu::shell(&spec, command, server.as_deref()) {
        Ok(code) => ExitCode::from(code as u8),
        Err(error) => {
            eprintln!("error: {error}\n  {}", error.fix());
            ExitCode::from(2)
        }
    }
}
