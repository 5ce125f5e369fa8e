//! Files that jobs name by their paths: opened when their turn comes, and closed right after it.
//!
//! Only the usual case is done here: a regular file that lies below a certain directory, wherever links led to it.
//! Whatever else is there fails, and is left to the caller, who knows what to do and say.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Ancestors, Path};

use crate::files::known_file::{self, Identity};
use crate::files::readable::{self, Readable};
use crate::{Outcome, Reason};

/// A FIFO must not hang us.
const FLAGS: i32 = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
/// The longest path that the system tells.
const LONGEST: usize = 4096;

/// To open a file takes as long as to decode so many bytes.
pub const OPEN_BYTES: usize = 16 * 1024;

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
    identity: Identity,
}

impl StoredFiles {
    /// Open a file; nothing if it is missing, and may be.
    pub fn open(&self, number: usize) -> Outcome<Option<Opened>> {
        let path = self.paths.get(number).ok_or("no such file")?;
        let file = match open_below(path, &self.below, 0) {
            Ok(Some(file)) => file,
            Ok(None) => return Err("a file that lies elsewhere".into()),
            Err(error) if is_missing(&error) && self.missing => return Ok(None),
            Err(error) => return Err(failed("opening", &error)),
        };
        let status = file.metadata().map_err(|error| failed("looking at a file", &error))?;
        if !status.is_file() {
            return Err("no regular file".into());
        }
        Ok(Some(Opened { file, identity: Identity::from(&status) }))
    }
}

/// All bytes of a file that lies `below` a directory (its real path with a slash at its end), or, without one, of a
/// file that is no link itself; nothing where it is missing. A file of more than `most` bytes is not read.
pub fn read_whole(path: &CStr, below: Option<&[u8]>, most: u64) -> io::Result<Option<(Option<Vec<u8>>, Metadata)>> {
    let opened = match below {
        Some(below) => open_below(path, below, 0),
        None => open(path, FLAGS | libc::O_NOFOLLOW).map(Some).map_err(|error| match is_missing(&error) {
            true if is_below_nowhere(path) => io::ErrorKind::InvalidInput.into(),
            _ => error,
        }),
    };
    let mut file = match opened {
        Ok(Some(file)) => file,
        Ok(None) => return Err(io::ErrorKind::InvalidInput.into()),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let status = file.metadata()?;
    if !status.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if status.len() > most {
        return Ok(Some((None, status)));
    }
    let size = status.len() as usize;
    let mut content = Vec::new();
    content.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    content.resize(size, 0);
    file.read_exact(&mut content)?;
    Ok(Some((Some(content), status)))
}

/// Whether none of the paths leads to anything that may be looked at; that of a link to nowhere does not.
pub fn none_is_there(paths: &[CString]) -> bool {
    // SAFETY: the path is a string that ends in NUL.
    paths
        .iter()
        .all(|path| unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::F_OK, libc::AT_EACCESS) } != 0)
}

/// Open what lies below a directory, or that directory itself, with more `flags`; nothing where a link leads elsewhere.
/// Of what is missing the error says so; of a link that leads nowhere, and a system that does not tell where an open file
/// lies, it does not.
pub fn open_below(path: &CStr, below: &[u8], flags: i32) -> io::Result<Option<File>> {
    match open_straight(path, below, flags) {
        Some(Ok(file)) => return Ok(Some(file)),
        Some(Err(error)) if is_missing(&error) => return Err(error),
        _ => {} // a link, or a system that does not know this call or forbids it
    }
    let file = match open(path, FLAGS | flags) {
        Err(error) if is_missing(&error) && leads_nowhere(path) => return Err(io::ErrorKind::InvalidInput.into()),
        opened => opened?,
    };
    Ok(lies_below(&file, below).map_err(io::Error::other)?.then_some(file))
}

/// As `open_below`, of a path without links, by one call of the system; nothing where another one has to be asked.
#[cfg(target_os = "linux")]
pub fn open_straight(path: &CStr, below: &[u8], flags: i32) -> Option<io::Result<File>> {
    leads_below(path, below).then(|| open_without_links(path, flags))
}

#[cfg(not(target_os = "linux"))]
pub fn open_straight(_: &CStr, _: &[u8], _: i32) -> Option<io::Result<File>> {
    None
}

/// Whether a path of which no part is a link surely leads below a directory.
#[cfg(target_os = "linux")]
fn leads_below(path: &CStr, below: &[u8]) -> bool {
    let (path, Some(itself)) = (path.to_bytes(), below.strip_suffix(b"/")) else { return false };
    let rest = if path == itself { Some(&[][..]) } else { path.strip_prefix(below) };
    rest.is_some_and(|rest| rest.split(|&byte| byte == b'/').all(|part| part != b".."))
}

/// Open a file if no part of its path is a link, which the system itself looks at: it is where the path says.
#[cfg(target_os = "linux")]
fn open_without_links(path: &CStr, flags: i32) -> io::Result<File> {
    // SAFETY: zeros are a value of this struct of numbers.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (FLAGS | flags) as u64;
    how.resolve = libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: the path is a string that ends in NUL, and `how` is borrowed for the call, with its size.
    let file = unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &how, size_of_val(&how)) };
    match i32::try_from(file) {
        // SAFETY: it was opened just now, and nobody else knows of it.
        Ok(file) if file >= 0 => Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) })),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Open once more what an open file is, wherever that lies by now; nothing where the system has no such way.
pub fn open_again(fd: RawFd) -> Option<File> {
    let path = cfg!(target_os = "linux").then(|| CString::new(format!("/proc/self/fd/{fd}")).ok())??;
    open(&path, FLAGS).ok()
}

fn open(path: &CStr, flags: i32) -> io::Result<File> {
    // SAFETY: the path is a string that ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now, and nobody else knows of it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
}

/// Whether what is missing is so because of a link to nothing: the end of its path, or a directory above it.
fn leads_nowhere(path: &CStr) -> bool {
    is_nowhere(Path::new(OsStr::from_bytes(path.to_bytes())).ancestors())
}

/// As `leads_nowhere`, of the directories above alone: who opens no links knows already that the end is none.
fn is_below_nowhere(path: &CStr) -> bool {
    let mut parts = Path::new(OsStr::from_bytes(path.to_bytes())).ancestors();
    parts.next();
    is_nowhere(parts)
}

fn is_nowhere(mut parts: Ancestors<'_>) -> bool {
    let found = parts.find_map(|part| Some((part, part.symlink_metadata().ok()?)));
    found.is_some_and(|(part, status)| status.is_symlink() && part.metadata().is_err())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// Whether the open file lies below a directory: asked after it was opened, when nobody can exchange it any more.
fn lies_below(file: &File, below: &[u8]) -> io::Result<bool> {
    let link = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let mut place = [0u8; LONGEST];
    // SAFETY: the path is a string that ends in NUL, and `place` is borrowed mutably for the call.
    let length = unsafe { libc::readlink(link.as_ptr(), place.as_mut_ptr().cast(), place.len()) };
    match usize::try_from(length) {
        Ok(length) => {
            let place = &place[..length];
            Ok(place.starts_with(below) || below.strip_suffix(b"/") == Some(place))
        }
        Err(_) => Err(io::Error::last_os_error()),
    }
}

impl Opened {
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// To be read as long as this is kept.
    pub fn readable(&self) -> Readable<'static> {
        Readable::File(readable::File::of_size(self.file.as_raw_fd(), self.size()))
    }

    /// Whether nobody has edited the file since it was opened, nor does so now.
    pub fn is_unedited(&self) -> bool {
        known_file::is_unedited(self.file.as_raw_fd(), &self.identity)
    }
}

fn failed(what: &str, error: &io::Error) -> Reason {
    format!("{what} failed: {error}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        symlink(inside.join("gone"), inside.join("nowhere")).unwrap();
        let names = ["own", "stays", "leaves", "folder", "none", "own/below", "nowhere", "nowhere/x/y"];
        let mut below = fs::canonicalize(&inside).unwrap().as_os_str().as_bytes().to_vec();
        below.push(b'/');
        let path = |name| CString::new(inside.join(name).as_os_str().as_bytes()).unwrap();
        let mut files = StoredFiles { below, paths: names.map(path).into(), missing: true };
        let sizes = |files: &StoredFiles| -> Vec<Result<Option<u64>, ()>> {
            let open = |number| files.open(number).map(|file| file.map(|file| file.size())).map_err(|_| ());
            (0..files.paths.len() + 1).map(open).collect()
        };
        assert_eq!(
            sizes(&files),
            [Ok(Some(3)), Ok(Some(3)), Err(()), Err(()), Ok(None), Ok(None), Err(()), Err(()), Err(())]
        );
        files.missing = false;
        assert_eq!(sizes(&files)[4..], [Err(()); 5]);
        let mut bytes = [0; 3];
        files.open(1).unwrap().unwrap().readable().read(0, &mut bytes, &mut []).unwrap();
        assert_eq!(&bytes, b"own");
        let read = |number: usize, below: Option<&[u8]>, most| {
            let found = read_whole(&files.paths[number], below, most).map_err(|_| ())?;
            Ok(found.map(|(content, status)| (content, status.len())))
        };
        let direct = |number: usize| open_without_links(&files.paths[number], 0).is_ok();
        if direct(0) {
            assert!(!direct(1) && !direct(2), "links");
        }
        let leads = |path: &[u8]| leads_below(&CString::new(path).unwrap(), b"/a/b/");
        assert!(leads(b"/a/b/c") && leads(b"/a/b/c/..d") && leads(b"/a/b") && leads(b"/a/b/"));
        assert!(!leads(b"/a/bc") && !leads(b"/a") && !leads(b"/a/b/../c") && !leads(b"/a/b/c/..") && !leads(b"c"));
        let below = Some(files.below.as_slice());
        assert!(none_is_there(&files.paths[4..]) && none_is_there(&[]));
        assert!(!none_is_there(&files.paths) && !none_is_there(&files.paths[3..]));
        assert_eq!(read(0, None, 3), Ok(Some((Some(b"own".to_vec()), 3))));
        assert_eq!((read(0, below, 3), read(1, below, 3)), (read(0, None, 3), read(0, None, 3)));
        assert_eq!((read(0, None, 2), read(0, below, 2)), (Ok(Some((None, 3))), Ok(Some((None, 3)))));
        assert_eq!((read(1, None, 3), read(2, below, 9), read(3, below, 9)), (Err(()), Err(()), Err(())));
        assert_eq!((read(4, None, 9), read(4, below, 9), read(5, below, 9)), (Ok(None), Ok(None), Ok(None)));
        fs::remove_dir_all(&base).unwrap();
    }
}
