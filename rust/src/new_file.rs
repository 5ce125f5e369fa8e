//! Files that take the place of others, whole and at one moment, in directories that the caller has open.
//!
//! Only the usual case is done here, in as few system calls as it takes: the name is free, or means a regular file that
//! nobody has locked. Whatever else is there is left as it is, and to the caller, who knows what to do and say.

use std::ffi::CString;
use std::fs::{File, FileTimes};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use crate::strided_memory::SharedBytes;

const OLD: i32 = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
const NEW: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MODE: libc::c_uint = 0o666;

/// A file to be made. The caller keeps the directory open; if it does not, calls fail, or name files of another one.
pub struct NewFile {
    pub directory: RawFd,
    pub name: CString,
    /// Its name until it is whole.
    pub temporary: CString,
    /// A file that goes when another one is replaced.
    pub record: CString,
    /// Whether none may be replaced.
    pub only_new: bool,
}

impl NewFile {
    /// Make the file of `content`; whether that was done. If not, all is as before.
    ///
    /// Others who replace or change the file that is there lock it (`flock`) meanwhile, and look afterwards whether the
    /// name still means it; so does this. Where there is none, whoever is first makes it.
    pub fn put(&self, content: SharedBytes) -> bool {
        let Ok(file) = self.open(&self.temporary, NEW) else { return false };
        let placed = write(&file, content).and_then(|()| self.place(&file)).unwrap_or(false);
        if !placed {
            self.remove(&self.temporary);
        }
        placed
    }

    fn place(&self, file: &File) -> io::Result<bool> {
        let old = match self.open(&self.name, OLD) {
            Ok(_) if self.only_new => return Ok(false),
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.link(),
            Err(error) => return Err(error),
        };
        if old.try_lock().is_err() {
            return Ok(false);
        }
        let replaced = self.replace(file, &old);
        let _ = old.unlock(); // in words: closing does not unlock if a forked process has a copy
        replaced
    }

    fn replace(&self, file: &File, old: &File) -> io::Result<bool> {
        let status = old.metadata()?;
        if !status.is_file() || self.look()? != (status.dev(), status.ino()) {
            return Ok(false);
        }
        if status.mode() != file.metadata()?.mode() {
            let _ = file.set_permissions(status.permissions());
        }
        // SAFETY: the names are strings that end in NUL; whatever number the descriptor is, the call only fails.
        let code =
            unsafe { libc::renameat(self.directory, self.temporary.as_ptr(), self.directory, self.name.as_ptr()) };
        checked(code)?;
        // SAFETY: as above.
        if unsafe { libc::faccessat(self.directory, self.record.as_ptr(), libc::F_OK, 0) } == 0 {
            self.remove(&self.record);
        }
        Ok(true)
    }

    /// Give the file a name that nothing has; false if something has it.
    fn link(&self) -> io::Result<bool> {
        // SAFETY: as in `replace`.
        let code =
            unsafe { libc::linkat(self.directory, self.temporary.as_ptr(), self.directory, self.name.as_ptr(), 0) };
        checked(code)?;
        self.remove(&self.temporary);
        Ok(true)
    }

    fn open(&self, name: &CString, flags: i32) -> io::Result<File> {
        // SAFETY: as in `replace`.
        let file = unsafe { libc::openat(self.directory, name.as_ptr(), flags, MODE) };
        checked(file)?;
        // SAFETY: it was opened just now, and nobody else knows of it.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    fn remove(&self, name: &CString) {
        // SAFETY: as in `replace`.
        unsafe { libc::unlinkat(self.directory, name.as_ptr(), 0) };
    }

    /// Device and inode of what the name means now.
    #[allow(clippy::unnecessary_cast)] // the types differ between systems
    fn look(&self) -> io::Result<(u64, u64)> {
        // SAFETY: `stat` is a structure of integers, for which zeros are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as in `replace`, and `status` is borrowed mutably for the call.
        let code = unsafe { libc::fstatat(self.directory, self.name.as_ptr(), &mut status, libc::AT_SYMLINK_NOFOLLOW) };
        checked(code)?;
        Ok((status.st_dev as u64, status.st_ino as u64))
    }
}

fn checked(code: i32) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Write the bytes, and the present time to the nanosecond: what the system sets moves in steps of milliseconds, and
/// inode numbers come back at once, so that two files written in one step could be taken for one.
fn write(file: &File, content: SharedBytes) -> io::Result<()> {
    content.write_to(file)?;
    let now = SystemTime::now();
    file.set_times(FileTimes::new().set_accessed(now).set_modified(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    fn new_file(directory: &File, only_new: bool) -> NewFile {
        let [name, temporary, record] = ["chunk", ".chunk.tmp", ".record.tmp"].map(|name| CString::new(name).unwrap());
        NewFile { directory: directory.as_raw_fd(), name, temporary, record, only_new }
    }

    #[test]
    fn what_is_there_is_replaced_unless_somebody_has_locked_it() {
        let path = std::env::temp_dir().join(format!("zardine-new-file-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let chunk = path.join("chunk");
        let content = || fs::read(&chunk).unwrap();
        let put = |only_new, bytes: &[u8]| new_file(&directory, only_new).put(SharedBytes::of(bytes));
        assert!(put(true, b"one"));
        assert!(!put(true, b"two"));
        assert_eq!(content(), b"one");
        fs::set_permissions(&chunk, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(path.join(".record.tmp"), b"").unwrap();
        assert!(put(false, b"three"));
        assert_eq!(content(), b"three");
        assert_eq!(fs::metadata(&chunk).unwrap().mode() & 0o777, 0o640);
        assert!(!path.join(".record.tmp").exists());
        let held = File::open(&chunk).unwrap();
        held.lock().unwrap();
        assert!(!put(false, b"four"));
        held.unlock().unwrap();
        assert!(put(false, b"five"));
        assert_eq!(content(), b"five");
        fs::remove_file(&chunk).unwrap();
        std::os::unix::fs::symlink(path.join("elsewhere"), &chunk).unwrap();
        assert!(!put(false, b"six"));
        fs::remove_file(&chunk).unwrap();
        fs::create_dir(&chunk).unwrap();
        assert!(!put(false, b"seven"));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1); // nothing unfinished
        fs::remove_dir_all(&path).unwrap();
    }
}
