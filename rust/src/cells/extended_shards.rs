//! Byte strings that become chunks of shards within their files: the chunks and a new index go behind what is there.
//!
//! Nothing that stands in a file is written over but the checksum of the index before, which does not count any more
//! then, last of all. Meanwhile a record beside the file says which index it had, and which it is to get:
//! `zardine.stores.local.beside` has its form, says what it is for, and puts in order what is left by a writer that dies.
//! Where too much of a file would be unused, a new one with all chunks takes its place.
//!
//! Only the usual case is done here: shards that are there, whole, with their index at the end and its checksum behind it.
//! Whatever else there is, is left to the caller, who knows what to do and say.

use std::fs::Metadata;
use std::ops::Range;
use std::os::fd::RawFd;

use crate::cells::elements::{chunk_size, fill};
use crate::encode::merged_shard::MergedShard;
use crate::files::new_file::{NewFile, OldFile};
use crate::files::readable::{self, Readable};
use crate::memory::byte_strings::ByteString;
use crate::memory::strided_memory::SharedBytes;
use crate::plan::shard_table::{Entry, ShardTable};
use crate::steps::sum;

/// What a record begins with.
const MAGIC: &[u8; 16] = b"zardine edit 1\0\0";

/// A call. `table` says in which shard and row each byte string goes, and has as many jobs; an empty one is not stored.
pub struct Extending<'a> {
    strings: Vec<&'a [u8]>,
    sums: usize,
    table: &'a ShardTable,
    /// Bytes of the longest chunk that may be there.
    most: u64,
    /// The share of a file that may be unused then.
    most_unused: f64,
}

/// A shard that is locked, and what its index says.
pub struct HeldShard {
    old: OldFile,
    entries: Vec<Entry>,
    /// That of the index, which is right.
    checksum: u32,
}

/// A shard that was extended, or made anew: then the file before is still open where to close it may take long.
#[derive(Debug)]
pub struct Extended {
    pub status: Metadata,
    pub entries: Vec<Entry>,
    pub old: Option<RawFd>,
}

impl<'a> Extending<'a> {
    /// Chunks have so many checksums.
    pub fn new(
        strings: Vec<&'a [u8]>,
        sums: usize,
        table: &'a ShardTable,
        most: u64,
        most_unused: f64,
    ) -> Result<Self, String> {
        if table.head() > 0 || !table.has_checksum() {
            return Err("shards whose index is not at the end, with its checksum".into());
        }
        if strings.iter().any(|string| chunk_size(string.len(), sums).is_none()) {
            return Err("a byte string of more bytes than its length can tell".into());
        }
        Ok(Extending { strings, sums, table, most, most_unused })
    }

    /// Extend each shard in its file; nothing of one that was not done, which is as it was.
    pub fn run(&self, files: &[NewFile]) -> Result<Vec<Option<Extended>>, String> {
        if files.len() != self.table.shards() {
            return Err(format!("{} files for {} shards", files.len(), self.table.shards()));
        }
        let extend = |(shard, file)| self.extend(shard, file, HeldShard::of(self.table, file, self.most)?);
        Ok(files.iter().enumerate().map(extend).collect())
    }

    /// Extend a shard in its file, which was held; as `run`.
    pub fn extend(&self, shard: usize, file: &NewFile, held: HeldShard) -> Option<Extended> {
        let (source, size) = (held.source(), held.old.size());
        let HeldShard { old, entries: before, checksum: then } = held;
        let (mut entries, mut content) = (before.clone(), Vec::new());
        let mut new: Vec<(usize, Option<Range<usize>>)> = Vec::with_capacity(self.table.jobs(shard).len());
        for job in self.table.jobs(shard) {
            let (string, row) = (self.strings[job], self.table.row(job));
            if string.is_empty() {
                entries[row] = Entry::MISSING;
                new.push((row, None));
                continue;
            }
            let (start, length) = (content.len(), chunk_size(string.len(), self.sums)?);
            content.try_reserve(length.checked_add(self.table.index_size())?).ok()?;
            content.resize(start.checked_add(length)?, 0);
            fill(&mut content[start..], ByteString::of(&SharedBytes::of(string)), self.sums);
            entries[row] = Entry { offset: size.checked_add(start as u64)?, length: length as u64 };
            new.push((row, Some(start..content.len())));
        }
        if entries == before {
            return None;
        }
        let now = self.index_of(&entries)?;
        let length = now.len() as u64;
        let after = size.checked_add(content.len() as u64)?.checked_add(length)?;
        let stored = || entries.iter().filter(|entry| entry.is_stored());
        let used = stored().try_fold(length, |used, entry| used.checked_add(entry.length))?;
        stored().next()?; // else nothing is left
        if after as f64 - used as f64 > self.most_unused * after as f64 {
            return self.make_anew(file, old, source, &before, &content, &new);
        }
        content.extend_from_slice(&now);
        let (void, sum) = ((!then).to_le_bytes(), *now.last_chunk()?);
        let told = [then, u32::from_le_bytes(sum)].map(|sum| u64::from(sum) << 32 | u64::from(sum));
        let record = record([length, size, size - length, after, after - length, told[0], told[1]]);
        let status = file.extend(&old, &record, &content, (size - void.len() as u64, &void))?;
        Some(Extended { status, entries, old: None })
    }

    /// Put a file that has the `new` chunks, out of `content`, and those from `before` that stay, in the place of `old`.
    fn make_anew(
        &self,
        file: &NewFile,
        old: OldFile,
        source: Readable,
        before: &[Entry],
        content: &[u8],
        new: &[(usize, Option<Range<usize>>)],
    ) -> Option<Extended> {
        let mut head = [0; 4];
        source.read(0, &mut head, &mut []).ok()?;
        if u32::from_le_bytes(head) != 1 {
            return None; // no chunk begins so: a file of another format, perhaps, of which all is to stay
        }
        let merged = MergedShard::new(self.table, before, new)?;
        let place = Some((old.fd(), old.size()));
        let status = file.make(Some(&old), |target| merged.write(self.table, content, place, target))?;
        Some(Extended { status, entries: merged.entries, old: old.release() })
    }

    fn index_of(&self, entries: &[Entry]) -> Option<Vec<u8>> {
        let mut index = Vec::new();
        index.try_reserve_exact(self.table.index_size()).ok()?;
        index.resize(self.table.index_size(), 0);
        self.table.write_entries(entries.iter().copied().enumerate(), &mut index);
        Some(index)
    }
}

impl HeldShard {
    /// The shard in a file, if it is the usual case: see above.
    pub fn of(table: &ShardTable, file: &NewFile, most: u64) -> Option<Self> {
        let mut held = HeldShard { old: file.to_extend().ok()???, entries: Vec::new(), checksum: 0 };
        (held.entries, held.checksum) = table.read_index_and_sum(held.source(), held.old.size(), most).ok()??;
        Some(held)
    }

    fn source(&self) -> Readable<'static> {
        Readable::File(readable::File::of_size(self.old.fd(), self.old.size()))
    }
}

/// What tells bytes from others: the CRC32C of all but the last four, and these.
fn told(bytes: &[u8]) -> u64 {
    let (body, last) = bytes.split_last_chunk::<{ sum::SIZE }>().expect("more bytes than a checksum has");
    u64::from(sum::crc32c(0, body)) << 32 | u64::from(u32::from_le_bytes(*last))
}

/// The bytes of a record: length of an index; size of the file and offset of the index before, then after; what tells
/// each of them.
fn record(numbers: [u64; 7]) -> Vec<u8> {
    let mut record = MAGIC.to_vec();
    record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    let told = told(&record);
    record.extend_from_slice(&told.to_le_bytes());
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs::{self, File};
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn chunks_and_index_go_behind_what_is_there() {
        let path = std::env::temp_dir().join(format!("zardine-extended-shards-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let file = |name: &str| {
            let [name, temporary, record] = [name, ".new", ".record"].map(|name| CString::new(name).unwrap());
            NewFile {
                directory: directory.as_raw_fd(),
                name,
                temporary,
                record,
                replaces: crate::files::new_file::Replaces::Any,
            }
        };
        let extend = |rows: &[i64], strings: Vec<&[u8]>, most_unused| {
            let jobs = rows.len() as i64;
            let table = ShardTable::new(&[0, jobs], rows, 3, (false, true), rows.len()).unwrap();
            let call = Extending::new(strings, 1, &table, 1000, most_unused).unwrap();
            call.run(&[file("shard")]).unwrap().remove(0)
        };
        let table = ShardTable::new(&[0, 1], &[1], 3, (false, true), 1).unwrap();
        let mut before = b"chunk".to_vec();
        before.resize(5 + table.index_size(), 0);
        table.write_index(&[(0, 0, 5)], &mut before[5..]);
        assert!(extend(&[0], vec![b"none"], 1.0).is_none()); // no file
        fs::write(path.join("shard"), &before).unwrap();
        assert!(extend(&[1], vec![b""], 1.0).is_none()); // nothing left
        assert!(extend(&[0], vec![b""], 1.0).is_none()); // nothing changes
        assert_eq!(fs::read(path.join("shard")).unwrap(), before);
        let done = extend(&[0, 2], vec![b"new", b""], 1.0).unwrap();
        let after = fs::read(path.join("shard")).unwrap();
        let size = before.len();
        let entry = |offset, length| Entry { offset, length };
        assert_eq!(done.entries, [entry(size as u64, 15), entry(0, 5), Entry::MISSING]);
        assert_eq!((after.len(), done.status.len()), (2 * size - 5 + 15, after.len() as u64));
        assert_eq!(after[..size - 4], before[..size - 4]);
        assert!(after[size - 4..size].iter().zip(&before[size - 4..]).all(|(a, b)| a ^ b == 255));
        assert_eq!(after[size..size + 11], *b"\x01\0\0\0\x03\0\0\0new");
        let source = File::open(path.join("shard")).unwrap();
        let source = Readable::File(readable::File::of_size(source.as_raw_fd(), after.len() as u64));
        assert_eq!(table.read_index(source, after.len() as u64, 15).unwrap(), Some(done.entries));
        assert!(extend(&[0], vec![b"other"], 0.1).is_none()); // no chunk is at the start
        fs::write(path.join("shard"), [&[1, 0, 0, 0], &after[4..]].concat()).unwrap();
        let done = extend(&[2, 0], vec![b"other", b""], 0.1).unwrap();
        let merged = fs::read(path.join("shard")).unwrap();
        assert_eq!(done.entries, [Entry::MISSING, entry(0, 5), entry(5, 17)]);
        assert_eq!((merged.len(), merged[13..18].to_vec()), (22 + table.index_size(), b"other".to_vec()));
        // SAFETY: it was given to us, and nobody else knows of it.
        drop(unsafe { std::os::fd::OwnedFd::from_raw_fd(done.old.unwrap()) });
        let mut damaged = after.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(path.join("shard"), &damaged).unwrap();
        assert!(extend(&[0], vec![b"new"], 1.0).is_none());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1); // no record, nothing unfinished
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let table = |form| ShardTable::new(&[0, 1], &[0], 1, form, 1).unwrap();
        for form in [(true, true), (false, false)] {
            assert!(Extending::new(vec![b"x"], 1, &table(form), 9, 1.0).is_err());
        }
        let usual = table((false, true));
        let call = Extending::new(vec![b"x"], 1, &usual, 9, 1.0).unwrap();
        assert!(call.run(&[]).is_err());
        assert!(Extending::new(vec![b"x"], usize::MAX / 2, &usual, 9, 1.0).is_err());
    }
}
