//! What is left when the last client has ended: bytes in its sockets, and packets on the path.
//!
//! A client that sends, closes and exits leaves its kernel the rest: `/proc/net/tcp` has the bytes of each socket that its peer has
//! not acknowledged, also of those without a process. What leaves a socket is on the path, which says when it was empty
//! ([`Quiet`]).

use std::fs;

use fullpipe_units::Time;

use crate::path::Quiet;

/// Whether all has arrived: no bytes in sockets, and after that an empty path.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Since when no socket had any.
    sent_at: Option<Time>,
}

impl Tail {
    /// A look at `now` from the sender's network namespace.
    pub(super) fn is_gone(&mut self, now: Time, quiet: &Quiet) -> bool {
        self.look(now, has_unacknowledged(), quiet.last())
    }

    fn look(&mut self, now: Time, unacknowledged: bool, empty: Option<Time>) -> bool {
        if unacknowledged {
            self.sent_at = None;
            return false;
        }
        let sent_at = *self.sent_at.get_or_insert(now);
        empty.is_some_and(|empty| empty > sent_at)
    }
}

/// Whether a TCP socket of the calling thread's network namespace has bytes that its peer has not acknowledged.
fn has_unacknowledged() -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        has_queued(&text)
    })
}

fn has_queued(table: &str) -> bool {
    const STATE: usize = 3;
    const QUEUES: usize = 4;
    /// Where a socket may send: ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING.
    const SENDS: [&str; 5] = ["01", "04", "08", "09", "0B"];
    table.lines().skip(1).any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let sends = columns.get(STATE).is_some_and(|state| SENDS.contains(state));
        let queued = columns.get(QUEUES).and_then(|queues| queues.split(':').next());
        sends && queued.is_some_and(|queued| u32::from_str_radix(queued, 16).is_ok_and(|bytes| bytes > 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(given: u64) -> Time {
        Time::from_micros(1_000 * given)
    }

    #[test]
    fn queued_bytes_detected_in_any_state() {
        let table = |state: &str, queues: &str| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                 0: 01004064:9C40 02004064:2710 {state} {queues} 01:00000014 00000000     0        0 0 3 0 20 4\n"
            )
        };
        for state in ["01", "04", "08", "09", "0B"] {
            assert!(has_queued(&table(state, "00000001:00000000")), "{state}");
            assert!(!has_queued(&table(state, "00000000:00000400")), "{state}");
        }
        // One that listens, one that nobody answers, and one that is over.
        for state in ["0A", "02", "06"] {
            assert!(!has_queued(&table(state, "00000001:00000000")), "{state}");
        }
        assert!(!has_queued("") && !has_queued("header\nshort\n"));
    }

    #[test]
    fn path_must_empty_after_sockets() {
        let mut tail = Tail::default();
        assert!(!tail.look(ms(10), true, Some(ms(9))));
        assert!(!tail.look(ms(20), false, Some(ms(19))), "what left the socket then may be on the path");
        assert!(!tail.look(ms(30), false, None));
        assert!(tail.look(ms(40), false, Some(ms(35))));
        // An answer made it send again.
        let mut tail = Tail::default();
        assert!(!tail.look(ms(10), false, Some(ms(5))));
        assert!(!tail.look(ms(20), true, Some(ms(15))));
        assert!(!tail.look(ms(30), false, Some(ms(25))));
    }
}
