//! The controllers decide what a real kernel decided: every recording in `tests/recordings`, call by call.
//!
//! `tests/test_replay_corpus.py` shows the same through the command line. Here it needs no Python, and so proves in seconds
//! what a change to a controller broke: tests/mistakes and cargo-mutants both build on it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fullpipe_record::recording;
use fullpipe_replay::replay_all;

/// Every recording; with `FULLPIPE_CORPUS_MAX_BYTES` only those up to that size, for a first look that takes a second.
fn corpus() -> Vec<PathBuf> {
    let most = std::env::var("FULLPIPE_CORPUS_MAX_BYTES").map_or(u64::MAX, |bytes| bytes.parse().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let mut recordings: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.metadata().unwrap().len() <= most)
        .filter(|path| path.extension().is_some_and(|extension| extension == "recording"))
        .collect();
    recordings.sort();
    recordings
}

/// The field that differs first, and a sentence.
type Parted = (&'static str, String);

/// Where ours and the kernel's part first, in the order of calls; a controller that panics parts as well.
fn replay(path: &Path) -> Result<u64, Parted> {
    let (meta, calls) = recording::read(path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(meta.lost_records, 0, "{}", path.display());
    let all = catch_unwind(AssertUnwindSafe(|| replay_all(meta.cc, meta.hz, meta.flows, &calls)))
        .map_err(|panic| ("panic", message(&*panic).to_owned()))?;
    let found = [all.difference, all.filter.first, all.sampler.first].into_iter().flatten();
    match found.min_by_key(|found| found.call) {
        None => Ok(all.replayed),
        Some(found) => Err((found.field, found.to_string())),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// One line for each recording that differs, `differs RECORDING FIELD: SENTENCE`: tests/mistakes/run.py reads them.
#[test]
fn recorded_calls_match_kernel_decisions() {
    let recordings = corpus();
    assert!(recordings.len() > 10, "only {} recordings", recordings.len());
    println!("{} recordings", recordings.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut results = Vec::new();
        while let Some(path) = recordings.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.push((path, replay(path)));
        }
        results
    };
    let mut results = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    });
    results.sort_by_key(|(path, _)| *path);
    let mut differing = 0;
    for (path, result) in &results {
        let name = path.file_stem().unwrap().display();
        match result {
            Ok(replayed) => assert!(*replayed > 100, "{name}: only {replayed} calls"),
            Err((field, sentence)) => {
                differing += 1;
                println!("differs {name} {field}: {sentence}");
            }
        }
    }
    assert_eq!(differing, 0, "of {} recordings", results.len());
}
