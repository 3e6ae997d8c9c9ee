//! Repeated measurements on a machine that is not quiet.
//!
//! What is compared is measured in turn, round by round, so that a slow spell hits all of it. A ratio is the median of
//! the rounds' own ratios, and so need not be that of the medians.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether what is measured is also said in JSON, for `record.py`.
pub(crate) static JSON: AtomicBool = AtomicBool::new(false);

/// One number a round.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<f64>);

/// Measures every subject once in each of `rounds`, after a first round that only warms up.
pub(crate) fn interleaved<S>(
    rounds: usize,
    subjects: &mut [S],
    mut measure: impl FnMut(&mut S) -> f64,
) -> Vec<Samples> {
    let mut samples: Vec<Samples> = subjects.iter().map(|_| Samples(Vec::new())).collect();
    for round in 0..=rounds {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            let value = measure(subject);
            if round > 0 {
                samples.0.push(value);
            }
        }
    }
    samples
}

impl Samples {
    /// The middle one.
    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    /// The least: what the machine can do when it is left alone.
    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// How many times `other` this is.
    pub(crate) fn ratio_to(&self, other: &Samples) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(this, other)| this / other).collect())
    }
}

/// Says a value in JSON, if that was asked for: a line of `results/speed.jsonl`. `ratio`: to the first case of its kind.
pub(crate) fn report(benchmark: &str, case: &str, unit: &str, samples: &Samples, ratio: Option<f64>) {
    if JSON.load(Ordering::Relaxed) {
        let high = samples.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (median, low, runs) = (samples.median(), samples.min(), samples.0.len());
        let ratio = ratio.map_or("null".into(), |ratio| ratio.to_string());
        println!(
            r#"{{"benchmark":{benchmark:?},"case":{case:?},"unit":{unit:?},"median":{median},"low":{low},"high":{high},"runs":{runs},"ratio":{ratio}}}"#
        );
    }
}

/// The same for what one run tells.
pub(crate) fn report_one(benchmark: &str, case: &str, unit: &str, value: f64) {
    report(benchmark, case, unit, &Samples(vec![value]), None);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
