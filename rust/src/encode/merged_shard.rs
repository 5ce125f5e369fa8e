//! A shard that is made of chunks of the one before and of new ones.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use crate::files::readable::{self, Readable};
use crate::memory::strided_memory::SharedBytes;
use crate::plan::shard_table::{Entry, ShardTable};

/// Bytes of the shard before that are worth a call of their own to be copied within the system.
const WORTH_OWN_COPY: u64 = 256 * 1024;
/// Bytes that are collected to be written by one call.
const TOGETHER: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Bytes of the new chunks.
    New(Range<usize>),
    /// Bytes of the shard before.
    Old { offset: u64, length: u64 },
}

pub struct MergedShard {
    /// Where the chunks are in it, by their rows.
    pub entries: Vec<Entry>,
    pieces: Vec<Piece>,
}

impl MergedShard {
    /// The shard whose chunks were at `old`, by their rows, with `new` ones in some rows: bytes of what holds them all, or
    /// nothing where no chunk is stored any more. Chunks stay in the order in which they are; those that were not stored
    /// come last. `None` if nothing is stored at all.
    pub fn new(shards: &ShardTable, old: &[Entry], new: &[(usize, Option<Range<usize>>)]) -> Option<Self> {
        let mut pieces_of: Vec<Option<Piece>> = old
            .iter()
            .map(|entry| entry.is_stored().then_some(Piece::Old { offset: entry.offset, length: entry.length }))
            .collect();
        for (row, bytes) in new {
            pieces_of[*row] = bytes.clone().map(Piece::New);
        }
        let mut order: Vec<usize> = (0..old.len()).filter(|&row| pieces_of[row].is_some()).collect();
        order.sort_by_key(|&row| old[row].offset); // of what was not stored it is the largest there is
        let (mut entries, mut pieces, mut end) = (vec![Entry::MISSING; old.len()], Vec::new(), shards.head() as u64);
        for row in order {
            let piece = pieces_of[row].take().expect("rows without any were left out");
            let length = match &piece {
                Piece::New(bytes) => bytes.len() as u64,
                Piece::Old { length, .. } => *length,
            };
            entries[row] = Entry { offset: end, length };
            end = end.checked_add(length)?;
            match (pieces.last_mut(), piece) {
                (Some(Piece::Old { offset, length }), Piece::Old { offset: next, length: more })
                    if *offset + *length == next =>
                {
                    *length += more
                }
                (_, piece) => pieces.push(piece),
            }
        }
        (!pieces.is_empty()).then_some(MergedShard { entries, pieces })
    }

    /// Write the shard to `file`: the `new` chunks and those of the open file `old`.
    pub fn write(&self, shards: &ShardTable, new: &[u8], old: Option<(RawFd, u64)>, file: &File) -> io::Result<()> {
        let mut index = vec![0; shards.index_size()];
        shards.write_entries(self.entries.iter().copied().enumerate(), &mut index);
        let mut waiting = Vec::new();
        if shards.head() > 0 {
            waiting.extend_from_slice(&index);
        }
        for piece in &self.pieces {
            match piece {
                Piece::New(bytes) => waiting.extend_from_slice(&new[bytes.clone()]),
                Piece::Old { offset, length } => {
                    let (fd, size) = old.ok_or(io::ErrorKind::InvalidInput)?;
                    let (mut offset, mut left) = (*offset, *length);
                    if left >= WORTH_OWN_COPY {
                        flush(&mut waiting, file)?;
                        let copied = copy_within(fd, offset, left, file);
                        (offset, left) = (offset + copied, left - copied);
                    }
                    let source = Readable::File(readable::File::of_size(fd, size));
                    while left > 0 {
                        let count = left.min(TOGETHER as u64) as usize;
                        let start = waiting.len();
                        waiting.resize(start + count, 0);
                        source
                            .read(offset, &mut waiting[start..], &mut [])
                            .map_err(|_| io::ErrorKind::UnexpectedEof)?;
                        (offset, left) = (offset + count as u64, left - count as u64);
                        if waiting.len() >= TOGETHER {
                            flush(&mut waiting, file)?;
                        }
                    }
                }
            }
            if waiting.len() >= TOGETHER {
                flush(&mut waiting, file)?;
            }
        }
        if shards.head() == 0 {
            waiting.extend_from_slice(&index);
        }
        flush(&mut waiting, file)
    }
}

fn flush(waiting: &mut Vec<u8>, file: &File) -> io::Result<()> {
    SharedBytes::of(waiting).write_to(file)?;
    waiting.clear();
    Ok(())
}

/// Append bytes of the open file `source` to `file` within the system; how many it could.
#[cfg(target_os = "linux")]
fn copy_within(source: RawFd, offset: u64, length: u64, file: &File) -> u64 {
    use std::os::fd::AsRawFd;
    let Ok(mut place) = libc::off64_t::try_from(offset) else { return 0 };
    let mut done = 0;
    while done < length {
        let count = usize::try_from(length - done).unwrap_or(usize::MAX);
        // SAFETY: `place` is borrowed mutably for the call, and there is no second one; whatever numbers the descriptors
        // are, the call only fails.
        let code = unsafe {
            libc::copy_file_range(source, &mut place, file.as_raw_fd(), std::ptr::null_mut(), count.min(1 << 30), 0)
        };
        match u64::try_from(code) {
            Ok(0) | Err(_) => break,
            Ok(copied) => done += copied,
        }
    }
    done
}

#[cfg(not(target_os = "linux"))]
fn copy_within(_: RawFd, _: u64, _: u64, _: &File) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_stay_in_their_order_and_new_ones_come_last() {
        let shards = ShardTable::new(&[0, 2], &[3, 1], 4, (true, false), 2).unwrap();
        let entry = |offset, length| Entry { offset, length };
        let old = [entry(80, 5), entry(70, 9), entry(64, 6), Entry::MISSING];
        let merged = MergedShard::new(&shards, &old, &[(3, Some(0..2)), (1, Some(2..4))]).unwrap();
        assert_eq!(merged.entries, [entry(72, 5), entry(70, 2), entry(64, 6), entry(77, 2)]);
        let old_piece = |offset, length| Piece::Old { offset, length };
        assert_eq!(merged.pieces, [old_piece(64, 6), Piece::New(2..4), old_piece(80, 5), Piece::New(0..2)]);
        let merged = MergedShard::new(&shards, &old, &[(0, None)]).unwrap();
        assert_eq!((merged.entries[0], merged.pieces), (Entry::MISSING, vec![old_piece(64, 15)]));
        assert!(MergedShard::new(&shards, &old, &[(0, None), (1, None), (2, None)]).is_none());
    }

    #[test]
    fn large_and_small_pieces_are_written_in_order() {
        let path = std::env::temp_dir().join(format!("zardine-merged-shard-{}", std::process::id()));
        let shards = ShardTable::new(&[0, 1], &[1], 3, (false, true), 1).unwrap();
        let large = WORTH_OWN_COPY + 3;
        let before: Vec<u8> = (0..2 * large).map(|number| (number % 251) as u8).collect();
        std::fs::write(&path, &before).unwrap();
        let entry = |offset, length| Entry { offset, length };
        let old = [entry(0, large), Entry::MISSING, entry(large + 7, 100)];
        let merged = MergedShard::new(&shards, &old, &[(1, Some(0..3))]).unwrap();
        let target = path.with_extension("new");
        let (source, file) = (File::open(&path).unwrap(), File::create(&target).unwrap());
        let fd = std::os::fd::AsRawFd::as_raw_fd(&source);
        merged.write(&shards, b"new", Some((fd, 2 * large)), &file).unwrap();
        let written = std::fs::read(&target).unwrap();
        let mut expected = before[..large as usize].to_vec();
        expected.extend_from_slice(&before[large as usize + 7..][..100]);
        expected.extend_from_slice(b"new");
        assert!(written[..expected.len()] == expected);
        assert_eq!(written.len(), expected.len() + shards.index_size());
        assert!(merged.write(&shards, b"new", None, &file).is_err());
        assert!(merged.write(&shards, b"new", Some((-1, 2 * large)), &file).is_err());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&target).unwrap();
    }
}
