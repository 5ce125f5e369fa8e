//! `Pipeline`: the entries for batches of chunks.

use std::fs::Metadata;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PySequence, PyTuple};

use crate::decode::boxes::Decode;
use crate::decode::points::{DecodePoints, Points};
use crate::decode::sources::Source;
use crate::encode::boxes::{Changed, Encode, How};
use crate::files::known_file::{Identity, KnownFile};
use crate::files::new_file::NewFile;
use crate::files::stored_files::StoredFiles;
use crate::files::stored_shards::{self, StoredShard};
use crate::memory::strided_memory::StridedOutput;
use crate::plan::axis_rows::AxisRows;
use crate::plan::chunk_box::{BoxAxis, ObjectTable, plan_box, touched_objects};
use crate::plan::job_table::JobTable;
use crate::plan::object_parts::plan_parts;
use crate::plan::pipeline::Pipeline;
use crate::plan::shard_table::{Entry, ShardTable};
use crate::python::arguments::{self, HeldObjects, PyObjectFiles, Sources, invalid};
use crate::python::block::PyUniformGrid;
use crate::python::buffers::{Buffer, integers_of};
use crate::python::byte_arrays::NewByteArray;
use crate::python::files::{PyDescriptor, PyKnownFile, PyNewFiles};
use crate::{Failure, Reason};

#[pyclass(frozen, module = "zardine._kernel", name = "Pipeline")]
pub struct PyPipeline(Pipeline);

/// Inode, size and times of a file.
pub type Status = (u64, u64, i64, i64);
/// The file before, which is still open; what the new one is, if a shard; offsets and lengths of its chunks.
pub type ChangedFile<'py> = (Option<PyDescriptor>, Option<Status>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type Encoded<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Failures);
/// Axes and jobs, and which of these make up which shard.
type Planned = (Vec<AxisRows>, JobTable, Option<ShardTable>);
/// Files that are read by one call of `decode_files`, a few open at a time.
const MOST_NAMED: usize = 1024;
/// The same of shards, which are all open.
const MOST_OPEN: usize = 128;
/// Failures as Python has them.
type Failures = Vec<(usize, String)>;

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
        if fill.len() != item_size {
            return Err(invalid(format!("elements of {item_size} bytes, a fill value of {}", fill.len())));
        }
        let steps = arguments::steps(steps)?;
        let pipeline = Pipeline::new(fill.to_vec(), swap.then_some(word_size), is_bool, order, steps);
        Ok(PyPipeline(pipeline.map_err(invalid)?))
    }

    fn decode(
        &self,
        py: Python<'_>,
        sources: &Bound<'_, PyAny>,
        jobs: &Bound<'_, PyAny>,
        axes: &Bound<'_, PySequence>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<Failures> {
        let pipeline = &self.0;
        let ndim = self.ndim(axes.len()?)?;
        let out = Buffer::of(out, true)?;
        let memory = out.strided_output(pipeline.item(), ndim)?;
        let held = Sources::of(sources)?;
        let sources = held.sources()?;
        let jobs = job_table(jobs, 3, ndim)?;
        let axes = arguments::axes(axes, jobs.used_rows(), memory.shape())?;
        let call = Decode::new(pipeline, &sources, &jobs, &axes, &memory).map_err(invalid)?;
        noticed(guarded(py, || call.run(threads))?)
    }

    /// As `decode`, for the box of elements of chunks of one shape that begins at `first` and is as large as `out`.
    #[pyo3(signature = (objects, grid, first, out, *, most, missing, threads, document=None, is_checked=true))]
    #[allow(clippy::too_many_arguments)]
    fn decode_box(
        &self,
        py: Python<'_>,
        objects: &Bound<'_, PyAny>,
        grid: &Bound<'_, PyUniformGrid>,
        first: Vec<usize>,
        out: &Bound<'_, PyAny>,
        most: i64,
        missing: bool,
        threads: usize,
        document: Option<&Bound<'_, PyKnownFile>>,
        is_checked: bool,
    ) -> PyResult<Option<String>> {
        let ndim = self.ndim(first.len())?;
        let out = Buffer::of(out, true)?;
        let memory = out.strided_output(self.0.item(), ndim)?;
        let axes = grid.get().axes(&first, memory.shape())?;
        let limits = Limits { most, missing, threads };
        if let Ok(files) = objects.cast_exact::<PyObjectFiles>() {
            return self.decode_files(py, files.get(), &axes, &memory, &limits, document, is_checked);
        }
        let held = HeldObjects::of(objects)?;
        let Some((axes, jobs)) = plan_box(&axes, &held.tables()?, most, missing).map_err(invalid)? else {
            return Ok(Some(NOT_TO_BE_READ.into()));
        };
        let sources = held.sources.sources()?;
        let call = Decode::new(&self.0, &sources, &jobs, &axes, &memory).map_err(invalid)?;
        run_on_known(py, &call, threads, &Known { files: held.sources.known(), document, is_checked })
    }

    #[allow(clippy::too_many_arguments)]
    fn decode_points<'py>(
        &self,
        py: Python<'py>,
        sources: &Bound<'py, PyAny>,
        jobs: &Bound<'py, PyAny>,
        extents: &Bound<'py, PySequence>,
        point_bounds: &Bound<'py, PyAny>,
        points: &Bound<'py, PySequence>,
        places: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: usize,
    ) -> PyResult<Failures> {
        let pipeline = &self.0;
        self.ndim(extents.len()?)?;
        let out = Buffer::of(out, true)?;
        let memory = out.strided_output(pipeline.item(), 1)?;
        let held = Sources::of(sources)?;
        let sources = held.sources()?;
        let jobs = job_table(jobs, 3, 1)?;
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
        let call = DecodePoints::new(pipeline, &sources, &jobs, &points, &memory).map_err(invalid)?;
        noticed(guarded(py, || call.run(threads))?)
    }

    /// As `encode`, each chunk, or all of a shard, into a file of its own.
    #[pyo3(signature = (values, parts, axes, *, write_empty, threads, files, shard=None, few_at_a_time=false))]
    #[allow(clippy::too_many_arguments)]
    fn encode_to_files<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        parts: &Bound<'py, PyAny>,
        axes: &Bound<'py, PySequence>,
        write_empty: bool,
        threads: usize,
        files: &Bound<'py, PyNewFiles>,
        shard: Option<&Bound<'py, PyTuple>>,
        few_at_a_time: bool,
    ) -> PyResult<(Bound<'py, PyBytes>, Failures)> {
        let how = How { write_empty, threads, head: 0 };
        let signal = Mutex::new(None);
        // once a handler has raised, for good: the signal is not there any more when it is asked for again
        let go_on = || {
            let mut signal = signal.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if signal.is_none() {
                *signal = Python::attach(|py| py.check_signals()).err();
            }
            signal.is_none()
        };
        let work = |call: &Encode, files: &[NewFile], shards: Option<&ShardTable>| match shards {
            Some(shards) if few_at_a_time => call.run_into_few_at_a_time(files, shards, go_on),
            _ => call.run_into(files, shards),
        };
        let plan = |shape: &[usize], objects| planned(parts, axes, shape, objects, shard);
        let opened = files.get().open_files()?;
        let (puts, failures) = self.for_files(py, (values, axes.len()?), how, opened.files(), plan, work)?;
        if let Some(raised) = signal.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            return Err(raised);
        }
        let puts: Vec<u8> = puts.into_iter().map(|put| put as u8).collect();
        Ok((PyBytes::new(py, &puts), noticed(failures)?))
    }

    /// As `encode_to_files`, where files keep what is stored and not named by the parts.
    #[pyo3(signature = (values, parts, axes, *, write_empty, threads, files, most, shard=None))]
    #[allow(clippy::too_many_arguments)]
    fn change_files<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        parts: &Bound<'py, PyAny>,
        axes: &Bound<'py, PySequence>,
        write_empty: bool,
        threads: usize,
        files: &Bound<'py, PyNewFiles>,
        most: u64,
        shard: Option<&Bound<'py, PyTuple>>,
    ) -> PyResult<(Vec<Option<ChangedFile<'py>>>, Failures)> {
        let how = How { write_empty, threads, head: 0 };
        let work =
            |call: &Encode, files: &[NewFile], shards: Option<&ShardTable>| call.run_changes(files, shards, most);
        let plan = |shape: &[usize], objects| planned(parts, axes, shape, objects, shard);
        let opened = files.get().open_files()?;
        let (changed, failures) = self.for_files(py, (values, axes.len()?), how, opened.files(), plan, work)?;
        Ok((told(py, changed)?, noticed(failures)?))
    }

    #[pyo3(signature = (values, jobs, axes, *, write_empty, head, tail, threads, sources=None))]
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        jobs: &Bound<'py, PyAny>,
        axes: &Bound<'py, PySequence>,
        write_empty: bool,
        head: usize,
        tail: usize,
        threads: usize,
        sources: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Encoded<'py>> {
        let pipeline = &self.0;
        let ndim = self.ndim(axes.len()?)?;
        let values = Buffer::of(values, false)?;
        let memory = values.strided(pipeline.item(), ndim)?;
        let held = sources.map(Sources::of).transpose()?;
        let sources = held.as_ref().map(Sources::sources).transpose()?.unwrap_or_default();
        let jobs = if !sources.is_empty() {
            job_table(jobs, 3, ndim)?
        } else if ndim == 0 {
            let shape = Buffer::of(jobs, false)?.shape();
            JobTable::empty_rows(*shape.first().ok_or_else(|| invalid("jobs have two dimensions"))?)
        } else {
            job_table(jobs, 0, ndim)?
        };
        let axes = arguments::axes(axes, jobs.used_rows(), memory.shape())?;
        let how = How { write_empty, threads, head };
        let call = Encode::new(pipeline, &sources, &memory, &jobs, &axes, how).map_err(invalid)?;
        let mut result = NewByteArray::new(py)?;
        result.grow(head)?.fill(MaybeUninit::new(0));
        let (mut offsets, mut lengths, mut failures, mut before) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for group in call.groups() {
            let (mut encoded, failed) = guarded(py, || call.run(group, before))?.map_err(invalid)?;
            let target = result.grow(encoded.nbytes)?;
            let later = guarded(py, || encoded.write(target))?;
            before += encoded.nbytes;
            offsets.append(&mut encoded.offsets);
            lengths.append(&mut encoded.lengths);
            failures.extend(failed);
            failures.extend(later);
        }
        result.grow(tail)?.fill(MaybeUninit::new(0));
        let failures = noticed(failures)?;
        let table = |column: &[u64]| words(py, column.len(), column.iter().copied());
        // SAFETY: whatever it has grown by was written: zeros, or by `write`.
        let result = unsafe { result.filled() };
        Ok((result, table(&offsets)?, table(&lengths)?, failures))
    }
}

impl PyPipeline {
    /// Decode a box out of objects that are files, which are opened and closed.
    #[allow(clippy::too_many_arguments)]
    fn decode_files(
        &self,
        py: Python<'_>,
        objects: &PyObjectFiles,
        axes: &[BoxAxis],
        memory: &StridedOutput,
        limits: &Limits,
        document: Option<&Bound<'_, PyKnownFile>>,
        is_checked: bool,
    ) -> PyResult<Option<String>> {
        let document = document.map(|document| &document.get().0);
        let &Limits { most, missing, threads } = limits;
        let at_once = if objects.shard.is_some() { MOST_OPEN } else { MOST_NAMED };
        let Some(touched) = touched_objects(axes, at_once).map_err(invalid)? else {
            return Ok(Some("more files than are read at once".into()));
        };
        let paths = touched.into_iter().map(|at| objects.form.path(at.into_iter())).collect::<Result<Vec<_>, _>>();
        let files = StoredFiles { below: objects.below.clone(), paths: paths.map_err(invalid)?, missing };
        let shards = match objects.shard {
            None => None,
            Some((count, at_start, has_checksum)) => {
                let table = ShardTable::new(&[0], &[], count, (at_start, has_checksum), 0).map_err(invalid)?;
                let most = u64::try_from(most).map_err(|_| invalid("chunks of less than no bytes"))?;
                match guarded(py, || stored_shards::open(&files, &table, most, threads))? {
                    Ok(opened) => Some(opened),
                    Err(reason) => return Ok(Some(reason.to_string())),
                }
            }
        };
        let (tables, sources): (Vec<ObjectTable>, Vec<Source>) = match &shards {
            None => (0..files.paths.len()).map(|at| (ObjectTable::Whole(most), Source::Named(&files, at))).unzip(),
            Some(shards) => shards.iter().map(of_shard).unzip(),
        };
        let Some((axes, jobs)) = plan_box(axes, &tables, most, missing).map_err(invalid)? else {
            return Ok(Some(NOT_TO_BE_READ.into()));
        };
        let call = Decode::new(&self.0, &sources, &jobs, &axes, memory).map_err(invalid)?;
        let (failures, is_current) = guarded(py, || {
            let failures = call.run(threads);
            let is_current = failures.is_empty() && document.is_none_or(KnownFile::is_current);
            (failures, is_current)
        })?;
        let failures = noticed(failures)?;
        if failures.is_empty() && !is_current {
            return Ok(Some("a document that was changed".into()));
        }
        let mut opened = shards.iter().flatten().flatten();
        if failures.is_empty() && !is_checked && !opened.all(StoredShard::is_unedited) {
            return Ok(Some("a shard that was edited meanwhile".into()));
        }
        Ok(failures.into_iter().next().map(|(_, reason)| reason))
    }

    /// Do `work` with a call for chunks, or all of shards, that go into files, as `plan` has it for values of a shape and so
    /// many files.
    fn for_files<'py, T: Send>(
        &self,
        py: Python<'py>,
        (values, ndim): (&Bound<'py, PyAny>, usize),
        how: How,
        files: &[NewFile],
        plan: impl FnOnce(&[usize], usize) -> PyResult<Planned>,
        work: impl FnOnce(&Encode, &[NewFile], Option<&ShardTable>) -> T + Send,
    ) -> PyResult<T> {
        let pipeline = &self.0;
        let ndim = self.ndim(ndim)?;
        let values = Buffer::of(values, false)?;
        let memory = values.strided(pipeline.item(), ndim)?;
        let (axes, jobs, shards) = plan(memory.shape(), files.len())?;
        let (count, what) = shards.as_ref().map_or((jobs.len(), "chunks"), |shards| (shards.shards(), "shards"));
        if count != files.len() {
            return Err(invalid(format!("{} files for {count} {what}", files.len())));
        }
        let call = Encode::new(pipeline, &[], &memory, &jobs, &axes, how).map_err(invalid)?;
        guarded(py, || work(&call, files, shards.as_ref()))
    }

    fn ndim(&self, ndim: usize) -> PyResult<usize> {
        if self.0.ndim() != ndim {
            return Err(invalid(format!("{ndim} axes, expected {}", self.0.ndim())));
        }
        Ok(ndim)
    }
}

/// Why chunks of a box were not even looked at.
const NOT_TO_BE_READ: &str = "a chunk that is too long, or not stored";

/// Most bytes of a chunk, whether chunks may be missing, and threads that decode.
struct Limits {
    most: i64,
    missing: bool,
    threads: usize,
}

/// The files among the sources that are known from before, and what has to hold of them.
struct Known<'a, 'py> {
    files: Vec<&'a KnownFile>,
    /// It has to be what it was, as the files.
    document: Option<&'a Bound<'py, PyKnownFile>>,
    /// Whether an edit that is under way is noticed without looking for it.
    is_checked: bool,
}

/// Decode out of files that are still current when all is read, and were so all the time; the reason if that fails.
fn run_on_known(py: Python<'_>, call: &Decode, threads: usize, known: &Known) -> PyResult<Option<String>> {
    let (files, is_checked) = (&known.files, known.is_checked);
    let document = known.document.map(|document| &document.get().0);
    let failures = guarded(py, || {
        let failures = call.run(threads);
        let is_good = |file: &&KnownFile| (is_checked || file.is_free()) && file.is_current();
        if failures.is_empty() && !(files.iter().all(is_good) && document.is_none_or(KnownFile::is_current)) {
            return Err("a file was replaced or edited, or the document was");
        }
        Ok(failures)
    })?;
    match failures {
        Ok(failures) => Ok(noticed(failures)?.pop().map(|(_, reason)| reason)),
        Err(reason) => Ok(Some(reason.into())),
    }
}

/// Where the chunks of a shard are, if it is stored.
fn of_shard(shard: &Option<StoredShard>) -> (ObjectTable<'_>, Source<'_>) {
    match shard {
        None => (ObjectTable::Missing, Source::Bytes(&[])),
        Some(shard) => (ObjectTable::Entries(&shard.entries), Source::Read(shard.readable())),
    }
}

/// What Python is told of files that were changed.
fn told<'py>(py: Python<'py>, changed: Vec<Option<Changed>>) -> PyResult<Vec<Option<ChangedFile<'py>>>> {
    let each = |Changed { status, entries, old }: Changed| {
        let (offsets, lengths) = columns(py, &entries)?;
        Ok((old.map(PyDescriptor::of), status.as_ref().map(told_of), offsets, lengths))
    };
    changed.into_iter().map(|changed| changed.map(each).transpose()).collect()
}

pub fn told_of(status: &Metadata) -> Status {
    let Identity { inode, size, modified, changed, .. } = Identity::from(status);
    let [modified, changed] = [modified, changed].map(|time| i64::try_from(time).unwrap_or(i64::MAX));
    (inode, size, modified, changed)
}

/// Offsets and lengths of chunks.
pub fn columns<'py>(py: Python<'py>, entries: &[Entry]) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let column = |of: fn(&Entry) -> u64| words(py, entries.len(), entries.iter().map(of));
    Ok((column(|entry| entry.offset)?, column(|entry| entry.length)?))
}

/// What `parts` of a selection of values of `shape` are, as many as there are `objects`, `shard` if these are shards.
fn planned(
    parts: &Bound<'_, PyAny>,
    axes: &Bound<'_, PySequence>,
    shape: &[usize],
    objects: usize,
    shard: Option<&Bound<'_, PyTuple>>,
) -> PyResult<Planned> {
    let form = shard.map(arguments::shard_form).transpose()?;
    let parts = integers_of(parts)?;
    let (jobs, shards) = plan_parts(&parts, shape.len(), objects, form.as_ref()).map_err(invalid)?;
    Ok((arguments::axes(axes, jobs.used_rows(), shape)?, jobs, shards))
}

pub fn job_table(jobs: &Bound<'_, PyAny>, fixed: usize, axes: usize) -> PyResult<JobTable> {
    let buffer = Buffer::of(jobs, false)?;
    if !matches!(buffer.shape()[..], [_, width] if width == fixed + axes) {
        return Err(invalid(format!("jobs of shape {:?}, expected {} columns", buffer.shape(), fixed + axes)));
    }
    JobTable::new(buffer.copied_integers()?, fixed, axes).map_err(invalid)
}

/// So many words as bytes.
fn words(py: Python<'_>, count: usize, words: impl Iterator<Item = u64>) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, count * size_of::<u64>(), |bytes| {
        for (target, word) in bytes.chunks_exact_mut(size_of::<u64>()).zip(words) {
            target.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(())
    })
}

/// Do `work` without the GIL; a panic becomes an exception.
pub fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|_| PyRuntimeError::new_err("the kernel panicked; this is a bug"))
}

/// The failures of jobs. In a build with checks, a panic among them is an exception: the Python codecs, which do the
/// job then, would hide it.
fn noticed(failures: Vec<Failure>) -> PyResult<Failures> {
    match failures.iter().find(|(_, reason)| *reason == Reason::Panicked) {
        Some((job, reason)) if cfg!(debug_assertions) => {
            Err(PyRuntimeError::new_err(format!("{reason} in job {job}; this is a bug")))
        }
        _ => Ok(failures.into_iter().map(|(job, reason)| (job, reason.to_string())).collect()),
    }
}
