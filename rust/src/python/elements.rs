//! Byte strings of many chunks: see `elements`. Those of one chunk, each behind its length.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyTuple};

use super::arguments::{Sources, invalid, shard_table};
use super::buffers::Buffer;
use super::files::PyNewFiles;
use super::pipeline_class::{NewByteArray, guarded, job_table};
use crate::element_files;
use crate::elements::{Elements, Packing};
use crate::manifests;
use crate::strided_memory::SharedBytes;

#[pyfunction]
pub fn read_elements<'py>(
    py: Python<'py>,
    sources: &Bound<'py, PyAny>,
    jobs: &Bound<'py, PyAny>,
    sums: usize,
    threads: usize,
) -> PyResult<Option<Bound<'py, PyByteArray>>> {
    let held = Sources::of(sources)?;
    let sources = held.sources()?;
    let jobs = job_table(jobs, 3, 0)?;
    let Some(call) = Elements::new(&sources, &jobs, sums).map_err(invalid)? else { return Ok(None) };
    let mut content = NewByteArray::new(py)?;
    let out = content.grow_with_zeros(call.total())?;
    let outcome = guarded(py, || call.read(out, threads))?;
    // SAFETY: zeros were written to all of it.
    Ok(outcome.is_ok().then(|| unsafe { content.filled() }))
}

/// Bytes of a length.
const WORD: usize = 4;
const MOST_AXES: usize = 16;

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
    let found = strings.strings()?;
    let sizes = found.iter().map(|each| u32::try_from(each.len()).ok().map(|size| size as usize));
    let total = sizes.map(|size| size?.checked_add(WORD)).try_fold(0usize, |total, size| total.checked_add(size?));
    let mut content = NewByteArray::new(py)?;
    let mut out = content.grow_with_zeros(total.ok_or_else(|| invalid("too many bytes"))?)?;
    for each in found {
        let (word, after) = out.split_at_mut(WORD);
        let (target, after) = after.split_at_mut(each.len());
        word.copy_from_slice(&(each.len() as u32).to_le_bytes());
        each.copy_to(0, target);
        out = after;
    }
    // SAFETY: zeros were written to all of it.
    Ok(unsafe { content.filled() })
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
    let mut content = NewByteArray::new(py)?;
    let out = content.grow_with_zeros(size.ok_or_else(|| invalid("too many bytes"))?)?;
    if !guarded(py, || manifests::encode(starts, chunks, fragments, rank, out))? {
        return Err(invalid("starts, chunks and fragments do not fit together"));
    }
    // SAFETY: zeros were written to all of it.
    Ok(unsafe { content.filled() })
}

/// Byte strings of one buffer.
struct Strings<'py> {
    buffer: Buffer<'py>,
    starts: Vec<i64>,
    lengths: Vec<i64>,
}

impl<'py> Strings<'py> {
    /// Of a buffer, and int64 that tell where each begins in it and how long it is.
    fn of(elements: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let (data, starts, lengths): (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>) = elements.extract()?;
        let numbers = |each| Buffer::of(each, false)?.copied_integers();
        Ok(Strings { buffer: Buffer::of(&data, false)?, starts: numbers(&starts)?, lengths: numbers(&lengths)? })
    }

    fn packing(&self, sums: usize, shards: Option<&Bound<'_, PyTuple>>) -> PyResult<Packing<'_>> {
        let table = shards.map(|shards| shard_table(shards, self.starts.len())).transpose()?;
        Packing::new(self.strings()?, sums, table).map_err(invalid)
    }

    fn strings(&self) -> PyResult<Vec<SharedBytes<'_>>> {
        let bytes = self.buffer.bytes()?;
        let string =
            |(&start, &length): (&i64, &i64)| bytes.part(usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        let strings = self.starts.iter().zip(&self.lengths).map(string).collect::<Option<Vec<_>>>();
        let strings = strings.filter(|_| self.starts.len() == self.lengths.len());
        strings.ok_or_else(|| invalid("elements beyond their buffer"))
    }
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
    let call = strings.packing(sums, shards)?;
    let mut content = NewByteArray::new(py)?;
    let out = content.grow_with_zeros(call.total())?;
    guarded(py, || call.pack(out, threads))?.map_err(|reason| PyRuntimeError::new_err(reason.to_string()))?;
    // SAFETY: zeros were written to all of it.
    Ok((unsafe { content.filled() }, call.sizes().to_vec()))
}

#[pyfunction]
pub fn make_element_files(
    py: Python<'_>,
    files: &PyNewFiles,
    elements: &Bound<'_, PyTuple>,
    sums: usize,
    shards: Option<&Bound<'_, PyTuple>>,
    threads: usize,
) -> PyResult<Vec<(usize, i32)>> {
    let (files, strings) = (files.open_files()?, Strings::of(elements)?);
    let call = strings.packing(sums, shards)?;
    if call.sizes().len() != files.files().len() || (0..call.sizes().len()).any(|value| call.jobs(value).is_empty()) {
        return Err(invalid(format!(
            "{} files for {} values, each of something",
            files.files().len(),
            call.sizes().len()
        )));
    }
    guarded(py, || element_files::make(files.files(), &call, threads))
}
