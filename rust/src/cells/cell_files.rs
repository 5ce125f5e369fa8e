//! Cells of many arrays that become files below one directory, of which none is there yet: each one by itself, or shards
//! of them. What is to be done for all is shared by threads; so many directories are open at a time as a call may have.

use std::collections::HashSet;
use std::os::fd::RawFd;
use std::slice;

use crate::cells::element_files::{self, Value};
use crate::cells::elements::Packing;
use crate::files::new_files::{Base, NamesBeside, NewFiles};
use crate::files::path_form::PathForm;
use crate::memory::byte_strings::ByteString;
use crate::plan::shard_table::ShardTable;
use crate::threads::crew::Crew;

/// Files that are made together, and directories that are open meanwhile, beside those above them.
const FILES: usize = 4096;
const FOLDERS: usize = 32;

/// How shards hold cells: the cells along each axis, and by how many rows of the index one is behind another there; the
/// rows of an index, whether it lies in front of the cells, and whether a checksum is behind it.
pub struct ShardsForm {
    pub grid: Vec<i64>,
    pub strides: Vec<i64>,
    pub count: usize,
    pub index_at_start: bool,
    pub has_checksum: bool,
}

/// An array: the keys of its files, and what goes into each.
pub struct CellArray<'a> {
    keys: Vec<Vec<u8>>,
    packing: Packing<'a>,
}

impl<'a> CellArray<'a> {
    /// `cells` has `rank` coordinates of each of `strings`, which are the cells. `sums` as for a [`Packing`].
    pub fn new(
        form: &PathForm,
        cells: &[i64],
        rank: usize,
        strings: Vec<ByteString<'a>>,
        sums: usize,
        shards: Option<ShardsForm>,
    ) -> Result<Self, String> {
        if rank == 0 || strings.len().checked_mul(rank) != Some(cells.len()) || cells.iter().any(|&each| each < 0) {
            return Err("cells that have no place".into());
        }
        let key = |place: &[i64]| {
            let path = form.path(place.iter().map(|&each| each as usize))?;
            Ok::<_, String>(path.into_bytes())
        };
        let Some(shards) = shards else {
            let keys = cells.chunks_exact(rank).map(key).collect::<Result<Vec<_>, _>>()?;
            return Ok(CellArray { keys, packing: Packing::new(strings, sums, None)? });
        };
        let ShardsForm { grid, strides, count, .. } = &shards;
        if grid.len() != rank || strides.len() != rank || grid.iter().any(|&length| length < 1) {
            return Err("shards that are not those of the cells".into());
        }
        let row = |cell: &[i64]| {
            let steps =
                cell.iter().zip(grid).zip(strides).map(|((at, length), stride)| (at % length).checked_mul(*stride));
            steps.reduce(|row, step| row?.checked_add(step?)).flatten().ok_or("rows of no index")
        };
        let places: Vec<i64> =
            cells.chunks_exact(rank).flat_map(|cell| cell.iter().zip(grid).map(|(at, length)| at / length)).collect();
        let place = |job: usize| &places[job * rank..(job + 1) * rank];
        let rows = cells.chunks_exact(rank).map(row).collect::<Result<Vec<i64>, _>>()?;
        let mut order: Vec<usize> = (0..strings.len()).collect();
        order.sort_by(|&one, &other| (place(one), rows[one]).cmp(&(place(other), rows[other])));
        let edge = |at: &usize| *at == 0 || place(order[*at]) != place(order[*at - 1]);
        let mut bounds: Vec<i64> = (0..order.len()).filter(edge).map(|at| at as i64).collect();
        let keys = bounds.iter().map(|&at| key(place(order[at as usize]))).collect::<Result<Vec<_>, _>>()?;
        bounds.push(order.len() as i64);
        let rows: Vec<i64> = order.iter().map(|&job| rows[job]).collect();
        let form = (shards.index_at_start, shards.has_checksum);
        let table = ShardTable::new(&bounds, &rows, *count, form, rows.len())?;
        let strings = order.iter().map(|&job| strings[job]).collect();
        Ok(CellArray { keys, packing: Packing::new(strings, sums, Some(table))? })
    }
}

/// A file that could not be made: its key, and the number of the system's error.
pub type Failed = (Vec<u8>, i32);

/// Make the files of `arrays` below the open directory `base`; those that could not be made, of which some may be there
/// in part. Of files that are made together with one of them, others may be made; no more are begun after that. `crew` as
/// for [`element_files::make`], where that is for one thread.
pub fn make(
    base: RawFd,
    arrays: Vec<CellArray>,
    names: &NamesBeside,
    threads: usize,
    crew: Option<&Crew>,
) -> Vec<Failed> {
    let mut packings = Vec::with_capacity(arrays.len());
    let (mut keys, mut values) = (Vec::new(), Vec::<Value>::new());
    for (number, array) in arrays.into_iter().enumerate() {
        values.extend((0..array.keys.len()).map(|value| (number, value)));
        keys.extend(array.keys);
        packings.push(array.packing);
    }
    let crew = crew.filter(|_| threads == 1);
    let _member = crew.map(Crew::come); // who helps stays until the last of these files is made
    let mut start = 0;
    while start < keys.len() {
        let end = portion(&keys[start..]) + start;
        let keys = &keys[start..end];
        let new = match opened(base, keys, names) {
            Ok(new) => new,
            Err(code) => {
                let alone = |key: &Vec<u8>| Some((key.clone(), opened(base, slice::from_ref(key), names).err()?));
                return vec![keys.iter().find_map(alone).unwrap_or_else(|| (keys[0].clone(), code))];
            }
        };
        let failed = element_files::make(new.files(), &packings, &values[start..end], threads, crew);
        if !failed.is_empty() {
            return failed.into_iter().map(|(file, code)| (keys[file].clone(), code)).collect();
        }
        new.close_filled();
        start = end;
    }
    Vec::new()
}

/// Where files go; the number of the system's error where one of them goes nowhere.
fn opened(base: RawFd, keys: &[Vec<u8>], names: &NamesBeside) -> Result<NewFiles, i32> {
    let new = NewFiles::open(&Base::Open(base), keys, &[], names);
    new.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?.ok_or(libc::ELOOP)
}

/// How many of the first of these files are made together.
fn portion(keys: &[Vec<u8>]) -> usize {
    let mut folders = HashSet::new();
    let mut last: &[u8] = b"";
    for (number, key) in keys.iter().enumerate() {
        let folder = key.iter().rposition(|&byte| byte == b'/').map_or(&b""[..], |at| &key[..at]);
        if number == 0 || folder != last {
            folders.insert(folder);
            last = folder;
        }
        if number == FILES || folders.len() > FOLDERS {
            return number;
        }
    }
    keys.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::strided_memory::SharedBytes;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    fn form(text: &str) -> PathForm {
        PathForm::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn cells_go_into_the_files_of_their_arrays() {
        let path = std::env::temp_dir().join(format!("zardine-cell-files-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let names = NamesBeside { start: b".a-".into(), edit: b".a-e-".into(), end: b".t".into(), number: 1 };
        let texts: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number; usize::from(number)]).collect();
        let runs: Vec<_> = texts.iter().map(|text| SharedBytes::of(text)).collect();
        let strings = || ByteString::each(&runs);
        let cells: Vec<i64> = (0..100).rev().flat_map(|cell| [cell / 10, cell % 10]).collect();
        let shards = || {
            Some(ShardsForm {
                grid: vec![4, 5],
                strides: vec![5, 1],
                count: 20,
                index_at_start: false,
                has_checksum: true,
            })
        };
        let arrays = || {
            vec![
                CellArray::new(&form("a/c/%d/%d"), &cells, 2, strings(), 1, shards()).unwrap(),
                CellArray::new(&form("b%%/%d.%d"), &cells, 2, strings(), 2, None).unwrap(),
                CellArray::new(&form("d/%d/%d"), &cells, 2, strings(), 0, None).unwrap(),
            ]
        };
        let make = || make(directory.as_raw_fd(), arrays(), &names, 3, None);
        assert_eq!(make(), []);
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        for (number, text) in texts.iter().enumerate() {
            let (row, column) = ((99 - number) / 10, (99 - number) % 10);
            assert_eq!(read(&format!("b%/{row}.{column}"))[8..][..text.len()], *text);
            assert_eq!(read(&format!("d/{row}/{column}"))[8..], *text);
            let shard = read(&format!("a/c/{}/{}", row / 4, column / 5));
            let index = &shard[shard.len() - 20 * 16 - 4..];
            let entry = &index[16 * (row % 4 * 5 + column % 5)..][..16];
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
            let (offset, length) = (word(&entry[..8]), word(&entry[8..]));
            assert_eq!(shard[offset + 8..offset + length - 4], *text);
        }
        let failed = make();
        assert!(failed.len() > 100 && failed.iter().all(|failed| failed.1 == libc::EEXIST));
        fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink("/tmp", path.with_extension("link")).unwrap();
        let above = File::open(path.parent().unwrap()).unwrap();
        let link = path.with_extension("link");
        let name = format!("{}/%d", link.file_name().unwrap().to_str().unwrap());
        let plain = path.with_extension("plain");
        let other = format!("{}/%d", plain.file_name().unwrap().to_str().unwrap());
        let x = [SharedBytes::of(b"x")];
        let one = |name: &str| CellArray::new(&form(name), &[7], 1, ByteString::each(&x), 0, None).unwrap();
        let failed = super::make(above.as_raw_fd(), vec![one(&other), one(&name)], &names, 1, None);
        assert_eq!(failed, [(name.replace("%d", "7").into_bytes(), libc::ELOOP)]);
        assert!(!plain.exists());
        fs::remove_file(link).unwrap();
    }

    #[test]
    fn who_helps_stays_until_the_last_file_is_made() {
        let path = std::env::temp_dir().join(format!("zardine-helped-cells-{}", std::process::id()));
        let names = NamesBeside { start: b".a-".into(), edit: b".a-e-".into(), end: b".t".into(), number: 1 };
        let (x, count) = ([SharedBytes::of(b"x")].repeat(10 * FOLDERS), 10 * FOLDERS as i64);
        let cells: Vec<i64> = (0..count).flat_map(|cell| [cell, 0]).collect();
        for _ in 0..5 {
            fs::create_dir_all(&path).unwrap();
            let directory = File::open(&path).unwrap();
            let (crew, done) = (Crew::default(), AtomicBool::new(false));
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !path.join("0/0").exists() && !done.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                    crew.help();
                    assert!(path.join(format!("{}/0", count - 1)).exists());
                });
                let array = CellArray::new(&form("%d/%d"), &cells, 2, ByteString::each(&x), 0, None).unwrap();
                let failed = super::make(directory.as_raw_fd(), vec![array], &names, 1, Some(&crew));
                done.store(true, Ordering::Relaxed);
                assert_eq!(failed, []);
            });
            fs::remove_dir_all(&path).unwrap();
        }
    }

    #[test]
    fn portions_have_so_many_files_and_folders() {
        let key = |folder: usize, file: usize| format!("{folder}/{file}").into_bytes();
        let few: Vec<Vec<u8>> = (0..3 * FOLDERS).map(|number| key(number / 2, number)).collect();
        assert_eq!(portion(&few), 2 * FOLDERS);
        assert_eq!(portion(&few[2 * FOLDERS..]), FOLDERS);
        let many: Vec<Vec<u8>> = (0..FILES + 5).map(|number| key(0, number)).collect();
        assert_eq!(portion(&many), FILES);
        assert_eq!(portion(&[b"a".to_vec(), b"b".to_vec()]), 2);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let x = [SharedBytes::of(b"x")];
        let one = || ByteString::each(&x);
        let shards = |grid: &[i64], strides: &[i64], count| {
            let (grid, strides) = (grid.to_vec(), strides.to_vec());
            Some(ShardsForm { grid, strides, count, index_at_start: false, has_checksum: false })
        };
        let new = |cells: &[i64], rank, shards| CellArray::new(&form("%d"), cells, rank, one(), 0, shards).is_ok();
        assert!(new(&[3], 1, None) && new(&[3], 1, shards(&[2], &[1], 2)));
        assert!(!new(&[-1], 1, None) && !new(&[], 1, None) && !new(&[], 0, None) && !new(&[1, 2], 2, None));
        for (grid, strides, count) in
            [(&[0][..], &[1][..], 2), (&[2], &[1, 1], 2), (&[2, 2], &[1], 2), (&[2], &[5], 2), (&[4], &[i64::MAX], 2)]
        {
            assert!(!new(&[3], 1, shards(grid, strides, count)), "{grid:?} {strides:?}");
        }
    }
}
