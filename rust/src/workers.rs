//! Threads for one call: the calling one works too, and no thread outlives the call (so `fork` is safe).

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{Failure, Outcome, Reason};

/// Bytes that are worth another thread.
const THREAD_BYTES: usize = 512 * 1024;
/// Bytes that a thread takes on at once.
const BATCH_BYTES: usize = 192 * 1024;

/// Jobs in batches of about equal work, and how many threads are worth having for them.
pub struct Batches {
    bounds: Vec<usize>,
    threads: usize,
}

impl Batches {
    /// `sizes` are the bytes of each job.
    pub fn new(sizes: impl Iterator<Item = usize>, threads: usize) -> Self {
        let (mut bounds, mut size, mut total, mut count) = (vec![0], 0usize, 0usize, 0);
        for each in sizes {
            count += 1;
            total = total.saturating_add(each);
            size = size.saturating_add(each);
            if size >= BATCH_BYTES {
                bounds.push(count);
                size = 0;
            }
        }
        if *bounds.last().expect("one is there") < count {
            bounds.push(count);
        }
        let threads = threads.min(total.div_ceil(THREAD_BYTES)).min(bounds.len() - 1).max(1);
        Batches { bounds, threads }
    }

    /// The jobs of each batch.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.bounds.windows(2).map(|bounds| bounds[0]..bounds[1])
    }

    /// The number of the batch that begins with the job `start`.
    pub fn number(&self, start: usize) -> usize {
        self.bounds.binary_search(&start).expect("a batch begins there")
    }

    /// Call `work` for all batches, in several threads, each with a state that `start` makes, and return the states.
    pub fn run<S: Send>(&self, start: impl Fn() -> S + Sync, work: impl Fn(&mut S, Range<usize>) + Sync) -> Vec<S> {
        let next = AtomicUsize::new(0);
        let states = Mutex::new(Vec::new());
        let one = || {
            let mut state = start();
            loop {
                let batch = next.fetch_add(1, Ordering::Relaxed);
                if batch + 1 >= self.bounds.len() {
                    break;
                }
                work(&mut state, self.bounds[batch]..self.bounds[batch + 1]);
            }
            states.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(state);
        };
        thread::scope(|scope| {
            for _ in 1..self.threads {
                // without another thread the work is done by the others
                let _ = thread::Builder::new().spawn_scoped(scope, one);
            }
            one();
        });
        states.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Failures of jobs, from all threads.
#[derive(Default)]
pub struct Failures(Mutex<Vec<Failure>>);

impl Failures {
    /// Do the work of one job and note its failure, a panic included; whether it succeeded.
    pub fn watch(&self, job: usize, work: impl FnOnce() -> Outcome) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Reason::Panicked));
        let Err(reason) = outcome else { return true };
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((job, reason));
        false
    }

    /// All failures in the order of jobs.
    pub fn sorted(self) -> Vec<Failure> {
        let mut failures = self.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        failures.sort_by_key(|failure| failure.0);
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once() {
        for (count, size, threads) in [(0, 1, 4), (1, 1 << 30, 4), (1000, 10_000, 3), (7, 400_000, 16)] {
            let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let batches = Batches::new((0..count).map(|_| size), threads);
            assert!(batches.threads <= threads);
            batches.run(
                || (),
                |(), range| {
                    for i in range {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    }
                },
            );
            assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn panics_become_failures() {
        let failures = Failures::default();
        failures.watch(3, || panic!("no"));
        failures.watch(1, || Err("why".into()));
        failures.watch(2, || Ok(()));
        assert_eq!(failures.sorted(), [(1, "why".into()), (3, Reason::Panicked)]);
    }
}
