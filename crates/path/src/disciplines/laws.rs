//! Laws that every discipline obeys, over random settings, limits and arrivals. [`Link`] checks most of them.

use proptest::prelude::*;

use super::harness::{Link, Outcome, setup};
use super::{DISCIPLINES, DisciplineConfig};
use crate::discipline::{Random, Room, Setup};
use crate::packet::{Cause, Ecn, Packet};
use crate::rng::Stream;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// A packet, or a burst that stays whole.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Nanoseconds after the one before.
    gap: u64,
    packet: Packet,
}

#[derive(Clone, Debug)]
struct Case {
    config: DisciplineConfig,
    limit: Room,
    /// In kbit/s.
    rate: u64,
    seed: u64,
    arrivals: Vec<Arrival>,
    /// Before which arrival the limit becomes how many bytes.
    change: Option<(usize, u64)>,
}

impl Case {
    fn run(&self) -> Outcome {
        let rate = Rate::from_bits_per_sec(self.rate * 1_000);
        let random = Random(Stream::new(self.seed, 0));
        let mut link = Link::new(&self.config, Setup { limit: self.limit, rate, random });
        let mut at = Time::ZERO;
        for (index, arrival) in self.arrivals.iter().enumerate() {
            if let Some((_, bytes)) = self.change.filter(|change| change.0 == index) {
                link.set_limit(bytes);
            }
            at = at.saturating_add(Duration::from_nanos(arrival.gap));
            link.arrive(at, arrival.packet);
        }
        link.finish()
    }
}

/// Any settings in their ranges, most of them at their defaults.
fn configs() -> impl Strategy<Value = DisciplineConfig> {
    prop::sample::select(DISCIPLINES).prop_flat_map(|info| {
        let values = info.settings.iter().map(|setting| {
            let (least, most) = (*setting.range.start(), *setting.range.end());
            // Few bits are as likely as many.
            let anything =
                (0..=64 - (most - least).leading_zeros(), any::<u64>()).prop_map(move |(bits, x)| {
                    least + (x & (1u64 << bits >> 1).wrapping_sub(1)).min(most - least)
                });
            prop_oneof![3 => Just(setting.default), 1 => Just(least), 1 => Just(most), 3 => anything]
        });
        values.collect::<Vec<_>>().prop_map(move |values| {
            let mut config = DisciplineConfig::by_name(info.name).expect("it is listed");
            for (setting, value) in info.settings.iter().zip(values) {
                config.set(setting.name, value).expect("it is in its range");
            }
            config
        })
    })
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![4 => Just(0), 6 => 0..3_000_000u64, 1 => 0..2_000_000_000u64];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let bytes = prop_oneof![1 => 1..65_536u32, 2 => 40..1_500u32, 3 => Just(1_500u32)];
    let packet =
        (bytes, 0..5u32, ecn).prop_map(|(bytes, class, ecn)| Packet::new(bytes, class).with_ecn(ecn));
    let arrival = (gap, packet).prop_map(|(gap, packet)| Arrival { gap, packet });
    prop::collection::vec(arrival, 1..400)
}

fn cases() -> impl Strategy<Value = Case> {
    let bytes = prop_oneof![1 => Just(u64::MAX), 3 => 1_500..300_000u64];
    let limit = (bytes.clone(), prop::option::of(1..200u32))
        .prop_map(|(bytes, packets)| Room { bytes: Bytes::new(bytes), packets });
    let change = prop::option::of((0..400usize, bytes));
    (configs(), limit, 100..100_000u64, any::<u64>(), arrivals(), change).prop_map(
        |(config, limit, rate, seed, arrivals, change)| Case { config, limit, rate, seed, arrivals, change },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// [`Link`] checks conservation, the backlog, marks and idleness; these are the others.
    #[test]
    fn every_discipline_obeys_the_laws(case in cases()) {
        let outcome = case.run();
        prop_assert_eq!(&case.run(), &outcome, "the same run differs");
        // Two lines for two services (RFC 9332) part the codepoints of a flow.
        let parts = case.config.info().name == "dualpi2";
        outcome.assert_order(|sent| (sent.packet.class, if parts { sent.came as u8 } else { 0 }));
        for lost in &outcome.lost {
            prop_assert!(matches!(lost.cause, Cause::QueueFull | Cause::Early), "{:?}", lost);
        }
    }
}

#[test]
fn underloaded_link_sends_all_unmarked() {
    for info in DISCIPLINES {
        let mut link = Link::new(&DisciplineConfig::by_name(info.name).expect("it is listed"), setup());
        for number in 0..2_000 {
            let packet = Packet::new(1_250, 0).with_ecn(Ecn::Ect0);
            link.arrive(Time::from_micros(number * 1_000), packet);
        }
        let outcome = link.finish();
        assert_eq!(outcome.lost, [], "{}", info.name);
        assert!(
            outcome.sent.iter().all(|sent| !sent.is_marked() && sent.at == sent.arrived),
            "{}",
            info.name
        );
    }
}
