//! Many small files that are made, read or removed in one call, in directories that the caller has open.
//!
//! Names are those of one directory each, so that no link in a path leads elsewhere; a link in the place of a file is
//! not followed. What is not the usual case fails, with the number of the system's error, and is the caller's to do.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::files::file_flush::flush;
use crate::memory::strided_memory::SharedBytes;
use crate::threads::workers::Batches;

const READ: i32 = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
const NEW: i32 = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
const MODE: libc::c_uint = 0o666;
/// Bytes that opening a file is about as much work as.
pub const OPENING: usize = 16 * 1024;

/// A file by its name in a directory. The caller keeps that open; if it does not, calls fail, or name other files.
pub struct Place {
    pub directory: RawFd,
    pub name: CString,
}

fn open(directory: RawFd, name: &CStr, flags: i32) -> io::Result<File> {
    // SAFETY: the name is a string that ends in NUL; whatever number the descriptor is, the call only fails.
    let file = unsafe { libc::openat(directory, name.as_ptr(), flags, MODE) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now, and nobody else knows of it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
}

/// Make an empty file that is not there, to be written.
pub fn create(directory: RawFd, name: &CStr) -> io::Result<File> {
    open(directory, name, NEW)
}

impl Place {
    fn open(&self, flags: i32) -> io::Result<File> {
        open(self.directory, &self.name, flags)
    }

    /// Make the file. One that cannot be filled stays there in part.
    fn make(&self, content: SharedBytes) -> io::Result<()> {
        let file = create(self.directory, &self.name)?;
        content.write_to(&file)?;
        flush(&file)
    }

    /// All bytes of the file; `None` for one of more than `most`, and for what is no regular file.
    fn read(&self, most: u64) -> io::Result<Option<Vec<u8>>> {
        let mut file = self.open(READ)?;
        let status = file.metadata()?;
        if !status.is_file() || status.len() > most {
            return Ok(None);
        }
        let size = status.len() as usize;
        let mut content = Vec::new();
        content.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        content.resize(size, 0);
        file.read_exact(&mut content)?;
        Ok(Some(content))
    }

    fn remove(&self) -> io::Result<()> {
        // SAFETY: as in `open`.
        let code = unsafe { libc::unlinkat(self.directory, self.name.as_ptr(), 0) };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Make files that are not there; numbers and errors of those that could not be made.
pub fn make(places: &[Place], contents: &[SharedBytes], threads: usize) -> Vec<(usize, i32)> {
    assert!(places.len() == contents.len());
    let sizes = contents.iter().map(|each| each.len().saturating_add(OPENING));
    failures(Batches::new(sizes, threads), |number| places[number].make(contents[number]))
}

/// Remove files; numbers and errors of those that could not be removed.
pub fn remove(places: &[Place], threads: usize) -> Vec<(usize, i32)> {
    failures(Batches::new(places.iter().map(|_| OPENING), threads), |number| places[number].remove())
}

/// Read files of at most `most` bytes each; `None` for all others, and where one cannot be read.
pub fn read(places: &[Place], most: u64, threads: usize) -> Vec<Option<Vec<u8>>> {
    let batches = Batches::new(places.iter().map(|_| OPENING), threads);
    let mut found: Vec<Option<Vec<u8>>> = places.iter().map(|_| None).collect();
    let parts = batches.run(Vec::new, |found, range| {
        for number in range {
            found.push((number, places[number].read(most).unwrap_or(None)));
        }
    });
    for (number, content) in parts.into_iter().flatten() {
        found[number] = content;
    }
    found
}

fn failures(batches: Batches, work: impl Fn(usize) -> io::Result<()> + Sync) -> Vec<(usize, i32)> {
    let parts = batches.run(Vec::new, |failed, range| {
        for number in range {
            if let Err(error) = work(number) {
                failed.push((number, error.raw_os_error().unwrap_or(libc::EIO)));
            }
        }
    });
    let mut failed: Vec<(usize, i32)> = parts.into_iter().flatten().collect();
    failed.sort_unstable();
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;

    #[test]
    fn files_are_made_once_read_within_limits_and_removed() {
        let path = std::env::temp_dir().join(format!("zardine-many-files-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let place = |name: &str| Place { directory: directory.as_raw_fd(), name: CString::new(name).unwrap() };
        let places: Vec<Place> = (0..300).map(|number| place(&number.to_string())).collect();
        let texts: Vec<String> = (0..300).map(|number| "x".repeat(number)).collect();
        let contents: Vec<SharedBytes> = texts.iter().map(|text| SharedBytes::of(text.as_bytes())).collect();
        assert_eq!(make(&places, &contents, 3), []);
        assert_eq!(make(&places[..2], &contents[..2], 3), [(0, libc::EEXIST), (1, libc::EEXIST)]);
        std::os::unix::fs::symlink(path.join("7"), path.join("link")).unwrap();
        fs::create_dir(path.join("folder")).unwrap();
        let found = read(&places, 200, 3);
        assert!(found.iter().enumerate().all(|(number, each)| match each {
            Some(content) => number <= 200 && content == texts[number].as_bytes(),
            None => number > 200,
        }));
        assert_eq!(read(&[place("link"), place("folder"), place("none")], 200, 1), [None, None, None]);
        assert_eq!(remove(&places, 2), []);
        assert_eq!(remove(&places[..1], 2), [(0, libc::ENOENT)]);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
        fs::remove_dir_all(&path).unwrap();
    }
}
