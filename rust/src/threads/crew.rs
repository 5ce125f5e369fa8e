//! The threads of one call, of which those that have no jobs left take part in a job of another one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::Outcome;
use crate::threads::workers::Failures;

/// The threads of a call.
#[derive(Default)]
pub struct Crew {
    state: Mutex<State>,
    changed: Condvar,
    all_taken: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Threads that have jobs of their own, and may come to share one.
    busy: usize,
    /// What is shared at present.
    open: Vec<Shared>,
}

/// A job's work as others see it. It lies on the stack of the thread whose job it is, which does not go on before it has
/// taken this out of the list and nobody is at it any more.
#[derive(Clone, Copy)]
struct Shared(*const Work<'static>);

// SAFETY: what it points to is `Sync`, and is there as long as this is in the list or `helping` counts who uses it.
unsafe impl Send for Shared {}

/// The units of a job, which may be done in any order, and side by side.
struct Work<'a> {
    units: Units,
    part: &'a (dyn Fn(&Units) + Sync),
    /// Threads beside the job's own that are at it. Changed under the lock of the crew only.
    helping: AtomicUsize,
}

/// Units that nobody has taken on yet.
struct Units {
    next: AtomicUsize,
    count: usize,
}

impl Units {
    /// The number of a unit that is this thread's to do from now on.
    fn take(&self) -> Option<usize> {
        if !self.are_left() {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&unit| unit < self.count)
    }

    /// Nobody takes on any more of them.
    fn stop(&self) {
        self.next.store(self.count, Ordering::Relaxed);
    }

    fn are_left(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.count
    }
}

impl Crew {
    /// A thread of the crew calls this before it begins with its jobs.
    pub fn come(&self) -> Member<'_> {
        self.lock().busy += 1;
        Member(self)
    }

    /// The jobs that are left are all taken on.
    pub fn note_all_taken(&self) {
        self.all_taken.store(true, Ordering::Relaxed);
    }

    /// Whether there will soon be threads that have nothing else to do.
    pub fn has_hands(&self) -> bool {
        self.all_taken.load(Ordering::Relaxed)
    }

    /// Do all units of a job, with whoever has nothing else to do. Each thread that takes part has a state, which `start`
    /// makes and `end` gets. Of units that fail, the first is told; those after it may be left out then.
    pub fn share<S>(
        &self,
        count: usize,
        start: impl Fn() -> S + Sync,
        unit: impl Fn(&mut S, usize) -> Outcome + Sync,
        end: impl Fn(S) + Sync,
    ) -> Outcome {
        let failures = Failures::default();
        self.do_together(count, &|units| {
            let mut state = start();
            while let Some(number) = units.take() {
                if !failures.watch(number, || unit(&mut state, number)) {
                    units.stop();
                }
            }
            end(state);
        });
        failures.sorted().into_iter().next().map_or(Ok(()), |(_, reason)| Err(reason))
    }

    /// `part` is called by each thread that takes part.
    fn do_together(&self, count: usize, part: &(dyn Fn(&Units) + Sync)) {
        let units = Units { next: AtomicUsize::new(0), count };
        let work = Work { units, part, helping: AtomicUsize::new(0) };
        self.lock().open.push(Shared((&raw const work).cast()));
        let _open = Open { crew: self, work: &work };
        self.changed.notify_all();
        (work.part)(&work.units);
    }

    /// Take part in what others share, until nobody has jobs any more who could come to share anything.
    pub fn help(&self) {
        let mut state = self.lock();
        loop {
            // SAFETY: what is in the list is there (see `Shared`): who takes it out needs the lock, which is held here.
            let shared = state.open.iter().map(|shared| unsafe { &*shared.0 }).find(|work| work.units.are_left());
            let Some(work) = shared else {
                if state.busy == 0 {
                    return;
                }
                state = self.wait(state);
                continue;
            };
            work.helping.fetch_add(1, Ordering::Relaxed);
            drop(state);
            let _ = catch_unwind(AssertUnwindSafe(|| (work.part)(&work.units))); // jobs note their panics themselves
            state = self.lock();
            // from here on the work may be gone, once the lock is
            work.helping.fetch_sub(1, Ordering::Relaxed);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A thread that has jobs of its own, until this goes.
pub struct Member<'a>(&'a Crew);

impl Member<'_> {
    /// Have no more jobs, and help the others.
    pub fn help(self) {
        let crew = self.0;
        drop(self);
        crew.help();
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.changed.notify_all();
    }
}

/// Work that others see, until this goes.
struct Open<'a> {
    crew: &'a Crew,
    work: &'a Work<'a>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let address = (&raw const *self.work).cast();
        let mut state = self.crew.lock();
        state.open.retain(|shared| shared.0 != address);
        while self.work.helping.load(Ordering::Relaxed) > 0 {
            state = self.crew.wait(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::Reason;

    /// What becomes of jobs of so many units each, by threads that have one job each, or none.
    fn outcomes(jobs: &[usize], threads: usize, unit: &(dyn Fn(usize, usize) -> Outcome + Sync)) -> Vec<Outcome> {
        let crew = Crew::default();
        let members: Vec<_> = (0..threads).map(|_| crew.come()).collect();
        let found = Mutex::new(vec![Ok(()); jobs.len()]);
        thread::scope(|scope| {
            for (number, member) in members.into_iter().enumerate() {
                let (crew, found) = (&crew, &found);
                scope.spawn(move || {
                    if let Some(&count) = jobs.get(number) {
                        let outcome = crew.share(count, || (), |(), each| unit(number, each), |()| ());
                        found.lock().unwrap()[number] = outcome;
                    }
                    member.help();
                });
            }
        });
        found.into_inner().unwrap()
    }

    #[test]
    fn every_unit_is_done_once() {
        for (jobs, threads) in [(&[1000][..], 4), (&[0, 1, 300, 7], 4), (&[50, 60], 7), (&[20], 1)] {
            let done: Vec<Vec<AtomicUsize>> =
                jobs.iter().map(|&count| (0..count).map(|_| AtomicUsize::new(0)).collect()).collect();
            let unit = |job: usize, each: usize| {
                done[job][each].fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            assert!(outcomes(jobs, threads, &unit).iter().all(Result::is_ok));
            assert!(done.iter().flatten().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn others_take_part() {
        // each unit waits for the other one, so that two threads are needed
        let both = std::sync::Barrier::new(2);
        let unit = |_: usize, _: usize| {
            both.wait();
            Ok(())
        };
        assert!(outcomes(&[2], 2, &unit)[0].is_ok());
    }

    #[test]
    fn a_job_waits_for_those_who_are_at_it() {
        let (crew, both, done) = (Crew::default(), std::sync::Barrier::new(2), AtomicUsize::new(0));
        let [own, other] = [(); 2].map(|()| crew.come());
        thread::scope(|scope| {
            scope.spawn(|| other.help());
            let owner = thread::current().id();
            let unit = |_: &mut (), _: usize| {
                both.wait();
                if thread::current().id() != owner {
                    thread::sleep(Duration::from_millis(50)); // the owner has nothing to do any more
                }
                done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            assert!(crew.share(2, || (), unit, |()| ()).is_ok());
            assert_eq!(done.load(Ordering::Relaxed), 2);
            own.help();
        });
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let crew = Crew::default();
        let (one, other) = (crew.come(), crew.come());
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let _gone = other;
            panic!("no");
        }));
        one.help();
    }

    #[test]
    fn a_failure_is_told_whoever_had_it() {
        for bad in [0, 3, 499] {
            let unit = |job: usize, each: usize| match (job, each) {
                (0, each) if each >= bad => Err(each.to_string().into()),
                (1, 7) => panic!("no"),
                _ => Ok(()),
            };
            let found = outcomes(&[500, 30, 200], 5, &unit);
            assert_eq!(found, [Err(bad.to_string().into()), Err(Reason::Panicked), Ok(())]);
        }
    }
}
