//! Many files that take the place of others below one directory: where each goes, in directories that are opened, or made.
//!
//! Only the usual case is done here: no link on the way, and names that values may have. Whatever else there is, is left
//! to the caller, who knows what to do and say.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::new_file::NewFile;

const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MODE: libc::mode_t = 0o777;

/// What lies beside values, by its names: those of unfinished files are `start`, 16 digits and `end`; those of records
/// of edits `edit`, the name of the file and `end`. No part of a key may begin with `start` and end with `end`.
pub struct NamesBeside {
    pub start: Vec<u8>,
    pub edit: Vec<u8>,
    pub end: Vec<u8>,
    /// Where the numbers begin that the digits are.
    pub number: u64,
}

/// Files in open directories, which are closed with this; those that were made and in which nothing is go then.
pub struct NewFiles {
    files: Vec<NewFile>,
    base: OwnedFd,
    directories: Vec<OwnedFd>,
    /// Directory above and name of what was made.
    made: Vec<(RawFd, CString)>,
}

impl NewFiles {
    /// Where the files of `keys` go below the directory `base`, which the caller has open and may close then. `only_new`:
    /// of each whether none may be replaced; nothing: any may. `None` where that is not the usual case.
    pub fn open(base: RawFd, keys: &[Vec<u8>], only_new: &[bool], names: &NamesBeside) -> io::Result<Option<NewFiles>> {
        let mut new = NewFiles { files: Vec::new(), base: copy(base)?, directories: Vec::new(), made: Vec::new() };
        let mut known: HashMap<&[u8], (RawFd, bool)> = HashMap::new();
        for (number, key) in keys.iter().enumerate() {
            let (mut directory, mut is_made, mut start) = (new.base.as_raw_fd(), false, 0);
            while let Some(length) = key[start..].iter().position(|&byte| byte == b'/') {
                let prefix = &key[..start + length];
                let Some(part) = names.part(&key[start..start + length]) else { return Ok(None) };
                (directory, is_made) = match known.get(prefix) {
                    Some(&found) => found,
                    None => {
                        let Some(found) = new.directory(directory, &part, is_made)? else { return Ok(None) };
                        known.insert(prefix, found);
                        found
                    }
                };
                start += length + 1;
            }
            let Some(name) = names.part(&key[start..]) else { return Ok(None) };
            let only_new = only_new.get(number).copied().unwrap_or(false);
            new.files.push(names.file(directory, name, number as u64, only_new));
        }
        Ok(Some(new))
    }

    pub fn files(&self) -> &[NewFile] {
        &self.files
    }

    /// Open a directory, or make it, at once if the one above `is_made`, and whether it was made; `None` where something
    /// else is in its place.
    fn directory(&mut self, above: RawFd, name: &CString, is_made: bool) -> io::Result<Option<(RawFd, bool)>> {
        let missing = || Err(io::ErrorKind::NotFound.into());
        let (mut found, mut makes) = (if is_made { missing() } else { open(above, name) }, false);
        if matches!(&found, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            // SAFETY: the name is a string that ends in NUL.
            makes = unsafe { libc::mkdirat(above, name.as_ptr(), MODE) } == 0;
            if makes {
                self.made.push((above, name.clone()));
            }
            found = open(above, name); // that says why, if it could not be made
        }
        match found {
            Ok(directory) => {
                let number = directory.as_raw_fd();
                self.directories.push(directory);
                Ok(Some((number, makes)))
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for (above, name) in self.made.iter().rev() {
            // SAFETY: the name is a string that ends in NUL. Mostly something was put into the directory: that fails.
            unsafe { libc::unlinkat(*above, name.as_ptr(), libc::AT_REMOVEDIR) };
        }
    }
}

impl NamesBeside {
    /// A part of a key, if it may be one.
    fn part(&self, part: &[u8]) -> Option<CString> {
        let is_beside = part.starts_with(&self.start) && part.ends_with(&self.end);
        if part.is_empty() || part == b"." || part == b".." || part.contains(&b'/') || is_beside {
            return None;
        }
        CString::new(part).ok()
    }

    fn file(&self, directory: RawFd, name: CString, number: u64, only_new: bool) -> NewFile {
        let digits = format!("{:016x}", self.number.wrapping_add(number));
        let joined = |parts: [&[u8]; 3]| CString::new(parts.concat()).unwrap_or_default(); // which no file can have
        let temporary = joined([&self.start, digits.as_bytes(), &self.end]);
        let record = joined([&self.edit, name.as_bytes(), &self.end]);
        NewFile { directory, name, temporary, record, only_new }
    }
}

fn copy(directory: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: whatever number the descriptor is, the call only fails.
    owned(unsafe { libc::fcntl(directory, libc::F_DUPFD_CLOEXEC, 0) })
}

fn open(above: RawFd, name: &CString) -> io::Result<OwnedFd> {
    // SAFETY: the name is a string that ends in NUL; whatever number the descriptor is, the call only fails.
    owned(unsafe { libc::openat(above, name.as_ptr(), DIRECTORY) })
}

fn owned(file: RawFd) -> io::Result<OwnedFd> {
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strided_memory::SharedBytes;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    fn names() -> NamesBeside {
        let text = |text: &str| text.as_bytes().to_vec();
        NamesBeside { start: text(".own-"), edit: text(".own-edit-"), end: text(".tmp"), number: u64::MAX }
    }

    #[test]
    fn directories_are_made_and_go_again_where_nothing_is_put() {
        let path = std::env::temp_dir().join(format!("zardine-new-files-{}", std::process::id()));
        fs::create_dir_all(path.join("there")).unwrap();
        fs::write(path.join("file"), b"").unwrap();
        symlink(path.join("there"), path.join("link")).unwrap();
        let base = File::open(&path).unwrap();
        let open = |keys: &[&str]| {
            let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
            NewFiles::open(base.as_raw_fd(), &keys, &[false, true], &names())
        };
        let new = open(&["c/0/0", "c/0/1", "c/1/0", "top", "there/d/e"]).unwrap().unwrap();
        assert_eq!(new.made.len(), 4);
        assert_eq!(new.files.iter().map(|file| file.only_new).collect::<Vec<_>>(), [false, true, false, false, false]);
        let temporary: Vec<&[u8]> = new.files.iter().take(2).map(|file| file.temporary.as_bytes()).collect();
        assert_eq!(temporary, [b".own-ffffffffffffffff.tmp", b".own-0000000000000000.tmp"]);
        assert_eq!(new.files[3].record.as_bytes(), b".own-edit-top.tmp");
        for number in [1, 3] {
            assert!(new.files[number].put(&[SharedBytes::of(b"x")]));
        }
        drop(new);
        assert!(path.join("c/0/1").is_file() && path.join("top").is_file() && path.join("there").is_dir());
        assert!(!path.join("c/1").exists() && !path.join("there/d").exists());
        for wrong in
            ["", "a//b", "/a", "a/", "../a", "a/./b", "a/..", ".own-1.tmp/a", "a/.own-1.tmp", "a\0", "link/a", "file/a"]
        {
            assert!(open(&[wrong]).unwrap().is_none(), "{wrong}");
        }
        assert!(open(&[&format!("{}/a", "x".repeat(300))]).is_err());
        assert!(NewFiles::open(-1, &[], &[], &names()).is_err());
        assert!(!path.join("a").exists());
        fs::remove_dir_all(&path).unwrap();
    }
}
