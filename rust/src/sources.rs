//! Where encoded bytes come from: memory, or what is read (copied) piece by piece: open files, files that are opened for
//! a job, and memory that others may change.

use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use crate::job_table::{JobTable, Stored};
use crate::scratch::Scratch;
use crate::stored_files::{OPEN_BYTES, StoredFiles};
use crate::strided_memory::SharedBytes;
use crate::{Outcome, Reason};

pub enum Source<'a> {
    /// Nobody changes these.
    Bytes(&'a [u8]),
    Read(Readable<'a>),
    /// One of these files. All of it belongs to the job that names it, whose length is the most bytes that it may have.
    Named(&'a StoredFiles, usize),
}

/// What gives bytes by being read: decoders see what was read, which nobody else knows of.
#[derive(Clone, Copy)]
pub enum Readable<'a> {
    File(File),
    Shared(SharedBytes<'a>),
}

impl Source<'_> {
    /// The addresses of bytes in memory.
    pub fn addresses(&self) -> (usize, usize) {
        match self {
            Source::Bytes(bytes) => (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len()),
            Source::Read(Readable::Shared(bytes)) => bytes.addresses(),
            Source::Read(Readable::File(_)) | Source::Named(..) => (0, 0),
        }
    }
}

impl Readable<'_> {
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

fn beyond(offset: u64, length: usize, size: u64) -> Reason {
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

/// What is there for a job.
pub enum Fetched<'a> {
    /// The chunk is full of the fill value.
    Missing,
    Bytes(&'a [u8]),
    /// Still to be read: `length` bytes that exist.
    Unread {
        from: Readable<'a>,
        offset: u64,
        length: usize,
    },
    Failed(Reason),
}

/// Ranges of one file are read at once if no more than this lies between them ...
const LARGEST_GAP: u64 = 64 * 1024;
/// ... and together they are no more than this.
const LARGEST_READ: u64 = 1024 * 1024;
/// Chunks of so many bytes of a file that need no decompression are worth a system call of their own ...
pub const WORTH_OWN_READ: usize = 64 * 1024;
/// ... and those of which a part can be read by itself.
pub const WORTH_PARTS_READ: usize = 16 * 1024;
/// ... as are those that are compressed in blocks, which may be several.
pub const WORTH_BLOCKS_READ: usize = 128 * 1024;

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

/// Call `each` for all `jobs` of `range` with their bytes; near ranges of a file are read together.
///
/// Those of `unread` bytes and more, which then need not be decompressed, are left to be read.
pub fn fetch<'a>(
    sources: &'a [Source<'a>],
    jobs: &JobTable,
    range: Range<usize>,
    unread: Option<usize>,
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
            Located::Named { files, number, most } => {
                with_named(files, number, most, |found| match found {
                    Ok(Some((from, length))) if worth_own_read(from, length, unread) => {
                        each(job, Fetched::Unread { from, offset: 0, length });
                    }
                    Ok(Some((from, length))) => match read_whole(from, length, space) {
                        Ok(bytes) => each(job, Fetched::Bytes(bytes)),
                        Err(reason) => each(job, Fetched::Failed(reason)),
                    },
                    Ok(None) => each(job, Fetched::Missing),
                    Err(reason) => each(job, Fetched::Failed(reason)),
                });
                job += 1;
            }
            Located::At { from, offset, length } if worth_own_read(from, length, unread) => {
                each(job, Fetched::Unread { from, offset, length });
                job += 1;
            }
            Located::At { from, offset, length } => {
                let mut window = offset..offset + length as u64;
                let mut end = job + 1;
                while end < range.end {
                    match locate(sources, jobs, end) {
                        Located::Now(Fetched::Missing) => {}
                        Located::At { from: other, offset, length }
                            if same_file(from, other) && !worth_own_read(other, length, unread) =>
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
                read_window(from, sources, jobs, job..end, window, space, &mut each);
                job = end;
            }
        }
    }
}

/// Whether bytes that need no decompression are better read right to where they belong.
fn worth_own_read(from: Readable, length: usize, unread: Option<usize>) -> bool {
    unread.is_some_and(|least| length >= least || matches!(from, Readable::Shared(_)))
}

/// Whether reading from both at once saves something.
fn same_file(one: Readable, other: Readable) -> bool {
    matches!((one, other), (Readable::File(one), Readable::File(other)) if one.fd == other.fd)
}

/// The bytes of one job; `None` if its chunk is not stored.
pub fn fetch_one<'a>(
    sources: &'a [Source<'a>],
    jobs: &JobTable,
    job: usize,
    space: &'a mut Scratch,
) -> Outcome<Option<&'a [u8]>> {
    match locate(sources, jobs, job) {
        Located::Now(Fetched::Bytes(bytes)) => Ok(Some(bytes)),
        Located::Now(Fetched::Failed(reason)) => Err(reason),
        Located::Now(_) => Ok(None),
        Located::At { from, offset, length } => {
            let bytes = space.take(length)?;
            from.read(offset, bytes, &mut [])?;
            Ok(Some(bytes))
        }
        Located::Named { files, number, most } => with_named(files, number, most, |found| match found? {
            Some((from, length)) => read_whole(from, length, space).map(Some),
            None => Ok(None),
        }),
    }
}

/// Call `work` with a file of `files` and its size, of `most` bytes at most; nothing if it is missing, and may be.
fn with_named<T>(
    files: &StoredFiles,
    number: usize,
    most: usize,
    work: impl FnOnce(Outcome<Option<(Readable<'static>, usize)>>) -> T,
) -> T {
    match files.open(number) {
        Ok(Some(opened)) => match usize::try_from(opened.size()) {
            Ok(size) if size <= most => work(Ok(Some((opened.readable(), size)))),
            _ => work(Err(format!("{} bytes, expected at most {most}", opened.size()).into())),
        },
        Ok(None) => work(Ok(None)),
        Err(reason) => work(Err(reason)),
    }
}

fn read_whole<'a>(from: Readable, length: usize, space: &'a mut Scratch) -> Outcome<&'a [u8]> {
    let bytes = space.take(length)?;
    from.read(0, bytes, &mut [])?;
    Ok(bytes)
}

fn read_window<'a>(
    from: Readable<'a>,
    sources: &'a [Source<'a>],
    jobs: &JobTable,
    range: Range<usize>,
    window: Range<u64>,
    space: &mut Scratch,
    each: &mut impl FnMut(usize, Fetched),
) {
    let size = (window.end - window.start) as usize;
    let read = space.take(size).and_then(|bytes| {
        from.read(window.start, bytes, &mut [])?;
        Ok(&*bytes)
    });
    for job in range {
        match (locate(sources, jobs, job), &read) {
            (Located::Now(fetched), _) => each(job, fetched),
            (Located::At { offset, length, .. }, Ok(bytes)) => {
                let start = (offset - window.start) as usize;
                each(job, Fetched::Bytes(&bytes[start..start + length]));
            }
            (_, Err(reason)) => each(job, Fetched::Failed(reason.clone())),
            (Located::Named { .. }, _) => each(job, Fetched::Failed("a file among others".into())), // never
        }
    }
}

enum Located<'a> {
    Now(Fetched<'a>),
    /// `length` bytes that are there.
    At {
        from: Readable<'a>,
        offset: u64,
        length: usize,
    },
    /// One of these files, to be opened.
    Named {
        files: &'a StoredFiles,
        number: usize,
        most: usize,
    },
}

fn locate<'a>(sources: &'a [Source<'a>], jobs: &JobTable, job: usize) -> Located<'a> {
    let (source, offset, length) = match jobs.stored(job) {
        Stored::Missing => return Located::Now(Fetched::Missing),
        Stored::Impossible => return Located::Now(Fetched::Failed("a negative offset or length".into())),
        Stored::At { source, offset, length } => (source, offset, length),
    };
    match &sources[source] {
        Source::Bytes(bytes) => {
            let part = usize::try_from(offset).ok().and_then(|start| bytes.get(start..start.checked_add(length)?));
            Located::Now(match part {
                Some(part) => Fetched::Bytes(part),
                None => Fetched::Failed(beyond(offset, length, bytes.len() as u64)),
            })
        }
        Source::Read(from) => match from.check(offset, length) {
            Ok(()) => Located::At { from: *from, offset, length },
            Err(reason) => Located::Now(Fetched::Failed(reason)),
        },
        Source::Named(files, number) => Located::Named { files, number: *number, most: length },
    }
}

/// To open a source takes as long as to decode so many bytes.
pub fn open_bytes(sources: &[Source]) -> usize {
    if matches!(sources.first(), Some(Source::Named(..))) { OPEN_BYTES } else { 0 }
}
