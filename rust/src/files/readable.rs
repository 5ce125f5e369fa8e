//! What is read (copied) piece by piece: open files, and memory that others may change.

use std::io::{self, IoSliceMut};
use std::os::fd::RawFd;

use crate::memory::strided_memory::SharedBytes;
use crate::{Outcome, Reason};

/// Pieces that one call of the system fills.
const MOST_PIECES: usize = 1024;

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
            Readable::File(File { fd, size, .. }) => {
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
        if second.is_empty() {
            let done = matches!(self, Readable::File(file) if file.fills_at_once(offset, first));
            return if done { Ok(()) } else { self.read_pieces(offset, &mut [IoSliceMut::new(first)]) };
        }
        self.read_pieces(offset, &mut [first, second].map(IoSliceMut::new))
    }

    /// Fill `pieces`, one after the other, with the bytes from `offset` on.
    pub fn read_pieces(&self, offset: u64, pieces: &mut [IoSliceMut]) -> Outcome {
        match self {
            Readable::File(file) => file.read(offset, pieces),
            Readable::Shared(bytes) => {
                self.check(offset, pieces.iter().fold(0, |total: usize, each| total.saturating_add(each.len())))?;
                let mut at = offset as usize;
                for piece in pieces {
                    bytes.copy_to(at, piece);
                    at += piece.len();
                }
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
    /// Whether it is open, and `fd` means no other file, until the call ends.
    stays: bool,
}

impl File {
    pub fn new(fd: RawFd) -> Self {
        // SAFETY: `stat` is a structure of integers, for which zeros are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` is borrowed mutably for the call; whatever number `fd` is, `fstat` only fails.
        let known = unsafe { libc::fstat(fd, &mut status) } == 0;
        let regular = known && status.st_mode & libc::S_IFMT == libc::S_IFREG;
        File { fd, size: regular.then_some(status.st_size as u64), stays: true }
    }

    /// A regular file of so many bytes.
    pub fn of_size(fd: RawFd, size: u64) -> Self {
        File { fd, size: Some(size), stays: false }
    }

    /// One that the caller keeps open until the call ends.
    pub fn staying(self) -> Self {
        File { stays: true, ..self }
    }

    /// Its descriptor, if that means no other file before the call ends.
    pub fn staying_fd(&self) -> Option<RawFd> {
        self.stays.then_some(self.fd)
    }

    /// The same file by another descriptor.
    pub fn through(self, fd: RawFd) -> Self {
        File { fd, stays: false, ..self }
    }

    /// Whether one call of the system gives all bytes from `offset` on, which is the usual case.
    fn fills_at_once(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let Ok(place) = libc::off_t::try_from(offset) else { return false };
        // SAFETY: `bytes` is borrowed mutably for the call; whatever number `fd` is, `pread` writes nowhere else.
        let count = unsafe { libc::pread(self.fd, bytes.as_mut_ptr().cast(), bytes.len(), place) };
        usize::try_from(count) == Ok(bytes.len())
    }

    /// Fill `pieces`, one after the other, with the bytes from `offset` on.
    fn read(&self, mut offset: u64, mut pieces: &mut [IoSliceMut]) -> Outcome {
        IoSliceMut::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let place = libc::off_t::try_from(offset).map_err(|_| "an offset beyond all files")?;
            // SAFETY: the pieces are borrowed mutably for the call, and each is laid out as an `iovec`, which the
            // standard library promises; whatever number `fd` is, `pread` and `preadv` write nowhere else.
            let count = unsafe {
                match &mut *pieces {
                    [only] => libc::pread(self.fd, only.as_mut_ptr().cast(), only.len(), place),
                    many => {
                        let count = many.len().min(MOST_PIECES) as libc::c_int;
                        libc::preadv(self.fd, many.as_ptr().cast(), count, place)
                    }
                }
            };
            match count {
                0 => {
                    let rest: usize = pieces.iter().map(|piece| piece.len()).sum();
                    return Err(format!("the file ends at {offset}, {rest} bytes too early").into());
                }
                count if count > 0 => {
                    IoSliceMut::advance_slices(&mut pieces, count as usize);
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
