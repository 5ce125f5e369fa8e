//! Byte strings that become files, of which none is there yet: see `cells::elements`. Each chunk is made in memory that stays in
//! the cache of a processor, and written to where it belongs; threads share what is to be done for one file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cells::elements::Packing;
use crate::files::file_flush::flush;
use crate::files::many_files::{OPENING, create};
use crate::files::new_file::NewFile;
use crate::memory::scratch::Scratch;
use crate::threads::crew::Crew;
use crate::threads::workers::Batches;

/// Bytes that a thread writes at once, so that they stay in the cache of a processor.
const AT_ONCE: usize = 128 * 1024;

/// A file that is being made.
struct Making {
    /// From when its first chunk is written until the last one was.
    file: Mutex<Option<Arc<File>>>,
    /// Chunks that are still to be written.
    left: AtomicUsize,
}

/// A value, which becomes a file: the number of what it is a value of, and its own there.
pub type Value = (usize, usize);

/// Chunks of one file that follow each other: the numbers of the file and of its packing's jobs, where they begin in the
/// file, and how much work they are.
struct Piece {
    file: usize,
    jobs: Range<usize>,
    offset: u64,
    work: usize,
}

/// Pieces that are still to be done, file by file. A file is written by one thread at a time, so each takes one that no
/// other is at, as long as there is one.
struct Pieces {
    /// Of each file those that are left, the next one last.
    left: Vec<Vec<Piece>>,
    /// How many threads are at each file.
    busy: Vec<usize>,
    /// The files of which there is any, those with most left last.
    order: Vec<usize>,
}

impl Pieces {
    /// `pieces` come file by file.
    fn new(pieces: Vec<Piece>, files: usize) -> Self {
        let mut left: Vec<Vec<Piece>> = (0..files).map(|_| Vec::new()).collect();
        let mut work = vec![0usize; files];
        for piece in pieces.into_iter().rev() {
            work[piece.file] = work[piece.file].saturating_add(piece.work);
            left[piece.file].push(piece);
        }
        let mut order: Vec<usize> = (0..files).filter(|&file| !left[file].is_empty()).collect();
        order.sort_by_key(|&file| (work[file], usize::MAX - file));
        Pieces { left, busy: vec![0; files], order }
    }

    /// The next piece for a thread that has done one of the file `before`: of the same file, or of the largest one that
    /// is free.
    fn next(&mut self, before: Option<usize>) -> Option<Piece> {
        if let Some(file) = before {
            self.busy[file] -= 1;
        }
        let same = before.filter(|&file| !self.left[file].is_empty() && self.busy[file] == 0);
        let file = match same {
            Some(file) => file,
            None => {
                while self.order.last().is_some_and(|&file| self.left[file].is_empty()) {
                    self.order.pop();
                }
                let is_free = |&&file: &&usize| !self.left[file].is_empty() && self.busy[file] == 0;
                let any = |&&file: &&usize| !self.left[file].is_empty();
                let found = self.order.iter().rev().find(is_free).or_else(|| self.order.iter().rev().find(any));
                *found?
            }
        };
        self.busy[file] += 1;
        self.left[file].pop()
    }
}

/// Make a file of each of `values` of `packings`; numbers and errors of those that could not be made. They stay in part.
/// With a `crew` this is for one thread, and others of that may come to take part in it.
pub fn make(
    files: &[NewFile],
    packings: &[Packing],
    values: &[Value],
    threads: usize,
    crew: Option<&Crew>,
) -> Vec<(usize, i32)> {
    assert!(files.len() == values.len());
    let pieces = pieces(packings, values);
    let count = pieces.len();
    let batches = Batches::new(pieces.iter().map(|piece| piece.work), threads);
    let making = |&(number, value): &Value| Making {
        file: Mutex::default(),
        left: AtomicUsize::new(packings[number].jobs(value).len()),
    };
    let makings: Vec<Making> = values.iter().map(making).collect();
    let pieces = Mutex::new(Pieces::new(pieces, files.len()));
    let next = |before| pieces.lock().unwrap_or_else(PoisonError::into_inner).next(before);
    let start = || (Scratch::new(), Vec::new(), None);
    let do_next = |(buffer, failed, before): &mut (Scratch, Vec<(usize, i32)>, Option<usize>)| {
        let Some(piece) = next(before.take()) else { return };
        let file = *before.insert(piece.file);
        let (number, value) = values[file];
        let of_file = (&files[file], &makings[file], &packings[number], value);
        if let Err(error) = write(of_file, piece.offset, piece.jobs, buffer) {
            failed.push((file, error.raw_os_error().unwrap_or(libc::EIO)));
        }
    };
    let states = match crew {
        None => batches.run(start, |state, range| range.for_each(|_| do_next(state))),
        Some(crew) => {
            let states = Mutex::new(Vec::new());
            let unit = |state: &mut _, _| {
                do_next(state);
                Ok(())
            };
            let end = |state| states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
            crew.share(count, start, unit, end).expect("jobs that do not panic");
            states.into_inner().unwrap_or_else(PoisonError::into_inner)
        }
    };
    let mut failed: Vec<(usize, i32)> = states.into_iter().flat_map(|(_, failed, _)| failed).collect();
    failed.sort_unstable();
    failed.dedup_by_key(|failure| failure.0);
    failed
}

/// The pieces of all files, one file after the other.
fn pieces(packings: &[Packing], values: &[Value]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (file, &(number, value)) in values.iter().enumerate() {
        let packing = &packings[number];
        let (mut at, mut is_first) = (packing.head() as u64, true);
        for job in packing.jobs(value) {
            let size = packing.chunk_size(job);
            match pieces.last_mut() {
                Some(last) if !is_first && last.work < AT_ONCE => {
                    last.jobs.end = job + 1;
                    last.work = last.work.saturating_add(size);
                }
                _ => {
                    let work = size.saturating_add(if is_first { OPENING } else { 0 });
                    pieces.push(Piece { file, jobs: job..job + 1, offset: at, work });
                }
            }
            is_first = false;
            at += size as u64;
        }
    }
    pieces
}

/// Write some chunks of a file, which follow each other from an offset on, with the index if that is beside them.
fn write(
    (new, making, packing, value): (&NewFile, &Making, &Packing, usize),
    offset: u64,
    run: Range<usize>,
    buffer: &mut Scratch,
) -> io::Result<()> {
    let all = packing.jobs(value);
    let head = if run.start == all.start { packing.head() } else { 0 };
    let tail = if run.end == all.end { packing.tail() } else { 0 };
    let chunks: usize = run.clone().map(|job| packing.chunk_size(job)).sum();
    let open = || -> io::Result<Arc<File>> {
        let mut held = making.file.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match held.take() {
            Some(file) => file,
            None => Arc::new(create(new.directory, &new.name)?),
        };
        Ok(held.insert(opened).clone())
    };
    let mut fill_and_write = || {
        let space = buffer.take(head + chunks + tail).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        packing.write_chunks(run.clone(), &mut space[head..head + chunks]);
        for index in [0..head, head + chunks..head + chunks + tail] {
            if !index.is_empty() {
                packing.write_index(value, &mut space[index]);
            }
        }
        open()?.write_all_at(space, offset - head as u64)
    };
    let written = fill_and_write();
    if making.left.fetch_sub(run.len(), Ordering::AcqRel) == run.len()
        && let Some(file) = making.file.lock().unwrap_or_else(PoisonError::into_inner).take()
    {
        return written.and_then(|()| flush(&file));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::byte_strings::ByteString;
    use crate::memory::strided_memory::SharedBytes;
    use crate::plan::shard_table::ShardTable;
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn threads_take_pieces_of_different_files() {
        let piece = |file, number: usize| Piece { file, jobs: number..number + 1, offset: 0, work: 10 };
        let all = [(0, 0), (1, 1), (1, 2), (1, 3), (2, 4), (2, 5)].map(|(file, number)| piece(file, number));
        let mut pieces = Pieces::new(all.into(), 3);
        let mut next = |before| pieces.next(before).map(|piece| (piece.file, piece.jobs.start));
        assert_eq!(next(None), Some((1, 1)));
        assert_eq!(next(None), Some((2, 4)));
        assert_eq!(next(Some(2)), Some((2, 5)));
        assert_eq!(next(Some(2)), Some((0, 0)));
        assert_eq!(next(Some(0)), Some((1, 2)));
        assert_eq!(next(Some(1)), Some((1, 3)));
        assert_eq!(next(Some(1)), None);
    }

    #[test]
    fn files_are_what_is_packed_in_memory() {
        let path = std::env::temp_dir().join(format!("zardine-element-files-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let name = |name: String| CString::new(name).unwrap();
        let file = |number: usize| NewFile {
            directory: directory.as_raw_fd(),
            name: name(number.to_string()),
            temporary: name(format!("{number}t")),
            record: name(format!("{number}r")),
            replaces: crate::files::new_file::Replaces::Nothing,
        };
        let texts: Vec<Vec<u8>> = (0..900).map(|number: usize| vec![number as u8; number * 31 % 7000]).collect();
        let runs: Vec<_> = texts.iter().map(|text| SharedBytes::of(text)).collect();
        let strings = || ByteString::each(&runs);
        let rows: Vec<i64> = (0..900).rev().collect();
        let table = |at_start| ShardTable::new(&[0, 700, 701, 900], &rows, 900, (at_start, true), 900).unwrap();
        for (sums, table) in [(1, Some(table(false))), (0, Some(table(true))), (2, None)] {
            let call = Packing::new(strings(), sums, table).unwrap();
            let mut wanted = vec![0; call.total()];
            call.pack(&mut wanted, 1).unwrap();
            let other = Packing::new(strings(), 1, None).unwrap();
            let count = call.sizes().len();
            let packings = [other, call];
            let values: Vec<Value> = (0..count).map(|value| (1, value)).chain([(0, 7)]).collect();
            let files: Vec<NewFile> = (0..=count).map(file).collect();
            let remove = || (0..files.len()).for_each(|number| fs::remove_file(path.join(number.to_string())).unwrap());
            assert_eq!(make(&files, &packings, &values, 3, None), []);
            remove();
            let (crew, is_done) = (Crew::default(), AtomicBool::new(false));
            let failed = thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while !is_done.load(Ordering::Relaxed) {
                            crew.help();
                            thread::yield_now();
                        }
                    });
                }
                let failed = make(&files, &packings, &values, 1, Some(&crew));
                is_done.store(true, Ordering::Relaxed);
                failed
            });
            assert_eq!(failed, []);
            wanted.extend([&1u32.to_le_bytes()[..], &217u32.to_le_bytes(), &[7; 217]].concat());
            let sum = crate::steps::sum::crc32c(0, &wanted[wanted.len() - 225..]);
            wanted.extend(sum.to_le_bytes());
            let found: Vec<u8> =
                (0..files.len()).flat_map(|number| fs::read(path.join(number.to_string())).unwrap()).collect();
            assert!(found == wanted);
            for (threads, crew) in [(3, None), (1, Some(&crew))] {
                fs::remove_file(path.join("1")).unwrap();
                let failed = make(&files, &packings, &values, threads, crew);
                assert!(failed.iter().all(|&(number, code)| number != 1 && code == libc::EEXIST));
                assert_eq!(failed.len(), files.len() - 1);
            }
            remove();
        }
        fs::remove_dir_all(&path).unwrap();
    }
}
