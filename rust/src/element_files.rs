//! Byte strings that become files, of which none is there yet: see `elements`. Each chunk is made in memory that stays in
//! the cache of a processor, and written to where it belongs; threads share what is to be done for one file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::elements::Packing;
use crate::many_files::{OPENING, create};
use crate::new_file::NewFile;
use crate::scratch::Scratch;
use crate::workers::Batches;

/// A file that is being made.
struct Making {
    /// From when its first chunk is written until the last one was.
    file: Mutex<Option<Arc<File>>>,
    /// Chunks that are still to be written.
    left: AtomicUsize,
}

/// Make a file of each value of `packing`; numbers and errors of those that could not be made. They stay in part.
pub fn make(files: &[NewFile], packing: &Packing, threads: usize) -> Vec<(usize, i32)> {
    assert!(files.len() == packing.sizes().len());
    let owners: Vec<usize> = (0..files.len()).flat_map(|file| packing.jobs(file).map(move |_| file)).collect();
    let first = |job: usize| packing.jobs(owners[job]).start == job;
    let sizes = (0..owners.len()).map(|job| packing.chunk_size(job) + if first(job) { OPENING } else { 0 });
    let batches = Batches::new(sizes, threads);
    let making = |file| Making { file: Mutex::default(), left: AtomicUsize::new(packing.jobs(file).len()) };
    let makings: Vec<Making> = (0..files.len()).map(making).collect();
    let offsets = offsets(packing, files.len());
    let start = || (Scratch::new(), Vec::new());
    let states = batches.run(start, |(buffer, failed), range| {
        let mut at = range.start;
        while at < range.end {
            let file = owners[at];
            let run = at..range.end.min(packing.jobs(file).end);
            if let Err(error) = write(&files[file], &makings[file], packing, (file, offsets[at]), run.clone(), buffer) {
                failed.push((file, error.raw_os_error().unwrap_or(libc::EIO)));
            }
            at = run.end;
        }
    });
    let mut failed: Vec<(usize, i32)> = states.into_iter().flat_map(|(_, failed)| failed).collect();
    failed.sort_unstable();
    failed.dedup_by_key(|failure| failure.0);
    failed
}

/// Where each chunk begins in its file.
fn offsets(packing: &Packing, files: usize) -> Vec<u64> {
    let mut offsets = Vec::new();
    for file in 0..files {
        let mut at = packing.head() as u64;
        for job in packing.jobs(file) {
            offsets.push(at);
            at += packing.chunk_size(job) as u64;
        }
    }
    offsets
}

/// Write some chunks of a file, which follow each other from an offset on, with the index if that is beside them.
fn write(
    new: &NewFile,
    making: &Making,
    packing: &Packing,
    (file, offset): (usize, u64),
    run: Range<usize>,
    buffer: &mut Scratch,
) -> io::Result<()> {
    let all = packing.jobs(file);
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
                packing.write_index(file, &mut space[index]);
            }
        }
        open()?.write_all_at(space, offset - head as u64)
    };
    let written = fill_and_write();
    if making.left.fetch_sub(run.len(), Ordering::AcqRel) == run.len() {
        making.file.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard_table::ShardTable;
    use crate::strided_memory::SharedBytes;
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsRawFd;

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
            only_new: true,
        };
        let texts: Vec<Vec<u8>> = (0..900).map(|number: usize| vec![number as u8; number * 31 % 7000]).collect();
        let strings = || texts.iter().map(|text| SharedBytes::of(text)).collect();
        let rows: Vec<i64> = (0..900).rev().collect();
        let table = |at_start| ShardTable::new(&[0, 700, 701, 900], &rows, 900, (at_start, true), 900).unwrap();
        for (sums, table) in [(1, Some(table(false))), (0, Some(table(true))), (2, None)] {
            let call = Packing::new(strings(), sums, table).unwrap();
            let files: Vec<NewFile> = (0..call.sizes().len()).map(file).collect();
            let mut wanted = vec![0; call.total()];
            call.pack(&mut wanted, 1).unwrap();
            assert_eq!(make(&files, &call, 3), []);
            let found: Vec<u8> =
                (0..files.len()).flat_map(|number| fs::read(path.join(number.to_string())).unwrap()).collect();
            assert!(found == wanted);
            fs::remove_file(path.join("1")).unwrap();
            let failed = make(&files, &call, 3);
            assert!(failed.iter().all(|&(number, code)| number != 1 && code == libc::EEXIST));
            assert_eq!(failed.len(), files.len() - 1);
            (0..files.len()).for_each(|number| fs::remove_file(path.join(number.to_string())).unwrap());
        }
        fs::remove_dir_all(&path).unwrap();
    }
}
