//! Where encoded bytes come from: memory, or open files that are read at offsets.

use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use crate::job_table::{JobTable, Stored};
use crate::scratch::Scratch;
use crate::strided_memory::BorrowedBytes;
use crate::{Outcome, Reason};

pub enum Source {
    Bytes(BorrowedBytes),
    File(File),
}

/// An open file that the caller keeps open.
#[derive(Clone, Copy)]
pub struct File {
    fd: RawFd,
    /// As it was when the call began; nothing if `fd` is no regular file.
    size: Option<u64>,
}

/// What is there for a job.
pub enum Fetched<'a> {
    /// The chunk is full of the fill value.
    Missing,
    Bytes(&'a [u8]),
    /// Still to be read: `length` bytes that exist.
    InFile {
        file: File,
        offset: u64,
        length: usize,
    },
    Failed(Reason),
}

/// Ranges of one file are read at once if no more than this lies between them ...
const LARGEST_GAP: u64 = 64 * 1024;
/// ... and together they are no more than this.
const LARGEST_READ: u64 = 1024 * 1024;
/// Chunks of so many bytes that need no decompression are worth reading right to where they belong.
const WORTH_OWN_READ: usize = 64 * 1024;

impl File {
    pub fn new(fd: RawFd) -> Self {
        // SAFETY: zeros are a valid `stat`, which `fstat` fills.
        let size = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            let regular = libc::fstat(fd, &mut status) == 0 && status.st_mode & libc::S_IFMT == libc::S_IFREG;
            regular.then_some(status.st_size as u64)
        };
        File { fd, size }
    }

    /// Whether the file has `length` bytes from `offset` on.
    fn check(&self, offset: u64, length: usize) -> Outcome {
        let size = self.size.ok_or_else(|| format!("file descriptor {} is no regular file", self.fd))?;
        if offset.checked_add(length as u64).is_none_or(|stop| stop > size) {
            return Err(format!("{length} bytes at offset {offset} are beyond the end of {size} bytes").into());
        }
        Ok(())
    }

    /// Fill `first`, then `second`, with the bytes from `offset` on.
    pub fn read(&self, mut offset: u64, first: &mut [u8], second: &mut [u8]) -> Outcome {
        let mut given = 0;
        let border = first.len();
        let total = border + second.len();
        while given < total {
            let rest = &mut first[given.min(border)..];
            let more = &mut second[given.saturating_sub(border)..];
            let parts =
                [rest, more].map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
            let place = libc::off_t::try_from(offset).map_err(|_| "an offset beyond all files")?;
            // SAFETY: the parts are writable memory that is borrowed here.
            let count = unsafe { libc::preadv(self.fd, parts.as_ptr(), 2, place) };
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

/// Call `each` for all `jobs` of `range` with their bytes; near ranges of a file are read together.
///
/// Large chunks are left in the file if `in_file` says that they need not be decompressed.
pub fn fetch(
    sources: &[Source],
    jobs: &JobTable,
    range: Range<usize>,
    in_file: bool,
    space: &mut Scratch,
    mut each: impl FnMut(usize, Fetched),
) {
    let mut job = range.start;
    while job < range.end {
        match locate(sources, jobs, job) {
            Located::Now(fetched) => {
                each(job, fetched);
                job += 1;
            }
            Located::File { file, offset, length } if in_file && length >= WORTH_OWN_READ => {
                each(job, Fetched::InFile { file, offset, length });
                job += 1;
            }
            Located::File { file, offset, length } => {
                let mut window = offset..offset + length as u64;
                let mut end = job + 1;
                while end < range.end {
                    match locate(sources, jobs, end) {
                        Located::Now(Fetched::Missing) => {}
                        Located::File { file: other, offset, length }
                            if other.fd == file.fd && !(in_file && length >= WORTH_OWN_READ) =>
                        {
                            let (low, high) = (offset, offset + length as u64);
                            let joined = window.start.min(low)..window.end.max(high);
                            let near = low <= window.end.saturating_add(LARGEST_GAP)
                                && window.start <= high.saturating_add(LARGEST_GAP);
                            if !near || joined.end - joined.start > LARGEST_READ {
                                break;
                            }
                            window = joined;
                        }
                        _ => break,
                    }
                    end += 1;
                }
                read_window(file, sources, jobs, job..end, window, space, &mut each);
                job = end;
            }
        }
    }
}

/// The bytes of one job; `None` if its chunk is not stored.
pub fn fetch_one<'a>(
    sources: &'a [Source],
    jobs: &JobTable,
    job: usize,
    space: &'a mut Scratch,
) -> Outcome<Option<&'a [u8]>> {
    match locate(sources, jobs, job) {
        Located::Now(Fetched::Bytes(bytes)) => Ok(Some(bytes)),
        Located::Now(Fetched::Failed(reason)) => Err(reason),
        Located::Now(_) => Ok(None),
        Located::File { file, offset, length } => {
            let bytes = space.take(length)?;
            file.read(offset, bytes, &mut [])?;
            Ok(Some(bytes))
        }
    }
}

fn read_window(
    file: File,
    sources: &[Source],
    jobs: &JobTable,
    range: Range<usize>,
    window: Range<u64>,
    space: &mut Scratch,
    each: &mut impl FnMut(usize, Fetched),
) {
    let size = (window.end - window.start) as usize;
    let read = space.take(size).and_then(|bytes| {
        file.read(window.start, bytes, &mut [])?;
        Ok(&*bytes)
    });
    for job in range {
        match (locate(sources, jobs, job), &read) {
            (Located::Now(fetched), _) => each(job, fetched),
            (Located::File { offset, length, .. }, Ok(bytes)) => {
                let start = (offset - window.start) as usize;
                each(job, Fetched::Bytes(&bytes[start..start + length]));
            }
            (_, Err(reason)) => each(job, Fetched::Failed(reason.clone())),
        }
    }
}

enum Located<'a> {
    Now(Fetched<'a>),
    /// `length` bytes that the file has.
    File {
        file: File,
        offset: u64,
        length: usize,
    },
}

fn locate<'a>(sources: &'a [Source], jobs: &JobTable, job: usize) -> Located<'a> {
    let (source, offset, length) = match jobs.stored(job) {
        Stored::Missing => return Located::Now(Fetched::Missing),
        Stored::Impossible => return Located::Now(Fetched::Failed("a negative offset or length".into())),
        Stored::At { source, offset, length } => (source, offset, length),
    };
    match &sources[source] {
        Source::Bytes(borrowed) => {
            let bytes = borrowed.bytes();
            let part = usize::try_from(offset).ok().and_then(|start| bytes.get(start..start.checked_add(length)?));
            Located::Now(match part {
                Some(part) => Fetched::Bytes(part),
                None => Fetched::Failed(
                    format!("{length} bytes at offset {offset} are beyond the end of {} bytes", bytes.len()).into(),
                ),
            })
        }
        Source::File(file) => match file.check(offset, length) {
            Ok(()) => Located::File { file: *file, offset, length },
            Err(reason) => Located::Now(Fetched::Failed(reason)),
        },
    }
}
