//! Carries packets between two TUN devices through the elements of the path.
//!
//! Frames are split into the packets that would be on a wire, each packet goes through the path on its own, and packets
//! that leave together are merged again. Elements that take or drop bursts as one see each frame as one burst: the kernel
//! hands over whole what its TCP handed over whole (GSO), up to 64 KB. Time comes from the monotonic clock; every rate, delay, drop and loss is
//! the path's decision and depends on arrival times only, so a late wake-up delays packets but never changes a rate.
//! How late each packet left is recorded. `path_clock.rs` describes the path's time while the ferry is stalled.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Chain, Counts, Packet, rates};
use fullpipe_record::{Lateness, LinkRecord, LinkSeries, QueueSample};
use fullpipe_units::{Bytes, Duration, Rate, Time};

use crate::EmuError;
use crate::clock::Clock;
use crate::flow::flow_of_ports;
use crate::frame::{self, Frame, MAX_FRAME_BYTES, Unit, VNET_BYTES};
use crate::histogram::Histogram;
use crate::merge::Batch;
use crate::meter::{self, Stage, Way};
use crate::path::{Classes, OneWay, Path, Quiet};
use crate::path_clock::{PathClock, Pause, Paused, Stall};
use crate::sys;
use crate::tun::Tun;
use crate::watch::Tap;

/// From the beginning of one pass to the next if nothing is due when it ends. What becomes due within this time leaves
/// together. With a timer for each packet a run at 500 Mbit/s took 1.1 of a core, with this 0.55, and half of the packets
/// were 15 us late instead of 17.
const GAP: Duration = Duration::from_micros(30);
/// Frames read from one device before the path is looked at again.
const READS_AT_ONCE: usize = 64;
/// What the path may hold: its packets are in this process's memory, which stays in RAM.
const MOST_HELD: Bytes = Bytes::new(2_000_000_000);
/// How much is read between two looks at what it holds.
const LOOK_EVERY: Bytes = Bytes::new(100_000_000);
/// The longest wait.
const IDLE: Duration = Duration::from_millis(100);

/// What the ferry recorded of itself and its path.
#[derive(Clone, Debug, Default)]
pub struct FerryReport {
    /// Its queues, those of the forward direction first.
    pub links: Vec<LinkRecord>,
    /// What happened to the packets of the forward and of the reverse direction.
    pub counts: [Counts; 2],
    /// How many packets the queues of the forward and of the reverse direction marked.
    pub marked: [u64; 2],
    /// How late packets left, by the path's time.
    pub lateness: Histogram,
    /// Frames that the kernel refused.
    pub failed_writes: u64,
    /// How often it looked for something to do.
    pub passes: u64,
    /// How many of these passes began more than 1 ms later than planned.
    pub overruns: u64,
    /// How long the path's time stopped.
    pub paused: Paused,
    /// Each time that it stopped.
    pub stalls: Vec<Stall>,
    /// How long the ferry carried packets, stalls included.
    pub carried: Duration,
    /// When it ended, by the path's time.
    pub ended: Time,
    /// Why the thread has no real-time priority.
    pub no_realtime: Option<String>,
}

impl FerryReport {
    /// How late packets left by the machine's clock: packets on the path arrived later by the longest stall.
    pub fn lateness(&self) -> Lateness {
        let mut lateness = self.lateness.lateness();
        lateness.max_ns = lateness.max_ns.max(self.paused.longest.as_nanos());
        lateness
    }
}

/// Carries packets both ways.
pub(crate) struct Ferry {
    clock: PathClock,
    pause: Pause,
    end: Time,
    forward: Direction,
    reverse: Direction,
    sampling: Option<Sampling>,
    /// Whether frames may wait at the near and at the far device.
    waiting: [bool; 2],
    buffer: Vec<u8>,
    quiet: Option<Quiet>,
}

/// When the queues are sampled next.
struct Sampling {
    interval: Duration,
    next: Time,
}

impl Ferry {
    /// A ferry between the devices of the near and of the far host.
    pub(crate) fn new((near, far): (Arc<Tun>, Arc<Tun>), path: &Path) -> Result<Ferry, EmuError> {
        let meter = path.metering.as_ref().map(|metering| Rc::new(RefCell::new(meter::Tap::new(metering))));
        let tap = path.watcher.as_ref().map(|watcher| Rc::new(RefCell::new(Tap::new(watcher))));
        let mut forward = Direction::new(&near, &far, &path.forward, path.classes)?;
        forward.entering = tap.clone();
        forward.meter = meter.clone().map(|tap| (Way::Forward, tap));
        if let Some(queue) = &path.queue {
            forward.slowest = forward.slowest.min(queue.rate());
        }
        let mut reverse = Direction::new(&far, &near, &path.reverse, path.classes)?;
        reverse.leaving = tap;
        reverse.meter = meter.map(|tap| (Way::Back, tap));
        Ok(Ferry {
            clock: PathClock::new(Clock::start(), Pause::GoesOn),
            pause: path.pause,
            end: Time::ZERO.saturating_add(path.duration),
            forward,
            reverse,
            sampling: path.sample_interval.map(|interval| Sampling { interval, next: Time::ZERO }),
            waiting: [true; 2],
            buffer: vec![0; VNET_BYTES + MAX_FRAME_BYTES],
            quiet: path.quiet.clone(),
        })
    }

    /// Carries packets until the path's end or until `stop` is signalled.
    pub(crate) fn run(mut self, clock: Clock, stop: &OwnedFd) -> Result<FerryReport, EmuError> {
        let no_realtime = sys::become_realtime(sys::Realtime::Ferry).err().map(|error| error.to_string());
        let _ = sys::lock_memory();
        let began = clock.now();
        self.clock = PathClock::new(clock, self.pause);
        let mut passes = 0;
        // When the last pass began; since then both devices were asked for frames.
        let mut asked = None;
        loop {
            let now = self.clock.now();
            passes += 1;
            if now >= self.end {
                break;
            }
            self.sample(now);
            let more = self.pass().map_err(|error| EmuError::system("read from the TUN device", error))?;
            self.forward.check_held()?;
            self.reverse.check_held()?;
            if let Some(quiet) = &self.quiet {
                let is_empty = !more && self.forward.is_empty() && self.reverse.is_empty();
                quiet.note(asked.filter(|_| is_empty));
                asked = Some(clock.now());
            }
            let planned = if more { Time::ZERO } else { self.next_wake() };
            if !self.wait(now, planned, stop)? {
                break;
            }
        }
        let mut lateness = self.forward.lateness.clone();
        lateness.merge(&self.reverse.lateness);
        let now = self.clock.now();
        let report = FerryReport {
            counts: [self.forward.chain.counts(), self.reverse.chain.counts()],
            marked: [self.forward.marked(now), self.reverse.marked(now)],
            lateness,
            failed_writes: self.forward.failed_writes + self.reverse.failed_writes,
            passes,
            overruns: self.clock.overruns(),
            paused: self.clock.paused(),
            stalls: self.clock.stalls(),
            carried: clock.now().saturating_since(began),
            ended: now.min(self.end),
            no_realtime,
            links: self.forward.link_records(now).into_iter().chain(self.reverse.link_records(now)).collect(),
        };
        self.forward.report_remaining(now);
        self.reverse.report_remaining(now);
        Ok(report)
    }

    /// Releases packets that are due and reads frames that have arrived; returns whether more are waiting.
    fn pass(&mut self) -> io::Result<bool> {
        if self.clock.has_paused() {
            // Before anything is released: responses to released packets did not gather during the stall.
            self.waiting = [true; 2];
            while self.fetch()? {}
            self.clock.gathered(self.forward.settle().max(self.reverse.settle()));
        }
        // A host responds to a packet while the packet is written.
        self.waiting[1] |= self.forward.release(&self.clock);
        self.waiting[0] |= self.reverse.release(&self.clock);
        let more = self.fetch()?;
        if !self.clock.has_paused() {
            let _ = (self.forward.settle(), self.reverse.settle());
        }
        Ok(more)
    }

    /// Reads frames that have arrived at both ends; returns whether more are waiting.
    fn fetch(&mut self) -> io::Result<bool> {
        for (waiting, direction) in self.waiting.iter_mut().zip([&mut self.forward, &mut self.reverse]) {
            *waiting = *waiting && direction.fetch(&self.clock, &mut self.buffer)?;
        }
        Ok(self.waiting.contains(&true))
    }

    fn next_wake(&self) -> Time {
        let sample = self.sampling.as_ref().map_or(Time::NEVER, |sampling| sampling.next);
        let release = self.forward.next().min(self.reverse.next());
        release.min(sample).min(self.end).min(self.clock.now() + IDLE)
    }

    /// Waits until `planned` or until a packet arrives, but at least until [`GAP`] after the pass that began at `began`;
    /// returns whether to continue.
    fn wait(&mut self, began: Time, planned: Time, stop: &OwnedFd) -> Result<bool, EmuError> {
        let now = self.clock.now();
        let earliest = began + GAP;
        // poll ignores negative descriptors: packets do not shorten the gap.
        let (from, back_by) = if now < planned && planned < earliest {
            ([-1, -1], earliest.max(now))
        } else {
            ([self.forward.from.raw_fd(), self.reverse.from.raw_fd()], planned.max(now))
        };
        self.clock.back_by(back_by);
        let ready = sys::poll(
            [stop.as_raw_fd(), from[0], from[1]],
            libc::POLLIN,
            Some(back_by.saturating_since(now)),
        )
        .map_err(|error| EmuError::system("wait for packets", error))?;
        let unknown = from[0] < 0;
        self.waiting =
            [self.waiting[0] || unknown || ready[1] != 0, self.waiting[1] || unknown || ready[2] != 0];
        Ok(ready[0] == 0)
    }

    fn sample(&mut self, now: Time) {
        let Some(sampling) = &mut self.sampling else { return };
        if now < sampling.next {
            return;
        }
        // Missed samples are left out.
        while sampling.next <= now {
            sampling.next += sampling.interval;
        }
        self.forward.sample(now);
        self.reverse.sample(now);
    }
}

/// Packets of one direction: from a device, through the path, to the other device.
struct Direction {
    from: Arc<Tun>,
    to: Arc<Tun>,
    elements: Vec<ElementConfig>,
    chain: Chain<Unit>,
    classes: Classes,
    /// Whether an element takes or drops bursts as one.
    bursts: bool,
    gro: Duration,
    /// Frames that are being merged. Those of one class are in the same.
    batches: Vec<Batch>,
    /// Which of them are not empty.
    open: Vec<usize>,
    /// One for each queue.
    series: Vec<LinkSeries>,
    lateness: Histogram,
    /// Frames written, those that the kernel refused included.
    written: u64,
    failed_writes: u64,
    slowest: Rate,
    /// Bytes read since the last [`Direction::settle`].
    fetched: Bytes,
    /// Bytes read since the last look at what the path holds.
    unlooked: Bytes,
    /// Receives the packets that enter the path, and those that leave it.
    entering: Option<Rc<RefCell<Tap>>>,
    leaving: Option<Rc<RefCell<Tap>>>,
    /// Receives both, and which direction this is.
    meter: Option<(Way, Rc<RefCell<meter::Tap>>)>,
}

impl Direction {
    fn new(from: &Arc<Tun>, to: &Arc<Tun>, way: &OneWay, classes: Classes) -> Result<Direction, EmuError> {
        let chain: Chain<Unit> = Chain::behind(way.before, &way.elements, &way.class_delays, way.seed)
            .map_err(|error| EmuError::Path(error.to_string()))?;
        let series = vec![LinkSeries::default(); chain.queues()];
        Ok(Direction {
            from: Arc::clone(from),
            to: Arc::clone(to),
            elements: way.elements.clone(),
            chain,
            classes,
            bursts: way.elements.iter().any(|element| !element.unit().is_segment()),
            gro: way.gro,
            batches: (0..batches(classes)).map(|_| Batch::default()).collect(),
            open: Vec::new(),
            series,
            lateness: Histogram::default(),
            written: 0,
            failed_writes: 0,
            slowest: rates::lowest_rate(&way.elements),
            fetched: Bytes::ZERO,
            unlooked: Bytes::ZERO,
            entering: None,
            leaving: None,
            meter: None,
        })
    }

    /// Whether no packet is on this way.
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.chain.next() == Time::NEVER && self.chain.counts().inside.packets == 0
    }

    /// When there is something to do next.
    fn next(&self) -> Time {
        let held = self.open.iter().filter_map(|slot| self.batches[*slot].first_due());
        let held = held.min().map_or(Time::NEVER, |due| due + self.gro);
        held.min(self.chain.next())
    }

    fn link_records(&mut self, now: Time) -> Vec<LinkRecord> {
        let queues = (0..self.chain.queues()).map(|index| self.chain.queue(index));
        LinkRecord::of_path(&self.elements, queues, std::mem::take(&mut self.series), now)
    }

    /// At the end: tells the meter which packets are on the path, so that it does not take them for lost.
    fn report_remaining(&mut self, now: Time) {
        let Some((way, meter)) = &self.meter else { return };
        let mut meter = meter.borrow_mut();
        empty(&mut self.chain, now, |unit| {
            meter.see((*way, Stage::Remained), now, now.saturating_since(unit.entered()), &unit);
        });
    }

    /// Writes everything that is due; returns whether that was anything.
    fn release(&mut self, clock: &PathClock) -> bool {
        let now = clock.now();
        let before = self.written;
        while let Some((due, packet, unit)) = self.chain.pop(now) {
            let slot = packet.class as usize % self.batches.len();
            let unit = unit.with_ecn(packet.ecn);
            if let Some((way, meter)) = &self.meter {
                let delay = now.saturating_since(unit.entered());
                meter.borrow_mut().see((*way, Stage::Left), now, delay, &unit);
            }
            if let Some(tap) = &self.leaving {
                tap.borrow_mut().see(clock.machine(), true, &unit);
            }
            if let Err(unit) = self.batches[slot].add(unit, due) {
                self.flush(slot, clock);
                let added = self.batches[slot].add(unit, due);
                assert!(added.is_ok(), "an empty batch takes anything");
            }
            if self.batches[slot].is_closed() {
                self.flush(slot, clock);
            } else if !self.open.contains(&slot) {
                self.open.push(slot);
            }
        }
        let mut open = std::mem::take(&mut self.open);
        open.retain(|slot| {
            let due = self.batches[*slot].first_due();
            if due.is_some_and(|due| due + self.gro <= now) {
                self.flush(*slot, clock);
            }
            !self.batches[*slot].is_empty()
        });
        self.open = open;
        self.written > before
    }

    /// Writes the frame in a slot. Packets held back to be merged are due when the holding ends: with the packet that
    /// completes the frame, or after the whole time.
    fn flush(&mut self, slot: usize, clock: &PathClock) {
        let batch = &mut self.batches[slot];
        let now = clock.now();
        let held_until = match (batch.first_due(), batch.due().last()) {
            _ if self.gro == Duration::ZERO => Time::ZERO,
            (_, Some(last)) if batch.is_closed() => *last,
            (Some(first), _) => (first + self.gro).min(now),
            _ => Time::ZERO,
        };
        for due in batch.due() {
            self.lateness.record(now.saturating_since((*due).max(held_until)));
        }
        self.written += 1;
        let to = &self.to;
        if batch.flush(|slices: &[IoSlice<'_>]| to.write(slices)).is_err() {
            self.failed_writes += 1;
        }
    }

    /// Reads waiting frames into the path; returns whether more may wait.
    fn fetch(&mut self, clock: &PathClock, buffer: &mut [u8]) -> io::Result<bool> {
        for _ in 0..READS_AT_ONCE {
            let Some(length) = self.from.read(buffer)? else { return Ok(false) };
            let Some(mut frame) = Frame::parse(&buffer[..length]) else { continue };
            let class = class_of(&frame, self.classes);
            frame.entered = clock.now();
            let frame = Rc::new(frame);
            if let Some((way, meter)) = &self.meter {
                let mut meter = meter.borrow_mut();
                let seen = (*way, Stage::Entered);
                frame::units(Rc::clone(&frame))
                    .for_each(|unit| meter.see(seen, frame.entered, Duration::ZERO, &unit));
            }
            if let Some(tap) = &self.entering {
                let at = clock.machine();
                frame::units(Rc::clone(&frame)).for_each(|unit| tap.borrow_mut().see(at, false, &unit));
            }
            let now = clock.now();
            let offered = offer(&mut self.chain, now, (frame, class), self.bursts);
            self.fetched += offered;
            self.unlooked += offered;
        }
        Ok(true)
    }

    /// Refuses to hold more than there is memory for.
    fn check_held(&mut self) -> Result<(), EmuError> {
        if self.unlooked < LOOK_EVERY {
            return Ok(());
        }
        self.unlooked = Bytes::ZERO;
        check_held(&self.chain, MOST_HELD)
    }

    /// How many packets its queues have marked by `now`.
    fn marked(&self, now: Time) -> u64 {
        (0..self.chain.queues()).map(|index| self.chain.queue(index).totals(now).marked.packets).sum()
    }

    /// How long the packets read since the last call keep the slowest link busy.
    fn settle(&mut self) -> Duration {
        self.slowest.time_for(std::mem::replace(&mut self.fetched, Bytes::ZERO))
    }

    fn sample(&mut self, now: Time) {
        for (index, series) in self.series.iter_mut().enumerate() {
            series.sample(QueueSample::of(self.chain.queue(index), now));
        }
    }
}

/// Offers the packets of a frame to the path, which counts what it drops: as one burst, as the kernel handed them over, or one by
/// one. Returns their length.
fn offer(chain: &mut Chain<Unit>, now: Time, (frame, class): (Rc<Frame>, u32), as_burst: bool) -> Bytes {
    let mut offered = Bytes::ZERO;
    let packets = frame::units(frame).map(|unit| {
        offered += Bytes::new(u64::from(unit.ip_bytes()));
        (Packet::new(unit.ip_bytes(), class).with_ecn(unit.ecn()), unit)
    });
    if as_burst {
        chain.push_burst(now, packets);
    } else {
        for (packet, unit) in packets {
            let _ = chain.push(now, packet, unit);
        }
    }
    offered
}

/// Hands over every packet that is on the path at `now`, in the order in which they would have left it.
fn empty(chain: &mut Chain<Unit>, now: Time, mut each: impl FnMut(Unit)) {
    // What became due while the last pass read frames is due before the time that the path knows, which never goes back.
    let mut at = now;
    while chain.next() != Time::NEVER {
        at = at.max(chain.next());
        if let Some((_, _, unit)) = chain.pop(at) {
            each(unit);
        }
    }
}

/// An error if the path holds more than `most`.
fn check_held(chain: &Chain<Unit>, most: Bytes) -> Result<(), EmuError> {
    let held = chain.counts().inside.bytes;
    if held <= most {
        return Ok(());
    }
    Err(EmuError::Unsupported {
        field: "path.buffer".to_owned(),
        reason: format!(
            "the path holds {} MB, and may hold {}",
            held.as_u64() / 1_000_000,
            most.as_u64() / 1_000_000
        ),
        fix: "choose a smaller buffer, or let the program send less".to_owned(),
    })
}

/// The class of a frame's packets.
fn class_of(frame: &Frame, classes: Classes) -> u32 {
    match classes {
        Classes::One => 0,
        Classes::Ports { first, flows } => {
            frame.ports.and_then(|ports| flow_of_ports(ports, first, flows)).unwrap_or(0)
        }
        Classes::Programs { first, flows } => {
            let program = frame.ports.and_then(|ports| flow_of_ports(ports, first, flows)).unwrap_or(0);
            program + flows * (frame.flow() % Classes::OF_A_PROGRAM)
        }
        Classes::Flows => frame.flow(),
    }
}

/// How many frames are merged at a time: one for each class, as far as their number is known and small.
fn batches(classes: Classes) -> u32 {
    /// Flows that share one only keep each other from being merged.
    const HASHED: u32 = 256;
    match classes {
        Classes::One => 1,
        Classes::Ports { flows, .. } => flows.max(1),
        Classes::Programs { .. } | Classes::Flows => HASHED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::testing::Sample;
    use fullpipe_path::config::{AdmissionUnit, QueueConfig, Schedule};

    #[test]
    fn burst_queue_admits_frame_as_one() {
        // Ten packets of 1500 bytes; the queue has room for five.
        for (unit, inside) in [(AdmissionUnit::Segment, 5), (AdmissionUnit::Burst, 0)] {
            let link = ElementConfig::Link {
                name: "bottleneck".to_owned(),
                rate_bps: Schedule::constant(Rate::from_bits_per_sec(10_000_000)),
                queue: QueueConfig { unit, ..QueueConfig::drop_tail(Bytes::new(7_500), None) },
            };
            let bursts = !link.unit().is_segment();
            let mut chain: Chain<Unit> = Chain::new(&[link], &[], 1).unwrap();
            let frame = |payload| Rc::new(Frame::parse(&Sample::data(1, payload).bytes()).unwrap());
            let offered = offer(&mut chain, Time::ZERO, (frame(10 * 1448), 0), bursts);
            let counts = chain.counts();
            assert_eq!((offered, counts.entered.packets), (Bytes::new(15_000), 10));
            assert_eq!(counts.inside.packets, inside, "{unit:?}");
        }
    }

    #[test]
    fn connections_of_program_get_own_classes() {
        let frame = |ports: [u16; 2]| {
            let mut bytes = Sample::data(1, 1448).bytes();
            bytes[VNET_BYTES + 20..VNET_BYTES + 22].copy_from_slice(&ports[0].to_be_bytes());
            bytes[VNET_BYTES + 22..VNET_BYTES + 24].copy_from_slice(&ports[1].to_be_bytes());
            Frame::parse(&bytes).unwrap()
        };
        let (first, flows) = (10_000, 3);
        let class = |ports| class_of(&frame(ports), Classes::Programs { first, flows });
        let of_one = [40_000, 40_002, 40_004].map(|client| class([client, 10_001]));
        assert!(of_one.iter().all(|class| class % flows == 1), "{of_one:?}");
        assert!(of_one[0] != of_one[1] && of_one[1] != of_one[2], "{of_one:?}");
        assert_eq!(class([40_000, 10_001]), of_one[0]);
        // On its way back, a packet is of the same program; an unknown port counts as the first.
        assert_eq!((class([10_002, 40_000]) % flows, class([1, 2]) % flows), (2, 0));
        // As before, a flow of our own traffic generator is one class.
        let ours = |ports| class_of(&frame(ports), Classes::Ports { first, flows });
        assert_eq!((ours([10_001, 10_001]), ours([40_000, 10_001])), (1, 1));
    }

    #[test]
    fn overfull_path_error_names_buffer() {
        let link = ElementConfig::Link {
            name: "bottleneck".to_owned(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(10_000)),
            queue: QueueConfig::drop_tail(Bytes::new(100_000_000_000), None),
        };
        let mut chain: Chain<Unit> = Chain::new(&[link], &[], 1).unwrap();
        let most = Bytes::new(1_000_000);
        for _ in 0..66 {
            let frame = Rc::new(Frame::parse(&Sample::data(1, 10 * 1448).bytes()).unwrap());
            offer(&mut chain, Time::ZERO, (frame, 0), false);
        }
        assert!(check_held(&chain, most).is_ok(), "{:?}", chain.counts().inside);
        let frame = Rc::new(Frame::parse(&Sample::data(1, 10 * 1448).bytes()).unwrap());
        offer(&mut chain, Time::ZERO, (frame, 0), false);
        let error = check_held(&chain, most).unwrap_err();
        assert_eq!(error.to_string(), "path.buffer: the path holds 1 MB, and may hold 1");
        assert!(error.fix().starts_with("choose a smaller buffer"));
    }

    #[test]
    fn packets_due_before_last_read_remain() {
        let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(1)) };
        let mut chain: Chain<Unit> = Chain::new(&[delay], &[], 1).unwrap();
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        // A pass reads for so long that the first packet becomes due before the second enters, and no pass follows.
        for entered in [0, 5] {
            let frame = Rc::new(Frame::parse(&Sample::data(1, 1448).bytes()).unwrap());
            offer(&mut chain, at(entered), (frame, 0), false);
        }
        let mut remaining = 0;
        empty(&mut chain, at(6), |_| remaining += 1);
        assert_eq!(remaining, 2);
    }

    #[test]
    fn packet_keeps_codepoint_through_path() {
        let mut bytes = Sample::data(1, 1448).bytes();
        bytes[VNET_BYTES + 1] = 2;
        let mut chain: Chain<Unit> = Chain::new(&[], &[], 1).unwrap();
        offer(&mut chain, Time::ZERO, (Rc::new(Frame::parse(&bytes).unwrap()), 0), false);
        let (_, packet, _) = chain.pop(Time::ZERO).unwrap();
        assert_eq!(packet.ecn, fullpipe_path::Ecn::Ect0);
    }

    #[test]
    fn longest_stall_is_recorded() {
        let paused = Paused {
            total: Duration::from_millis(9),
            longest: Duration::from_millis(7),
            ..Paused::default()
        };
        let mut report = FerryReport { paused, ..FerryReport::default() };
        report.lateness.record(Duration::from_millis(1));
        assert_eq!((report.lateness().p50_ns, report.lateness().max_ns), (1_000_000, 7_000_000));
    }
}
