//! A video player: chunks of media come in whole, and go out in real time.
//!
//! Playback begins when the first chunk has arrived and continues until the media received so far has been played. If the
//! next chunk is late, it stalls until that chunk arrives. The player has room for a chunk if the media left to play,
//! including it, is not more than its buffer holds; it requests one chunk at a time.

use fullpipe_units::{Duration, Time};

/// What a player has received, and how long it stalled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Playback {
    chunk: Duration,
    /// The most media that may be left to play when a chunk is requested.
    room: Duration,
    /// When all media received so far will have been played; `None` before the first chunk.
    played_at: Option<Time>,
    /// How long playback stalled before that.
    stalled: Duration,
}

impl Playback {
    /// A player with a buffer for `buffer` of media, at least one `chunk`.
    pub(super) fn new(chunk: Duration, buffer: Duration) -> Playback {
        Playback { chunk, room: buffer.saturating_sub(chunk), played_at: None, stalled: Duration::ZERO }
    }

    /// A chunk has arrived. Returns when the next one fits in.
    pub(super) fn on_chunk(&mut self, now: Time) -> Time {
        self.stalled = self.stalled(now);
        let played_at = self.played_at.unwrap_or(now).max(now).saturating_add(self.chunk);
        self.played_at = Some(played_at);
        let left = played_at.saturating_since(now);
        now.saturating_add(left.saturating_sub(self.room))
    }

    /// How long playback had stalled by `now`.
    pub(super) fn stalled(&self, now: Time) -> Duration {
        self.played_at.map_or(Duration::ZERO, |played_at| self.stalled + now.saturating_since(played_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    #[test]
    fn late_chunk_stalls_playback() {
        let mut player = Playback::new(Duration::from_millis(400), Duration::from_millis(1000));
        assert_eq!(player.stalled(at(5000)), Duration::ZERO, "it has not begun");
        assert_eq!(player.on_chunk(at(5000)), at(5000));
        assert_eq!(player.stalled(at(5400)), Duration::ZERO);
        assert_eq!(player.stalled(at(5450)), Duration::from_millis(50));
        player.on_chunk(at(5500));
        assert_eq!(player.stalled(at(5900)), Duration::from_millis(100), "the new chunk plays from 5.5 s on");
        assert_eq!(player.stalled(at(5901)), Duration::from_millis(101));
    }

    proptest! {
        /// Time passes in playing, in standing still, or before the first chunk; and the buffer never overflows.
        #[test]
        fn playing_and_stalls_fill_all_time(
            chunk in 1..5_000_u64,
            more in 0..20_000_u64,
            delays in prop::collection::vec(0..8_000_u64, 1..40),
        ) {
            let mut player = Playback::new(Duration::from_millis(chunk), Duration::from_millis(chunk + more));
            let (mut now, mut begun) = (at(0), None);
            for (index, delay) in delays.iter().enumerate() {
                let before = player.stalled(now);
                now += Duration::from_millis(*delay);
                prop_assert!(player.stalled(now) >= before);
                let asks = player.on_chunk(now);
                let begun = *begun.get_or_insert(now);
                let played = now.saturating_since(begun).saturating_sub(player.stalled(now));
                let received = Duration::from_millis(chunk).saturating_mul(index as u64 + 1);
                prop_assert!(played <= received);
                let left = received.saturating_sub(played + asks.saturating_since(now));
                prop_assert!(left <= Duration::from_millis(more), "the chunk asked for fits in");
                now = asks;
            }
        }
    }
}
