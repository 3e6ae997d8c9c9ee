//! A path in a line, so that a trace states on what path it was recorded.

use fullpipe_path::config::{ElementConfig, Probability, QueueLimit, Schedule};
use fullpipe_scenario::spec::Spec;

/// Both directions, their elements in order.
pub(super) fn in_a_line(spec: &Spec) -> String {
    let direction = |elements: &[ElementConfig]| elements.iter().map(element).collect::<Vec<_>>().join(", ");
    format!("{}; back: {}", direction(&spec.forward), direction(&spec.reverse))
}

fn element(element: &ElementConfig) -> String {
    match element {
        ElementConfig::Link { rate_bps, queue, .. } => format!("{}, {}", schedule(rate_bps), limit(queue)),
        ElementConfig::DeliveryTrace { name, queue, .. } => {
            format!("delivery trace {name}, {}", limit(queue))
        }
        ElementConfig::Cellular { rates_bps, review_ns, demand_ns, queue, .. } => {
            let rates: Vec<String> = rates_bps.iter().map(|rate| rate.to_string()).collect();
            let queue = limit(queue);
            format!("cellular {} by {demand_ns} reviewed every {review_ns}, {queue}", rates.join("/"))
        }
        ElementConfig::TokenBucket { rate_bps, burst_bytes, queue, .. } => {
            format!("token bucket {rate_bps} burst {burst_bytes}, {}", limit(queue))
        }
        ElementConfig::Policer { rate_bps, burst_bytes, .. } => {
            format!("policer {rate_bps} burst {burst_bytes}")
        }
        ElementConfig::Delay { delay_ns } => format!("delay {}", schedule(delay_ns)),
        ElementConfig::Loss { probability } => {
            let percent = Schedule {
                initial: percent(probability.initial),
                changes: probability.changes.iter().map(|(at, value)| (*at, percent(*value))).collect(),
            };
            format!("loss {}", schedule(&percent))
        }
        ElementConfig::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            let [to_bad, to_good, good, bad] =
                [*good_to_bad, *bad_to_good, *loss_good, *loss_bad].map(percent);
            format!("Gilbert-Elliott loss {good} and {bad}, changing with {to_bad} and {to_good}")
        }
        ElementConfig::Jitter { amplitude_ns, reorder } => {
            format!("jitter {amplitude_ns}{}", if *reorder { " with reordering" } else { "" })
        }
        ElementConfig::Aggregate { every_ns } => format!("aggregated every {every_ns}"),
        ElementConfig::Duplicate { probability } => format!("duplicates {}", percent(*probability)),
        ElementConfig::Reorder { probability, delay_ns } => {
            format!("{} held back by {delay_ns}", percent(*probability))
        }
    }
}

fn schedule<T: std::fmt::Display>(schedule: &Schedule<T>) -> String {
    let changes = schedule.changes.iter().map(|(at, value)| format!(", {value} from {at}"));
    format!("{}{}", schedule.initial, changes.collect::<String>())
}

fn limit(queue: &QueueLimit) -> String {
    let packets = queue.packets.map_or(String::new(), |packets| format!(" or {packets} packets"));
    format!("queue {}{packets}", queue.bytes)
}

/// Rounded to what people write.
fn percent(probability: Probability) -> String {
    format!("{} %", (probability.as_f64() * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::{Bytes, Duration, Rate, Time};

    #[test]
    fn elements_are_described_in_the_words_of_a_scenario() {
        let queue = QueueLimit { bytes: Bytes::new(50_000), packets: Some(30) };
        let slower = (Time::ZERO.saturating_add(Duration::from_secs(2)), Rate::from_bits_per_sec(10_000_000));
        let rate_bps = Schedule { initial: Rate::from_bits_per_sec(20_000_000), changes: vec![slower] };
        let link = ElementConfig::Link { name: "x".to_owned(), rate_bps, queue };
        assert_eq!(element(&link), "20 Mbit/s, 10 Mbit/s from 2 s, queue 50 KB or 30 packets");
        let probability = Schedule::constant(Probability::from_f64(0.001));
        assert_eq!(element(&ElementConfig::Loss { probability }), "loss 0.1 %");
        let delay_ns = Schedule::constant(Duration::from_millis(20));
        assert_eq!(element(&ElementConfig::Delay { delay_ns }), "delay 20 ms");
    }
}
