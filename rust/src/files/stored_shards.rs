//! Shards that are files, read once: opened, and their indexes read, so that chunks are read out of them and they close.

use crate::files::readable::Readable;
use crate::files::stored_files::{OPEN_BYTES, Opened, StoredFiles};
use crate::plan::shard_table::{Entry, ShardTable};
use crate::threads::workers::Batches;
use crate::{Outcome, Reason};

/// An open shard and its index.
pub struct StoredShard {
    file: Opened,
    pub entries: Vec<Entry>,
}

impl StoredShard {
    /// To be read as long as this is kept.
    pub fn readable(&self) -> Readable<'static> {
        self.file.readable()
    }

    /// Whether nobody has edited the file since it was opened, nor does so now.
    pub fn is_unedited(&self) -> bool {
        self.file.is_unedited()
    }
}

/// Open shards that have the form of `table`, with chunks of at most `most` bytes; nothing for those that are missing, and
/// may be.
pub fn open(files: &StoredFiles, table: &ShardTable, most: u64, threads: usize) -> Outcome<Vec<Option<StoredShard>>> {
    let count = files.paths.len();
    let batches = Batches::new((0..count).map(|_| OPEN_BYTES), threads);
    let found = batches.run(Vec::new, |found, range| {
        for number in range {
            found.push((number, open_one(files, number, table, most)));
        }
    });
    let mut shards: Vec<Option<StoredShard>> = (0..count).map(|_| None).collect();
    for (number, shard) in found.into_iter().flatten() {
        shards[number] = shard?;
    }
    Ok(shards)
}

fn open_one(files: &StoredFiles, number: usize, table: &ShardTable, most: u64) -> Outcome<Option<StoredShard>> {
    let Some(file) = files.open(number)? else { return Ok(None) };
    let entries = table.read_index(file.readable(), file.size(), most)?;
    Ok(Some(StoredShard { entries: entries.ok_or(Reason::from("an index that is not one"))?, file }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn indexes_are_read_and_checked() {
        let base = std::env::temp_dir().join(format!("zardine-stored-shards-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let base = fs::canonicalize(&base).unwrap();
        let table = ShardTable::new(&[0], &[], 2, (false, true), 0).unwrap();
        let mut shard = vec![7; 5];
        let mut index = vec![0; table.index_size()];
        table.write_entries([(1, Entry { offset: 1, length: 4 })].into_iter(), &mut index);
        shard.extend(&index);
        fs::write(base.join("good"), &shard).unwrap();
        shard[9] ^= 1;
        fs::write(base.join("damaged"), &shard).unwrap();
        let mut below = base.as_os_str().as_bytes().to_vec();
        below.push(b'/');
        let files = |names: &[&str]| StoredFiles {
            below: below.clone(),
            paths: names.iter().map(|name| CString::new(base.join(name).as_os_str().as_bytes()).unwrap()).collect(),
            missing: true,
        };
        let found = open(&files(&["good", "none"]), &table, 4, 2).unwrap();
        let good = found[0].as_ref().unwrap();
        assert_eq!(good.entries, [Entry::MISSING, Entry { offset: 1, length: 4 }]);
        assert!(found[1].is_none() && good.is_unedited());
        let other = File::open(base.join("good")).unwrap();
        other.lock().unwrap();
        assert!(!good.is_unedited()); // somebody is at it
        other.unlock().unwrap();
        assert!(good.is_unedited());
        fs::write(base.join("good"), b"x").unwrap();
        assert!(!good.is_unedited());
        for (names, most) in [(&["damaged"], 4), (&["good"], 4), (&["."], 4)] {
            assert!(open(&files(names), &table, most, 1).is_err(), "{names:?}");
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
