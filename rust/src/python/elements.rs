//! Byte strings of many chunks: see `cells::elements`. Those of one chunk, each behind its length.

use std::os::fd::RawFd;
use std::sync::atomic::AtomicI64;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyTuple};

use super::arguments::{Sources, invalid, shard_table};
use super::buffers::{Buffer, integers_of};
use super::byte_arrays::NewByteArray;
use super::files::{PyDescriptor, PyNewFiles};
use super::pipeline_class::{ChangedFile, columns, guarded, job_table, told_of};
use crate::cells::cell_files::{self, CellArray, ShardsForm};
use crate::cells::element_parts::ElementParts;
use crate::cells::elements::{Elements, Packing};
use crate::cells::extended_shards::{Extended, Extending};
use crate::cells::manifests;
use crate::files::new_files::NamesBeside;
use crate::files::path_form::PathForm;
use crate::memory::byte_strings::ByteString;
use crate::memory::shared_integers::read;
use crate::memory::strided_memory::SharedBytes;
use crate::threads::crew::Crew;

#[pyfunction]
pub fn read_elements<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    jobs: &Bound<'py, PyAny>,
    ends: Vec<usize>,
    sums: usize,
    threads: usize,
) -> PyResult<Option<Vec<Bound<'py, PyByteArray>>>> {
    let held = Sources::of(sources)?;
    let sources = held.sources()?;
    let jobs = job_table(jobs, 3, 0)?;
    if ends.last().copied().unwrap_or(0) != jobs.len() || !ends.is_sorted() {
        return Err(invalid("ends of outputs that are not those of all jobs"));
    }
    let Some(call) = Elements::new(&sources, &jobs, sums).map_err(invalid)? else { return Ok(None) };
    let starts = [0].iter().chain(&ends);
    let totals: Vec<usize> = starts.zip(&ends).map(|(&start, &end)| call.total_of(start..end)).collect();
    NewByteArray::made_together(py, &totals, |outs| {
        call.read_apart(ends.iter().copied().zip(outs).collect(), threads).is_ok()
    })
}

#[pyfunction]
pub fn read_element_parts<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    jobs: &Bound<'py, PyAny>,
    sizes: Vec<usize>,
    spans: &Bound<'py, PyAny>,
    sums: usize,
    threads: usize,
) -> PyResult<Option<Vec<Bound<'py, PyByteArray>>>> {
    let held = Sources::of(sources)?;
    let sources = held.sources()?;
    let jobs = job_table(jobs, 3, 0)?;
    let spans = integers_of(spans)?;
    let Some(elements) = Elements::new(&sources, &jobs, sums).map_err(invalid)? else { return Ok(None) };
    let Some(call) = ElementParts::new(elements, sizes, &spans) else { return Ok(None) };
    let totals: Vec<usize> = call.totals().collect();
    NewByteArray::made_together(py, &totals, |outs| call.read(outs, threads).is_ok())
}

/// Bytes of a length.
const WORD: usize = 4;
pub const MOST_AXES: usize = 16;

#[pyfunction]
pub fn split_elements<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
    start: usize,
    count: usize,
) -> PyResult<Option<(Bound<'py, PyList>, usize)>> {
    let data = data.as_bytes();
    let Some(mut rest) = data.get(start..) else { return Ok(None) };
    if rest.len() / WORD < count {
        return Ok(None);
    }
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((word, after)) = rest.split_first_chunk::<WORD>() else { return Ok(None) };
        let Some((element, after)) = after.split_at_checked(u32::from_le_bytes(*word) as usize) else {
            return Ok(None);
        };
        found.push(element);
        rest = after;
    }
    let list = PyList::new(py, found.into_iter().map(|element| PyBytes::new(py, element)))?;
    Ok(Some((list, data.len() - rest.len())))
}

#[pyfunction]
pub fn join_elements<'py>(py: Python<'py>, elements: &Bound<'py, PyList>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Ok(found) = elements.iter().map(|each| each.cast_into::<PyBytes>()).collect::<Result<Vec<_>, _>>() else {
        return Ok(None);
    };
    let sizes = || found.iter().map(|each| each.as_bytes().len());
    let total = sizes().try_fold(0usize, |total, size| total.checked_add(size)?.checked_add(WORD));
    let Some(total) = total.filter(|_| sizes().all(|size| u32::try_from(size).is_ok())) else { return Ok(None) };
    let joined = PyBytes::new_with(py, total, |mut out| {
        for each in &found {
            let element = each.as_bytes();
            let (word, after) = out.split_at_mut(WORD);
            let (target, after) = after.split_at_mut(element.len());
            word.copy_from_slice(&(element.len() as u32).to_le_bytes());
            target.copy_from_slice(element);
            out = after;
        }
        Ok(())
    })?;
    Ok(Some(joined))
}

#[pyfunction]
pub fn join_pieces<'py>(py: Python<'py>, elements: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyByteArray>> {
    let strings = Strings::of(elements)?;
    let runs = strings.runs()?;
    let found = strings.strings(&runs)?;
    let sizes = found.iter().map(|each| u32::try_from(each.len()).ok().map(|size| size as usize));
    let total = sizes.map(|size| size?.checked_add(WORD)).try_fold(0usize, |total, size| total.checked_add(size?));
    NewByteArray::filled_by(py, total.ok_or_else(|| invalid("too many bytes"))?, |mut out| {
        for each in found {
            let (word, after) = out.split_at_mut(WORD);
            let (target, after) = after.split_at_mut(each.len());
            word.copy_from_slice(&(each.len() as u32).to_le_bytes());
            each.copy_to(target);
            out = after;
        }
    })
}

#[pyfunction]
pub fn encode_manifests<'py>(
    py: Python<'py>,
    starts: &Bound<'py, PyAny>,
    chunks: &Bound<'py, PyAny>,
    fragments: &Bound<'py, PyAny>,
    rank: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let held = [Buffer::of(starts, false)?, Buffer::of(chunks, false)?, Buffer::of(fragments, false)?];
    let (starts, chunks, fragments) = (held[0].integers()?, held[1].integers()?, held[2].integers()?);
    if !(1..=MOST_AXES).contains(&rank) {
        return Err(invalid(format!("chunks of {rank} axes")));
    }
    let size = manifests::size(starts.len().saturating_sub(1), fragments.len(), rank);
    let size = size.ok_or_else(|| invalid("too many bytes"))?;
    let made = NewByteArray::made_by(py, size, |out| manifests::encode(starts, chunks, fragments, rank, out))?;
    made.ok_or_else(|| invalid("starts, chunks and fragments do not fit together"))
}

/// Byte strings of one buffer: each a run of bytes, or some of them one after the other.
struct Strings<'py> {
    buffer: Buffer<'py>,
    starts: Vec<i64>,
    lengths: Vec<i64>,
    bounds: Option<Vec<i64>>,
}

impl<'py> Strings<'py> {
    /// Of a buffer, and int64 that tell where each run begins in it and how long it is; and, where byte strings are
    /// several, at which of these each begins, and how many there are.
    fn of(elements: &Bound<'py, PyTuple>) -> PyResult<Self> {
        if !(3..=4).contains(&elements.len()) {
            return Err(invalid("elements are a buffer, starts and lengths, and perhaps bounds"));
        }
        Ok(Strings {
            buffer: Buffer::of(&elements.get_item(0)?, false)?,
            starts: integers_of(&elements.get_item(1)?)?,
            lengths: integers_of(&elements.get_item(2)?)?,
            bounds: elements.iter().nth(3).map(|bounds| integers_of(&bounds)).transpose()?,
        })
    }

    /// The byte strings, of these `runs`.
    fn strings<'a>(&self, runs: &'a [SharedBytes<'a>]) -> PyResult<Vec<ByteString<'a>>> {
        let Some(bounds) = &self.bounds else { return Ok(ByteString::each(runs)) };
        ByteString::between(runs, bounds).ok_or_else(|| invalid(UNBOUND))
    }

    fn runs(&self) -> PyResult<Vec<SharedBytes<'_>>> {
        let runs = runs_of(self.buffer.bytes()?, self.starts.iter().copied(), self.lengths.iter().copied());
        runs.ok_or_else(|| invalid("elements beyond their buffer"))
    }
}

const UNBOUND: &str = "bounds that are not those of all runs";

fn runs_of<'a>(
    bytes: SharedBytes<'a>,
    starts: impl ExactSizeIterator<Item = i64>,
    lengths: impl ExactSizeIterator<Item = i64>,
) -> Option<Vec<SharedBytes<'a>>> {
    if starts.len() != lengths.len() {
        return None;
    }
    let mut runs = Vec::with_capacity(starts.len());
    for (start, length) in starts.zip(lengths) {
        runs.push(bytes.part(usize::try_from(start).ok()?, usize::try_from(length).ok()?)?);
    }
    Some(runs)
}

#[pyfunction]
pub fn replace_elements<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
    start: usize,
    count: usize,
    first: usize,
    elements: &Bound<'py, PyList>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some(joined) = join_elements(py, elements)? else { return Ok(None) };
    let (data, new) = (data.as_bytes(), elements.len());
    let Some(end) = first.checked_add(new).filter(|&end| end <= count) else { return Ok(None) };
    let mut at = start;
    let (mut from, mut to) = (at, at);
    for number in 0..count {
        let word = at.checked_add(WORD).and_then(|stop| data.get(at..stop));
        let Some(word) = word.and_then(|word| word.first_chunk::<WORD>()) else { return Ok(None) };
        if number == first {
            from = at;
        }
        at = match (at + WORD).checked_add(u32::from_le_bytes(*word) as usize) {
            Some(next) if next <= data.len() => next,
            _ => return Ok(None),
        };
        if number + 1 == end {
            to = at;
        }
    }
    if at != data.len() || new == 0 {
        return Ok(None);
    }
    let pieces = [&data[..from], joined.as_bytes(), &data[to..]];
    let total = pieces.iter().map(|piece| piece.len()).sum();
    let replaced = PyBytes::new_with(py, total, |mut out| {
        for piece in pieces {
            let (target, after) = out.split_at_mut(piece.len());
            target.copy_from_slice(piece);
            out = after;
        }
        Ok(())
    })?;
    Ok(Some(replaced))
}

#[pyfunction]
pub fn pack_elements<'py>(
    py: Python<'py>,
    elements: &Bound<'py, PyTuple>,
    sums: usize,
    shards: Option<&Bound<'py, PyTuple>>,
    threads: usize,
) -> PyResult<(Bound<'py, PyByteArray>, Vec<usize>)> {
    let strings = Strings::of(elements)?;
    let runs = strings.runs()?;
    let strings = strings.strings(&runs)?;
    let table = shards.map(|shards| shard_table(shards, strings.len())).transpose()?;
    let call = Packing::new(strings, sums, table).map_err(invalid)?;
    let mut content = NewByteArray::new(py)?;
    let out = content.grow_with_zeros(call.total())?;
    guarded(py, || call.pack(out, threads))?.map_err(|reason| PyRuntimeError::new_err(reason.to_string()))?;
    // SAFETY: zeros were written to all of it.
    Ok((unsafe { content.filled() }, call.sizes().to_vec()))
}

/// Grid and strides of shards, rows of an index, whether it comes first, and has a checksum.
type Shards = (Vec<i64>, Vec<i64>, usize, bool, bool);
/// The form of keys, cells, byte strings, checksums of each, shards.
type Array<'py> = (Vec<u8>, Bound<'py, PyAny>, Bound<'py, PyTuple>, usize, Option<Shards>);

/// Threads that take part in what others do: see `crew`.
#[pyclass(frozen, module = "zardine._kernel", name = "Crew")]
pub struct PyCrew(Crew);

#[pymethods]
impl PyCrew {
    #[new]
    fn new() -> Self {
        PyCrew(Crew::default())
    }

    fn help(&self, py: Python<'_>) -> PyResult<()> {
        guarded(py, || self.0.help())
    }
}

/// The cells of an array, as they lie in buffers: the form of keys, coordinates of each cell and how many these are, the
/// bytes and what tells of runs of them, checksums, shards.
struct GivenCells<'a> {
    form: PathForm,
    cells: &'a [AtomicI64],
    rank: usize,
    bytes: SharedBytes<'a>,
    numbers: Vec<&'a [AtomicI64]>,
    sums: usize,
    shards: Option<ShardsForm>,
}

#[pyfunction]
#[pyo3(signature = (base, arrays, beside, number, threads, crew=None))]
pub fn make_cell_files(
    py: Python<'_>,
    base: RawFd,
    arrays: Vec<Array<'_>>,
    beside: (Vec<u8>, Vec<u8>, Vec<u8>),
    number: u64,
    threads: usize,
    crew: Option<&PyCrew>,
) -> PyResult<Vec<(Vec<u8>, i32)>> {
    let mut held = Vec::with_capacity(arrays.len());
    for (_, cells, elements, ..) in &arrays {
        if !(3..=4).contains(&elements.len()) {
            return Err(invalid("elements are a buffer, starts and lengths, and perhaps bounds"));
        }
        let elements = elements.iter().map(|each| Buffer::of(&each, false)).collect::<PyResult<Vec<_>>>()?;
        held.push((Buffer::of(cells, false)?, elements));
    }
    let mut given = Vec::with_capacity(held.len());
    for ((form, _, _, sums, shards), (cells, elements)) in arrays.iter().zip(&held) {
        let &[_, rank] = cells.shape().as_slice() else { return Err(invalid("cells are rows of integers")) };
        let shards = shards.clone().map(|(grid, strides, count, index_at_start, has_checksum)| ShardsForm {
            grid,
            strides,
            count,
            index_at_start,
            has_checksum,
        });
        given.push(GivenCells {
            form: PathForm::new(form).map_err(invalid)?,
            cells: cells.integers()?,
            rank,
            bytes: elements[0].bytes()?,
            numbers: elements[1..].iter().map(Buffer::integers).collect::<PyResult<Vec<_>>>()?,
            sums: *sums,
            shards,
        });
    }
    let (start, edit, end) = beside;
    let names = NamesBeside { start, edit, end, number };
    let crew = crew.map(|crew| &crew.0);
    let made = guarded(py, || {
        let copied = |numbers: &[AtomicI64]| numbers.iter().map(read).collect::<Vec<i64>>();
        let runs = given.iter().map(|each| {
            let [starts, lengths] = [each.numbers[0], each.numbers[1]].map(|numbers| numbers.iter().map(read));
            runs_of(each.bytes, starts, lengths)
        });
        let runs = runs.collect::<Option<Vec<_>>>().ok_or("elements beyond their buffer")?;
        let mut made = Vec::with_capacity(given.len());
        for (GivenCells { form, cells, rank, numbers, sums, shards, .. }, runs) in given.into_iter().zip(&runs) {
            let strings = match numbers.get(2) {
                None => ByteString::each(runs),
                Some(bounds) => ByteString::between(runs, &copied(bounds)).ok_or(UNBOUND)?,
            };
            made.push(CellArray::new(&form, &copied(cells), rank, strings, sums, shards)?);
        }
        Ok::<_, String>(cell_files::make(base, made, &names, threads, crew))
    })?;
    made.map_err(invalid)
}

#[pyfunction]
pub fn extend_shards<'py>(
    py: Python<'py>,
    elements: &Bound<'py, PyList>,
    sums: usize,
    shards: &Bound<'py, PyTuple>,
    files: &Bound<'py, PyNewFiles>,
    most: u64,
    most_unused: f64,
) -> PyResult<Vec<Option<ChangedFile<'py>>>> {
    let held = bytes_in(elements)?;
    let table = shard_table(shards, held.len())?;
    let strings = held.iter().map(|each| each.as_bytes()).collect();
    let call = Extending::new(strings, sums, &table, most, most_unused).map_err(invalid)?;
    let opened = files.get().open_files()?;
    let done = guarded(py, || call.run(opened.files()))?.map_err(invalid)?;
    let each = |shard: Extended| {
        let (offsets, lengths) = columns(py, &shard.entries)?;
        Ok((shard.old.map(PyDescriptor::of), Some(told_of(&shard.status)), offsets, lengths))
    };
    done.into_iter().map(|shard| shard.map(each).transpose()).collect()
}

fn bytes_in<'py>(elements: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let held = elements.iter().map(|each| each.cast_into::<PyBytes>()).collect::<Result<Vec<_>, _>>();
    held.map_err(|_| invalid("elements are bytes"))
}
