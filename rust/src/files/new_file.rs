//! Files that take the place of others, whole and at one moment, in directories that the caller has open; made of what
//! was there before, if that is wanted.
//!
//! Only the usual case is done here, in as few system calls as it takes: the name is free, or means a regular file that
//! nobody has locked. Whatever else is there is left as it is, and to the caller, who knows what to do and say.

use std::cell::Cell;
use std::ffi::CString;
use std::fs::{File, FileTimes, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::SystemTime;

use crate::files::file_flush::flush;
use crate::files::held_locks::HeldLock;
use crate::files::known_file::Identity;
use crate::memory::strided_memory::SharedBytes;

const EDIT: i32 = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
const OLD: i32 = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
const NEW: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MODE: libc::c_uint = 0o666;

thread_local! {
    /// Whether the last file that this thread has put has replaced another one: then the next one does so, too, as a rule.
    static REPLACES: Cell<bool> = const { Cell::new(false) };
}

/// A file to be made. The caller keeps the directory open; if it does not, calls fail, or name files of another one.
pub struct NewFile {
    pub directory: RawFd,
    pub name: CString,
    /// Its name until it is whole.
    pub temporary: CString,
    /// A file that goes when another one is replaced that may have been edited.
    pub record: CString,
    pub replaces: Replaces,
}

/// What a new file may take the place of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Replaces {
    /// Whatever is there, or nothing.
    #[default]
    Any,
    /// The name must be free.
    Nothing,
    /// A file of this version (`Identity::version`) must be there.
    Version(String),
}

impl Replaces {
    fn allows(&self, old: &Metadata) -> bool {
        match self {
            Replaces::Any => true,
            Replaces::Nothing => false,
            Replaces::Version(version) => Identity::from(old).version() == *version,
        }
    }

    fn allows_nothing(&self) -> bool {
        !matches!(self, Replaces::Version(_))
    }
}

/// A regular file that is to give way to a new one: locked (`flock`) until then, so that nobody else changes it.
pub struct OldFile {
    held: Option<HeldLock>,
    file: Option<File>,
    status: Metadata,
}

impl OldFile {
    pub fn fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.status.len()
    }

    /// Unlock the file, and leave it to the caller to close it where that may take long: until a disk has it.
    pub fn release(mut self) -> Option<RawFd> {
        self.unlock().filter(|file| !is_in_memory(file)).map(IntoRawFd::into_raw_fd)
    }

    /// What the system said of the file.
    pub fn status(&self) -> &Metadata {
        &self.status
    }

    fn unlock(&mut self) -> Option<File> {
        let file = self.file.take()?;
        let _ = file.unlock(); // in words: closing does not unlock if a forked process has a copy
        self.held = None;
        Some(file)
    }
}

impl Drop for OldFile {
    fn drop(&mut self) {
        self.unlock();
    }
}

impl NewFile {
    /// Lock and open what is there now, to be changed; nothing inside where the name is free. `None` where another writer
    /// has it locked, it has a second name, or is no regular file. With `is_edited`, which is right for shards, also where
    /// a record lies beside it: then a process has died while it edited the file.
    pub fn before(&self, is_edited: bool) -> io::Result<Option<Option<OldFile>>> {
        self.locked(OLD, is_edited)
    }

    /// As `before`, of a file that is to be extended.
    pub fn to_extend(&self) -> io::Result<Option<Option<OldFile>>> {
        self.locked(EDIT, true)
    }

    fn locked(&self, flags: i32, is_edited: bool) -> io::Result<Option<Option<OldFile>>> {
        let file = match self.open(&self.name, flags) {
            Ok(_) if self.replaces == Replaces::Nothing => return Ok(None),
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(self.replaces.allows_nothing().then_some(None));
            }
            Err(error) => return Err(error),
        };
        let held = HeldLock::of(&file);
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let status = file.metadata()?;
        let old = OldFile { held: Some(held), file: Some(file), status };
        let usual = old.status.is_file() && old.status.nlink() == 1 && !(is_edited && self.has_record());
        let usual = usual && self.replaces.allows(&old.status);
        // what is never edited holds what it held when it is not meant any more; that is looked at before it is replaced
        Ok((usual && (!is_edited || self.means(&old)?)).then_some(Some(old)))
    }

    /// Make the file by what `write` does, in the place of the `old` one, or where there is none; what the system says of
    /// it. `None`: that was not done, and all is as before.
    pub fn make(&self, old: Option<&OldFile>, write: impl FnOnce(&File) -> io::Result<()>) -> Option<Metadata> {
        let made = self.make_by(old, |file| {
            write(file)?;
            // so that nobody edits it before it was looked at; on a file system without locks the caller makes it
            file.try_lock().map_err(io::Error::from)
        })?;
        let status = made.metadata().ok();
        let _ = made.unlock();
        status
    }

    /// As `make`, of a file that is never edited; whether that was done.
    pub fn renew(&self, old: Option<&OldFile>, write: impl FnOnce(&File) -> io::Result<()>) -> bool {
        self.make_by(old, write).is_some()
    }

    fn make_by(&self, old: Option<&OldFile>, write: impl FnOnce(&File) -> io::Result<()>) -> Option<File> {
        self.prepare_by(write)?.place(old)
    }

    fn prepare_by(&self, write: impl FnOnce(&File) -> io::Result<()>) -> Option<Prepared<'_>> {
        let file = self.open(&self.temporary, NEW).ok()?;
        let prepared = Prepared { new: self, file: Some(file) };
        prepared.file.as_ref().and_then(|file| write(file).and_then(|()| finish(file)).ok())?;
        Some(prepared)
    }

    /// Put `content` behind what an `old` file holds, which was opened `to_extend`, and then `last` over what stands there
    /// at this offset; what the system says of the file then. `record` lies beside it meanwhile, for those who find that
    /// this process has died over it. `None`: another writer has to do it; the file is as before, has both, or there is the record.
    pub fn extend(&self, old: &OldFile, record: &[u8], content: &[u8], last: (u64, &[u8])) -> Option<Metadata> {
        let file = old.file.as_ref()?;
        let beside = self.open(&self.record, NEW).ok()?;
        if beside.write_all_at(record, 0).and_then(|()| flush(&beside)).is_err() {
            self.remove(&self.record);
            return None;
        }
        drop(beside);
        if file.write_all_at(content, old.size()).and_then(|()| flush(file)).is_err() {
            if file.set_len(old.size()).is_ok() {
                self.remove(&self.record);
            }
            let _ = stamp(file);
            return None;
        }
        // else the record stays, which says what is to be done
        file.write_all_at(last.1, last.0).and_then(|()| finish(file)).ok()?;
        self.remove(&self.record);
        let now = self.look().ok()?;
        let status = file.metadata().ok()?;
        (identity(&now) == (status.dev(), status.ino())).then_some(status)
    }

    fn take_place_of(&self, file: &File, old: &OldFile) -> io::Result<bool> {
        if old.status.mode() != file.metadata()?.mode() {
            let _ = file.set_permissions(old.status.permissions());
        }
        if !self.means(old)? {
            return Ok(false);
        }
        self.rename(file)?;
        Ok(true)
    }

    /// Whether the name means the old file still, and no program that takes no locks has changed it.
    pub fn means(&self, old: &OldFile) -> io::Result<bool> {
        Ok(Identity::of(&self.look()?) == Identity::from(&old.status))
    }

    /// Make the file of `content`, one piece after the other; whether that was done. If not, all is as before.
    ///
    /// Others who replace or change the file that is there lock it (`flock`) meanwhile, and look afterwards whether the
    /// name still means it; so does this. Where there is none, whoever is first makes it. `is_edited`: whether files of
    /// this kind are ever edited, so that there may be a record.
    pub fn put(&self, content: &[SharedBytes], is_edited: bool) -> bool {
        self.put_by(|file| content.iter().try_for_each(|piece| piece.write_to(file)).map(|()| true), is_edited)
    }

    /// As `put`, of what `write` writes, unless it says that nothing is to be made.
    pub fn put_by(&self, write: impl FnOnce(&File) -> io::Result<bool>, is_edited: bool) -> bool {
        self.put_file(write, is_edited).is_some()
    }

    fn put_file(&self, write: impl FnOnce(&File) -> io::Result<bool>, is_edited: bool) -> Option<File> {
        let file = self.open(&self.temporary, NEW).ok()?;
        let placed = match write(&file) {
            Ok(true) => finish(&file).and_then(|()| self.place(&file, is_edited)).unwrap_or(false),
            _ => false,
        };
        if !placed {
            self.remove(&self.temporary);
        }
        placed.then_some(file)
    }

    fn place(&self, file: &File, is_edited: bool) -> io::Result<bool> {
        if !REPLACES.get() && self.replaces.allows_nothing() {
            match self.name_at_once(file)? {
                Some(true) => return Ok(true),
                Some(false) if self.replaces == Replaces::Nothing => return Ok(false),
                _ => {}
            }
        }
        let opened = self.open(&self.name, OLD);
        REPLACES.set(opened.is_ok());
        let old = match opened {
            Ok(_) if self.replaces == Replaces::Nothing => return Ok(false),
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return if self.replaces.allows_nothing() { self.name_it(file) } else { Ok(false) };
            }
            Err(error) => return Err(error),
        };
        let _held = HeldLock::of(&old);
        if old.try_lock().is_err() {
            return Ok(false);
        }
        let replaced = self.replace(file, &old, is_edited);
        let _ = old.unlock(); // in words: closing does not unlock if a forked process has a copy
        replaced
    }

    fn replace(&self, file: &File, old: &File, is_edited: bool) -> io::Result<bool> {
        let status = old.metadata()?;
        if !status.is_file()
            || !self.replaces.allows(&status)
            || identity(&self.look()?) != (status.dev(), status.ino())
        {
            return Ok(false);
        }
        if status.mode() != file.metadata()?.mode() {
            let _ = file.set_permissions(status.permissions());
        }
        let has_record = is_edited && self.has_record(); // nobody makes one who has not locked the old file
        if has_record {
            let _ = file.try_lock(); // so that nobody edits it, and leaves a record, before the old record is gone
        }
        self.rename(file)?;
        if has_record {
            self.remove(&self.record);
            let _ = file.unlock();
        }
        Ok(true)
    }

    /// Give the file its name, which another one has so far.
    fn rename(&self, file: &File) -> io::Result<()> {
        // SAFETY: the names are strings that end in NUL; whatever number the descriptor is, the call only fails.
        let code =
            unsafe { libc::renameat(self.directory, self.temporary.as_ptr(), self.directory, self.name.as_ptr()) };
        self.named(code, file).map(drop)
    }

    /// Whether a call has given the file its name; false if something else has the name.
    ///
    /// The name decides, not the answer: where the answer of a server is lost, the client of a network file system asks
    /// again, and reports that the second call has failed.
    fn named(&self, code: i32, file: &File) -> io::Result<bool> {
        let Err(error) = checked(code) else { return Ok(true) };
        let has_name = |now| file.metadata().is_ok_and(|status| identity(&now) == (status.dev(), status.ino()));
        if self.look().is_ok_and(has_name) {
            return Ok(true);
        }
        if error.raw_os_error() == Some(libc::EEXIST) { Ok(false) } else { Err(error) }
    }

    fn has_record(&self) -> bool {
        // SAFETY: as in `rename`.
        unsafe { libc::faccessat(self.directory, self.record.as_ptr(), libc::F_OK, 0) == 0 }
    }

    /// As `name_it`, by one call of the system; nothing where that is not to be had.
    #[cfg(target_os = "linux")]
    fn name_at_once(&self, file: &File) -> io::Result<Option<bool>> {
        let (own, name) = (self.temporary.as_ptr(), self.name.as_ptr());
        // SAFETY: as in `rename`.
        let code = unsafe {
            libc::syscall(libc::SYS_renameat2, self.directory, own, self.directory, name, libc::RENAME_NOREPLACE)
        };
        match self.named(code as i32, file) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) => Ok(None),
            named => named.map(Some),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn name_at_once(&self, _: &File) -> io::Result<Option<bool>> {
        Ok(None)
    }

    /// Give the file a name that nothing has; false if something has it.
    fn name_it(&self, file: &File) -> io::Result<bool> {
        self.name_at_once(file)?.map_or_else(|| self.link(file), Ok)
    }

    /// As `name_it`, by two calls of the system.
    fn link(&self, file: &File) -> io::Result<bool> {
        // SAFETY: as in `rename`.
        let code =
            unsafe { libc::linkat(self.directory, self.temporary.as_ptr(), self.directory, self.name.as_ptr(), 0) };
        let is_named = self.named(code, file)?;
        if is_named {
            self.remove(&self.temporary);
        }
        Ok(is_named)
    }

    fn open(&self, name: &CString, flags: i32) -> io::Result<File> {
        // SAFETY: as in `rename`.
        let file = unsafe { libc::openat(self.directory, name.as_ptr(), flags, MODE) };
        checked(file)?;
        // SAFETY: it was opened just now, and nobody else knows of it.
        Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    fn remove(&self, name: &CString) {
        // SAFETY: as in `rename`.
        unsafe { libc::unlinkat(self.directory, name.as_ptr(), 0) };
    }

    /// What the name means now.
    fn look(&self) -> io::Result<libc::stat> {
        // SAFETY: `stat` is a structure of integers, for which zeros are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as in `rename`, and `status` is borrowed mutably for the call.
        let code = unsafe { libc::fstatat(self.directory, self.name.as_ptr(), &mut status, libc::AT_SYMLINK_NOFOLLOW) };
        checked(code)?;
        Ok(status)
    }
}

/// A file that is whole, and has not got its name yet; if it does not get that, it goes with this.
pub struct Prepared<'a> {
    new: &'a NewFile,
    file: Option<File>,
}

impl Prepared<'_> {
    /// Let the file take the place of the `old` one, or of nothing; as it was prepared, if that was done.
    pub fn place(mut self, old: Option<&OldFile>) -> Option<File> {
        let file = self.file.as_ref()?;
        let placed = match old {
            None => self.new.name_it(file),
            Some(old) => self.new.take_place_of(file, old),
        };
        if placed.unwrap_or(false) { self.file.take() } else { None }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.new.remove(&self.new.temporary);
            let _ = file.unlock();
        }
    }
}

/// Device and inode.
#[allow(clippy::unnecessary_cast)] // the types differ between systems
fn identity(status: &libc::stat) -> (u64, u64) {
    (status.st_dev as u64, status.st_ino as u64)
}

/// Whether a file lies in a file system that has no disk.
#[cfg(target_os = "linux")]
fn is_in_memory(file: &File) -> bool {
    // SAFETY: `statfs` is a structure of integers, for which zeros are valid.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `system` is borrowed mutably for the call.
    unsafe { libc::fstatfs(file.as_raw_fd(), &mut system) == 0 && system.f_type == libc::TMPFS_MAGIC }
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &File) -> bool {
    false
}

fn checked(code: i32) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Have the file system accept all bytes of a file, then `stamp` it: bytes that are accepted later change its times.
fn finish(file: &File) -> io::Result<()> {
    flush(file)?;
    stamp(file)
}

/// Give a file that was written the present time to the nanosecond: what the system sets moves in steps of milliseconds,
/// and inode numbers come back at once, so that two files written in one step could be taken for one.
fn stamp(file: &File) -> io::Result<()> {
    let now = SystemTime::now();
    file.set_times(FileTimes::new().set_accessed(now).set_modified(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    fn new_file(directory: &File, replaces: Replaces) -> NewFile {
        let [name, temporary, record] = ["chunk", ".chunk.tmp", ".record.tmp"].map(|name| CString::new(name).unwrap());
        NewFile { directory: directory.as_raw_fd(), name, temporary, record, replaces }
    }

    #[test]
    fn what_is_changed_is_locked_and_what_it_was() {
        let path = std::env::temp_dir().join(format!("zardine-old-file-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let (chunk, record) = (path.join("chunk"), path.join(".record.tmp"));
        let new = new_file(&directory, Replaces::Any);
        let write = |bytes: &'static [u8]| move |file: &File| SharedBytes::of(bytes).write_to(file);
        assert!(new.before(true).unwrap().unwrap().is_none());
        assert_eq!(new.make(None, write(b"one")).unwrap().len(), 3);
        assert!(new.make(None, write(b"two")).is_none()); // there is one
        assert!(new_file(&directory, Replaces::Nothing).before(true).unwrap().is_none());
        fs::set_permissions(&chunk, fs::Permissions::from_mode(0o640)).unwrap();
        let old = new.before(true).unwrap().unwrap().unwrap();
        assert!(new.before(true).unwrap().is_none()); // it is locked
        let made = new.make(Some(&old), write(b"three")).unwrap();
        assert_eq!((fs::read(&chunk).unwrap(), made.mode() & 0o777), (b"three".to_vec(), 0o640));
        if let Some(fd) = old.release() {
            // SAFETY: it was given to us, and nobody else knows of it.
            assert_eq!(File::from(unsafe { OwnedFd::from_raw_fd(fd) }).metadata().unwrap().len(), 3);
        }
        let old = new.before(true).unwrap().unwrap().unwrap();
        assert!(new.renew(Some(&old), write(b"renewed")));
        assert!(!new.renew(Some(&old), write(b"none"))); // the name means another one
        drop(old);
        assert_eq!(
            (fs::read(&chunk).unwrap(), fs::metadata(&chunk).unwrap().mode() & 0o777),
            (b"renewed".to_vec(), 0o640)
        );
        assert!(!new.renew(None, write(b"none")));
        let old = new.before(true).unwrap().unwrap().unwrap();
        fs::write(&chunk, b"changed").unwrap(); // by a program that takes no locks
        assert!(new.make(Some(&old), write(b"four")).is_none());
        assert!(new.make(None, |_| Err(io::ErrorKind::StorageFull.into())).is_none());
        drop(old);
        fs::write(&record, b"").unwrap();
        assert!(new.before(true).unwrap().is_none());
        drop(new.before(false).unwrap().unwrap().unwrap()); // of another array that was there
        assert!(new.put(&[SharedBytes::of(b"changed")], false) && record.exists());
        fs::remove_file(&record).unwrap();
        fs::hard_link(&chunk, path.join("other")).unwrap();
        assert!(new.before(true).unwrap().is_none());
        fs::remove_file(path.join("other")).unwrap();
        assert_eq!(new.before(true).unwrap().unwrap().unwrap().size(), 7);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1); // nothing unfinished
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn what_is_extended_is_locked_and_has_a_record_meanwhile() {
        let path = std::env::temp_dir().join(format!("zardine-extended-file-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let (chunk, record) = (path.join("chunk"), path.join(".record.tmp"));
        let new = new_file(&directory, Replaces::Any);
        assert!(new.to_extend().unwrap().unwrap().is_none());
        fs::write(&chunk, b"before").unwrap();
        let old = new.to_extend().unwrap().unwrap().unwrap();
        assert!(new.to_extend().unwrap().is_none()); // it is locked
        fs::write(&record, b"of somebody else").unwrap();
        assert!(new.extend(&old, b"record", b"after", (2, b"FO")).is_none());
        assert_eq!(fs::read(&chunk).unwrap(), b"before");
        fs::remove_file(&record).unwrap();
        let status = new.extend(&old, b"record", b"after", (2, b"FO")).unwrap();
        assert_eq!((fs::read(&chunk).unwrap(), status.len()), (b"beFOreafter".to_vec(), 11));
        assert!(!record.exists());
        drop(old);
        let old = new.before(true).unwrap().unwrap().unwrap(); // not to be written to
        assert!(new.extend(&old, b"record", b"more", (0, b"B")).is_none());
        assert_eq!(fs::read(&chunk).unwrap(), b"beFOreafter");
        fs::remove_file(&record).unwrap(); // it stays where the file could not be cut either
        drop(old);
        let old = new.to_extend().unwrap().unwrap().unwrap();
        fs::remove_file(&chunk).unwrap(); // by a program that takes no locks
        assert!(new.extend(&old, b"record", b"more", (0, b"B")).is_none());
        fs::write(&record, b"").unwrap();
        fs::write(&chunk, b"x").unwrap();
        assert!(new.to_extend().unwrap().is_none()); // somebody has died over it
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn what_is_there_is_replaced_unless_somebody_has_locked_it() {
        let path = std::env::temp_dir().join(format!("zardine-new-file-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let chunk = path.join("chunk");
        let content = || fs::read(&chunk).unwrap();
        let put_where = |replaces: &Replaces, bytes: &[u8]| {
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            new_file(&directory, replaces.clone()).put(&[SharedBytes::of(first), SharedBytes::of(rest)], true)
        };
        let put = |bytes: &[u8]| put_where(&Replaces::Any, bytes);
        assert!(put_where(&Replaces::Nothing, b"one"));
        assert!(!put_where(&Replaces::Nothing, b"two"));
        assert_eq!(content(), b"one");
        fs::set_permissions(&chunk, fs::Permissions::from_mode(0o640)).unwrap();
        fs::write(path.join(".record.tmp"), b"").unwrap();
        assert!(put(b"three"));
        assert_eq!(content(), b"three");
        assert_eq!(fs::metadata(&chunk).unwrap().mode() & 0o777, 0o640);
        assert!(!path.join(".record.tmp").exists());
        let held = File::open(&chunk).unwrap();
        held.lock().unwrap();
        assert!(!put(b"four"));
        held.unlock().unwrap();
        assert!(put(b"five"));
        assert_eq!(content(), b"five");
        for _ in 0..2 {
            // whether the last file replaced one, or not
            let known = Replaces::Version(Identity::from(&fs::metadata(&chunk).unwrap()).version());
            assert!(put_where(&known, b"known") && !put_where(&known, b"not any more"));
            assert_eq!(content(), b"known");
            assert!(new_file(&directory, known.clone()).before(true).unwrap().is_none());
            fs::remove_file(&chunk).unwrap();
            assert!(!put_where(&known, b"gone"));
            assert!(new_file(&directory, known).before(true).unwrap().is_none() && !chunk.exists());
            assert!(put(b"six"));
        }
        fs::remove_file(&chunk).unwrap();
        std::os::unix::fs::symlink(path.join("elsewhere"), &chunk).unwrap();
        assert!(!put(b"six"));
        fs::remove_file(&chunk).unwrap();
        fs::create_dir(&chunk).unwrap();
        assert!(!put(b"seven"));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1); // nothing unfinished
        fs::remove_dir_all(&path).unwrap();
    }
}
