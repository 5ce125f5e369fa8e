//! Cells of shards that are changed together, with a log of the change and a document that agrees on it.
//!
//! The shards are held, and cells read from them; what becomes of these the caller works out. Then the log is written, the
//! document replaced by one that names the log, the shards extended, the document replaced by one that does not, and the log
//! removed: `zardine.vectors.storing.transactions` says what each step is for. Whoever dies in between leaves what that
//! puts in order; so does a step that is not the usual case, of which it is told how far all came.

use std::fs::{File, Metadata};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::extended_shards::{Extended, Extending, HeldShard};
use crate::new_file::NewFile;
use crate::shard_table::ShardTable;

/// Shards that are locked until they are changed, or let go.
pub struct HeldCells {
    table: ShardTable,
    sums: usize,
    most: u64,
    shards: Vec<HeldShard>,
    /// Who holds the locks: not a process that was forked from it.
    process: u32,
}

/// Bytes of files that stand for a change.
pub struct Agreement<'a> {
    pub log: &'a [u8],
    /// The document that names the log, and the one that takes its place.
    pub agreed: &'a [u8],
    pub settled: &'a [u8],
    /// Of the document before: see `known_file`.
    pub version: &'a str,
}

/// How far a change came.
#[derive(Default)]
pub struct Outcome {
    /// The document, locked: who has locked the one before keeps it so. Nothing: the change was not agreed on.
    pub document: Option<(RawFd, Metadata)>,
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
        let mut held =
            HeldCells { table, sums, most, shards: Vec::with_capacity(files.len()), process: std::process::id() };
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
        agreement: &Agreement,
        most_unused: f64,
        closes: bool,
    ) -> Result<Outcome, String> {
        let [document, log, files @ ..] = files else { return Err("a document and a log are needed".into()) };
        if files.len() != self.shards.len() || strings.len() != self.table.jobs(files.len() - 1).end {
            return Err("other files or cells than were held".into());
        }
        let shards = std::mem::take(&mut self.shards);
        let call = Extending::new(strings, self.sums, &self.table, self.most, most_unused)?;
        let mut outcome = Outcome::default();
        let Some(logged) = log.put_open(agreement.log) else { return Ok(outcome) };
        let before = document.of_version(agreement.version).ok().flatten();
        let Some(agreed) = before.and_then(|before| document.replace_held(&before, agreement.agreed)) else {
            return Ok(outcome);
        };
        let mut is_done = true;
        for (number, (shard, file)) in shards.into_iter().zip(files).enumerate() {
            match call.extend(number, file, shard) {
                Some(Extended { old, .. }) => outcome.closed.extend(old),
                None => is_done = false,
            }
        }
        let settled = if is_done { document.replace_held(&agreed, agreement.settled) } else { None };
        outcome.is_settled = settled.is_some();
        let last = match settled {
            None => agreed,
            Some(settled) => {
                log.erase();
                outcome.closed.extend([agreed.release(), File::into_raw_fd(logged)]);
                settled
            }
        };
        let status = last.status().clone();
        outcome.document = Some((last.keep(), status));
        if closes {
            for file in outcome.closed.drain(..).filter(|&file| file >= 0) {
                // SAFETY: it was open, and given to us; nobody else knows of it.
                drop(unsafe { OwnedFd::from_raw_fd(file) });
            }
        }
        Ok(outcome)
    }
}

impl Drop for HeldCells {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            self.shards.drain(..).for_each(HeldShard::abandon);
        }
    }
}
