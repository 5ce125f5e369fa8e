//! Many files that take the place of others below one directory: where each goes, in directories that are opened, or made.
//!
//! Only the usual case is done here: no link on the way, and names that values may have. Whatever else there is, is left
//! to the caller, who knows what to do and say.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::files::many_files::OPENING;
use crate::files::new_file::{NewFile, Replaces};
use crate::files::stored_files;
use crate::memory::strided_memory::SharedBytes;
use crate::threads::workers::Batches;

const DIRECTORY: i32 = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MODE: libc::mode_t = 0o777;
/// Bytes that it is about as much work as to make a file and give it the name of another.
const PUTTING: usize = 2 * OPENING;

/// What lies beside values, by its names: those of unfinished files are `start`, 16 digits and `end`; those of records
/// of edits `edit`, the name of the file and `end`. No part of a key may begin with `start` and end with `end`.
pub struct NamesBeside {
    pub start: Vec<u8>,
    pub edit: Vec<u8>,
    pub end: Vec<u8>,
    /// Where the numbers begin that the digits are.
    pub number: u64,
}

/// The directory that keys begin at.
pub enum Base {
    /// It is open, and the caller may close it then.
    Open(RawFd),
    /// Its path, if what that leads to lies `below` a directory: its own real path with a slash at the end.
    Named { path: Vec<u8>, below: Vec<u8> },
}

/// Files in open directories, which are closed with this; those that were made and in which nothing is go then.
pub struct NewFiles {
    files: Vec<NewFile>,
    base: Option<OwnedFd>,
    directories: Vec<OwnedFd>,
    /// Directory above and name of what was made.
    made: Vec<(RawFd, CString)>,
}

impl NewFiles {
    /// Where the files of `keys` go below the directory `base`. `replaces`: what that of each may take the place of;
    /// nothing: of any. `None` where that is not the usual case.
    pub fn open(
        base: &Base,
        keys: &[Vec<u8>],
        replaces: &[Replaces],
        names: &NamesBeside,
    ) -> io::Result<Option<NewFiles>> {
        let mut new = NewFiles { files: Vec::new(), base: None, directories: Vec::new(), made: Vec::new() };
        let mut known: HashMap<&[u8], (RawFd, bool)> = HashMap::new();
        for (number, key) in keys.iter().enumerate() {
            let end = key.iter().rposition(|&byte| byte == b'/');
            let (prefix, name) = end.map_or((&[][..], key.as_slice()), |end| (&key[..end], &key[end + 1..]));
            let (Some(name), true) = (names.part(name), end != Some(0)) else { return Ok(None) };
            let directory = match known.get(prefix) {
                Some(&(found, _)) => found,
                None => match new.open_directory(base, prefix, names, &mut known)? {
                    Some(found) => found,
                    None => return Ok(None),
                },
            };
            let replaces = replaces.get(number).cloned().unwrap_or_default();
            new.files.push(names.file(directory, name, number as u64, replaces));
        }
        Ok(Some(new))
    }

    /// Open the directory of a prefix, or make it: at once, if it and those before are there and no link is on the way.
    fn open_directory<'a>(
        &mut self,
        base: &Base,
        prefix: &'a [u8],
        names: &NamesBeside,
        known: &mut HashMap<&'a [u8], (RawFd, bool)>,
    ) -> io::Result<Option<RawFd>> {
        let parts = || prefix.split(|&byte| byte == b'/').filter(|_| !prefix.is_empty());
        if parts().any(|part| !names.may_be_part(part)) {
            return Ok(None);
        }
        if self.base.is_none()
            && let Some(directory) = base.open_below(prefix)
        {
            let found = directory.as_raw_fd();
            self.directories.push(directory);
            known.insert(prefix, (found, false));
            return Ok(Some(found));
        }
        if self.base.is_none() {
            self.base = base.open()?;
        }
        let Some(base) = &self.base else { return Ok(None) };
        let (mut directory, mut is_made, mut end) = (base.as_raw_fd(), false, 0);
        for part in parts() {
            end += part.len();
            let so_far = &prefix[..end];
            (directory, is_made) = match known.get(so_far) {
                Some(&found) => found,
                None => {
                    let part = CString::new(part)?;
                    let Some(found) = self.directory(directory, &part, is_made)? else { return Ok(None) };
                    known.insert(so_far, found);
                    found
                }
            };
            end += 1;
        }
        Ok(Some(directory))
    }

    /// Close the directories where all files were made: each that was made holds something.
    pub fn close_filled(mut self) {
        self.made.clear();
    }

    /// Make each file of one of `contents`, in the place of what is there; the numbers of those left to the caller.
    pub fn put(&self, contents: &[SharedBytes], threads: usize) -> Vec<usize> {
        assert!(contents.len() == self.files.len());
        let batches = Batches::new(contents.iter().map(|each| each.len().saturating_add(PUTTING)), threads);
        let parts = batches.run(Vec::new, |left, range| {
            left.extend(range.filter(|&number| !self.files[number].put(&contents[number..=number], true)));
        });
        let mut left = parts.concat();
        left.sort_unstable();
        left
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

impl Base {
    /// The directory; `None` where that lies elsewhere.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        match self {
            Base::Open(directory) => copy(*directory).map(Some),
            Base::Named { path, below } => {
                let path = CString::new(path.as_slice())?;
                Ok(stored_files::open_below(&path, below, libc::O_DIRECTORY)?.map(OwnedFd::from))
            }
        }
    }

    /// A directory in it by one call of the system; `None` where that is not to be had, or nothing is there.
    fn open_below(&self, prefix: &[u8]) -> Option<OwnedFd> {
        match self {
            Base::Open(_) => None,
            Base::Named { path, below } => {
                let path = CString::new([path.as_slice(), b"/", prefix].concat()).ok()?;
                stored_files::open_straight(&path, below, libc::O_DIRECTORY)?.ok().map(OwnedFd::from)
            }
        }
    }
}

impl NamesBeside {
    /// A part of a key, if it may be one.
    fn part(&self, part: &[u8]) -> Option<CString> {
        if self.may_be_part(part) { CString::new(part).ok() } else { None }
    }

    fn may_be_part(&self, part: &[u8]) -> bool {
        let is_beside = part.starts_with(&self.start) && part.ends_with(&self.end);
        !(part.is_empty() || part == b"." || part == b".." || part.contains(&b'/') || part.contains(&0) || is_beside)
    }

    fn file(&self, directory: RawFd, name: CString, number: u64, replaces: Replaces) -> NewFile {
        let digits = format!("{:016x}", self.number.wrapping_add(number));
        let joined = |parts: [&[u8]; 3]| CString::new(parts.concat()).unwrap_or_default(); // which no file can have
        let temporary = joined([&self.start, digits.as_bytes(), &self.end]);
        let record = joined([&self.edit, name.as_bytes(), &self.end]);
        NewFile { directory, name, temporary, record, replaces }
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
    use crate::memory::strided_memory::SharedBytes;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

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
            NewFiles::open(&Base::Open(base.as_raw_fd()), &keys, &[Replaces::Any, Replaces::Nothing], &names())
        };
        let new = open(&["c/0/0", "c/0/1", "c/1/0", "top", "there/d/e"]).unwrap().unwrap();
        assert_eq!(new.made.len(), 4);
        let replaces: Vec<&Replaces> = new.files.iter().map(|file| &file.replaces).collect();
        let any = &Replaces::Any;
        assert_eq!(replaces, [any, &Replaces::Nothing, any, any, any]);
        let temporary: Vec<&[u8]> = new.files.iter().take(2).map(|file| file.temporary.as_bytes()).collect();
        assert_eq!(temporary, [b".own-ffffffffffffffff.tmp", b".own-0000000000000000.tmp"]);
        assert_eq!(new.files[3].record.as_bytes(), b".own-edit-top.tmp");
        for number in [1, 3] {
            assert!(new.files[number].put(&[SharedBytes::of(b"x")], false));
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
        assert!(NewFiles::open(&Base::Open(-1), &[b"a".to_vec()], &[], &names()).is_err());
        let real = fs::canonicalize(&path).unwrap();
        let named = |path: &Path, key: &str| {
            let below = [real.as_os_str().as_bytes(), b"/"].concat();
            let base = Base::Named { path: path.as_os_str().as_bytes().to_vec(), below };
            NewFiles::open(&base, &[key.as_bytes().to_vec()], &[], &names()).unwrap()
        };
        let new = named(&real, "there/a").unwrap();
        assert_eq!(new.directories.len(), 1);
        assert_eq!(new.base.is_none(), cfg!(target_os = "linux"));
        drop(new);
        for base in [real.clone(), real.join("itself")] {
            symlink(&real, real.join("itself")).ok();
            assert!(named(&base, "a").is_some() && named(&base, "new/b").is_some() && named(&base, "link/a").is_none());
        }
        assert!(named(&std::env::temp_dir(), "a").is_none());
        assert!(!path.join("a").exists());
        fs::remove_dir_all(&path).unwrap();
    }
}
