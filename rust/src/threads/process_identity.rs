//! Which process this is, for what a forked one must not take for its own.

use std::process;
#[cfg(unix)]
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many forks lie between the process that loaded the kernel and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// A process among those that come of one another. The number that the system gives is not enough: it gives that of a
/// process that has ended to another one, which may be a fork of a fork of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    number: u32,
    forks: usize,
}

impl ProcessIdentity {
    /// That of this process. The first call has forks counted from then on.
    pub fn current() -> Self {
        count_forks();
        ProcessIdentity { number: process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }
}

#[cfg(unix)]
fn count_forks() {
    static COUNTED: Once = Once::new();

    extern "C" fn forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    COUNTED.call_once(|| {
        // SAFETY: what is called in a forked process adds to a number, and does nothing else; it is there as long as the
        // kernel is loaded. Where there is no memory for it, the number of the process tells alone.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
}

#[cfg(not(unix))]
fn count_forks() {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_is_another_one_whatever_its_number() {
        let before = ProcessIdentity::current();
        assert_eq!(ProcessIdentity::current(), before);
        // SAFETY: the child looks at a number and ends, without anything that threads of the parent may hold.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let forks = FORKS.load(Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { libc::_exit(if forks == before.forks + 1 { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: the place is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!(ProcessIdentity::current(), before);
    }
}
