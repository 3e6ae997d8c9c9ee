//! What a congestion control that is loaded says of itself, as JSON.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use fullpipe_cc::Phase;
use serde_json::{Value, json};

use super::place::{ABOUT_BYTES, default, loaded, path, root};
use crate::KernelError;
use crate::sys::bpf;

/// `enum counter` of the shim, in its order. Those that begin with `fallen_` count connections that fell back, by cause.
const COUNTERS: [&str; 11] = [
    "connections_begun",
    "fallen_storage",
    "fallen_stuck",
    "fallen_clock",
    "fallen_magic",
    "fallen_outcome",
    "fallen_panic",
    "sends_unknown",
    "losses_unknown",
    "states_late",
    "records_lost",
];

/// The counters of one.
pub(crate) struct Counters([u64; COUNTERS.len()]);

impl Counters {
    /// Causes of falls and their counts, without those that did not happen.
    pub(crate) fn fallen(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = COUNTERS.into_iter().zip(self.0);
        named
            .filter_map(|(name, count)| Some((name.strip_prefix("fallen_")?, count)))
            .filter(|(_, count)| *count > 0)
    }

    /// One by its name.
    pub(crate) fn get(&self, name: &str) -> u64 {
        COUNTERS.iter().zip(self.0).find(|(known, _)| **known == name).map_or(0, |(_, count)| count)
    }
}

/// Reads the counters.
pub(crate) fn counters(map: RawFd) -> io::Result<Counters> {
    let mut counters = [0; COUNTERS.len()];
    for (index, counter) in counters.iter_mut().enumerate() {
        *counter = bpf::array_element(map, index as u32)?;
    }
    Ok(Counters(counters))
}

/// Everything that is loaded, as a JSON list; of one name only, if it is given.
///
/// # Errors
/// When there is none of this name, and without rights.
pub fn status(name: Option<&str>) -> Result<String, KernelError> {
    let names = loaded();
    let wanted: Vec<&String> = names.iter().filter(|one| name.is_none_or(|name| name == *one)).collect();
    if let (Some(name), true) = (name, wanted.is_empty()) {
        return Err(KernelError::NothingLoaded { name: name.to_owned(), loaded: names });
    }
    let all = wanted.into_iter().map(|name| of(name));
    Ok(Value::from(all.collect::<Result<Vec<_>, _>>()?).to_string())
}

/// What one says.
pub(super) fn of(name: &str) -> Result<Value, KernelError> {
    let folder = root().join(name);
    let failed = |error| KernelError::system(format!("read {}", folder.display()), error);
    let open = |pin: &str| bpf::pinned(&path(&folder.join(pin))).map_err(failed);
    let mut text = vec![0; ABOUT_BYTES];
    bpf::element(open("about")?.as_raw_fd(), 0, &mut text).map_err(failed)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let mut found: Value = serde_json::from_slice(&text[..end]).map_err(|error| failed(error.into()))?;
    let counters = counters(open("counters")?.as_raw_fd()).map_err(failed)?;
    found["is_default"] = json!(default().as_deref() == Some(name));
    found["connections"] = connections(&fs::read_to_string(folder.join("list")).map_err(failed)?);
    found["counters"] = COUNTERS.iter().map(|name| ((*name).to_owned(), json!(counters.get(name)))).collect();
    Ok(found)
}

/// The lines of the shim's `list_flows`.
fn connections(lines: &str) -> Value {
    let one = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map_while(|number| number.parse().ok()).collect();
        let &[network, port, to_port, phase, cwnd, bandwidth, rate, min_rtt_us, in_flight, trusted] =
            &numbers[..]
        else {
            return None;
        };
        Some(json!({
            "network": network,
            "port": port,
            "to_port": to_port,
            "phase": Phase::ALL.get(phase as usize).map(|phase| phase.name()),
            "cwnd": cwnd,
            "bandwidth_bps": bandwidth.saturating_mul(8),
            "pacing_bps": rate.saturating_mul(8),
            "min_rtt_us": min_rtt_us,
            "in_flight": in_flight,
            "trusted": trusted == 1,
        }))
    };
    lines.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_becomes_a_connection() {
        let found = connections("4026531840 40000 5201 8 120 12500000 12375000 40000 100 1\nhalf 1\n");
        assert_eq!(found.as_array().unwrap().len(), 1);
        assert_eq!(found[0]["phase"], "probe_bw_cruise");
        assert_eq!(found[0]["bandwidth_bps"], 100_000_000);
        assert_eq!(found[0]["trusted"], true);
    }

    #[test]
    fn only_falls_that_happened_are_told() {
        let mut counters = Counters([0; COUNTERS.len()]);
        counters.0[0] = 7;
        counters.0[2] = 2;
        assert_eq!(counters.fallen().collect::<Vec<_>>(), [("stuck", 2)]);
        assert_eq!(counters.get("connections_begun"), 7);
    }
}
