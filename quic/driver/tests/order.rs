//! What stacks report in any order that they may, the controller gets in the order that it demands, and no byte is lost.

use fullpipe_cc::*;
use fullpipe_quic_driver::{Counts, Driver, InBytes, Start};
use fullpipe_units::{Duration, Time};
use proptest::prelude::*;

const START: Start = Start { now: Time::from_micros(1_000_000), mtu: 1200, seed: 7 };

/// One step of a connection.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(u32),
    /// So many packets, of this size, with numbers of this space.
    Send(u8, u16, u8),
    /// Acknowledges some of what is in flight, by a mask of the oldest sixteen packets, and then declares others lost.
    Ack {
        acked: u16,
        lost: u16,
        marked: bool,
        persistent: bool,
        app_limited: bool,
        spurious: bool,
    },
    /// A timer declares these lost.
    Timer(u16),
    /// All that was lost arrived.
    Spurious,
    /// The stack forgot so many of the oldest packets.
    Forget(u8),
    Limited,
    Mtu(u16),
    Ask,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u32..60_000).prop_map(Step::Pass),
        5 => (1_u8..12, 40_u16..=1500, 0_u8..3).prop_map(|(count, bytes, space)| Step::Send(count, bytes, space)),
        6 => (any::<u16>(), any::<u16>(), prop::bool::weighted(0.1), prop::bool::weighted(0.05), any::<bool>(), prop::bool::weighted(0.1)).prop_map(
            |(acked, lost, marked, persistent, app_limited, spurious)| {
                Step::Ack { acked, lost: lost & !acked, marked, persistent, app_limited, spurious }
            }
        ),
        1 => any::<u16>().prop_map(Step::Timer),
        1 => Just(Step::Spurious),
        1 => (0_u8..4).prop_map(Step::Forget),
        1 => Just(Step::Limited),
        1 => (600_u16..1500).prop_map(Step::Mtu),
        2 => Just(Step::Ask),
    ]
}

/// A packet as the stack knows it.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent: Time,
    bytes: u32,
}

/// A stack that reports as noq does: losses and marks after the end of an ACK.
struct Stack {
    /// It forgets no packet, so that the driver need not guess which are in flight.
    exact: bool,
    driver: Driver<Ordered<InBytes>>,
    now: Time,
    packets: Vec<Packet>,
    next: [u64; 3],
    /// What the driver was told and knew of. What it discards, it guesses.
    counts: Counts,
}

impl Stack {
    fn new(params: &Params, exact: bool) -> Stack {
        let mut driver = Driver::new(Ordered::new(InBytes::new(params, &START), CaState::Open), &START);
        driver.events_mut().set_needs_ecn(params.ecn().is_some());
        Stack { exact, driver, now: START.now, packets: Vec::new(), next: [0; 3], counts: Counts::default() }
    }

    fn in_flight(&self) -> u64 {
        self.packets.iter().map(|packet| packet.bytes as u64).sum()
    }

    /// Takes those of the oldest sixteen packets out that the mask chooses.
    fn choose(&mut self, mask: u16) -> Vec<Packet> {
        let mut place = 0_u32;
        let mut chosen = Vec::new();
        self.packets.retain(|packet| {
            let is_chosen = place < 16 && mask >> place & 1 == 1;
            place += 1;
            if is_chosen {
                chosen.push(*packet);
            }
            !is_chosen
        });
        chosen
    }

    fn lose(&mut self, mask: u16) {
        for packet in self.choose(mask) {
            let was_in_flight = self.driver.lost(self.now, packet.number, packet.bytes);
            assert!(was_in_flight || !self.exact, "{packet:?} is in flight");
            self.counts.lost += if was_in_flight { packet.bytes as u64 } else { 0 };
            assert!(!self.driver.lost(self.now, u64::MAX, packet.bytes), "nobody sent this one");
        }
    }

    /// As an ACK shows it that delivers nothing.
    fn spurious(&mut self) {
        self.driver.events_mut().spurious(Time::ZERO);
        self.driver.events_mut().controller_mut().ack_ends();
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Pass(micros) => self.now += Duration::from_micros(micros as u64),
            Step::Send(count, bytes, space) => {
                for _ in 0..count {
                    let number = self.next[space as usize];
                    self.next[space as usize] += 1 + (number % 5 == 4) as u64;
                    let packet = Packet { number, sent: self.now, bytes: bytes as u32 };
                    self.driver.sent(self.now, number, packet.bytes, None);
                    self.counts.sent += packet.bytes as u64;
                    self.packets.push(packet);
                }
            }
            Step::Ack { acked, lost, marked, persistent, app_limited, spurious } => {
                if spurious {
                    self.spurious();
                }
                let chosen = self.choose(acked);
                for packet @ Packet { number, sent, bytes } in &chosen {
                    let was_in_flight =
                        self.driver.acked(self.now, *number, Some(*sent), *bytes, app_limited);
                    assert!(was_in_flight || !self.exact, "{packet:?} is in flight");
                    self.counts.delivered += if was_in_flight { *bytes as u64 } else { 0 };
                    let unknown = Some(START.now + Duration::from_secs(9_999));
                    assert!(!self.driver.acked(self.now, *number, unknown, *bytes, app_limited));
                }
                if chosen.is_empty() {
                    return;
                }
                self.driver.events_mut().end_acked();
                self.driver.reconcile(self.now, self.in_flight());
                self.lose(lost);
                if persistent {
                    self.driver.events_mut().persistent_congestion(self.now);
                }
                if marked {
                    self.driver.events_mut().marked(self.now, None);
                }
            }
            Step::Timer(lost) => self.lose(lost),
            Step::Spurious => self.spurious(),
            Step::Forget(count) => {
                self.packets.drain(..self.packets.len().min(count as usize));
                self.driver.reconcile(self.now, self.in_flight());
            }
            Step::Limited => self.driver.events_mut().cwnd_limited(),
            Step::Mtu(mtu) => self.driver.events_mut().mtu_changed(mtu),
            Step::Ask => {
                let limits = self.driver.limits();
                assert!(limits.cwnd > 0 && limits.pacing_rate.as_bytes_per_sec() > 0, "{limits:?}");
                assert_eq!(limits, self.driver.limits(), "asking changes nothing");
            }
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let counts = *self.driver.events().counts();
        let gone = counts.delivered + counts.lost + counts.discarded;
        prop_assert_eq!(counts.sent, gone + self.driver.events().in_flight() as u64);
        let reported = |counts: Counts| Counts { discarded: 0, ..counts };
        prop_assert_eq!(reported(counts), reported(self.counts));
        if self.exact {
            prop_assert_eq!(self.driver.events().in_flight() as u64, self.in_flight());
        } else {
            prop_assert!(self.driver.events().in_flight() as u64 >= self.in_flight());
            // Nothing is too large for all that is in flight.
            self.driver.reconcile(self.now, 0);
            prop_assert_eq!(self.driver.events().in_flight(), 0);
        }
        self.driver.events_mut().settle();
        if let Err(broken) = self.driver.events().controller().verdict() {
            return Err(TestCaseError::fail(broken.to_string()));
        }
        Ok(())
    }
}

fn run(params: &Params, steps: &[Step], exact: bool) -> Result<Stack, TestCaseError> {
    let mut stack = Stack::new(params, exact);
    for step in steps {
        if !(exact && matches!(step, Step::Forget(_))) {
            stack.take(*step);
        }
    }
    stack.check()?;
    Ok(stack)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn controllers_receive_events_in_order(steps in prop::collection::vec(step(), 1..120)) {
        for info in CATALOGUE {
            run(&Params::by_name(info.name).unwrap(), &steps, true)?;
        }
    }

    /// The driver discards other packets than the stack forgot, and may be notified of those later.
    #[test]
    fn forgotten_packets_keep_event_order(steps in prop::collection::vec(step(), 1..120)) {
        for info in CATALOGUE {
            run(&Params::by_name(info.name).unwrap(), &steps, false)?;
        }
    }

    #[test]
    fn equal_inputs_give_equal_decisions(steps in prop::collection::vec(step(), 1..120)) {
        let bbr3 = Params::by_name("bbr3").unwrap();
        let limits = || run(&bbr3, &steps, true).map(|mut stack| stack.driver.limits());
        prop_assert_eq!(limits()?, limits()?);
    }
}

/// The stack forgets packets of one size, so that the driver can find out which: it has the same flight in the end.
#[test]
fn what_the_stack_forgets_is_discarded() {
    let mut stack = Stack::new(&Params::by_name("bbr3").unwrap(), false);
    stack.take(Step::Send(10, 1200, 0));
    stack.take(Step::Forget(3));
    assert_eq!(stack.driver.events().in_flight(), 7 * 1200);
    assert_eq!(stack.driver.events().counts().discarded, 3 * 1200);
    // What was forgotten is no longer in flight, what was not is.
    assert!(!stack.driver.acked(stack.now, 2, None, 1200, false));
    assert!(stack.driver.acked(stack.now, 3, None, 1200, false));
}

#[test]
fn lost_mtu_probe_precedes_older_packets() {
    let mut stack = Stack::new(&Params::by_name("newreno").unwrap(), false);
    stack.take(Step::Send(2, 1200, 0));
    stack.take(Step::Send(1, 1452, 0));
    stack.driver.reconcile(stack.now, 2 * 1200);
    assert!(!stack.driver.acked(stack.now, 2, None, 1452, false));
    assert!(stack.driver.acked(stack.now, 0, None, 1200, false));
}
