//! Files that this process has locked. A lock lasts as long as any process has the file open, so that one that was forked
//! meanwhile lets go of its copies: else it would keep the locks of a parent that is killed.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Numbers of open files that are looked after; larger ones are rare.
const MOST: usize = 8192;

static HELD: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// Says that a file is locked, or about to be, until this goes: after it was unlocked, and before it is closed.
pub struct HeldLock(Option<&'static AtomicBool>);

impl HeldLock {
    pub fn of(file: &File) -> Self {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            // SAFETY: what is called in a forked process makes calls of the system alone that may be made there; it is
            // there as long as the kernel is loaded.
            unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        });
        let held = usize::try_from(file.as_raw_fd()).ok().and_then(|number| HELD.get(number));
        if let Some(held) = held {
            held.store(true, Ordering::SeqCst);
        }
        HeldLock(held)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if let Some(held) = self.0 {
            held.store(false, Ordering::SeqCst);
        }
    }
}

/// In the child: put nothing in the place of each, so that nobody else gets its number while somebody thinks to have it.
extern "C" fn forked() {
    let mut nothing = -1;
    for (number, held) in HELD.iter().enumerate() {
        if !held.swap(false, Ordering::SeqCst) {
            continue;
        }
        // SAFETY: the name ends in NUL; the numbers are those of open files, or the calls fail.
        unsafe {
            if nothing < 0 {
                nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            }
            if libc::dup2(nothing, number as i32) >= 0 {
                libc::fcntl(number as i32, libc::F_SETFD, libc::FD_CLOEXEC);
            }
        }
    }
    if nothing >= 0 {
        // SAFETY: it was opened above, and nobody else knows of it.
        unsafe { libc::close(nothing) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_forked_process_keeps_no_lock() {
        let path = std::env::temp_dir().join(format!("zardine-held-{}", std::process::id()));
        fs::write(&path, b"").unwrap();
        let file = File::open(&path).unwrap();
        let held = HeldLock::of(&file);
        file.lock().unwrap();
        // SAFETY: the child waits and ends, without anything that threads of the parent may hold.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                libc::sleep(60);
                libc::_exit(0);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(held);
        drop(file); // without unlocking, as when this process is killed
        let is_free = File::open(&path).unwrap().try_lock().is_ok();
        // SAFETY: it is a child of this process, and the place is ours.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut 0, 0);
        }
        fs::remove_file(&path).unwrap();
        assert!(is_free);
    }
}
