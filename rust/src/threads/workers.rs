//! Threads for one call, the calling one among them.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::threads::crew::Crew;
use crate::threads::pool;
use crate::{Failure, Outcome, Reason};

/// Bytes that are worth waking another thread ...
const THREAD_BYTES: usize = 256 * 1024;
/// ... and telling one that is still awake.
const AWAKE_BYTES: usize = 64 * 1024;
/// Bytes that a thread takes on at once, at most ...
const BATCH_BYTES: usize = 192 * 1024;
/// ... and at least, where there are so few that all would not have something to do until the end; half of it where
/// threads are awake.
const SMALL_BATCH_BYTES: usize = 64 * 1024;
/// Times that a thread comes for more, then.
const TURNS: usize = 4;

/// Jobs in batches of about equal work, and how many threads are worth having for them.
pub struct Batches {
    bounds: Vec<usize>,
    threads: usize,
    /// So many threads are worth having where they can share jobs.
    sharing: usize,
    /// So many threads work in the process, besides those that call: more are not made.
    most: usize,
    /// Whether threads that are awake might be told of it.
    is_worth_telling: bool,
    crew: Option<Arc<Crew>>,
}

impl Batches {
    /// `sizes` are the bytes of each job.
    pub fn new(sizes: impl Iterator<Item = usize>, threads: usize) -> Self {
        let sizes: Vec<usize> = sizes.collect();
        let total = sizes.iter().fold(0usize, |total, &size| total.saturating_add(size));
        let are_awake = threads > 1 && total > AWAKE_BYTES && total / THREAD_BYTES < threads && was_just_here();
        let (worth, smallest) = match are_awake {
            true => (AWAKE_BYTES, SMALL_BATCH_BYTES / 2),
            false => (THREAD_BYTES, SMALL_BATCH_BYTES),
        };
        let (sharing, most) = (threads.min(total.div_ceil(worth)).max(1), threads);
        let enough = match sharing {
            1 => BATCH_BYTES,
            _ => (total / (sharing * TURNS)).clamp(smallest, BATCH_BYTES),
        };
        let (mut bounds, mut size) = (vec![0], 0usize);
        for (number, each) in sizes.iter().enumerate() {
            size = size.saturating_add(*each);
            if size >= enough || number + 1 == sizes.len() {
                bounds.push(number + 1);
                size = 0;
            }
        }
        let threads = sharing.min(bounds.len() - 1).max(1);
        Batches { bounds, threads, sharing, most, is_worth_telling: total > AWAKE_BYTES, crew: None }
    }

    /// A part of a call that is given so many threads.
    pub fn within(mut self, threads: usize) -> Self {
        self.most = self.most.max(threads);
        self
    }

    /// Threads that have no jobs left take part in those of others, who share them with the crew.
    pub fn shared(mut self) -> Self {
        if self.sharing > 1 {
            self.threads = self.sharing;
            self.crew = Some(Arc::default());
        }
        self
    }

    /// How many threads are worth having.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Who jobs can be shared with.
    pub fn crew(&self) -> Option<Arc<Crew>> {
        self.crew.clone()
    }

    /// Each of `jobs` by itself, for so many threads.
    pub fn each(jobs: usize, threads: usize) -> Self {
        Self::new((0..jobs).map(|_| usize::MAX), threads)
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
            let member = self.crew.as_ref().map(|crew| crew.come());
            let mut state = start();
            loop {
                let batch = next.fetch_add(1, Ordering::Relaxed);
                if batch + 1 >= self.bounds.len() {
                    break;
                }
                if let Some(crew) = &self.crew
                    && batch + 2 == self.bounds.len()
                {
                    crew.note_all_taken();
                }
                work(&mut state, self.bounds[batch]..self.bounds[batch + 1]);
            }
            if let Some(member) = member {
                member.help();
            }
            states.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(state);
        };
        pool::together(self.threads - 1, self.most.saturating_sub(1), &one);
        if self.is_worth_telling {
            LAST.set(Some(Instant::now()));
        }
        states.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

thread_local! {
    /// When this thread's last call ended that was worth telling others of.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Whether such calls of this thread follow each other so fast that others are still looking for work after the last one, or
/// will be after this one.
fn was_just_here() -> bool {
    LAST.get().is_some_and(|end| end.elapsed() < pool::LOOKING)
}

/// Where batches go that are written one after the other, each as soon as the length of all before it is known.
pub struct Turns {
    /// The batch whose turn it is, and where it begins; nothing once one has been left out.
    next: Mutex<(usize, Option<u64>)>,
    /// Whoever waits for the turn of a batch does so at one of these, by the batch's number: to wake all who wait at each
    /// turn takes longer than to encode, where there are many of them.
    taken: [Condvar; 32],
}

impl Turns {
    pub fn new(start: u64) -> Self {
        Turns { next: Mutex::new((0, Some(start))), taken: Default::default() }
    }

    /// Wait for the turn of a batch, and take as many bytes as it has; where they begin. With nothing, no batch after
    /// this one gets a place. Every batch has to take its turn: all after it wait for that.
    pub fn take(&self, batch: usize, length: Option<usize>) -> Option<u64> {
        let mut next = self.lock();
        while next.0 != batch {
            next = self.waiting_for(batch).wait(next).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let start = next.1;
        let end = start.and_then(|start| start.checked_add(length? as u64));
        *next = (batch + 1, end);
        drop(next);
        self.waiting_for(batch + 1).notify_all();
        end.and(start)
    }

    fn waiting_for(&self, batch: usize) -> &Condvar {
        &self.taken[batch % self.taken.len()]
    }

    /// No later batch gets a place.
    pub fn stop(&self) {
        self.lock().1 = None;
    }

    pub fn go_on(&self) -> bool {
        self.end().is_some()
    }

    /// Where the last batch ends, unless one was left out.
    pub fn end(&self) -> Option<u64> {
        self.lock().1
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Option<u64>)> {
        self.next.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
    fn batches_take_turns_until_one_is_left_out() {
        for left_out in [100, 41] {
            let (turns, places) = (Turns::new(7), Mutex::new(Vec::new()));
            Batches::new((0..100).map(|_| BATCH_BYTES), 5).run(
                || (),
                |(), range| {
                    let number = range.start;
                    let length = (number != left_out).then_some(number);
                    let place = turns.take(number, length); // others wait for theirs meanwhile
                    places.lock().unwrap().push((number, place));
                },
            );
            let mut places = places.into_inner().unwrap();
            places.sort_unstable();
            let all: usize = (0..100).sum();
            assert_eq!(turns.end(), (left_out == 100).then_some(7 + all as u64));
            assert!(places.iter().all(|&(number, place)| {
                let start: usize = (0..number).sum();
                place == (number < left_out).then_some(7 + start as u64)
            }));
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
