//! Cells of shards that are changed together, with a log of the change and a document that agrees on it.
//!
//! The shards are held, and cells read from them; what becomes of these the caller works out. Then the log is written, the
//! document replaced by one that names the log, the shards extended, the document replaced by one that does not, and the log
//! removed: `zardine.vectors.storing.transactions` says what each step is for. Whoever dies in between leaves what that
//! puts in order; so does a step that is not the usual case, of which it is told how far all came.

use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::cells::extended_shards::{Extended, Extending, HeldShard};
use crate::files::new_file::{NewFile, OldFile};
use crate::plan::shard_table::ShardTable;
use crate::threads::process_identity::ProcessIdentity;

/// Shards that are locked until they are changed, or let go.
pub struct HeldCells {
    table: ShardTable,
    sums: usize,
    most: u64,
    shards: Vec<HeldShard>,
    /// Who holds the locks: not a process that was forked from it.
    process: ProcessIdentity,
}

/// Bytes of files that stand for a change.
pub struct Agreement<'a> {
    pub log: &'a [u8],
    /// The document that names the log, and the one that takes its place.
    pub agreed: &'a [u8],
    pub settled: &'a [u8],
    pub before: Before<'a>,
}

/// The document before.
pub enum Before<'a> {
    /// Of this version (see `files::known_file`), and locked by the caller.
    Version(&'a str),
    /// It was locked here, and is let go once another one has taken its place.
    Held(OldFile),
}

/// How far a change came.
#[derive(Default)]
pub struct Outcome {
    /// The document, locked: who has locked the one before keeps it so. Nothing: the change was not agreed on.
    pub document: Option<OldFile>,
    /// Whether it is the one that names no log any more.
    pub is_settled: bool,
    /// Open files that no name means any more.
    pub closed: Vec<RawFd>,
}

impl HeldCells {
    /// Hold the shards in `files`, one for each of `table`, and read the cells that are its jobs, whose chunks have at most
    /// so many bytes, and so many checksums. A cell that is not stored is empty. `None` where anything is unusual.
    pub fn new(files: &[NewFile], table: ShardTable, sums: usize, most: u64) -> Option<(Self, Vec<Vec<u8>>)> {
        if files.len() != table.shards() {
            return None;
        }
        let mut held = HeldCells {
            table,
            sums,
            most,
            shards: Vec::with_capacity(files.len()),
            process: ProcessIdentity::current(),
        };
        let mut cells = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let shard = HeldShard::of(&held.table, file, most)?;
            for job in held.table.jobs(number) {
                cells.push(shard.string(held.table.row(job), sums)?);
            }
            held.shards.push(shard);
        }
        Some((held, cells))
    }

    /// Let the cells be `strings`, in the same `files`; before these lie the document and the log. Where it `closes`, none
    /// of the files that have no names any more is left open.
    pub fn change(
        mut self,
        files: &[NewFile],
        strings: Vec<&[u8]>,
        agreement: Agreement,
        most_unused: f64,
        closes: bool,
    ) -> Result<Outcome, String> {
        let [document, log, files @ ..] = files else { return Err("a document and a log are needed".into()) };
        let cells: usize = (0..self.table.shards()).map(|shard| self.table.jobs(shard).len()).sum();
        if files.len() != self.shards.len() || strings.len() != cells {
            return Err("other files or cells than were held".into());
        }
        let shards = std::mem::take(&mut self.shards);
        let call = Extending::new(strings, self.sums, &self.table, self.most, most_unused)?;
        let mut outcome = Outcome::default();
        let Some(logged) = log.put_open(agreement.log) else { return Ok(outcome) };
        let before = match agreement.before {
            Before::Version(version) => document.of_version(version).ok().flatten(),
            Before::Held(before) => Some(before),
        };
        let Some(before) = before else { return Ok(outcome) };
        let Some(agreed) = document.replace_held(&before, agreement.agreed) else { return Ok(outcome) };
        outcome.closed.extend(before.release());
        let mut is_done = true;
        for (number, (shard, file)) in shards.into_iter().zip(files).enumerate() {
            match call.extend(number, file, shard) {
                Some(Extended { old, .. }) => outcome.closed.extend(old),
                None => is_done = false,
            }
        }
        let settled = if is_done { document.replace_held(&agreed, agreement.settled) } else { None };
        outcome.is_settled = settled.is_some();
        outcome.document = Some(match settled {
            None => agreed,
            Some(settled) => {
                log.erase();
                outcome.closed.extend(agreed.release().into_iter().chain([File::into_raw_fd(logged)]));
                settled
            }
        });
        outcome.closed.retain(|&file| file >= 0);
        if closes {
            for file in outcome.closed.drain(..) {
                // SAFETY: it was open, and given to us; nobody else knows of it.
                drop(unsafe { OwnedFd::from_raw_fd(file) });
            }
        }
        Ok(outcome)
    }
}

impl Drop for HeldCells {
    fn drop(&mut self) {
        if self.process != ProcessIdentity::current() {
            self.shards.drain(..).for_each(HeldShard::abandon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::known_file::Identity;
    use crate::files::new_file::Replaces;
    use std::ffi::CString;
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    fn table() -> ShardTable {
        ShardTable::new(&[0, 2], &[2, 0], 3, (false, true), 2).unwrap()
    }

    fn version(path: &Path) -> String {
        let Identity { inode, size, modified, changed, .. } = Identity::from(&fs::metadata(path).unwrap());
        format!("{inode:x}-{size:x}-{modified:x}-{changed:x}")
    }

    #[test]
    fn steps_follow_each_other_as_long_as_each_is_done() {
        let path = std::env::temp_dir().join(format!("zardine-cell-changes-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let file = |name: &str| {
            let names = [name.into(), format!(".{name}.new"), format!(".{name}.record")];
            let [name, temporary, record] = names.map(|name| CString::new(name).unwrap());
            NewFile { directory: directory.as_raw_fd(), name, temporary, record, replaces: Replaces::Any }
        };
        let files = ["document", "log", "shard"].map(file);
        let mut shard = b"\x01\0\0\0\x03\0\0\0old".to_vec();
        let chunk = shard.len() as u64;
        shard.resize(shard.len() + table().index_size(), 0);
        let one = ShardTable::new(&[0, 1], &[2], 3, (false, true), 1).unwrap();
        one.write_index(&[(0, 0, chunk)], &mut shard[chunk as usize..]);
        fs::write(path.join("document"), b"before").unwrap();
        assert!(HeldCells::new(&files[2..], table(), 0, 99).is_none()); // no shard
        fs::write(path.join("shard"), &shard).unwrap();
        assert!(HeldCells::new(&files[1..], table(), 0, 99).is_none());
        assert!(HeldCells::new(&files[2..], table(), 0, 10).is_none()); // a chunk of more bytes
        assert!(HeldCells::new(&files[2..], table(), 1, 99).is_none()); // no checksum
        let hold = || HeldCells::new(&files[2..], table(), 0, 99).unwrap();
        let change = |held: HeldCells, version: &str, cells: Vec<&[u8]>| {
            held.change(
                &files,
                cells,
                Agreement { log: b"log", agreed: b"agreed", settled: b"settled", before: Before::Version(version) },
                1.0,
                true,
            )
        };
        let (held, cells) = hold();
        assert_eq!(cells, [b"old".to_vec(), Vec::new()]);
        assert!(HeldCells::new(&files[2..], table(), 0, 99).is_none()); // it is locked
        assert!(change(held, "", vec![b"new"]).is_err());
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        let undone = change(hold().0, "0-0-0-0", vec![b"new", b"more"]).unwrap();
        assert!(undone.document.is_none() && !undone.is_settled && undone.closed.is_empty());
        assert_eq!((read("document"), read("shard"), read("log")), (b"before".to_vec(), shard, b"log".to_vec()));
        let done = change(hold().0, &version(&path.join("document")), vec![b"new", b"more"]).unwrap();
        assert!(done.is_settled && done.closed.is_empty());
        assert_eq!((done.document.unwrap().size(), read("document")), (7, b"settled".to_vec()));
        assert!(!path.join("log").exists());
        let (held, cells) = hold();
        assert_eq!(cells, [b"new".to_vec(), b"more".to_vec()]);
        fs::write(path.join(".shard.record"), b"").unwrap(); // somebody has died over it meanwhile
        let half = change(held, &version(&path.join("document")), vec![b"", b"last"]).unwrap();
        assert!(!half.is_settled);
        assert_eq!((half.document.unwrap().size(), read("document")), (6, b"agreed".to_vec()));
        assert_eq!(read("log"), b"log");
        fs::remove_dir_all(&path).unwrap();
    }
}
