//! Which jobs make up which shard, and the index of one: words, little endian, and mostly their checksum.

use std::ops::Range;

use crate::files::readable::Readable;
use crate::steps::sum;
use crate::{Outcome, Reason};

/// Bytes of an entry of an index: offset and length.
const ENTRY: usize = 16;
/// Offset and length of a chunk that is not stored: -1 as `MISSING` of `zardine.sharding.index` has it, the same bits.
pub const MISSING: u64 = u64::MAX;

/// Where a chunk is in its shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    pub offset: u64,
    pub length: u64,
}

impl Entry {
    pub const MISSING: Entry = Entry { offset: MISSING, length: MISSING };

    pub fn is_stored(&self) -> bool {
        *self != Entry::MISSING
    }
}

/// A chunk of a shard: the number of its job, and its offset and length there.
pub type Placed = (usize, u64, u64);

/// Shards of `count` rows each. The chunks of shard `i` are the jobs `bounds[i]` to `bounds[i + 1]` (exclusive), one
/// after the other in this order, and a job's row in the index is that of its number in `rows`.
pub struct ShardTable {
    bounds: Vec<usize>,
    rows: Vec<usize>,
    count: usize,
    index_at_start: bool,
    has_checksum: bool,
}

impl ShardTable {
    /// For so many jobs.
    pub fn new(
        bounds: &[i64],
        rows: &[i64],
        count: usize,
        (index_at_start, has_checksum): (bool, bool),
        jobs: usize,
    ) -> Result<Self, String> {
        let numbers = |list: &[i64]| -> Result<Vec<usize>, String> {
            list.iter().map(|&each| usize::try_from(each).map_err(|_| format!("a negative number {each}"))).collect()
        };
        let (bounds, rows) = (numbers(bounds)?, numbers(rows)?);
        if bounds.first() != Some(&0) || bounds.last() != Some(&jobs) || bounds.windows(2).any(|pair| pair[0] > pair[1])
        {
            return Err("bounds of shards that are not those of all jobs".into());
        }
        if rows.len() != jobs || rows.iter().any(|&row| row >= count) {
            return Err("rows that are not those of an index".into());
        }
        if count.checked_mul(ENTRY).and_then(|size| size.checked_add(sum::SIZE)).is_none() {
            return Err("an index of too many rows".into());
        }
        Ok(ShardTable { bounds, rows, count, index_at_start, has_checksum })
    }

    /// How many shards.
    pub fn shards(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The jobs of a shard.
    pub fn jobs(&self, shard: usize) -> Range<usize> {
        self.bounds[shard]..self.bounds[shard + 1]
    }

    /// Bytes of the index in front of the chunks.
    pub fn head(&self) -> usize {
        if self.index_at_start { self.index_size() } else { 0 }
    }

    /// Whether a checksum follows the index.
    pub fn has_checksum(&self) -> bool {
        self.has_checksum
    }

    /// Bytes of an index.
    pub fn index_size(&self) -> usize {
        self.count * ENTRY + if self.has_checksum { sum::SIZE } else { 0 }
    }

    /// The row of a job in the index of its shard.
    pub fn row(&self, job: usize) -> usize {
        self.rows[job]
    }

    /// The entries of a shard of which nothing is stored.
    pub fn nothing(&self) -> Outcome<Vec<Entry>> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(self.count).map_err(|_| Reason::NoMemory(self.index_size()))?;
        entries.resize(self.count, Entry::MISSING);
        Ok(entries)
    }

    /// The entries of the index of a shard of `size` bytes, all of which name chunks of at most `most` bytes that lie in
    /// it; `None` where that is not so, or the index is damaged.
    pub fn read_index(&self, shard: Readable, size: u64, most: u64) -> Outcome<Option<Vec<Entry>>> {
        Ok(self.read_index_and_sum(shard, size, most)?.map(|(entries, _)| entries))
    }

    /// The same, and the checksum behind them; 0 where none is.
    pub fn read_index_and_sum(&self, shard: Readable, size: u64, most: u64) -> Outcome<Option<(Vec<Entry>, u32)>> {
        let length = self.index_size();
        let Some(end) = size.checked_sub(length as u64) else { return Ok(None) };
        let mut index = Vec::new();
        index.try_reserve_exact(length).map_err(|_| Reason::NoMemory(length))?;
        index.resize(length, 0);
        shard.read(if self.index_at_start { 0 } else { end }, &mut index, &mut [])?;
        let (table, checksum) = index.split_at(self.count * ENTRY);
        if self.has_checksum && checksum != sum::crc32c(0, table).to_le_bytes() {
            return Ok(None);
        }
        let (start, stop) = if self.index_at_start { (length as u64, size) } else { (0, end) };
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let entries = table.chunks_exact(ENTRY).map(|row| Entry { offset: word(&row[..8]), length: word(&row[8..]) });
        let is_right = |entry: &Entry| {
            let end = entry.offset.checked_add(entry.length);
            entry.offset >= start && end.is_some_and(|end| end <= stop) && entry.length <= most
        };
        let right: Option<Vec<Entry>> =
            entries.map(|entry| (!entry.is_stored() || is_right(&entry)).then_some(entry)).collect();
        Ok(right.map(|entries| (entries, checksum.try_into().map_or(0, u32::from_le_bytes))))
    }

    /// Write to `target`, of as many bytes as an index has, the index of chunks that lie at these offsets with these
    /// lengths, by the numbers of their jobs. No others are stored.
    pub fn write_index(&self, chunks: &[Placed], target: &mut [u8]) {
        let entries = chunks.iter().map(|&(job, offset, length)| (self.rows[job], Entry { offset, length }));
        self.write_entries(entries, target);
    }

    /// The same of entries by their rows.
    pub fn write_entries(&self, entries: impl Iterator<Item = (usize, Entry)>, target: &mut [u8]) {
        let (table, checksum) = target.split_at_mut(self.count * ENTRY);
        table.fill(MISSING.to_le_bytes()[0]);
        for (row, entry) in entries {
            let target = &mut table[row * ENTRY..][..ENTRY];
            target[..8].copy_from_slice(&entry.offset.to_le_bytes());
            target[8..].copy_from_slice(&entry.length.to_le_bytes());
        }
        if self.has_checksum {
            checksum.copy_from_slice(&sum::crc32c(0, table).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::strided_memory::SharedBytes;

    #[test]
    fn what_does_not_fit_is_refused() {
        let table = |bounds: &[i64], rows: &[i64], count| ShardTable::new(bounds, rows, count, (false, true), 3);
        assert!(table(&[0, 2, 3], &[0, 3, 1], 4).is_ok());
        assert!(table(&[0, 0, 3], &[0, 3, 1], 4).is_ok());
        for (bounds, rows, count) in [
            (&[0, 2][..], &[0, 3, 1][..], 4),
            (&[0, 3, 2, 3], &[0, 3, 1], 4),
            (&[-1, 3], &[0, 3, 1], 4),
            (&[1, 3], &[0, 3, 1], 4),
            (&[], &[0, 3, 1], 4),
            (&[0, 3], &[0, 4, 1], 4),
            (&[0, 3], &[0, -1, 1], 4),
            (&[0, 3], &[0, 1], 4),
            (&[0, 3], &[0, 3, 1], usize::MAX / 8),
        ] {
            assert!(table(bounds, rows, count).is_err());
        }
    }

    #[test]
    fn an_index_names_what_is_stored() {
        let table = ShardTable::new(&[0, 1, 3], &[1, 1, 0], 2, (true, true), 3).unwrap();
        assert_eq!((table.shards(), table.jobs(1), table.head(), table.index_size()), (2, 1..3, 36, 36));
        let mut index = [7; 36];
        table.write_index(&[(1, 36, 5)], &mut index);
        assert_eq!(index[..16], [255; 16]);
        assert_eq!(index[16..32], [36, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(index[32..], sum::crc32c(0, &index[..32]).to_le_bytes());
    }

    #[test]
    fn an_index_is_read_if_it_can_be_that_of_the_shard() {
        for index_at_start in [true, false] {
            let table = ShardTable::new(&[0, 2], &[1, 0], 2, (index_at_start, true), 2).unwrap();
            let head = table.head() as u64;
            let read = |offset: u64, length: u64, size: usize, change: Option<usize>| {
                let mut shard = vec![0; size];
                let at = if index_at_start { 0 } else { size - 36 };
                table.write_index(&[(0, offset, length)], &mut shard[at..at + 36]);
                change.into_iter().for_each(|byte| shard[at + byte] ^= 1);
                let shard = Readable::Shared(SharedBytes::of(&shard));
                table.read_index(shard, size as u64, 7).unwrap()
            };
            assert_eq!(read(head, 7, 43, None), Some(vec![Entry::MISSING, Entry { offset: head, length: 7 }]));
            for (offset, length, size) in [(head + 1, 7, 43), (head, 8, 80), (u64::MAX, 1, 43), (u64::MAX - 1, 2, 43)] {
                assert_eq!(read(offset, length, size, None), None);
            }
            if index_at_start {
                assert_eq!(read(35, 1, 43, None), None);
            }
            assert_eq!(read(head, 7, 43, Some(3)), None);
            assert_eq!(read(head, 7, 43, Some(35)), None);
            let short = [0; 35];
            let short = Readable::Shared(SharedBytes::of(&short));
            assert_eq!(table.read_index(short, 35, 7).unwrap(), None);
        }
    }
}
