//! The text format of a Mahimahi delivery trace: one opportunity per line, in whole milliseconds.
//!
//! Source: Mahimahi `src/frontend/link_queue.cc` (`LinkQueue::LinkQueue`), which accepts a list of times that do not
//! decrease and do not end at zero. Lines may also end in CR LF here.

use std::fmt::Write;

/// The most opportunities a trace may have: 400 MB in memory, twelve hours at 12 Gbit/s.
pub const MAX_OPPORTUNITIES: usize = 50_000_000;

/// The most digits a time may have: more than three thousand years of milliseconds, and still nanoseconds in 64 bits
/// for the first 584 of them.
pub const MAX_DIGITS: usize = 14;

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveriesError {
    /// It is empty.
    #[error("the trace is empty, expected at least one time in milliseconds")]
    Empty,
    /// A line is not a time.
    #[error("line {line}: {given}, expected a time in whole milliseconds")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Its content, or what is wrong with it.
        given: String,
    },
    /// Time goes back.
    #[error("line {line}: {given_ms} ms after {before_ms} ms, expected times that do not decrease")]
    Decreasing {
        /// Number of the line, from 1.
        line: usize,
        /// The time on it.
        given_ms: u64,
        /// The time on the line before.
        before_ms: u64,
    },
    /// The trace takes no time, so it cannot repeat.
    #[error("line {line}: the last time is 0 ms, expected the trace to last for some time")]
    NoTime {
        /// Number of the last line, from 1.
        line: usize,
    },
    /// More lines than [`MAX_OPPORTUNITIES`].
    #[error("line {line}: the trace continues, expected at most {most} times")]
    TooLong {
        /// Number of the first line too many, from 1.
        line: usize,
        /// How many are allowed.
        most: usize,
    },
}

/// Parses a trace for [`crate::config::ElementConfig::DeliveryTrace`].
///
/// # Errors
/// When a line is not a time in milliseconds or earlier than the one before, when the last time is zero, and when there are
/// no lines or more than [`MAX_OPPORTUNITIES`].
pub fn parse_mahimahi(text: &str) -> Result<Vec<u64>, DeliveriesError> {
    parse_at_most(text, MAX_OPPORTUNITIES)
}

fn parse_at_most(text: &str, most: usize) -> Result<Vec<u64>, DeliveriesError> {
    let mut times: Vec<u64> = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        if times.len() == most {
            return Err(DeliveriesError::TooLong { line, most });
        }
        let given_ms = parse_line(content).map_err(|given| DeliveriesError::Line { line, given })?;
        let before_ms = times.last().copied().unwrap_or(0);
        if given_ms < before_ms {
            return Err(DeliveriesError::Decreasing { line, given_ms, before_ms });
        }
        times.push(given_ms);
    }
    match times.last() {
        None => Err(DeliveriesError::Empty),
        Some(0) => Err(DeliveriesError::NoTime { line: times.len() }),
        Some(_) => Ok(times),
    }
}

/// The time on a line, or a description of the line if it is not a time.
fn parse_line(content: &str) -> Result<u64, String> {
    if content.is_empty() {
        return Err("an empty line".to_owned());
    }
    if content.len() > MAX_DIGITS {
        let start: String = content.chars().take(MAX_DIGITS).collect();
        return Err(format!("{} characters that begin with {start:?}", content.chars().count()));
    }
    let digits = content.strip_prefix('-').unwrap_or(content);
    let number = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match number {
        Some(time) if digits.len() == content.len() => Ok(time),
        Some(_) => Err(format!("the negative number {content}")),
        None => Err(format!("{content:?}")),
    }
}

/// Writes a trace in the form that [`parse_mahimahi`] and Mahimahi read.
pub fn write_mahimahi(opportunities_ms: &[u64]) -> String {
    let mut text = String::with_capacity(opportunities_ms.len() * 8);
    for time in opportunities_ms {
        writeln!(text, "{time}").expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_name_line_content_and_expectation() {
        let error = |text| parse_at_most(text, 3).unwrap_err().to_string();
        assert_eq!(error(""), "the trace is empty, expected at least one time in milliseconds");
        assert_eq!(
            error("0\n0\n"),
            "line 2: the last time is 0 ms, expected the trace to last for some time"
        );
        assert_eq!(error("1\n\n2"), "line 2: an empty line, expected a time in whole milliseconds");
        assert_eq!(error("1\n1.5"), "line 2: \"1.5\", expected a time in whole milliseconds");
        assert_eq!(error("+1"), "line 1: \"+1\", expected a time in whole milliseconds");
        assert_eq!(error("-7"), "line 1: the negative number -7, expected a time in whole milliseconds");
        assert_eq!(error("5\n4"), "line 2: 4 ms after 5 ms, expected times that do not decrease");
        assert_eq!(error("1\n2\n3\n4\n5"), "line 4: the trace continues, expected at most 3 times");
        let long = "1".repeat(1000);
        assert_eq!(
            error(&long),
            "line 1: 1000 characters that begin with \"11111111111111\", expected a time in whole milliseconds"
        );
    }

    #[test]
    fn unix_and_windows_lines_are_accepted() {
        assert_eq!(parse_mahimahi("0\n1\n1\n20\n"), Ok(vec![0, 1, 1, 20]));
        assert_eq!(parse_mahimahi("0\r\n1\r\n20"), Ok(vec![0, 1, 20]));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(mut times in prop::collection::vec(0u64..100_000_000_000_000, 1..50)) {
            times.sort_unstable();
            prop_assume!(times.last() != Some(&0));
            prop_assert_eq!(parse_mahimahi(&write_mahimahi(&times)), Ok(times));
        }

        #[test]
        fn arbitrary_bytes_parse_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(times) = parse_mahimahi(&text) {
                prop_assert!(times.is_sorted() && times.last() > Some(&0));
            }
        }

        #[test]
        fn near_traces_parse_or_fail(text in "([0-9]{1,3}\r?\n|[-+ 0-9\n\r.ex]{0,4}){0,20}") {
            if let Ok(times) = parse_mahimahi(&text) {
                prop_assert!(times.is_sorted() && times.last() > Some(&0));
            }
        }
    }
}
