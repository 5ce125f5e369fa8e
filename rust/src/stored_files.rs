//! Files that jobs name by their paths: opened when their turn comes, and closed right after it.
//!
//! Only the usual case is done here: a regular file that lies below a certain directory, wherever links led to it.
//! Whatever else is there fails, and is left to the caller, who knows what to do and say.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::readable::{self, Readable};
use crate::{Outcome, Reason};

/// A FIFO must not hang us.
const FLAGS: i32 = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
/// The longest path that the system tells.
const LONGEST: usize = 4096;

/// To open a file takes as long as to decode so many bytes.
pub const OPEN_BYTES: usize = 32 * 1024;

pub struct StoredFiles {
    /// The real path of a directory with a slash at its end: files that lie elsewhere are not read.
    pub below: Vec<u8>,
    pub paths: Vec<CString>,
    /// Whether chunks may be missing.
    pub missing: bool,
}

/// An open file that is closed with this.
pub struct Opened {
    file: File,
    size: u64,
}

impl StoredFiles {
    /// Open a file; nothing if it is missing, and may be.
    pub fn open(&self, number: usize) -> Outcome<Option<Opened>> {
        let path = self.paths.get(number).ok_or("no such file")?;
        // SAFETY: the path is a string that ends in NUL.
        let fd = unsafe { libc::open(path.as_ptr(), FLAGS) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            let is_missing = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR));
            return if is_missing && self.missing { Ok(None) } else { Err(failed("opening", &error)) };
        }
        // SAFETY: it was opened just now, and nobody else knows of it.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        self.check_place(&file)?;
        let status = file.metadata().map_err(|error| failed("looking at a file", &error))?;
        if !status.is_file() {
            return Err("no regular file".into());
        }
        Ok(Some(Opened { file, size: status.len() }))
    }

    /// Whether the open file lies below the directory: asked after it was opened, when nobody can exchange it any more.
    fn check_place(&self, file: &File) -> Outcome {
        let link = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|_| "no path")?;
        let mut place = [0u8; LONGEST];
        // SAFETY: the path is a string that ends in NUL, and `place` is borrowed mutably for the call.
        let length = unsafe { libc::readlink(link.as_ptr(), place.as_mut_ptr().cast(), place.len()) };
        match usize::try_from(length) {
            Ok(length) if place[..length].starts_with(&self.below) => Ok(()),
            Ok(_) => Err("a file that lies elsewhere".into()),
            Err(_) => Err(failed("looking where a file is", &io::Error::last_os_error())),
        }
    }
}

impl Opened {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// To be read as long as this is kept.
    pub fn readable(&self) -> Readable<'static> {
        Readable::File(readable::File::of_size(self.file.as_raw_fd(), self.size))
    }
}

fn failed(what: &str, error: &io::Error) -> Reason {
    format!("{what} failed: {error}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_files_below_are_opened() {
        let base = std::env::temp_dir().join(format!("zardine-stored-files-{}", std::process::id()));
        let inside = base.join("inside");
        fs::create_dir_all(inside.join("folder")).unwrap();
        fs::write(inside.join("own"), b"own").unwrap();
        fs::write(base.join("other"), b"other").unwrap();
        symlink(inside.join("own"), inside.join("stays")).unwrap();
        symlink(base.join("other"), inside.join("leaves")).unwrap();
        let names = ["own", "stays", "leaves", "folder", "none", "own/below"];
        let mut below = fs::canonicalize(&inside).unwrap().as_os_str().as_bytes().to_vec();
        below.push(b'/');
        let path = |name| CString::new(inside.join(name).as_os_str().as_bytes()).unwrap();
        let mut files = StoredFiles { below, paths: names.map(path).into(), missing: true };
        let sizes = |files: &StoredFiles| -> Vec<Result<Option<u64>, ()>> {
            let open = |number| files.open(number).map(|file| file.map(|file| file.size())).map_err(|_| ());
            (0..files.paths.len() + 1).map(open).collect()
        };
        assert_eq!(sizes(&files), [Ok(Some(3)), Ok(Some(3)), Err(()), Err(()), Ok(None), Ok(None), Err(())]);
        files.missing = false;
        assert_eq!(sizes(&files)[4..], [Err(()), Err(()), Err(())]);
        let mut bytes = [0; 3];
        files.open(1).unwrap().unwrap().readable().read(0, &mut bytes, &mut []).unwrap();
        assert_eq!(&bytes, b"own");
        fs::remove_dir_all(&base).unwrap();
    }
}
