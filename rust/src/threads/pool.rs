//! Threads that wait for work from call to call, since to make one takes as long as to decode a chunk.
//!
//! A forked process has none of them, and makes its own. One that is about to fork lets go of those that wait
//! (`retire`), so that it has no more threads than the program knows of. Signals are never handled in them.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::threads::process_identity::ProcessIdentity;

/// A thread that has had no work for so long ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// So long, at most, is waited for those that come late: where others call all the time, some always are.
const SETTLING: Duration = Duration::from_millis(50);

/// So long a thread looks for what it waits for before it sleeps: to wake one takes longer than to decode a chunk.
pub const LOOKING: Duration = Duration::from_micros(50);

/// The threads of a process.
struct Pool {
    process: ProcessIdentity,
    /// See `SETTLING`.
    settling: Duration,
    state: Mutex<State>,
    /// All that were told of a call have looked at it.
    settled: Condvar,
}

#[derive(Default)]
struct State {
    /// Those that wait. The last one has waited for the shortest time.
    idle: Vec<Arc<Worker>>,
    /// All that there are.
    count: usize,
    /// Those that were told of a call, or are about to be, and have not looked yet whether it is over.
    coming: usize,
}

#[derive(Default)]
struct Worker {
    order: Mutex<Option<Order>>,
    /// Whether there is an order, for who looks without the lock.
    is_told: AtomicBool,
    given: Condvar,
    handle: Mutex<Option<JoinHandle<()>>>,
}

/// What a thread that waits is told.
enum Order {
    /// Take part in a call, after the others were told that are to do so, too.
    Join(Arc<Call>, Vec<Arc<Worker>>),
    End,
}

/// Work of one call, in which threads take part that come before it is over.
struct Call {
    /// What each of them does. Only those may look at it who are counted in `inside`.
    work: *const (dyn Fn() + Sync),
    state: Mutex<Inside>,
    /// The count of those inside, for who looks without the lock.
    inside: AtomicUsize,
    left: Condvar,
}

struct Inside {
    count: usize,
    is_over: bool,
    panic: Option<Box<dyn std::any::Any + Send>>,
}

// SAFETY: what `work` points to is `Sync`, and there until the call is over and nobody is inside (`together`).
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Call `work` in this thread, and in up to `others` more while that lasts: threads that have nothing to do, and new ones
/// while there are fewer than `most` in the process. Who comes late does not take part: `work` has to do everything,
/// however many threads are at it.
pub fn together(others: usize, most: usize, work: &(dyn Fn() + Sync)) {
    match others {
        0 => work(),
        _ => Pool::of_process().call(others, most, work),
    }
}

/// End the threads that wait, and wait for that: those, too, that were told of a call which is over.
pub fn retire() {
    if let Some(pool) = Pool::there_is() {
        pool.retire();
    }
}
/// Tell `workers` to take part in `call`: each tells half of those that are left.
fn tell(workers: &mut Vec<Arc<Worker>>, call: &Arc<Call>) {
    while let Some(worker) = workers.pop() {
        let half = workers.split_off(workers.len().div_ceil(2));
        worker.give(Order::Join(call.clone(), half));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Pool {
    fn new(process: ProcessIdentity) -> Self {
        Pool { process, settling: SETTLING, state: Mutex::default(), settled: Condvar::new() }
    }

    fn there_is() -> Option<&'static Pool> {
        // SAFETY: null, or what `of_process` has made, which stays for good.
        let pool = unsafe { POOL.load(Ordering::Acquire).as_ref() };
        pool.filter(|pool| pool.process == ProcessIdentity::current())
    }

    /// The pool of this process. That of the process from which it was forked stays as it is: its threads are not here,
    /// and any of them may have held its lock.
    fn of_process() -> &'static Pool {
        Self::there_is().unwrap_or_else(|| {
            let before = POOL.load(Ordering::Acquire);
            let made = Box::into_raw(Box::new(Pool::new(ProcessIdentity::current())));
            match POOL.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: made above, and never freed.
                Ok(_) => unsafe { &*made },
                Err(other) => {
                    // SAFETY: made above, and nobody has seen it.
                    drop(unsafe { Box::from_raw(made) });
                    // SAFETY: another thread of this process has made this one, which stays for good.
                    unsafe { &*other }
                }
            }
        })
    }

    fn call(&'static self, others: usize, most: usize, work: &(dyn Fn() + Sync)) {
        let mut workers = self.take(others, most);
        if workers.is_empty() {
            return work();
        }
        // SAFETY: only the lifetime changes. Nobody looks at it who is not inside, and `Over` waits for these.
        let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        let state = Mutex::new(Inside { count: 0, is_over: false, panic: None });
        let call = Arc::new(Call { work, state, inside: AtomicUsize::new(0), left: Condvar::new() });
        let over = Over(&call);
        tell(&mut workers, &call);
        work();
        drop(over);
        let panic = lock(&call.state).panic.take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn retire(&self) {
        let mut state = lock(&self.state);
        let until = Instant::now() + self.settling;
        while state.coming > 0 && Instant::now() < until {
            let waited = self.settled.wait_timeout(state, self.settling);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        let idle = std::mem::take(&mut state.idle);
        state.count -= idle.len();
        drop(state);
        idle.iter().for_each(|worker| worker.give(Order::End));
        for worker in idle {
            let handle = lock(&worker.handle).take();
            let _ = handle.map(JoinHandle::join);
        }
    }

    /// Up to `wanted` threads that have nothing to do. New ones are made while there are fewer than `most`.
    fn take(&'static self, wanted: usize, most: usize) -> Vec<Arc<Worker>> {
        let mut state = lock(&self.state);
        let kept = state.idle.len().saturating_sub(wanted);
        let mut workers = state.idle.split_off(kept);
        while workers.len() < wanted && state.count < most {
            let Some(worker) = self.start() else { break };
            state.count += 1;
            workers.push(worker);
        }
        state.coming += workers.len();
        workers
    }

    /// A thread that was told of a call takes part in it, or it `waits` again.
    fn came(&self, waits: Option<&Arc<Worker>>) {
        let mut state = lock(&self.state);
        state.idle.extend(waits.cloned());
        state.coming -= 1;
        if state.coming == 0 {
            self.settled.notify_all();
        }
    }

    fn start(&'static self) -> Option<Arc<Worker>> {
        let worker = Arc::new(Worker::default());
        let own = worker.clone();
        let handle = without_signals(|| {
            thread::Builder::new().name("zardine".into()).spawn(move || {
                while let Some(Order::Join(call, mut others)) = self.wait(&own) {
                    tell(&mut others, &call);
                    let part = call.enter();
                    self.came(if part.is_some() { None } else { Some(&own) });
                    // who waits for the call to be over finds this thread idle
                    part.into_iter().for_each(|part| part.take(|| lock(&self.state).idle.push(own.clone())));
                }
            })
        });
        *lock(&worker.handle) = Some(handle.ok()?);
        Some(worker)
    }

    /// What `worker` is told; nothing where that takes too long.
    fn wait(&self, worker: &Arc<Worker>) -> Option<Order> {
        look_for(|| worker.is_told.load(Ordering::Acquire));
        let mut order = lock(&worker.order);
        loop {
            if let Some(order) = order.take() {
                worker.is_told.store(false, Ordering::Release);
                return Some(order);
            }
            let waited = worker.given.wait_timeout(order, PATIENCE);
            let (again, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            order = again;
            if timeout.timed_out() && order.is_none() {
                drop(order); // who takes a worker holds the other lock first
                let mut state = lock(&self.state);
                let place = state.idle.iter().position(|idle| Arc::ptr_eq(idle, worker));
                if let Some(place) = place {
                    state.idle.remove(place);
                    state.count -= 1;
                    return None;
                }
                drop(state);
                order = lock(&worker.order); // somebody has taken it, and is about to tell
            }
        }
    }
}

impl Worker {
    fn give(&self, order: Order) {
        let mut place = lock(&self.order);
        *place = Some(order);
        self.is_told.store(true, Ordering::Release);
        drop(place);
        self.given.notify_one();
    }
}

impl Call {
    /// Count this thread among those inside, unless the call is over.
    fn enter(&self) -> Option<Part<'_>> {
        let mut state = lock(&self.state);
        if state.is_over {
            return None;
        }
        state.count += 1;
        self.inside.store(state.count, Ordering::Release);
        Some(Part(self))
    }
}

/// A thread that is inside of a call. Only `enter` makes one.
struct Part<'a>(&'a Call);

impl Part<'_> {
    /// Do the work, and call `done` before this thread leaves.
    fn take(self, done: impl FnOnce()) {
        let call = self.0;
        // SAFETY: this thread is inside.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*call.work)() }));
        done();
        let mut state = lock(&call.state);
        state.count -= 1;
        call.inside.store(state.count, Ordering::Release);
        if let Err(panic) = outcome {
            state.panic = Some(panic);
        }
        if state.count == 0 && state.is_over {
            call.left.notify_one();
        }
    }
}

/// A call is over when this goes, which waits for those that are inside.
struct Over<'a>(&'a Call);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_over = true;
        if state.count > 0 {
            drop(state); // nobody enters any more
            look_for(|| self.0.inside.load(Ordering::Acquire) == 0);
            state = lock(&self.0.state);
        }
        while state.count > 0 {
            state = self.0.left.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// Look for a short time whether something `is_there`; other threads come first, if there are not enough processors.
fn look_for(is_there: impl Fn() -> bool) {
    let until = Instant::now() + LOOKING;
    while !is_there() && Instant::now() < until {
        thread::yield_now();
    }
}

/// Call `start`, which starts a thread, so that no signal of the process is handled there.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::<libc::sigset_t>::uninit());
    // SAFETY: the functions fill the sets that they are given; `before` is read only where it was filled.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP] {
            libc::sigdelset(all.as_mut_ptr(), fault); // of the thread itself
        }
        let failed = libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) != 0;
        let started = start();
        if !failed {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        }
        started
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// One of its own, which stays for good, as those of processes do: where tools that look for leaks find it. It waits
    /// for all that come late, who may be kept from it by others for long.
    fn new_pool() -> &'static Pool {
        static ALL: Mutex<Vec<&'static Pool>> = Mutex::new(Vec::new());
        let settling = Duration::from_secs(60);
        let pool: &Pool = Box::leak(Box::new(Pool { settling, ..Pool::new(ProcessIdentity::current()) }));
        lock(&ALL).push(pool);
        pool
    }

    #[test]
    fn others_take_part() {
        let pool = new_pool();
        for others in [1, 3, 3, 15, 2] {
            let (all, count) = (Barrier::new(others + 1), AtomicUsize::new(0));
            // each waits for all, so that all have to be there
            pool.call(others, others, &|| {
                count.fetch_add(1, Ordering::Relaxed);
                all.wait();
            });
            assert_eq!(count.into_inner(), others + 1);
        }
        let counts = || {
            let state = lock(&pool.state);
            (state.count, state.idle.len())
        };
        assert_eq!(counts(), (15, 15));
        pool.retire();
        assert_eq!(counts(), (0, 0));
        pool.call(2, 2, &|| ());
    }

    #[test]
    fn none_is_left_that_comes_too_late() {
        let pool = new_pool();
        for _ in 0..500 {
            pool.call(7, 7, &|| ());
            let until = Instant::now() + Duration::from_secs(20);
            pool.retire();
            while lock(&pool.state).count > 0 {
                assert!(Instant::now() < until); // one is not waited for any longer on a machine that is this busy
                pool.retire();
            }
        }
    }

    #[test]
    fn calls_inside_of_calls_and_beside_each_other_end() {
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for round in 0..200 {
                        let next = AtomicUsize::new(0);
                        together(round % 5, 7, &|| {
                            while next.fetch_add(1, Ordering::Relaxed) < 4 {
                                let inner = AtomicUsize::new(0);
                                together(round % 3, 7, &|| {
                                    while inner.fetch_add(1, Ordering::Relaxed) < 3 {
                                        count.fetch_add(1, Ordering::Relaxed);
                                    }
                                });
                            }
                        });
                        if round % 50 == 0 {
                            retire();
                        }
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 6 * 200 * 4 * 3);
    }

    #[test]
    fn a_call_inside_of_another_one_gets_threads_of_its_own() {
        let pool = new_pool();
        let all = Barrier::new(6);
        pool.call(2, 5, &|| {
            pool.call(1, 5, &|| {
                all.wait();
            });
        });
        assert_eq!(lock(&pool.state).count, 5);
        pool.call(4, 3, &|| ()); // those that are there are enough
        assert_eq!(lock(&pool.state).count, 5);
        pool.retire();
    }

    #[test]
    fn a_panic_comes_back_to_the_caller() {
        let pool = new_pool();
        for in_caller in [true, false] {
            let (caller, both) = (thread::current().id(), Barrier::new(2));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.call(1, 1, &|| {
                    both.wait();
                    assert_ne!(thread::current().id() == caller, in_caller);
                });
            }));
            assert!(outcome.is_err());
        }
        pool.call(1, 1, &|| ());
    }
}
