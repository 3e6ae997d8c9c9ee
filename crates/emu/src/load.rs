//! What the hosts of a run got of the machine's processors. The emulator has real-time priority, so its own lateness does not
//! show that the hosts could not run.
//!
//! `/proc/PID/task/TID/schedstat` has the time that a task ran, and the time that it was ready and waited. Work that the kernel
//! does for the hosts in its own threads is not in it; the wait of these threads (`ksoftirqd`) is recorded beside it.

use std::collections::BTreeMap;
use std::fs;

use fullpipe_record::ProcessorTime;

/// How long a task has run, and how long it has waited for a processor, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskTime {
    pub(crate) ran: u64,
    pub(crate) waited: u64,
}

impl TaskTime {
    /// That of the calling thread; `None` where the kernel does not count it.
    pub(crate) fn of_this_thread() -> Option<TaskTime> {
        read("/proc/thread-self/schedstat")
    }

    /// That of the calling thread since `before`.
    pub(crate) fn since(before: Option<TaskTime>) -> Option<TaskTime> {
        let (now, before) = (TaskTime::of_this_thread()?, before?);
        Some(TaskTime { ran: now.ran - before.ran, waited: now.waited - before.waited })
    }
}

fn read(path: &str) -> Option<TaskTime> {
    parse_task(&fs::read_to_string(path).ok()?)
}

/// Nanoseconds on a processor, nanoseconds waiting for one, time slices (Linux: Documentation/scheduler/sched-stats.rst).
fn parse_task(text: &str) -> Option<TaskTime> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (Some(Ok(ran)), Some(Ok(waited))) = (numbers.next(), numbers.next()) else { return None };
    Some(TaskTime { ran, waited })
}

/// The processes of a host that is no thread of ours: those that a process has started, and so on. What a task counts is lost when
/// it ends, so that they are looked at now and then; what happens after the last look does not count.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// By its folder: what a task had counted when the run began, and at the last look.
    tasks: BTreeMap<String, [TaskTime; 2]>,
}

impl Processes {
    /// Looks at a process and all that it has started.
    pub(crate) fn look(&mut self, process: u32) {
        let mut open = vec![process.to_string()];
        while let Some(process) = open.pop() {
            for task in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
                let task = task.path();
                let Some(time) = read(&task.join("schedstat").to_string_lossy()) else { continue };
                // The number of a task that has ended may be another's by now, which has counted less.
                let kept = &mut self.tasks.entry(task.to_string_lossy().into_owned()).or_default()[1];
                *kept = TaskTime { ran: kept.ran.max(time.ran), waited: kept.waited.max(time.waited) };
                let children = fs::read_to_string(task.join("children")).unwrap_or_default();
                open.extend(children.split_whitespace().map(str::to_owned));
            }
        }
    }

    /// From now on counts the run: what was before does not matter.
    pub(crate) fn begin(&mut self) {
        self.tasks.values_mut().for_each(|[began, last]| *began = *last);
    }

    /// How long all tasks ran, and how long the one that waited the longest did: several that wait at the same time do not make the
    /// host slower than one. `None` if no task was seen.
    pub(crate) fn total(&self) -> Option<TaskTime> {
        let since = |[began, last]: &[TaskTime; 2]| TaskTime {
            ran: last.ran - began.ran,
            waited: last.waited - began.waited,
        };
        let both = |one: TaskTime, other: TaskTime| TaskTime {
            ran: one.ran + other.ran,
            waited: one.waited.max(other.waited),
        };
        self.tasks.values().map(since).reduce(both)
    }
}

/// The counters of the whole machine at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    stolen_ticks: u64,
    pressure_us: Option<u64>,
    softirq: Option<TaskTime>,
}

impl Machine {
    /// As they are now.
    pub(crate) fn now() -> Machine {
        Machine {
            stolen_ticks: parse_stolen(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or(0),
            pressure_us: fs::read_to_string("/proc/pressure/cpu").ok().and_then(|text| parse_pressure(&text)),
            softirq: softirq_threads(),
        }
    }

    /// What has happened since then, to the machine and to the sender's and the receiver's host.
    pub(crate) fn until_now(self, hosts: [Option<TaskTime>; 2]) -> ProcessorTime {
        let now = Machine::now();
        let both = |part: fn(TaskTime) -> u64| match hosts {
            [Some(sender), Some(receiver)] => Some([part(sender), part(receiver)]),
            _ => None,
        };
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        ProcessorTime {
            ran_ns: both(|time| time.ran),
            waited_ns: both(|time| time.waited),
            softirq_waited_ns: since(
                now.softirq.map(|time| time.waited),
                self.softirq.map(|time| time.waited),
            ),
            stolen_ns: now.stolen_ticks.saturating_sub(self.stolen_ticks) * NS_A_TICK,
            pressure_ns: since(now.pressure_us, self.pressure_us).map(|us| us * 1000),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        }
    }
}

/// Linux shows times in `/proc/stat` in hundredths of a second (`USER_HZ`).
const NS_A_TICK: u64 = 10_000_000;

/// Time of all processors that was stolen, in ticks: the eighth number of the first line (proc_stat(5)).
fn parse_stolen(stat: &str) -> Option<u64> {
    stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()
}

/// Microseconds in which some task waited (Linux: Documentation/accounting/psi.rst).
fn parse_pressure(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// The threads in which the kernel handles packets that it could not handle at once; `None` where they cannot be seen.
fn softirq_threads() -> Option<TaskTime> {
    // They are children of kthreadd, process 2.
    let children = fs::read_to_string("/proc/2/task/2/children").ok()?;
    let is_softirq = |process: &&str| {
        fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    let times = children.split_whitespace().filter(is_softirq);
    let times = times.filter_map(|process| read(&format!("/proc/{process}/schedstat")));
    times.reduce(|sum, one| TaskTime { ran: sum.ran + one.ran, waited: sum.waited + one.waited })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_from_right_fields() {
        assert_eq!(parse_task("5000 700 9\n"), Some(TaskTime { ran: 5000, waited: 700 }));
        assert_eq!(parse_task("5000"), None);
        assert_eq!(parse_stolen("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n"), Some(88));
        assert_eq!(parse_stolen("cpu0 1 2 3 4 5 6 7 8 9 10\n"), None);
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=5\n";
        assert_eq!((parse_pressure(pressure), parse_pressure("full total=5")), (Some(1234), None));
    }

    #[test]
    fn thread_and_child_times_grow() {
        let Some(before) = TaskTime::of_this_thread() else { return println!("skipped: no schedstat") };
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let mut processes = Processes::default();
        // The child does not end by itself; its time grows as soon as it has run once.
        while processes.total().is_none_or(|time| time.ran == 0) {
            processes.look(std::process::id());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = processes.total();
        processes.look(child.id());
        assert_eq!(processes.total(), kept, "what a task counted is kept when it has ended");
        processes.begin();
        assert_eq!(processes.total(), Some(TaskTime::default()), "what was before the run does not count");
        assert!(TaskTime::since(Some(before)).unwrap().ran > 0);
    }
}
