//! What is read (copied) piece by piece: open files, and memory that others may change.

use std::io;
use std::os::fd::RawFd;

use crate::strided_memory::SharedBytes;
use crate::{Outcome, Reason};

/// What gives bytes by being read: decoders see what was read, which nobody else knows of.
#[derive(Clone, Copy)]
pub enum Readable<'a> {
    File(File),
    Shared(SharedBytes<'a>),
}

impl Readable<'_> {
    /// Whether reading from both at once saves something.
    pub fn is_same_file(&self, other: &Readable) -> bool {
        matches!((self, other), (Readable::File(one), Readable::File(other)) if one.fd == other.fd)
    }

    /// Whether there are `length` bytes from `offset` on.
    pub fn check(&self, offset: u64, length: usize) -> Outcome {
        let size = match self {
            Readable::Shared(bytes) => bytes.len() as u64,
            Readable::File(File { fd, size }) => {
                size.ok_or_else(|| format!("file descriptor {fd} is no regular file"))?
            }
        };
        if offset.checked_add(length as u64).is_none_or(|stop| stop > size) {
            return Err(beyond(offset, length, size));
        }
        Ok(())
    }

    /// Fill `first`, then `second`, with the bytes from `offset` on.
    pub fn read(&self, offset: u64, first: &mut [u8], second: &mut [u8]) -> Outcome {
        match self {
            Readable::File(file) => file.read(offset, first, second),
            Readable::Shared(bytes) => {
                self.check(offset, first.len().saturating_add(second.len()))?;
                bytes.copy_to(offset as usize, first);
                bytes.copy_to(offset as usize + first.len(), second);
                Ok(())
            }
        }
    }
}

/// The failure of who asks for bytes that are not there.
pub fn beyond(offset: u64, length: usize, size: u64) -> Reason {
    format!("{length} bytes at offset {offset} are beyond the end of {size} bytes").into()
}

/// An open file. The caller keeps it open; if it does not, reading fails or gives bytes of another file, which are
/// checked as all stored bytes are.
#[derive(Clone, Copy)]
pub struct File {
    fd: RawFd,
    /// As it was when the call began; nothing if `fd` is no regular file.
    size: Option<u64>,
}

impl File {
    pub fn new(fd: RawFd) -> Self {
        // SAFETY: `stat` is a structure of integers, for which zeros are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` is borrowed mutably for the call; whatever number `fd` is, `fstat` only fails.
        let known = unsafe { libc::fstat(fd, &mut status) } == 0;
        let regular = known && status.st_mode & libc::S_IFMT == libc::S_IFREG;
        File { fd, size: regular.then_some(status.st_size as u64) }
    }

    /// A regular file of so many bytes.
    pub fn of_size(fd: RawFd, size: u64) -> Self {
        File { fd, size: Some(size) }
    }

    /// Fill `first`, then `second`, with the bytes from `offset` on.
    fn read(&self, mut offset: u64, first: &mut [u8], second: &mut [u8]) -> Outcome {
        let mut given = 0;
        let border = first.len();
        let total = border + second.len();
        while given < total {
            let rest = &mut first[given.min(border)..];
            let more = &mut second[given.saturating_sub(border)..];
            let parts =
                [rest, more].map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
            let place = libc::off_t::try_from(offset).map_err(|_| "an offset beyond all files")?;
            // SAFETY: `parts` are two pieces of `first` and `second`, which are borrowed mutably for the call;
            // whatever number `fd` is, `pread` and `preadv` write nowhere else.
            let count = unsafe {
                if second.is_empty() {
                    libc::pread(self.fd, parts[0].iov_base, parts[0].iov_len, place)
                } else {
                    libc::preadv(self.fd, parts.as_ptr(), 2, place)
                }
            };
            match count {
                0 => return Err(format!("the file ends at {offset}, {} bytes too early", total - given).into()),
                count if count > 0 => {
                    given += count as usize;
                    offset += count as u64;
                }
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(format!("reading failed: {error}").into());
                    }
                }
            }
        }
        Ok(())
    }
}
