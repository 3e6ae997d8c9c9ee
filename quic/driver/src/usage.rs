//! Whether the window limits the sender (Linux: `tcp_cwnd_validate`; RFC 9002 section 7.8).

/// What one round used of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The sender ran into the window in this round.
    pub(crate) is_limited: bool,
    /// The most bytes in flight in this round.
    pub(crate) most: u32,
    /// The round ends when so many bytes count as acknowledged.
    end: u64,
}

impl Usage {
    /// Bytes in flight now, `una` acknowledged and `nxt` sent; `is_limited` if the window let no packet more leave.
    pub(crate) fn note(&mut self, is_limited: bool, in_flight: u32, una: u64, nxt: u64) {
        if una >= self.end || is_limited || (!self.is_limited && in_flight > self.most) {
            *self = Usage { is_limited, most: in_flight, end: nxt };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_remembered_for_one_round() {
        let mut usage = Usage::default();
        usage.note(false, 1_000, 0, 1_000);
        usage.note(true, 2_000, 0, 2_000);
        usage.note(false, 2_000, 1_000, 3_000);
        assert_eq!((usage.is_limited, usage.most), (true, 2_000));
        usage.note(false, 1_000, 2_000, 3_000);
        assert_eq!((usage.is_limited, usage.most), (false, 1_000));
    }
}
