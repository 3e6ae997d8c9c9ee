//! The same random events to Linux's congestion control, compiled in user space, and to ours: state and outputs are
//! compared after every event.
//!
//!     differential [NAME...] [--events N] [--quick] [--seed S] [--flow F]
//!
//! NAME is `bbr`, `bbr3` (Google's, which `GOOGLE_BBR` has to name when this is built), `cubic`, `reno`, `vegas`, `dctcp`, `sampler`
//! (tcp_rate.c) or `filter` (win_minmax.c); all without one. `--events` is
//! how many of each, 10^8 unless it is given; `--quick` makes 10^6. `--flow` runs one flow of that seed. Exit code 1: a
//! difference; 2: Linux's source or a C compiler is missing, or the command is wrong. `docs/explanation/differential.md` has more.

#[cfg(linux_source)]
mod controllers;
#[cfg(linux_source)]
mod filter;
#[cfg(linux_source)]
mod flow;
#[cfg(linux_source)]
mod linux;
#[cfg(linux_source)]
mod plan;
#[cfg(linux_source)]
mod random;
#[cfg(linux_source)]
mod report;
#[cfg(linux_source)]
mod sampler;

use std::process::ExitCode;

#[cfg(not(linux_source))]
fn main() -> ExitCode {
    eprintln!("{}: there is nothing to compare with", env!("LINUX_MISSING"));
    eprintln!(
        "fix: apt install linux-source gcc (Debian); or set LINUX_SOURCE to a folder or tarball of Linux 6.12"
    );
    ExitCode::from(2)
}

#[cfg(linux_source)]
fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => run(&options),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(linux_source)]
const NAMES: [&str; 8] = ["bbr", "bbr3", "cubic", "reno", "vegas", "dctcp", "sampler", "filter"];

#[cfg(linux_source)]
struct Options {
    names: Vec<&'static str>,
    events: u64,
    seed: u64,
    flow: Option<u64>,
}

#[cfg(linux_source)]
impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { names: Vec::new(), events: 100_000_000, seed: 1, flow: None };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let given = arguments.next().unwrap_or_default();
                let expected = format!("{argument} is {given:?}; expected a whole number");
                given.parse().map_err(|_| expected)
            };
            match argument.as_str() {
                "--events" => options.events = number()?,
                "--seed" => options.seed = number()?,
                "--flow" => options.flow = Some(number()?),
                "--quick" => options.events = 1_000_000,
                name => {
                    let known = NAMES.iter().find(|known| **known == name);
                    let names = NAMES.join(", ");
                    options.names.push(
                        known.ok_or(format!("{name:?} is unknown; expected one of {names}, or an option"))?,
                    );
                }
            }
        }
        if options.names.is_empty() {
            options.names = NAMES.to_vec();
        }
        Ok(options)
    }
}

#[cfg(linux_source)]
fn run(options: &Options) -> ExitCode {
    use flow::compare;
    println!("Linux {} in user space, seed {}", env!("LINUX_VERSION"), options.seed);
    let (mut core, mut rate) = (linux::Core::new(), linux::Rate::new());
    let mut differs = false;
    for &name in &options.names {
        if let ("bbr3", Some(missing)) = (name, option_env!("GOOGLE_BBR_MISSING")) {
            println!("bbr3: skipped, because {missing}");
            continue;
        }
        #[allow(clippy::disallowed_methods, reason = "how long it took is for people, and decides nothing")]
        let begun = std::time::Instant::now();
        let mut report = report::Report::default();
        let flows = match options.flow {
            Some(flow) => flow..flow + 1,
            None => 0..u64::MAX,
        };
        for number in flows {
            if report.events >= options.events {
                break;
            }
            report.flows += 1;
            let seed = options.seed;
            match name {
                "bbr" => {
                    compare::<fullpipe_cc::controllers::bbr1::Bbr1>(&mut core, seed, number, &mut report)
                }
                "bbr3" => compare::<fullpipe_cc::controllers::bbr3_linux::Bbr3Linux>(
                    &mut core,
                    seed,
                    number,
                    &mut report,
                ),
                "cubic" => {
                    compare::<fullpipe_cc::controllers::cubic::Cubic>(&mut core, seed, number, &mut report)
                }
                "reno" => {
                    compare::<fullpipe_cc::controllers::reno::Reno>(&mut core, seed, number, &mut report)
                }
                "vegas" => {
                    compare::<fullpipe_cc::controllers::vegas::Vegas>(&mut core, seed, number, &mut report)
                }
                "dctcp" => {
                    compare::<fullpipe_cc::controllers::dctcp::Dctcp>(&mut core, seed, number, &mut report)
                }
                "sampler" => sampler::flow(&mut rate, seed, number, &mut report),
                _ => filter::flow(seed, number, &mut report),
            }
        }
        print!("{}", report.text(name, options.seed, begun.elapsed().as_secs_f64()));
        differs |= report.differences > 0;
    }
    ExitCode::from(differs as u8)
}
