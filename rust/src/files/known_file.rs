//! Files that are known from before: which file a path meant, and what that was like.

use std::ffi::{CStr, CString};
use std::fs::Metadata;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;

use crate::files::readable::{self, Readable};

/// What tells a file, and a version of it, from others: inode, device, size, and the times of the last change of its
/// content and of its status, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub inode: u64,
    pub device: u64,
    pub size: u64,
    pub modified: i128,
    pub changed: i128,
}

impl Identity {
    #[allow(clippy::unnecessary_cast)] // the types differ between systems
    pub fn of(status: &libc::stat) -> Self {
        Identity {
            inode: status.st_ino as u64,
            device: status.st_dev as u64,
            size: status.st_size as u64,
            modified: nanoseconds(status.st_mtime as i64, status.st_mtime_nsec as i64),
            changed: nanoseconds(status.st_ctime as i64, status.st_ctime_nsec as i64),
        }
    }

    /// As text: inode, size, and times of modification and change in nanoseconds, as hexadecimal numbers with dashes
    /// between them, and with a sign before 1970.
    pub fn version(&self) -> String {
        let Identity { inode, size, modified, changed, .. } = *self;
        let hex = |time: i128| (if time < 0 { "-" } else { "" }, time.unsigned_abs());
        let ((before, modified), (between, changed)) = (hex(modified), hex(changed));
        format!("{inode:x}-{size:x}-{before}{modified:x}-{between}{changed:x}")
    }

    /// That of what a path means; nothing where that cannot be told.
    fn of_path(path: &CStr) -> Option<Self> {
        looked(|status| {
            // SAFETY: the path is a string that ends in NUL, and `status` is borrowed mutably for the call.
            unsafe { libc::stat(path.as_ptr(), status) }
        })
    }

    /// That of an open file; nothing where the number means none.
    pub fn of_open(fd: RawFd) -> Option<Self> {
        looked(|status| {
            // SAFETY: `status` is borrowed mutably for the call; whatever number `fd` is, `fstat` only fails.
            unsafe { libc::fstat(fd, status) }
        })
    }
}

impl From<&Metadata> for Identity {
    fn from(status: &Metadata) -> Self {
        Identity {
            inode: status.ino(),
            device: status.dev(),
            size: status.size(),
            modified: nanoseconds(status.mtime(), status.mtime_nsec()),
            changed: nanoseconds(status.ctime(), status.ctime_nsec()),
        }
    }
}

fn nanoseconds(seconds: i64, more: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(more)
}

/// A path, the file that it meant, and how that can be read, if it is open.
#[derive(Clone)]
pub struct KnownFile {
    pub path: CString,
    pub identity: Identity,
    /// The caller keeps it open.
    pub fd: Option<RawFd>,
}

impl KnownFile {
    /// Whether the path means this file still, and nobody has changed that.
    pub fn is_current(&self) -> bool {
        Identity::of_path(&self.path) == Some(self.identity)
    }

    /// To be read as long as it is open.
    pub fn readable(&self) -> Option<Readable<'static>> {
        Some(Readable::File(readable::File::of_size(self.fd?, self.identity.size).staying()))
    }

    /// Whether nobody edits the open file now. Who looks whether it is current after that knows that nobody has.
    pub fn is_free(&self) -> bool {
        self.fd.is_some_and(is_free)
    }
}

/// Whether a path means a file of this version.
pub fn has_version(path: &CStr, version: &str) -> bool {
    Identity::of_path(path).is_some_and(|identity| identity.version() == version)
}

/// Whether nobody has edited an open file since it was like this, nor does so now.
pub fn is_unedited(fd: RawFd, identity: &Identity) -> bool {
    is_free(fd) && Identity::of_open(fd) == Some(*identity)
}

/// Whether nobody edits an open file: who does has locked it.
fn is_free(fd: RawFd) -> bool {
    // SAFETY: no memory is involved; whatever number `fd` is, `flock` only fails.
    if unsafe { libc::flock(fd, libc::LOCK_SH | libc::LOCK_NB) } != 0 {
        return io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock && is_range_free(fd);
    }
    // in words: closing does not unlock if a forked process has a copy
    // SAFETY: as above.
    unsafe { libc::flock(fd, libc::LOCK_UN) };
    true
}

/// The same where the file system refuses `flock`: then who edits has locked a range, if there are such locks.
#[cfg(target_os = "linux")]
fn is_range_free(fd: RawFd) -> bool {
    // SAFETY: `flock` is a structure of integers, for which zeros are valid.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = libc::F_RDLCK as libc::c_short;
    // SAFETY: the system writes into a structure of our own; whatever number `fd` is, the call only fails.
    let code = unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &mut whole) };
    code != 0 || whole.l_type == libc::F_UNLCK as libc::c_short
}

#[cfg(not(target_os = "linux"))]
fn is_range_free(_: RawFd) -> bool {
    true
}

fn looked(look: impl FnOnce(&mut libc::stat) -> libc::c_int) -> Option<Identity> {
    // SAFETY: `stat` is a structure of integers, for which zeros are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    (look(&mut status) == 0).then(|| Identity::of(&status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn changes_are_noticed() {
        let folder = std::env::temp_dir().join(format!("zardine-known-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let place = folder.join("file");
        fs::write(&place, b"some").unwrap();
        let open = File::open(&place).unwrap();
        let path = CString::new(place.as_os_str().as_bytes()).unwrap();
        let known = || {
            let identity = Identity::of_open(open.as_raw_fd()).unwrap();
            KnownFile { path: path.clone(), identity, fd: Some(open.as_raw_fd()) }
        };
        let first = known();
        let is_unedited = |file: &KnownFile| is_unedited(open.as_raw_fd(), &file.identity);
        assert!(first.is_current() && first.is_free() && is_unedited(&first) && first.readable().is_some());
        let writer = File::options().write(true).open(&place).unwrap();
        writer.lock().unwrap();
        assert!(!first.is_free() && !is_unedited(&first) && first.is_current()); // somebody is at it
        writer.set_len(3).unwrap();
        writer.unlock().unwrap();
        assert!(!first.is_current() && !is_unedited(&first) && first.is_free());
        let second = known();
        assert!(second.is_current() && is_unedited(&second));
        let Identity { inode, size, modified, changed, .. } = second.identity;
        let version = format!("{inode:x}-{size:x}-{modified:x}-{changed:x}");
        assert!(has_version(&path, &version) && !has_version(c"/none", &version));
        for wrong in [&version[1..], &version[..version.len() - 1], &format!("{version}-0"), "", "-", "x-3-0-0"] {
            assert!(!has_version(&path, wrong), "{wrong}");
        }
        fs::write(folder.join("new"), b"new").unwrap();
        fs::rename(folder.join("new"), &place).unwrap();
        assert!(!second.is_current());
        fs::remove_dir_all(&folder).unwrap();
        assert!(!second.is_current() && Identity::of_open(-1).is_none());
        let closed = KnownFile { fd: None, ..second };
        assert!(closed.readable().is_none() && !closed.is_free());
    }
}
