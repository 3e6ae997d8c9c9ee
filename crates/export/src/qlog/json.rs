//! JSON, appended to a string.

use std::fmt::Write;

/// Begins or continues an object or a list: a comma, unless it is still empty.
pub(super) fn comma(out: &mut String) {
    if !out.ends_with(['{', '[']) {
        out.push(',');
    }
}

/// A name within an object.
pub(super) fn key(out: &mut String, name: &str) {
    comma(out);
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
}

/// A name and a number.
pub(super) fn number(out: &mut String, name: &str, value: u64) {
    key(out, name);
    digits(out, value);
}

/// A name and a text that needs no escape: one of ours.
pub(super) fn word(out: &mut String, name: &str, value: &str) {
    key(out, name);
    out.push('"');
    out.push_str(value);
    out.push('"');
}

/// A name and any text.
pub(super) fn text(out: &mut String, name: &str, value: &str) {
    key(out, name);
    quoted(out, value);
}

/// A name and nanoseconds as milliseconds.
pub(super) fn millis(out: &mut String, name: &str, nanos: u64) {
    key(out, name);
    milliseconds(out, nanos);
}

/// Nanoseconds as milliseconds, exactly.
pub(super) fn milliseconds(out: &mut String, nanos: u64) {
    digits(out, nanos / 1_000_000);
    let rest = nanos % 1_000_000;
    if rest > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, ".{rest:06}");
        out.truncate(out.trim_end_matches('0').len());
    }
}

/// A number.
pub(super) fn digits(out: &mut String, value: u64) {
    let _ = write!(out, "{value}");
}

/// A text with its escapes (RFC 8259 section 7).
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            _ if letter < ' ' => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

/// A name and bytes.
pub(super) fn hexadecimal(out: &mut String, name: &str, bytes: &[u8]) {
    key(out, name);
    out.push('"');
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out.push('"');
}
