//! What a shell reports to its user: what each direction does, what it did, and the path in a few words for the prompt.

use std::fmt::{self, Write};

use fullpipe_path::config::{ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_path::{Cause, Counts, highest_rate};
use fullpipe_record::QueueSample;
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Duration;

/// One direction of the path, for its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the command to the outside.
    Up,
    /// To the command.
    Down,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Up => "up (from the command)",
            Way::Down => "down (to the command)",
        })
    }
}

/// A line about what this direction does to packets.
pub(super) fn plan(way: Way, elements: &[ElementConfig]) -> String {
    let mut parts: Vec<String> = elements.iter().flat_map(parts_of).collect();
    if parts.is_empty() {
        parts.push("no limit".to_owned());
    }
    let changes = elements.iter().map(changes_of).sum::<usize>();
    if changes > 0 {
        parts.push(format!("with {changes} scheduled {}", if changes == 1 { "change" } else { "changes" }));
    }
    format!("{way}: {}", parts.join(", "))
}

/// How often a setting of an element changes while the path is carried.
fn changes_of(element: &ElementConfig) -> usize {
    match element {
        ElementConfig::Link { rate_bps, .. } => rate_bps.changes.len(),
        ElementConfig::Delay { delay_ns } => delay_ns.changes.len(),
        ElementConfig::Loss { probability, .. } => probability.changes.len(),
        _ => 0,
    }
}

fn parts_of(element: &ElementConfig) -> Vec<String> {
    let rate = highest_rate(std::slice::from_ref(element));
    let queued = |rate: String, queue: &QueueConfig| vec![rate, queue_of(queue)];
    match element {
        ElementConfig::Link { rate_bps, queue, .. } => queued(rate_bps.initial.to_string(), queue),
        ElementConfig::DeliveryTrace { queue, .. } => {
            queued(format!("delivery trace of {rate} on average"), queue)
        }
        ElementConfig::Cellular { queue, .. } => queued(format!("cellular radio of up to {rate}"), queue),
        ElementConfig::TokenBucket { burst_bytes, frame_bytes: 1.., queue, .. } => {
            queued(format!("router with tbf of {rate}, burst {burst_bytes}"), queue)
        }
        ElementConfig::TokenBucket { queue, .. } => queued(format!("token bucket of {rate}"), queue),
        ElementConfig::Delay { delay_ns } => vec![format!("delay of {}", delay_ns.initial)],
        ElementConfig::Loss { probability, .. } => vec![loss(probability)],
        other => vec![other.to_string()],
    }
}

fn queue_of(queue: &QueueConfig) -> String {
    let discipline = queue.discipline;
    let managed = if discipline.is_fifo() { String::new() } else { format!(" with {discipline}") };
    format!("queue of {}{managed}", queue.bytes)
}

fn loss(probability: &Schedule<Probability>) -> String {
    format!("random loss of {}", percent(probability.initial.as_f64()))
}

/// A line about what happened to the packets of this direction, of which queues marked some.
pub(super) fn outcome(way: Way, counts: &Counts, marked: u64) -> String {
    let Counts { entered, left, inside, .. } = counts;
    if entered.packets == 0 {
        return format!("{way}: no packets");
    }
    let noun = if entered.packets == 1 { "packet" } else { "packets" };
    let mut line = format!("{way}: {} {noun}, {} delivered", entered.packets, left.packets);
    let full = counts.dropped(Cause::QueueFull).packets;
    let _ = write!(line, ", {full} dropped by the queue");
    let lost = counts.dropped(Cause::Lost).packets;
    let _ = write!(line, ", {lost} lost at random");
    let rare = [
        (counts.dropped(Cause::Early).packets, "dropped early"),
        (marked, "marked"),
        (counts.dropped(Cause::Policed).packets, "policed"),
        (counts.dropped(Cause::Oversize).packets, "larger than the bucket"),
    ];
    for (count, words) in rare.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(line, ", {count} {words}");
    }
    if inside.packets > 0 {
        let _ = write!(line, ", {} still on the path", inside.packets);
    }
    // Of those that the queue let pass: this is the share that a given random loss can be compared with.
    let passed = entered.packets - (counts.dropped_total().packets - lost);
    if lost > 0 {
        let _ = write!(line, "; measured loss {}", percent(lost as f64 / passed as f64));
    }
    line
}

/// A line about what a real router did, and the frames that Linux dropped elsewhere, which nobody decided.
pub(super) fn routed(counted: &QueueSample, undecided: u64) -> String {
    let sent = counted.arrived_packets - counted.dropped_packets;
    let noun = if counted.dropped_packets == 1 { "drop" } else { "drops" };
    let mut line = format!(
        "router: {sent} packets taken, {} {noun} (a burst that is dropped whole is one)",
        counted.dropped_packets
    );
    if undecided > 0 {
        let _ = write!(line, ", {undecided} frames dropped beside it");
    }
    line
}

/// The path in brackets, for a prompt: `[10 Mbit/s 80 ms]`, or `[up 1 Mbit/s, down 10 Mbit/s, 80 ms]` where the
/// directions differ. It has letters, digits, spaces and `[]/%.,` only, so that no shell expands anything in it.
pub(super) fn label(spec: &Spec) -> String {
    let [up, down] = [&spec.forward, &spec.reverse].map(|elements| brief(elements));
    let delays = spec.forward.iter().chain(&spec.reverse).filter_map(|element| match element {
        ElementConfig::Delay { delay_ns } => Some(delay_ns.initial),
        _ => None,
    });
    let rtt = delays.fold(Duration::ZERO, |sum, delay| sum + delay);
    let words = if up == down { format!("{up} {rtt}") } else { format!("up {up}, down {down}, {rtt}") };
    format!("[{words}]")
}

fn brief(elements: &[ElementConfig]) -> String {
    let mut words: Vec<String> = elements.iter().filter_map(brief_word).collect();
    if words.is_empty() {
        words.push("unlimited".to_owned());
    }
    words.join(" ")
}

fn brief_word(element: &ElementConfig) -> Option<String> {
    let rate = highest_rate(std::slice::from_ref(element));
    match element {
        ElementConfig::Link { rate_bps, .. } => Some(rate_bps.initial.to_string()),
        ElementConfig::DeliveryTrace { .. } => Some(format!("trace {rate}")),
        ElementConfig::Cellular { .. } => Some(format!("cellular {rate}")),
        ElementConfig::TokenBucket { .. } => Some(rate.to_string()),
        ElementConfig::Loss { probability, .. } => {
            Some(format!("{} loss", percent(probability.initial.as_f64())))
        }
        _ => element.declared()?.brief(),
    }
}

/// A share of one as a percentage with two decimals, more where it is below 0.1 %, and no trailing zeros.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent > 0.0 && percent < 0.1 { (2.0 - percent.log10().floor()) as usize } else { 2 };
    let text = format!("{percent:.decimals$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_path::{Chain, Packet};
    use fullpipe_scenario::{Format, resolve};
    use fullpipe_units::{Bytes, Rate, Time};

    fn spec(path: &str) -> Spec {
        let text = format!("[path]\nrtt = \"80 ms\"\n{path}\n[[flows]]\ncontroller = \"reno\"\n");
        resolve(&text, Format::Toml, None).unwrap()
    }

    #[test]
    fn prompt_names_equal_directions_once() {
        let spec = spec(
            "rate = \"10 Mbit/s\"\nloss = \"20 %\"\nreverse = { rate = \"10 Mbit/s\", loss = \"20 %\" }",
        );
        assert_eq!(label(&spec), "[10 Mbit/s 20 % loss 80 ms]");
    }

    #[test]
    fn prompt_names_both_different_directions() {
        let spec = spec(
            "rate = \"1 Mbit/s\"\njitter = \"2 ms\"\nreverse = { rate = \"10 Mbit/s\", loss = \"0.1 %\" }",
        );
        assert_eq!(label(&spec), "[up 1 Mbit/s 2 ms jitter, down 10 Mbit/s 0.1 % loss, 80 ms]");
        let spec = self::spec("rate = \"1 Mbit/s\"");
        assert_eq!(label(&spec), "[up 1 Mbit/s, down unlimited, 80 ms]");
    }

    #[test]
    fn each_direction_is_described() {
        let spec = spec("rate = \"10 Mbit/s\"\nbuffer = \"1 bdp\"\nloss = \"0.001 %\"");
        assert_eq!(
            plan(Way::Up, &spec.forward),
            "up (from the command): 10 Mbit/s, queue of 100 KB, random loss of 0.001 %, delay of 40 ms"
        );
        assert_eq!(plan(Way::Down, &spec.reverse), "down (to the command): delay of 40 ms");
        assert_eq!(plan(Way::Down, &[]), "down (to the command): no limit");
    }

    #[test]
    fn scheduled_changes_are_counted() {
        let changes = "[[path.changes]]\nat = \"1 s\"\nrate = \"1 Mbit/s\"\nloss = \"1 %\"\n[[path.changes]]\nat = \"2 s\"\nrtt = \"9 ms\"";
        let spec = spec(&format!("rate = \"10 Mbit/s\"\n{changes}"));
        let [up, down] = [plan(Way::Up, &spec.forward), plan(Way::Down, &spec.reverse)];
        assert!(
            up.ends_with(", with 3 scheduled changes") && down.ends_with(", with 1 scheduled change"),
            "{up} {down}"
        );
    }

    #[test]
    fn the_outcome_counts_every_packet_once() {
        let elements = [
            ElementConfig::Link {
                name: "bottleneck".to_owned(),
                rate_bps: Schedule::constant(Rate::from_bits_per_sec(1_000_000)),
                queue: QueueConfig::drop_tail(Bytes::new(80_000), None),
            },
            ElementConfig::loss(Schedule::constant(Probability::from_f64(0.25))),
        ];
        let mut chain: Chain<()> = Chain::new(&elements, &[], 1).unwrap();
        assert_eq!(outcome(Way::Down, &chain.counts(), 0), "down (to the command): no packets");
        for _ in 0..100 {
            let _ = chain.push(Time::ZERO, Packet::new(1000, 0), ());
        }
        let counts = chain.counts();
        let (lost, inside) = (counts.dropped(Cause::Lost).packets, counts.inside.packets);
        assert_eq!((counts.dropped(Cause::QueueFull).packets, lost + inside), (20, 80));
        let line = outcome(Way::Up, &counts, 0);
        let start = format!(
            "up (from the command): 100 packets, 0 delivered, 20 dropped by the queue, {lost} lost at random, \
             {inside} still on the path; measured loss "
        );
        assert_eq!(line, format!("{start}{}", percent(lost as f64 / 80.0)));
    }

    #[test]
    fn discipline_is_named_and_signals_counted() {
        let spec = spec("rate = \"10 Mbit/s\"\nbuffer = \"100 KB\"\nqueue = \"step:threshold=2,drop=1\"");
        let plan = plan(Way::Up, &spec.forward);
        assert!(plan.contains("10 Mbit/s, queue of 100 KB with step:threshold=2,drop=1, delay"), "{plan}");
        let mut chain: Chain<()> = Chain::new(&spec.forward, &[], 1).unwrap();
        for _ in 0..10 {
            let _ = chain.push(Time::ZERO, Packet::new(1000, 0), ());
        }
        while chain.next() != Time::NEVER {
            let _ = chain.pop(chain.next());
        }
        let counts = chain.counts();
        let early = counts.dropped(Cause::Early).packets;
        assert!(early > 0);
        let line = outcome(Way::Up, &counts, 3);
        assert!(line.contains(&format!(", 0 lost at random, {early} dropped early, 3 marked")), "{line}");
    }

    #[test]
    fn percentages_are_short() {
        let texts = [0.2, 0.001, 0.00001, 0.0, 1.0, 1.0 / 3.0].map(percent);
        assert_eq!(texts, ["20 %", "0.1 %", "0.001 %", "0 %", "100 %", "33.33 %"]);
        assert_eq!(percent(Probability::from_f64(0.2).as_f64()), "20 %");
    }
}
