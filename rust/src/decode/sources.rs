//! Where encoded bytes come from: memory, or what is read (copied) piece by piece: open files, files that are opened for
//! a job, and memory that others may change.

use std::ops::Range;

use crate::files::readable::{Readable, beyond};
use crate::files::stored_files::{OPEN_BYTES, StoredFiles};
use crate::memory::scratch::Scratch;
use crate::plan::job_table::{JobTable, Stored};
use crate::{Outcome, Reason};

pub enum Source<'a> {
    /// Nobody changes these.
    Bytes(&'a [u8]),
    Read(Readable<'a>),
    /// One of these files. All of it belongs to the job that names it, whose length is the most bytes that it may have.
    Named(&'a StoredFiles, usize),
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
                            if from.is_same_file(&other) && !worth_own_read(other, length, unread) =>
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
