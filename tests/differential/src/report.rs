//! What a comparison came to.

use std::fmt::Write as _;

/// The first difference of a flow.
#[derive(Clone, Debug)]
pub struct Difference {
    pub flow: u64,
    pub step: u64,
    pub event: &'static str,
    pub field: String,
    pub ours: u64,
    pub linux: u64,
}

/// All flows of one comparison.
#[derive(Debug, Default)]
pub struct Report {
    pub events: u64,
    pub flows: u64,
    /// Flows that differ; a flow ends with its first difference.
    pub differences: u64,
    pub first: Option<Difference>,
    /// How often something was reached that a comparison has to reach.
    pub reached: Vec<(&'static str, u64)>,
}

impl Report {
    pub fn note(&mut self, difference: Difference) {
        self.differences += 1;
        self.first.get_or_insert(difference);
    }

    pub fn count(&mut self, what: &'static str) {
        match self.reached.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += 1,
            None => self.reached.push((what, 1)),
        }
    }

    /// Lines for people.
    pub fn text(&self, name: &str, seed: u64, seconds: f64) -> String {
        let Report { events, flows, differences, .. } = self;
        let mut text = format!(
            "{name}: {events} events in {flows} flows, {differences} flows differ ({seconds:.0} s)\n"
        );
        if let Some(Difference { flow, step, event, field, ours, linux }) = &self.first {
            writeln!(
                text,
                "  first difference: seed {seed}, flow {flow}, step {step} ({event}): {field} is {ours} here and {linux} \
                 in Linux\n  again: differential {name} --seed {seed} --flow {flow}"
            )
            .unwrap();
        }
        if !self.reached.is_empty() {
            let reached: Vec<String> =
                self.reached.iter().map(|(what, count)| format!("{what} {count}")).collect();
            writeln!(text, "  reached: {}", reached.join(", ")).unwrap();
        }
        text
    }
}
