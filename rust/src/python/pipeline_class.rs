//! `Pipeline`: the entries for batches of chunks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PySequence, PyTuple};

use crate::Failure;
use crate::axis_rows::AxisRows;
use crate::decode::Decode;
use crate::encode::Encode;
use crate::fill_value::FillValue;
use crate::job_table::JobTable;
use crate::pipeline::Pipeline;
use crate::points::{DecodePoints, Points};
use crate::python::arguments::{self, invalid};
use crate::python::buffers::Buffer;
use crate::sources::{File, Source};
use crate::workers::PANICKED;

#[pyclass(frozen, module = "zardine._kernel", name = "Pipeline")]
pub struct PyPipeline(Pipeline);

type Encoded<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<Failure>);

#[pymethods]
impl PyPipeline {
    #[new]
    #[pyo3(signature = (*, item_size, word_size, swap, is_bool, order, steps, fill))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        item_size: usize,
        word_size: usize,
        swap: bool,
        is_bool: bool,
        order: Vec<usize>,
        steps: &Bound<'_, PyAny>,
        fill: &[u8],
    ) -> PyResult<Self> {
        if item_size == 0 || item_size > isize::MAX as usize || fill.len() != item_size {
            return Err(invalid(format!("elements of {item_size} bytes, a fill value of {}", fill.len())));
        }
        if swap && (![2, 4, 8].contains(&word_size) || !item_size.is_multiple_of(word_size)) {
            return Err(invalid(format!("words of {word_size} bytes in elements of {item_size}")));
        }
        if is_bool && item_size != 1 {
            return Err(invalid("booleans are bytes"));
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..order.len()) {
            return Err(invalid("order is no permutation"));
        }
        Ok(PyPipeline(Pipeline {
            item: item_size,
            swapped_word: swap.then_some(word_size),
            is_bool,
            order,
            steps: arguments::steps(steps)?,
            fill: FillValue::new(fill.to_vec()),
        }))
    }

    fn decode(
        &self,
        py: Python<'_>,
        sources: &Bound<'_, PySequence>,
        jobs: &Bound<'_, PyAny>,
        axes: &Bound<'_, PySequence>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<Vec<Failure>> {
        let pipeline = &self.0;
        let ndim = self.ndim(axes.len()?)?;
        let out = Buffer::of(out, true)?;
        let memory = out.strided(pipeline.item, ndim)?;
        let (sources, _held) = arguments::sources(sources, Some(&memory))?;
        let jobs = job_table(jobs, 3, ndim)?;
        jobs.check_sources(sources.len()).map_err(invalid)?;
        let axes = arguments::axes(axes, jobs.used_rows().map_err(invalid)?, &memory.shape)?;
        let call = Decode { pipeline, sources: &sources, jobs: &jobs, axes: &axes, out: &memory };
        noticed(guarded(py, || call.run(threads))?)
    }

    /// As `decode`, for the block of one chunk that begins at `first` and is as large as `out`.
    #[allow(clippy::too_many_arguments)]
    fn decode_block(
        &self,
        py: Python<'_>,
        fd: i32,
        offset: i64,
        length: i64,
        extents: &Bound<'_, PyTuple>,
        first: &Bound<'_, PyTuple>,
        out: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let pipeline = &self.0;
        let ndim = self.ndim(extents.len())?;
        if first.len() != ndim {
            return Err(invalid(format!("{} first indices, expected {ndim}", first.len())));
        }
        let out = Buffer::of(out, true)?;
        let memory = out.strided(pipeline.item, ndim)?;
        let mut axes = Vec::with_capacity(ndim);
        for (axis, &count) in memory.shape.iter().enumerate() {
            let (extent, first) = (extents.get_item(axis)?.extract()?, first.get_item(axis)?.extract()?);
            axes.push(AxisRows::block(extent, first, count).map_err(invalid)?);
        }
        let mut job = vec![0; 3 + ndim];
        (job[1], job[2]) = (offset, length);
        let jobs = JobTable::new(job, 3, ndim).map_err(invalid)?;
        let sources = [Source::File(File::new(fd))];
        let call = Decode { pipeline, sources: &sources, jobs: &jobs, axes: &axes, out: &memory };
        Ok(noticed(guarded(py, || call.run(1))?)?.pop().map(|(_, reason)| reason))
    }

    #[allow(clippy::too_many_arguments)]
    fn decode_points<'py>(
        &self,
        py: Python<'py>,
        sources: &Bound<'py, PySequence>,
        jobs: &Bound<'py, PyAny>,
        extents: &Bound<'py, PySequence>,
        point_bounds: &Bound<'py, PyAny>,
        points: &Bound<'py, PySequence>,
        places: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<Vec<Failure>> {
        let pipeline = &self.0;
        self.ndim(extents.len()?)?;
        let out = Buffer::of(out, true)?;
        let memory = out.strided(pipeline.item, 1)?;
        let (sources, _held) = arguments::sources(sources, Some(&memory))?;
        let jobs = job_table(jobs, 3, 1)?;
        jobs.check_sources(sources.len()).map_err(invalid)?;
        let buffers = |list: &Bound<'py, PySequence>| -> PyResult<Vec<Buffer<'py>>> {
            list.try_iter()?.map(|each| Buffer::of(&each?, false)).collect()
        };
        let (extents, indices) = (buffers(extents)?, buffers(points)?);
        let (bounds, places) = (Buffer::of(point_bounds, false)?, Buffer::of(places, false)?);
        let points = Points {
            extents: extents.iter().map(Buffer::integers).collect::<PyResult<_>>()?,
            bounds: bounds.integers()?,
            indices: indices.iter().map(Buffer::integers).collect::<PyResult<_>>()?,
            places: places.integers()?,
        };
        let used = jobs.used_rows().map_err(invalid)?.remove(0);
        points.check(used, memory.shape[0]).map_err(invalid)?;
        let call = DecodePoints { pipeline, sources: &sources, jobs: &jobs, points: &points, out: &memory };
        noticed(guarded(py, || call.run(threads))?)
    }

    #[pyo3(signature = (values, jobs, axes, *, keep_fill, head, tail, threads, sources=None))]
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        jobs: &Bound<'py, PyAny>,
        axes: &Bound<'py, PySequence>,
        keep_fill: bool,
        head: usize,
        tail: usize,
        threads: usize,
        sources: Option<&Bound<'py, PySequence>>,
    ) -> PyResult<Encoded<'py>> {
        let pipeline = &self.0;
        let ndim = self.ndim(axes.len()?)?;
        let values = Buffer::of(values, false)?;
        let memory = values.strided(pipeline.item, ndim)?;
        let (sources, _held) = match sources {
            Some(list) => arguments::sources(list, None)?,
            None => (Vec::new(), Vec::new()),
        };
        let jobs = if !sources.is_empty() {
            job_table(jobs, 3, ndim)?
        } else if ndim == 0 {
            let shape = Buffer::of(jobs, false)?.shape();
            JobTable::empty_rows(*shape.first().ok_or_else(|| invalid("jobs have two dimensions"))?)
        } else {
            job_table(jobs, 0, ndim)?
        };
        if !sources.is_empty() {
            jobs.check_sources(sources.len()).map_err(invalid)?;
        }
        let axes = arguments::axes(axes, jobs.used_rows().map_err(invalid)?, &memory.shape)?;
        let call =
            Encode { pipeline, sources: &sources, values: &memory, jobs: &jobs, axes: &axes, keep_fill, threads };
        let (mut encoded, mut failures) = guarded(py, || call.run(head))?.map_err(invalid)?;
        let total = head.checked_add(encoded.nbytes).and_then(|size| size.checked_add(tail));
        let (result, mut memory) = new_bytearray(py, total.ok_or_else(|| invalid("too many bytes"))?)?;
        let later = guarded(py, || encoded.write(memory.body(head, encoded.nbytes)))?;
        for (job, _) in &later {
            (encoded.offsets[*job], encoded.lengths[*job]) = (crate::encode::EMPTY, crate::encode::EMPTY);
        }
        failures.extend(later);
        let failures = noticed(failures)?;
        let table = |column: &[u64]| {
            PyBytes::new_with(py, size_of_val(column), |bytes| {
                for (target, value) in bytes.chunks_exact_mut(8).zip(column) {
                    target.copy_from_slice(&value.to_ne_bytes());
                }
                Ok(())
            })
        };
        Ok((result, table(&encoded.offsets)?, table(&encoded.lengths)?, failures))
    }
}

impl PyPipeline {
    fn ndim(&self, ndim: usize) -> PyResult<usize> {
        if self.0.order.len() != ndim {
            return Err(invalid(format!("{ndim} axes, expected {}", self.0.order.len())));
        }
        Ok(ndim)
    }
}

fn job_table(jobs: &Bound<'_, PyAny>, fixed: usize, axes: usize) -> PyResult<JobTable> {
    let buffer = Buffer::of(jobs, false)?;
    if !matches!(buffer.shape()[..], [_, width] if width == fixed + axes) {
        return Err(invalid(format!("jobs of shape {:?}, expected {} columns", buffer.shape(), fixed + axes)));
    }
    JobTable::new(buffer.integers()?.to_vec(), fixed, axes).map_err(invalid)
}

/// Do `work` without the GIL; a panic becomes an exception.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|_| PyRuntimeError::new_err("the kernel panicked; this is a bug"))
}

/// The failures of jobs. In a build with checks, a panic among them is an exception: the Python codecs, which do the job
/// then, would hide it.
fn noticed(failures: Vec<Failure>) -> PyResult<Vec<Failure>> {
    match failures.iter().find(|(_, reason)| reason == PANICKED) {
        Some((job, _)) if cfg!(debug_assertions) => {
            Err(PyRuntimeError::new_err(format!("the kernel panicked in job {job}; this is a bug")))
        }
        _ => Ok(failures),
    }
}

/// A bytearray whose content is still to be written (PyO3 would first fill it with zeros).
fn new_bytearray(py: Python<'_>, length: usize) -> PyResult<(Bound<'_, PyByteArray>, ResultMemory)> {
    let size = ffi::Py_ssize_t::try_from(length).map_err(|_| invalid("too many bytes"))?;
    // SAFETY: null stands for memory that is not initialized; the object, if there is one, is new and a bytearray.
    let array = unsafe {
        let object = ffi::PyByteArray_FromStringAndSize(std::ptr::null(), size);
        Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyByteArray>()
    };
    let memory = ResultMemory { start: array.data(), length };
    Ok((array, memory))
}

/// The memory of an object that no one else knows of yet.
struct ResultMemory {
    start: *mut u8,
    length: usize,
}

// SAFETY: no ties to a thread.
unsafe impl Send for ResultMemory {}

impl ResultMemory {
    /// The `body` bytes after the first `head` bytes, still to be written; all others become zero.
    fn body(&mut self, head: usize, body: usize) -> &mut [u8] {
        assert!(head + body <= self.length);
        // SAFETY: within the object's memory, which lives longer than `self` and is not in use elsewhere.
        unsafe {
            self.start.write_bytes(0, head);
            self.start.add(head + body).write_bytes(0, self.length - head - body);
            std::slice::from_raw_parts_mut(self.start.add(head), body)
        }
    }
}
