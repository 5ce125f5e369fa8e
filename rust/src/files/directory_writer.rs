//! Who is known to write below a directory, so that one who is about to change what is there waits for them.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use crate::files::held_locks::HeldLock;
use crate::files::known_file::{Identity, KnownFile};

const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

/// A shared `flock` of the directory, until this goes.
pub struct DirectoryWriter {
    _held: HeldLock,
    directory: File,
}

impl DirectoryWriter {
    /// `None`: others wait already, or the directory is gone.
    pub fn of(directory: RawFd) -> io::Result<Option<Self>> {
        // SAFETY: the caller has it open.
        let own = File::from(unsafe { BorrowedFd::borrow_raw(directory) }.try_clone_to_owned()?);
        Ok(Self::locked(own)?.map(|(writer, _)| writer))
    }

    /// Of the directory in which a `document` lies that is still what it was, on one of the `devices` where those who
    /// write can be waited for. `None`: as for `of`, or it is not so.
    pub fn beside(document: &KnownFile, devices: &[u64]) -> io::Result<Option<Self>> {
        let path = document.path.as_bytes();
        let Some(end) = path.iter().rposition(|&byte| byte == b'/') else { return Ok(None) };
        let directory = CString::new(&path[..end.max(1)])?;
        // SAFETY: the path is a string that ends in NUL.
        let file = unsafe { libc::open(directory.as_ptr(), DIRECTORY) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened just now, and nobody else knows of it.
        let Some((writer, status)) = Self::locked(File::from(unsafe { OwnedFd::from_raw_fd(file) }))? else {
            return Ok(None);
        };
        let name = CString::new(&path[end + 1..])?;
        let is_current = Identity::in_directory(writer.directory.as_raw_fd(), &name) == Some(document.identity);
        Ok((is_current && devices.contains(&status.dev())).then_some(writer))
    }

    fn locked(directory: File) -> io::Result<Option<(Self, Metadata)>> {
        let held = HeldLock::of(&directory);
        if directory.try_lock_shared().is_err() {
            return Ok(None);
        }
        let writer = DirectoryWriter { _held: held, directory };
        let status = writer.directory.metadata()?;
        Ok((status.nlink() > 0).then_some((writer, status)))
    }
}

impl Drop for DirectoryWriter {
    fn drop(&mut self) {
        let _ = self.directory.unlock(); // in words: closing does not unlock if a forked process has a copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn who_writes_beside_a_document_is_waited_for() {
        let path = std::env::temp_dir().join(format!("zardine-writer-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let name = path.join("document");
        fs::write(&name, b"before").unwrap();
        let known = || KnownFile {
            path: CString::new(name.to_str().unwrap()).unwrap(),
            identity: Identity::from(&fs::metadata(&name).unwrap()),
            fd: None,
        };
        let (document, device) = (known(), fs::metadata(&path).unwrap().dev());
        let is_free = || File::open(&path).unwrap().try_lock().is_ok();
        let first = DirectoryWriter::beside(&document, &[1, device]).unwrap().unwrap();
        let second = DirectoryWriter::beside(&document, &[device]).unwrap().unwrap();
        drop(first);
        assert!(!is_free());
        drop(second);
        assert!(is_free());
        assert!(DirectoryWriter::beside(&document, &[device + 1]).unwrap().is_none() && is_free());
        let waiting = File::open(&path).unwrap();
        waiting.lock().unwrap();
        assert!(DirectoryWriter::beside(&document, &[device]).unwrap().is_none());
        drop(waiting);
        fs::write(&name, b"another one").unwrap();
        assert!(DirectoryWriter::beside(&document, &[device]).unwrap().is_none() && is_free());
        let (document, folder) = (known(), File::open(&path).unwrap());
        fs::remove_dir_all(&path).unwrap();
        assert!(DirectoryWriter::beside(&document, &[device]).is_err());
        assert!(DirectoryWriter::of(folder.as_raw_fd()).unwrap().is_none());
    }
}
