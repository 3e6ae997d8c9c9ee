//! `lib/win_minmax.c` against `windowed.rs`.

use crate::linux::{Minmax, MinmaxSample, running_max};
use crate::random::Random;
use crate::report::{Difference, Report};
use fullpipe_cc::windowed::WindowedMax;

const STEPS: u64 = 10_000;

pub fn flow(seed: u64, number: u64, report: &mut Report) {
    let random = &mut Random::of(seed, number);
    let window = random.magnitude(1, 1 << 20) as u32;
    let range = random.magnitude(1, u32::MAX as u64);
    let mut time = random.draw() as u32;
    let first = random.below(range) as u32;
    let mut ours = WindowedMax::new(time, first);
    let mut linux: Minmax = [MinmaxSample { t: time, v: first }; 3];
    for step in 0..STEPS {
        let pause = match random.below(8) {
            0..4 => 0,
            4..7 => random.below(window as u64 / 8 + 2),
            _ => random.below(window as u64 * 2 + 2),
        };
        time = time.wrapping_add(pause as u32);
        let value = random.below(range) as u32;
        let returned = running_max(&mut linux, window, time, value);
        ours.update(window, time, value);
        report.events += 1;
        let kept = ours.candidates().map(|sample| MinmaxSample { t: sample.time, v: sample.value });
        if ours.get() != returned || kept != linux {
            let (event, field) = ("update", "maximum or candidates".into());
            let (ours, linux) = (ours.get() as u64, returned as u64);
            return report.note(Difference { flow: number, step, event, field, ours, linux });
        }
    }
}
