//! A change of files that a document tells of, which is replaced once all else is done: nobody else changes the document
//! meanwhile, and who waits for those that write below its directory waits.
//!
//! Only the usual case is done here, as in `new_file`: whatever else there is, is left as it is, and to the caller.

use std::fs::Metadata;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::files::directory_writer::DirectoryWriter;
use crate::files::new_file::{NewFile, OldFile, Prepared, Replaces};
use crate::threads::pool;

/// The lock of a document and, if the caller does not have them, of its directory, as one of those who write there, until
/// this goes.
pub struct Held {
    document: Option<OldFile>,
    writer: Option<DirectoryWriter>,
}

/// A document that was replaced.
pub struct Agreed {
    /// What the system says of the new one.
    pub status: Metadata,
    /// The old one, open, which the caller closes, where that may take long. None where it was locked by the caller.
    pub old: Option<RawFd>,
    /// The new one is locked.
    pub held: Held,
}

/// What `change` gives, and the document of `content` if that `is_done`; else what is held of the directory alone, so that
/// the caller can undo what was done of it. `None`: others are at the document, which is not what it may be replaced as, or
/// wait for those who write; then nothing is done.
///
/// `is_locked`: the caller has the document locked, and is known to write there. The new one is made beside the change, by
/// one of so many `threads` if there are more than one.
pub fn change_with<T: Send>(
    document: &NewFile,
    content: &[u8],
    is_locked: bool,
    threads: usize,
    change: impl FnOnce() -> T + Send,
    is_done: impl FnOnce(&T) -> bool,
) -> Option<(T, Result<Agreed, Held>)> {
    let held = if is_locked { held_already(document) } else { hold(document) }.ok().flatten()?;
    let (next, waiting) = (AtomicUsize::new(0), Mutex::new(Some(change)));
    let (changed, prepared) = (Mutex::new(None), Mutex::new(None));
    pool::together(threads.min(2) - 1, threads, &|| {
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let change = lock(&waiting).take();
                    *lock(&changed) = change.map(|change| change());
                }
                1 => *lock(&prepared) = document.prepare(content),
                _ => break,
            }
        }
    });
    let changed = lock(&changed).take()?;
    let prepared = lock(&prepared).take();
    let prepared = prepared.filter(|_| is_done(&changed));
    Some((changed, held.replaced_by(prepared)))
}

fn hold(document: &NewFile) -> io::Result<Option<Held>> {
    let Some(writer) = DirectoryWriter::of(document.directory)? else { return Ok(None) };
    let Some(Some(old)) = document.before(false)? else { return Ok(None) };
    Ok(document.means(&old)?.then_some(Held { document: Some(old), writer: Some(writer) }))
}

fn held_already(document: &NewFile) -> io::Result<Option<Held>> {
    let Replaces::Version(version) = &document.replaces else { return Ok(None) };
    Ok(document.of_version(version)?.map(|old| Held { document: Some(old), writer: None }))
}

impl Held {
    #[allow(clippy::result_large_err)] // neither of both is larger than the other
    fn replaced_by(self, new: Option<Prepared<'_>>) -> Result<Agreed, Held> {
        let Held { document: old, writer } = self;
        let placed = old.and_then(|old| {
            let document = new?.replace(&old)?;
            Some((old, document))
        });
        let Some((old, document)) = placed else { return Err(Held { document: None, writer }) };
        let (status, old) = (document.status().clone(), if writer.is_some() { old.release() } else { None });
        Ok(Agreed { status, old, held: Held { document: Some(document), writer } })
    }

    /// The document, for who has locked the one before.
    pub fn document(self) -> Option<OldFile> {
        self.document
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::{self, File};
    use std::os::fd::{AsRawFd, FromRawFd};

    use super::*;
    use crate::files::known_file::Identity;

    #[test]
    fn a_document_is_held_until_all_is_done() {
        let path = std::env::temp_dir().join(format!("zardine-agreed-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let name = path.join("document");
        fs::write(&name, b"before").unwrap();
        let document = || {
            let [file, temporary, record] = ["document", ".d.tmp", ".r.tmp"].map(|name| CString::new(name).unwrap());
            let replaces = Replaces::Version(Identity::from(&fs::metadata(&name).unwrap()).version());
            NewFile { directory: directory.as_raw_fd(), name: file, temporary, record, replaces }
        };
        let is_free = || File::open(&name).unwrap().try_lock().is_ok() && File::open(&path).unwrap().try_lock().is_ok();
        for threads in [1, 2] {
            let held = document();
            let (busy, agreed) = change_with(&held, b"after", false, threads, || !is_free(), |_| false).unwrap();
            let held = agreed.err().unwrap();
            assert!(busy && File::open(&name).unwrap().try_lock().is_ok() && !is_free());
            drop(held);
            assert!(is_free());
            assert_eq!(fs::read(&name).unwrap(), b"before");
        }
        for (content, before) in [(b"one", &b"before"[..]), (b"two", b"one")] {
            let held = document();
            let agreed = change_with(&held, content, false, 2, || (), |()| true).unwrap().1.ok().unwrap();
            assert_eq!((fs::read(&name).unwrap().as_slice(), agreed.status.len()), (&content[..], 3));
            assert!(!is_free());
            if let Some(old) = agreed.old {
                // SAFETY: it was given to us, and nobody else knows of it.
                assert_eq!(unsafe { File::from_raw_fd(old) }.metadata().unwrap().len(), before.len() as u64);
            }
            drop(agreed.held);
            assert!(is_free());
            assert!(change_with(&held, b"late", false, 2, || panic!("it is of another version"), |()| true).is_none());
        }
        let held = document();
        let agreed = change_with(&held, b"three", true, 1, || (), |()| true).unwrap().1.ok().unwrap();
        assert!(agreed.old.is_none() && File::open(&path).unwrap().try_lock().is_ok());
        assert!(!is_free());
        drop(agreed.held.document());
        assert_eq!((fs::read(&name).unwrap().as_slice(), is_free()), (&b"three"[..], true));
        assert!(change_with(&held, b"late", true, 1, || panic!("it is of another version"), |()| true).is_none());
        let busy = File::open(&path).unwrap();
        busy.lock().unwrap();
        assert!(change_with(&document(), b"late", false, 1, || (), |()| true).is_none());
        drop(busy);
        let gone = document();
        fs::remove_file(&name).unwrap();
        assert!(change_with(&gone, b"late", false, 1, || (), |()| true).is_none());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0); // nothing unfinished
        fs::remove_dir_all(&path).unwrap();
    }
}
