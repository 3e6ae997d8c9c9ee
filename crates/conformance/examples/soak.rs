//! Holds controllers against all laws on random paths until they have seen as many events as asked for.
//!
//!     cargo run --release -p fullpipe-conformance --example soak -- [EVENTS] [CONTROLLER,...|all] [SEED] [FROM]
//!
//! Each run has a number; seed and number determine its path, its check and its controller, so that a run repeats by itself: with
//! `FROM`, the runs begin there, which resumes an interrupted soak. It prints its progress, and ends at the first broken law.

use std::cell::Cell;
use std::process::ExitCode;

use fullpipe_cc::controller::*;
use fullpipe_cc::{Any, Params, Segments};
use fullpipe_conformance::*;
use fullpipe_units::{Duration, Rate, Time};

thread_local! {
    static EVENTS: Cell<u64> = const { Cell::new(0) };
}

/// A controller whose events are counted.
struct Counted(Any);

/// Counts each of these events and passes it on.
macro_rules! counted {
    ($($event:ident($Event:ty),)+) => {
        $(fn $event(&mut self, event: $Event) {
            EVENTS.set(EVENTS.get() + 1);
            self.0.$event(event)
        })+
    };
}

impl Controller for Counted {
    counted! {
        on_transmit_start(&TransmitStart),
        on_window_unused(&WindowUnused),
        on_sent(&Sent),
        on_rtt(&RttSample),
        on_ce(&CeMarks),
        on_tail_repair(&TailRepair),
        on_undo(&Undo),
        on_lost(&Lost),
        on_discarded(&Discarded),
        on_state(&StateChange),
        on_ack(&Ack),
        on_mss(u32),
    }
    fn limits(&self) -> Limits {
        self.0.limits()
    }
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((mixed ^ (mixed >> 31)) >> 32) * bound as u64) >> 32) as u32
    }

    /// Zero as often as not.
    fn maybe(&mut self, bound: u32) -> u32 {
        if self.below(2) == 0 { 0 } else { self.below(bound) }
    }

    fn path(&mut self) -> Path {
        let most_waiting = 1 << (1 + self.below(10));
        let mut path = Path {
            rate: Rate::from_bits_per_sec(1_000_000 << self.below(9)),
            rtt: Duration::from_micros(100 << self.below(12)),
            queue: 1 + self.below(most_waiting),
            loss_per_mille: self.maybe(200),
            late_per_mille: self.maybe(60),
            seed: self.below(u32::MAX) as u64,
            segments: 1_000 + self.below(20_000),
            ack_every: 1 + self.maybe(Path::MAX_ACK_EVERY),
            discards: self.maybe(20),
            wraps: self.below(2) == 0,
            start: Time::from_micros(1_000_000 + self.below(u32::MAX) as u64 * 2),
            ..Path::default()
        };
        path.write = self.maybe(200);
        if path.write > 0 {
            // A pause follows each write.
            path.segments = path.segments.min(60 * path.write);
        }
        path.config.mss = [1_448, 1_448, 1_200, 8_948, 536][self.below(5) as usize];
        path.config.unit = path.config.mss;
        path.config.paced = self.below(8) > 0;
        path.config.hz = [100, 250, 1_000][self.below(3) as usize];
        path
    }
}

/// The checks that run the bench.
const CHECKS: [&str; 7] = ["run", "start time", "reordering", "wrap", "stretched ACKs", "pauses", "units"];

fn check(params: &Params, which: &str, path: &Path, in_bytes: Option<Sizes>) -> Result<(), Broken> {
    let counted = |config: &Config, connection: &Connection| Counted(Any::new(params, config, connection));
    let adapted = |config: &Config, connection: &Connection| Segments::new(config, connection, counted);
    fn one<C: Controller>(
        which: &str,
        path: &Path,
        new: impl Fn(&Config, &Connection) -> C,
    ) -> Result<(), Broken> {
        match which {
            "start time" => check_start_time(path, new),
            "reordering" => check_reordering(path, new),
            "wrap" => check_wrap(path, new),
            "stretched ACKs" => check_stretched_acks(path, new),
            "pauses" => check_pauses(path, new),
            _ => check_run(path, new).map(|_| ()),
        }
    }
    match (which, in_bytes, params.counts_bytes()) {
        ("units", _, true) => check_units(path, counted, counted),
        ("units", _, false) => check_units(path, counted, adapted),
        (_, None, _) => one(which, path, counted),
        (_, Some(sizes), true) => one(which, &path.in_bytes(sizes), counted),
        (_, Some(sizes), false) => one(which, &path.in_bytes(sizes), adapted),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments.get(index).map_or(Some(default), |text| text.replace('_', "").parse().ok())
    };
    // A controller that follows one of several specifications is as many.
    let label = |params: &Params| match params.profile() {
        Some((place, profile)) if place > 0 => format!("{}:profile={profile}", params.name()),
        _ => params.name().to_owned(),
    };
    let mut subjects: Vec<(String, Params)> = Params::all().map(|params| (label(&params), params)).collect();
    if let Some(names) = arguments.get(1).filter(|names| *names != "all") {
        subjects.retain(|(name, _)| names.split(',').any(|asked| asked == name));
    }
    let (Some(events), Some(seed), Some(from), false) =
        (number(0, 1_000_000), number(2, 1), number(3, 0), subjects.is_empty())
    else {
        eprintln!("usage: soak [EVENTS] [CONTROLLER,...|all] [SEED] [FROM]");
        return ExitCode::from(2);
    };
    let names: Vec<&str> = subjects.iter().map(|(name, _)| name.as_str()).collect();
    println!("{events} events, {}, seed {seed}, from run {from}", names.join(", "));
    let (mut run, mut reported) = (from, 0);
    while EVENTS.get() < events {
        let mut random =
            Random(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ run.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (name, params) = &subjects[(run % subjects.len() as u64) as usize];
        let which = CHECKS[random.below(CHECKS.len() as u32) as usize];
        // BBRv1 is as Linux has it: see the law.
        let which = if which == "wrap" && matches!(params, Params::Bbr1(_)) { "run" } else { which };
        let path = random.path();
        let in_bytes = [None, Some(Sizes::Full), Some(Sizes::Mixed)][random.below(3) as usize];
        if let Err(broken) = check(params, which, &path, in_bytes) {
            println!("run {run}: {name}, check of {which}, in bytes {in_bytes:?}: {broken}\n{path:#?}");
            return ExitCode::FAILURE;
        }
        run += 1;
        if EVENTS.get() / (events / 20).max(1) > reported {
            reported = EVENTS.get() / (events / 20).max(1);
            println!("{:>12} events, {run} runs", EVENTS.get());
        }
    }
    println!("No law broken in {} events and runs {from} to {}.", EVENTS.get(), run - 1);
    ExitCode::SUCCESS
}
