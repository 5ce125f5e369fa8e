//! Rows that go behind those of cells, in the same cells of some arrays of a level: all of such a change by one call.
//!
//! The document of the level is locked, and looked at with all else that is known of the level from before; cells are
//! held, get the rows, and are changed as `cell_changes` says. Nobody is waited for: where a file is locked, or anything
//! is not as it was known, or not the usual case, nothing is done, and all is left to the caller.

use std::ffi::CString;

use crate::cells::cell_changes::{Agreement, Before, HeldCells, Outcome};
use crate::files::known_file::KnownFile;
use crate::files::new_file::Replaces;
use crate::files::new_files::{Base, NamesBeside, NewFiles};
use crate::files::stored_files;
use crate::memory::strided_memory::SharedBytes;
use crate::plan::shard_table::ShardTable;
use crate::steps::sum;

/// What is the same for all changes of a level.
pub struct GrowingCells {
    pub base: Base,
    /// Documents that are to be as they were, and folders with the names of all that was in them.
    pub documents: Vec<KnownFile>,
    pub folders: Vec<CString>,
    pub names: Vec<u8>,
    /// Bytes of a row of each array that has rows; the last array tells how many each cell has.
    pub sizes: Vec<usize>,
    /// What stands before that number, eight bytes, little endian, in a cell of the last array, and behind it.
    pub around: (Vec<u8>, Vec<u8>),
    /// Rows of an index of a shard; checksums of a chunk, and bytes of the longest one.
    pub count: usize,
    pub sums: usize,
    pub most: u64,
    /// The share of a shard that may be unused.
    pub most_unused: f64,
    /// Whether files that have no names any more are closed at once.
    pub closes: bool,
}

/// A change: the same cells of all arrays, in the order of shards.
pub struct NewRows<'a> {
    /// Of the document, of the log, and of the shards of one array after the other.
    pub keys: &'a [Vec<u8>],
    /// Where the cells of each shard of an array begin, and how many there are; the row of each in the index.
    pub bounds: &'a [i64],
    pub rows: &'a [i64],
    /// The rows of each cell, among all new ones.
    pub edges: &'a [(usize, usize)],
    /// The coordinates of all cells as they stand in the log.
    pub places: &'a [u8],
    /// The new rows of each array that has rows.
    pub columns: &'a [SharedBytes<'a>],
    /// What the log begins with; the document that names it, and the one after that.
    pub head: &'a [u8],
    pub agreed: &'a [u8],
    pub settled: &'a [u8],
    /// The document before: see `files::known_file`.
    pub version: &'a str,
}

impl GrowingCells {
    /// Put the rows behind those of the cells. `None` where that was not begun, or came to nothing; nothing is locked then,
    /// nor is it after it was agreed on but in the outcome.
    pub fn add(&self, new: &NewRows, names: &NamesBeside) -> Result<Option<Outcome>, String> {
        let arrays = self.sizes.len() + 1;
        let table = self.table(new, arrays)?;
        let replaces = [Replaces::Version(new.version.into())];
        let Ok(Some(files)) = NewFiles::open_there(&self.base, new.keys, &replaces, names) else { return Ok(None) };
        let [document, _, shards @ ..] = files.files() else { return Err("a document and a log are needed".into()) };
        let Ok(Some(Some(before))) = document.before(false) else { return Ok(None) };
        if !self.is_as_known() {
            return Ok(None);
        }
        let Some((held, cells)) = HeldCells::new(shards, table, self.sums, self.most) else { return Ok(None) };
        let Some(grown) = self.grown(cells, new) else { return Ok(None) };
        let Some(log) = log(&grown, arrays, new) else { return Ok(None) };
        let agreement = Agreement { log: &log, agreed: new.agreed, settled: new.settled, before: Before::Held(before) };
        let strings = grown.iter().map(Vec::as_slice).collect();
        held.change(files.files(), strings, agreement, self.most_unused, self.closes).map(Some)
    }

    fn table(&self, new: &NewRows, arrays: usize) -> Result<ShardTable, String> {
        let cells = new.rows.len();
        let length = |&(start, stop): &(usize, usize)| stop.checked_sub(start);
        let lengths: Option<Vec<usize>> = new.edges.iter().map(length).collect();
        let last = new.edges.iter().map(|&(_, stop)| stop).max().unwrap_or(0);
        let has_rows = |(column, size): (&SharedBytes, &usize)| last.checked_mul(*size) == Some(column.len());
        let fits = new.edges.len() == cells && cells > 0 && new.columns.len() + 1 == arrays;
        if !fits || lengths.is_none() || !new.columns.iter().zip(&self.sizes).all(has_rows) {
            return Err("rows that are not those of the cells".into());
        }
        let [starts @ .., _] = new.bounds else { return Err("no bounds of shards".into()) };
        let (step, all) = (cells as i64, (cells * arrays) as i64);
        let bounds = (0..arrays as i64).flat_map(|array| starts.iter().map(move |start| start + array * step));
        let bounds: Vec<i64> = bounds.chain([all]).collect();
        if new.bounds.last() != Some(&step) {
            return Err("bounds of shards that are not those of the cells".into());
        }
        ShardTable::new(&bounds, &new.rows.repeat(arrays), self.count, (false, true), cells * arrays)
    }

    /// Whether what is known from before is so still.
    fn is_as_known(&self) -> bool {
        self.documents.iter().all(KnownFile::is_current)
            && stored_files::names_in(&self.folders).is_ok_and(|names| names == self.names)
    }

    /// The cells of one array after the other with the new rows; `None` where one of them is not the usual case.
    fn grown(&self, mut cells: Vec<Vec<u8>>, new: &NewRows) -> Option<Vec<Vec<u8>>> {
        let each = new.rows.len();
        let (columns, counts) = cells.split_at_mut(each * self.sizes.len());
        for (cell, tile) in counts.iter_mut().enumerate() {
            let (before, after) = (tile.strip_prefix(self.around.0.as_slice())?, self.around.1.as_slice());
            let count = u64::from_le_bytes(before.strip_suffix(after)?.try_into().ok()?);
            let (start, stop) = new.edges[cell];
            let more = stop - start;
            if count == 0 {
                return None;
            }
            for (array, &size) in self.sizes.iter().enumerate() {
                let string = &mut columns[array * each + cell];
                if u64::try_from(string.len()) != Ok(count.checked_mul(size as u64)?) {
                    return None;
                }
                let (old, rows) = (string.len(), new.columns[array].part(start * size, more * size)?);
                string.try_reserve_exact(rows.len()).ok()?;
                string.resize(old + rows.len(), 0);
                rows.copy_to(0, &mut string[old..]);
            }
            let count = count.checked_add(more as u64)?;
            tile[self.around.0.len()..][..8].copy_from_slice(&count.to_le_bytes());
        }
        Some(cells)
    }
}

/// The log of a change: its head, then for each array the places, the lengths and the bytes of its cells; a checksum.
fn log(grown: &[Vec<u8>], arrays: usize, new: &NewRows) -> Option<Vec<u8>> {
    let bytes: usize = grown.iter().map(|cell| cell.len() + 8).sum();
    let mut log = Vec::new();
    log.try_reserve_exact(new.head.len() + bytes + arrays * new.places.len() + sum::SIZE).ok()?;
    log.extend_from_slice(new.head);
    for cells in grown.chunks(new.rows.len()) {
        log.extend_from_slice(new.places);
        log.extend(cells.iter().flat_map(|cell| (cell.len() as u64).to_le_bytes()));
        cells.iter().for_each(|cell| log.extend_from_slice(cell));
    }
    let computed = sum::crc32c(0, &log);
    log.extend_from_slice(&computed.to_le_bytes());
    Some(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::known_file::Identity;
    use std::fs::{self, File};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn version(path: &Path) -> String {
        Identity::from(&fs::metadata(path).unwrap()).version()
    }

    fn names() -> NamesBeside {
        NamesBeside { start: b".own-".into(), edit: b".own-edit-".into(), end: b".tmp".into(), number: 1 }
    }

    /// A shard of two rows of which the second one is stored.
    fn shard(string: &[u8]) -> Vec<u8> {
        let table = ShardTable::new(&[0, 1], &[1], 2, (false, true), 1).unwrap();
        let mut shard = [&1u32.to_le_bytes()[..], &(string.len() as u32).to_le_bytes(), string].concat();
        let length = shard.len();
        shard.resize(length + table.index_size(), 0);
        table.write_index(&[(0, 0, length as u64)], &mut shard[length..]);
        shard
    }

    fn last_cell(path: &Path) -> Vec<u8> {
        let data = fs::read(path).unwrap();
        let entry = &data[data.len() - 20..data.len() - 4];
        let word = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap()) as usize;
        data[word(0) + 8..word(0) + word(8)].to_vec()
    }

    #[test]
    fn rows_go_behind_those_of_cells_if_all_is_as_it_was_known() {
        let path = std::env::temp_dir().join(format!("zardine-growing-cells-{}", std::process::id()));
        fs::create_dir_all(path.join("folder")).unwrap();
        let path = fs::canonicalize(path).unwrap();
        let known = path.join("known");
        fs::write(&known, b"as it was").unwrap();
        fs::write(path.join("document"), b"before").unwrap();
        fs::write(path.join("values"), shard(b"oldold")).unwrap();
        let tile = |count: u64| [&b"<"[..], &count.to_le_bytes(), b">"].concat();
        fs::write(path.join("counts"), shard(&tile(2))).unwrap();
        let c_path = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
        let folders = vec![c_path(&path.join("folder"))];
        let growing = GrowingCells {
            base: Base::Named {
                path: path.as_os_str().as_bytes().to_vec(),
                below: [path.as_os_str().as_bytes(), b"/"].concat(),
            },
            documents: vec![KnownFile {
                path: c_path(&known),
                identity: Identity::from(&fs::metadata(&known).unwrap()),
                fd: None,
            }],
            folders,
            names: b"\0".into(),
            sizes: vec![3],
            around: (b"<".into(), b">".into()),
            count: 2,
            sums: 0,
            most: 99,
            most_unused: 1.0,
            closes: true,
        };
        let keys = ["document", "log", "values", "counts"].map(|key| key.as_bytes().to_vec());
        let add = |version: &str, rows: &[i64], edges: &[(usize, usize)], column: &[u8]| {
            let columns = [SharedBytes::of(column)];
            let new = NewRows {
                keys: &keys,
                bounds: &[0, 1],
                rows,
                edges,
                places: b"place",
                columns: &columns,
                head: b"head",
                agreed: b"agreed",
                settled: b"settled",
                version,
            };
            growing.add(&new, &names())
        };
        let document = path.join("document");
        let done = add(&version(&document), &[1], &[(0, 1)], b"new").unwrap().unwrap();
        assert!(done.is_settled && done.closed.is_empty());
        drop(done);
        assert_eq!(fs::read(&document).unwrap(), b"settled");
        assert_eq!((last_cell(&path.join("values")), last_cell(&path.join("counts"))), (b"oldoldnew".into(), tile(3)));
        let now = version(&document);
        let nothing = |version: &str| assert!(add(version, &[1], &[(1, 2)], b"...new").unwrap().is_none());
        nothing("1-2-3-4");
        let lock = File::open(&document).unwrap();
        lock.lock().unwrap();
        nothing(&now);
        drop(lock);
        fs::write(path.join("folder/more"), b"").unwrap();
        nothing(&now);
        fs::remove_file(path.join("folder/more")).unwrap();
        assert!(add(&now, &[0], &[(0, 1)], b"new").unwrap().is_none()); // no such cell
        let counts = fs::read(path.join("counts")).unwrap();
        for other in [tile(4), b"<".into(), tile(u64::MAX), tile(0)] {
            fs::write(path.join("counts"), shard(&other)).unwrap();
            nothing(&now);
        }
        fs::write(path.join("counts"), counts).unwrap();
        for (rows, edges, column) in [
            (&[1][..], &[(0, 2)][..], &b"new"[..]),
            (&[1], &[(1, 0)], b"new"),
            (&[1], &[(0, usize::MAX)], b"new"),
            (&[2], &[(0, 1)], b"new"),
            (&[1, 1], &[(0, 1)], b"new"),
            (&[], &[], b""),
        ] {
            assert!(add(&now, rows, edges, column).is_err());
        }
        assert!(add(&now, &[1], &[(1, 2)], b"...end").unwrap().unwrap().is_settled);
        assert_eq!(last_cell(&path.join("values")), b"oldoldnewend");
        fs::write(&known, b"other").unwrap();
        nothing(&version(&document));
        assert!(!path.join("log").exists() && fs::read_dir(&path).unwrap().count() == 5);
        let elsewhere = NewRows {
            keys: &["0/document", "0/log", "0/values", "0/counts"].map(|key| key.as_bytes().to_vec()),
            bounds: &[0, 1],
            rows: &[1],
            edges: &[(0, 1)],
            places: b"place",
            columns: &[SharedBytes::of(b"new")],
            head: b"head",
            agreed: b"agreed",
            settled: b"settled",
            version: &now,
        };
        let modified = || fs::metadata(&path).unwrap().modified().unwrap();
        let before = modified();
        assert!(growing.add(&elsewhere, &names()).unwrap().is_none());
        assert_eq!(modified(), before); // no directory was made meanwhile
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_log_holds_all_cells() {
        let (column, places) = ([SharedBytes::of(b"")], [7u8; 4]);
        let new = NewRows {
            keys: &[],
            bounds: &[],
            rows: &[1, 0],
            edges: &[],
            places: &places,
            columns: &column,
            head: b"head",
            agreed: b"",
            settled: b"",
            version: "",
        };
        let log = log(&[b"a".into(), b"bc".into(), b"".into(), b"d".into()], 2, &new).unwrap();
        let length = |length: u64| length.to_le_bytes();
        let parts: [&[u8]; 9] =
            [b"head", &places, &length(1), &length(2), b"abc", &places, &length(0), &length(1), b"d"];
        let body = parts.concat();
        assert_eq!(log, [&body[..], &sum::crc32c(0, &body).to_le_bytes()].concat());
    }
}
