//! Every controller of `fullpipe-cc` obeys every law; and each law notices the controller, or the transport, that breaks it.

extern crate std;
use super::bench::Bench;
use super::*;
use core::cell::Cell;
use fullpipe_cc::{Any, Decimal, Params, Segments};
use proptest::prelude::*;

fn controller(name: &str) -> impl Fn(&Config, &Connection) -> Any {
    made_by(Params::by_name(name).unwrap())
}

fn made_by(params: Params) -> impl Fn(&Config, &Connection) -> Any {
    move |config, connection| Any::new(&params, config, connection)
}

#[test]
fn controllers_obey_laws_on_clean_path() {
    for params in Params::all() {
        for hz in [100, 250, 1000] {
            let mut path = Path { answers_delay: params.info().answers_delay, ..Path::default() };
            path.config.hz = hz;
            check_all(&path, made_by(params)).unwrap_or_else(|broken| panic!("{params:?}: {broken}"));
        }
    }
}

#[test]
fn every_controller_obeys_the_laws_unpaced() {
    for params in Params::all() {
        let mut path = Path { answers_delay: params.info().answers_delay, ..Path::default() };
        path.config.paced = false;
        check_all(&path, made_by(params)).unwrap_or_else(|broken| panic!("{params:?}: {broken}"));
    }
}

/// Choices that differ from the defaults in what they do to the window.
#[test]
fn rfc_controller_options_obey_laws() {
    let options: &[(&str, &[(&str, i32)])] = &[
        ("newreno", &[("hystartpp", 1)]),
        ("newreno", &[("pace", 0), ("initial_limit", 0)]),
        ("cubic9438", &[("hystartpp", 0)]),
        ("cubic9438", &[("flight_size", 1)]),
        ("cubic9438", &[("fast_convergence", 0), ("pacing_gain", 2)]),
    ];
    for (name, values) in options {
        let mut params = Params::by_name(name).unwrap();
        for (parameter, value) in *values {
            params.set(parameter, Decimal::from_integer(*value)).unwrap();
        }
        for (paced, loss_per_mille) in [(true, 0), (false, 0), (true, 20), (false, 20)] {
            let mut path = Path { loss_per_mille, ..Path::default() };
            path.config.paced = paced;
            let new = |config: &Config, connection: &Connection| Any::new(&params, config, connection);
            for path in [path, path.in_bytes(Sizes::Mixed)] {
                check_all(&path, new).unwrap_or_else(|broken| panic!("{name} {values:?}: {broken}"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn controllers_obey_laws_under_random_loss(
        seed in 1u64..u64::MAX,
        loss_per_mille in 0u32..300,
        queue in 1u32..200,
        megabits in 1u64..200,
        rtt_ms in 1u64..200,
    ) {
        for params in Params::all() {
            let path = Path {
                seed,
                loss_per_mille,
                queue,
                rate: Rate::from_bits_per_sec(megabits * 1_000_000),
                rtt: Duration::from_millis(rtt_ms),
                segments: 2_000,
                ..Path::default()
            };
            let run = check_run(&path, made_by(params));
            prop_assert!(run.is_ok(), "{params:?}: {}", run.unwrap_err());
            let run = check_reordering(&path, made_by(params));
            prop_assert!(run.is_ok(), "{params:?}, reordered: {}", run.unwrap_err());
        }
    }
}

#[test]
fn fixed_phase_exempts_only_response_laws() {
    let answering = [Law::TimeoutCollapsesTheWindow, Law::FillsTheLosslessPipe];
    assert!(answering.iter().all(|law| !law.binds(Phase::Fixed)));
    assert!(answering.iter().all(|law| law.binds(Phase::CongestionAvoidance)));
    assert!(Law::DeliversEverything.binds(Phase::Fixed));
}

/// Every controller, from a transport that counts bytes: those that count segments through the adapter.
fn check_in_bytes(params: Params, path: &Path) -> Result<(), Broken> {
    let new = made_by(params);
    if params.counts_bytes() {
        check_all(path, new)
    } else {
        check_all(path, |config, connection| Segments::new(config, connection, &new))
    }
}

#[test]
fn controllers_obey_laws_in_bytes() {
    for params in Params::all() {
        for sizes in [Sizes::Full, Sizes::Mixed] {
            for paced in [false, true] {
                let answers_delay = params.info().answers_delay;
                let mut path = Path { answers_delay, segments: 6_000, ..Path::default() };
                path.config.paced = paced;
                check_in_bytes(params, &path.in_bytes(sizes))
                    .unwrap_or_else(|broken| panic!("{params:?}, {sizes:?}, paced {paced}: {broken}"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn byte_controllers_obey_laws_under_loss(
        seed in 1u64..u64::MAX,
        loss_per_mille in 0u32..300,
        late_per_mille in 0u32..50,
        queue in 1u32..200,
        megabits in 1u64..200,
        rtt_ms in 1u64..200,
        ack_every in 1u32..65,
        discards in 0u32..10,
        write in 0u32..60,
    ) {
        for params in Params::all() {
            let path = Path {
                seed,
                loss_per_mille,
                late_per_mille,
                queue,
                rate: Rate::from_bits_per_sec(megabits * 1_000_000),
                rtt: Duration::from_millis(rtt_ms),
                segments: if write == 0 { 2_000 } else { 30 * write },
                ack_every,
                discards,
                write,
                ..Path::default()
            };
            let run = run_in_bytes(params, &path.in_bytes(Sizes::Mixed));
            prop_assert!(run.is_ok(), "{params:?}: {}", run.unwrap_err());
        }
    }
}

fn run_in_bytes(params: Params, path: &Path) -> Result<Outcome, Broken> {
    let new = made_by(params);
    if params.counts_bytes() {
        check_run(path, new)
    } else {
        check_run(path, |config, connection| Segments::new(config, connection, &new))
    }
}

/// The same windows, in whole segments, the same rates and phases, throughout.
#[test]
fn units_do_not_change_any_controller() {
    for params in Params::all() {
        for loss_per_mille in [0, 3, 50] {
            let path =
                Path { loss_per_mille, late_per_mille: loss_per_mille, segments: 6_000, ..Path::default() };
            let new = made_by(params);
            let adapted = |config: &Config, connection: &Connection| Segments::new(config, connection, &new);
            let same = if params.counts_bytes() {
                check_units(&path, &new, &new)
            } else {
                check_units(&path, &new, adapted)
            };
            same.unwrap_or_else(|broken| panic!("{params:?}: {broken}"));
        }
    }
}

/// What is wrong with a controller: it hears other events than the transport reports, or gives other answers than it came to.
#[derive(Clone, Copy)]
struct Defect {
    rtt: fn(RttSample) -> RttSample,
    ack: fn(Ack) -> Ack,
    heeds_undo: bool,
    /// It takes each echo of a mark for a timeout.
    answers_echoes: bool,
    /// It takes what marks prove for a mere loss.
    doubts_marks: bool,
    limits: fn(Limits, Asked) -> Limits,
    snapshot: fn(Snapshot) -> Snapshot,
}

/// What wrong answers may depend on.
struct Asked {
    /// When the connection began.
    began: Time,
    /// What counted as delivered then.
    total: u64,
    /// Whether a tail was repaired, or something discarded.
    repaired: bool,
    discarded: bool,
    /// How often the limits were asked for.
    times: u32,
}

const NO_DEFECT: Defect = Defect {
    rtt: |sample| sample,
    ack: |ack| ack,
    heeds_undo: true,
    answers_echoes: false,
    doubts_marks: false,
    limits: |limits, _| limits,
    snapshot: |snapshot| snapshot,
};

struct Wrong {
    controller: Any,
    defect: Defect,
    began: Time,
    total: u64,
    repaired: bool,
    discarded: bool,
    times: Cell<u32>,
}

impl Wrong {
    fn new(name: &str, defect: Defect) -> impl Fn(&Config, &Connection) -> Wrong {
        let new = controller(name);
        move |config, connection| Wrong {
            controller: new(config, connection),
            defect,
            began: connection.now,
            total: connection.delivered,
            repaired: false,
            discarded: false,
            times: Cell::new(0),
        }
    }
}

impl Controller for Wrong {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.controller.on_transmit_start(start)
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        self.controller.on_window_unused(unused)
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.controller.on_sent(sent)
    }
    fn on_rtt(&mut self, sample: &RttSample) {
        self.controller.on_rtt(&(self.defect.rtt)(*sample))
    }
    fn on_lost(&mut self, lost: &Lost) {
        self.controller.on_lost(lost)
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        self.repaired = true;
        self.controller.on_tail_repair(repair)
    }
    fn on_discarded(&mut self, discarded: &Discarded) {
        self.discarded = true;
        self.controller.on_discarded(discarded)
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        if self.defect.answers_echoes && marks.echoed {
            let (connection, to, trigger) = (Connection::default(), CaState::Loss, Trigger::Timer);
            self.on_state(&StateChange { connection, to, reduce: true, proven: false, trigger });
        }
        if !self.defect.doubts_marks {
            self.controller.on_ce(marks)
        }
    }
    fn on_state(&mut self, change: &StateChange) {
        if self.defect.doubts_marks && change.proven {
            let doubted = StateChange { to: CaState::Recovery, proven: false, ..*change };
            return self.controller.on_state(&doubted);
        }
        self.controller.on_state(change)
    }
    fn on_undo(&mut self, undo: &Undo) {
        if self.defect.heeds_undo {
            self.controller.on_undo(undo)
        }
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_ack(&(self.defect.ack)(*ack))
    }
    fn on_mss(&mut self, mss: u32) {
        self.controller.on_mss(mss)
    }
    fn limits(&self) -> Limits {
        self.times.set(self.times.get().wrapping_add(1));
        let Wrong { began, total, repaired, discarded, .. } = *self;
        let asked = Asked { began, total, repaired, discarded, times: self.times.get() };
        (self.defect.limits)(self.controller.limits(), asked)
    }
    fn snapshot(&self) -> Snapshot {
        (self.defect.snapshot)(self.controller.snapshot())
    }
}

/// The first law that the controller of this name breaks because of the defect, and only because of it.
fn broken_by(name: &str, path: Path, defect: Defect) -> Law {
    let checked = |defect| check_all(&path, Wrong::new(name, defect));
    assert_eq!(checked(NO_DEFECT), Ok(()), "{name} without the defect");
    checked(defect).expect_err("no law notices the defect").law
}

/// The first law that a transport breaks which starts out as `change` says.
fn broken_by_transport(path: Path, change: fn(&mut Bench<'_, Any>)) -> Law {
    let mut bench = Bench::new(&path, controller("bbr1"));
    change(&mut bench);
    bench.run().expect_err("no law notices the defect").law
}

/// Breaks `law`; returns the first law that was reported as broken.
fn broken_instead_of(law: Law) -> Law {
    let path = Path::default();
    let with_limits = |name, limits| broken_by(name, path, Defect { limits, ..NO_DEFECT });
    let with_snapshot = |snapshot| broken_by("reno", path, Defect { snapshot, ..NO_DEFECT });
    match law {
        Law::WindowIsPositive => with_limits("reno", |limits, _| Limits { cwnd: 0, ..limits }),
        Law::WindowIsClamped => with_limits("reno", |limits, _| Limits { cwnd: 10_001, ..limits }),
        Law::RateIsPositiveAndCapped => {
            with_limits("bbr1", |limits, _| Limits { pacing_rate: Rate::MAX, ..limits })
        }
        Law::BurstIsPositive => with_limits("cubic", |limits, _| Limits { min_burst: 0, ..limits }),
        Law::AskingChangesNothing => {
            with_limits("reno", |limits, asked| Limits { cwnd: 10 + asked.times % 2, ..limits })
        }
        Law::TimeoutCollapsesTheWindow => {
            with_limits("reno", |limits, _| Limits { cwnd: limits.cwnd.max(10), ..limits })
        }
        Law::ProbeRttIsSmall => {
            let limits = |limits: Limits, _| Limits { cwnd: limits.cwnd.max(100), ..limits };
            // Ten seconds and more, so that there is a ProbeRTT.
            broken_by("bbr1", Path { segments: 40_000, ..path }, Defect { limits, ..NO_DEFECT })
        }
        Law::ProbeRttEnds => {
            let limits = |limits: Limits, _| Limits { cwnd: 4, mark_app_limited: true, ..limits };
            let snapshot = |snapshot| Snapshot { phase: Phase::ProbeRtt, ..snapshot };
            broken_by("reno", path, Defect { limits, snapshot, ..NO_DEFECT })
        }
        Law::ProbeRttMarksItsSamples => {
            let limits = |limits: Limits, _| Limits { mark_app_limited: false, ..limits };
            broken_by("bbr1", Path { segments: 40_000, ..path }, Defect { limits, ..NO_DEFECT })
        }
        Law::EstimateIsAtMostThePath => with_snapshot(|snapshot| Snapshot {
            bandwidth: Some(Rate::from_bits_per_sec(25_000_000)),
            ..snapshot
        }),
        Law::MinRttIsAtLeastThePath => {
            with_snapshot(|snapshot| Snapshot { min_rtt: Some(Duration::from_millis(39)), ..snapshot })
        }
        Law::DeliversEverything => {
            // Only timeouts send, one segment each: too slow where all of them fit into a fraction of a second.
            let path = Path { rate: Rate::from_bits_per_sec(200_000_000), segments: 5_000, ..path };
            let limits = |limits, _| Limits { cwnd: 1, pacing_rate: Rate::from_bits_per_sec(1), ..limits };
            broken_by("reno", path, Defect { limits, ..NO_DEFECT })
        }
        Law::FillsTheLosslessPipe => with_limits("reno", |limits, _| Limits { cwnd: 20, ..limits }),
        Law::StartTimeDoesNotMatter => with_limits("cubic", |limits, asked| {
            let began_late = asked.began > Time::from_micros(3_600_000_000);
            Limits { cwnd: if began_late { limits.cwnd.min(50) } else { limits.cwnd }, ..limits }
        }),
        Law::IdleDoesNotGrow => {
            let ack = |ack| Ack { cwnd_limited: true, ..ack };
            broken_by("reno", path, Defect { ack, ..NO_DEFECT })
        }
        Law::IdleDoesNotEndStartup => {
            let ack = |ack: Ack| Ack { sample: RateSample { app_limited: false, ..ack.sample }, ..ack };
            broken_by("bbr1", path, Defect { ack, ..NO_DEFECT })
        }
        Law::JitterDoesNotEndSlowStart => {
            let rtt = |sample: RttSample| RttSample { rtt: sample.rtt.saturating_mul(2), ..sample };
            broken_by("cubic", path, Defect { rtt, ..NO_DEFECT })
        }
        Law::UndoRestores => broken_by("cubic", path, Defect { heeds_undo: false, ..NO_DEFECT }),
        Law::TailRepairIsALoss => with_limits("bbr1", |limits, asked| Limits {
            cwnd: limits.cwnd + asked.repaired as u32,
            ..limits
        }),
        Law::DiscardsAreNoSignal => with_limits("reno", |limits, asked| Limits {
            cwnd: if asked.discarded { limits.cwnd / 2 + 1 } else { limits.cwnd },
            ..limits
        }),
        Law::TotalsMayWrap => with_limits("bbr3", |limits, asked| Limits {
            cwnd: if asked.total < u32::MAX as u64 / 2 { limits.cwnd.min(50) } else { limits.cwnd },
            ..limits
        }),
        Law::UnitsDoNotMatter => {
            let limits = |limits: Limits, _| Limits { cwnd: limits.cwnd.min(50 * 1448), ..limits };
            let wrong = Wrong::new("bbr3", Defect { limits, ..NO_DEFECT });
            check_units(&path, controller("bbr3"), wrong).expect_err("no law notices the defect").law
        }
        Law::MarksReduceOnceAWindow => broken_by("cubic", path, Defect { answers_echoes: true, ..NO_DEFECT }),
        Law::MarksAreFinal => broken_by("dctcp", path, Defect { doubts_marks: true, ..NO_DEFECT }),
        Law::EventsComeInOrder => {
            broken_by_transport(path, |bench| bench.connection.state = CaState::Recovery)
        }
        Law::SampleFollowsItsDefinition => {
            broken_by_transport(path, |bench| bench.sampler.mark_app_limited(10))
        }
        Law::LossesKeepTheirState => {
            let path = Path { loss_per_mille: 1_000, ..path };
            broken_by_transport(path, |bench| bench.sampler.mark_app_limited(10))
        }
    }
}

#[test]
fn each_law_notices_what_breaks_it() {
    for &law in Law::ALL {
        assert_eq!(broken_instead_of(law), law);
    }
}

#[test]
fn further_law_violations_are_detected() {
    let zero_rate = |limits: Limits, _| Limits { pacing_rate: Rate::ZERO, ..limits };
    let law = broken_by("bbr1", Path::default(), Defect { limits: zero_rate, ..NO_DEFECT });
    assert_eq!(law, Law::RateIsPositiveAndCapped);
    for name in ["reno", "vegas"] {
        let path = Path { answers_delay: name == "vegas", ..Path::default() };
        assert_eq!(broken_by(name, path, Defect { heeds_undo: false, ..NO_DEFECT }), Law::UndoRestores);
    }
}
