//! From Python arguments to the kernel's own values. What is wrong with their form is a `ValueError`.

use std::ffi::CString;
use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyMemoryView, PySequence, PyTuple};

use crate::decode::sources::Source;
use crate::files::known_file::KnownFile;
use crate::files::path_form::PathForm;
use crate::files::readable::{File, Readable};
use crate::files::stored_files::StoredFiles;
use crate::plan::axis_rows::{AxisRows, ListedArrays, StridedArrays};
use crate::plan::chunk_box::ObjectTable;
use crate::plan::object_parts::ShardForm;
use crate::plan::shard_table::ShardTable;
use crate::python::buffers::{Buffer, integers_of};
use crate::python::files::PyKnownFile;
use crate::steps::blosc_encode::{Parameters, Shuffle};
use crate::steps::blosc_streams::Method;
use crate::steps::{Compressor, Steps};

pub fn invalid(reason: impl Into<String>) -> PyErr {
    PyValueError::new_err(reason.into())
}

/// The codecs of a chunk, listed in the order of encoding.
pub fn steps(list: &Bound<'_, PyAny>) -> PyResult<Steps> {
    let mut steps = Steps::default();
    for each in list.try_iter()? {
        let each = each?;
        let step = each.cast::<PyTuple>().map_err(|_| invalid("a step is a tuple"))?;
        let name: String = step.get_item(0)?.extract()?;
        if name == "crc32c" {
            expect_length(step, 1)?;
            steps.outer_sums += 1;
            continue;
        }
        if steps.compressor.is_some() {
            return Err(invalid("more than one compressor"));
        }
        // the checksums so far lie within
        steps.inner_sums = std::mem::take(&mut steps.outer_sums);
        steps.compressor = Some(compressor(&name, step)?);
    }
    Ok(steps)
}

fn compressor(name: &str, step: &Bound<'_, PyTuple>) -> PyResult<Compressor> {
    match name {
        "gzip" => {
            expect_length(step, 2)?;
            Ok(Compressor::Gzip { level: number(step, 1, 0, 9)? as i32 })
        }
        "zstd" => {
            expect_length(step, 3)?;
            let level = number(step, 1, -131_072, 22)? as i32;
            Ok(Compressor::Zstd { level, checksum: step.get_item(2)?.extract()? })
        }
        "blosc" => {
            expect_length(step, 6)?;
            let cname: String = step.get_item(1)?.extract()?;
            let method = Method::named(&cname).ok_or_else(|| invalid(format!("blosc has no compressor {cname:?}")))?;
            let typesize = number(step, 4, 1, i64::from(i32::MAX))? as usize;
            Ok(Compressor::Blosc(Parameters {
                method,
                level: number(step, 2, 0, 9)? as i32,
                shuffle: [Shuffle::No, Shuffle::Bytes, Shuffle::Bits][number(step, 3, 0, 2)? as usize],
                typesize: if typesize <= 255 { typesize } else { 1 },
                blocksize: number(step, 5, 0, i64::from(i32::MAX))? as usize,
            }))
        }
        _ => Err(invalid(format!("no step {name:?}"))),
    }
}

fn expect_length(step: &Bound<'_, PyTuple>, length: usize) -> PyResult<()> {
    if step.len() != length {
        return Err(invalid(format!("a step of {} members, expected {length}", step.len())));
    }
    Ok(())
}

fn number(step: &Bound<'_, PyTuple>, at: usize, low: i64, high: i64) -> PyResult<i64> {
    let value: i64 = step.get_item(at)?.extract()?;
    if !(low..=high).contains(&value) {
        return Err(invalid(format!("{value} is not within {low} to {high}")));
    }
    Ok(value)
}

/// Files that jobs name by their paths.
#[pyclass(frozen, module = "zardine._kernel", name = "StoredFiles")]
pub struct PyStoredFiles(StoredFiles);

#[pymethods]
impl PyStoredFiles {
    #[new]
    #[pyo3(signature = (below, paths, *, missing))]
    fn new(below: Vec<u8>, paths: &Bound<'_, PySequence>, missing: bool) -> PyResult<Self> {
        let path = |each: Bound<'_, PyAny>| {
            let bytes = each.cast::<PyBytes>().map_err(|_| invalid("a path is bytes"))?;
            CString::new(bytes.as_bytes()).map_err(|_| invalid("a path with a zero byte"))
        };
        let paths = paths.try_iter()?.map(|each| path(each?)).collect::<PyResult<_>>()?;
        Ok(PyStoredFiles(StoredFiles { below, paths, missing }))
    }
}

/// Open files, and buffers that are held; or files that are still to be opened.
pub enum Sources<'py> {
    Held(Vec<Held<'py>>),
    Named(Bound<'py, PyStoredFiles>),
}

pub enum Held<'py> {
    File(File),
    Known(Bound<'py, PyKnownFile>),
    Buffer { buffer: Buffer<'py>, immutable: bool },
}

impl<'py> Held<'py> {
    fn of(source: &Bound<'py, PyAny>) -> PyResult<Self> {
        if source.is_exact_instance_of::<PyKnownFile>() {
            return Err(invalid("a known file, where nobody looks at it"));
        }
        if source.is_instance_of::<PyInt>() {
            return Ok(Held::File(File::new(source.extract().map_err(|_| invalid("no file descriptor"))?)));
        }
        Ok(Held::Buffer { buffer: Buffer::of(source, false)?, immutable: is_immutable(source)? })
    }
}

impl<'py> Held<'py> {
    fn looked_at(source: &Bound<'py, PyAny>) -> PyResult<Self> {
        match source.cast_exact::<PyKnownFile>() {
            Ok(known) => Ok(Held::Known(known.clone())),
            Err(_) => Held::of(source),
        }
    }
}

impl<'py> Sources<'py> {
    /// Of a sequence, or files.
    pub fn of(list: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(files) = list.cast::<PyStoredFiles>() {
            return Ok(Sources::Named(files.clone()));
        }
        Ok(Sources::Held(list.try_iter()?.map(|each| Held::of(&each?)).collect::<PyResult<_>>()?))
    }

    /// Those that are known from before.
    pub fn known(&self) -> Vec<&KnownFile> {
        fn known<'a>(held: &'a Held<'_>) -> Option<&'a KnownFile> {
            match held {
                Held::Known(known) => Some(&known.get().0),
                _ => None,
            }
        }
        match self {
            Sources::Held(held) => held.iter().filter_map(known).collect(),
            Sources::Named(_) => Vec::new(),
        }
    }

    pub fn sources(&self) -> PyResult<Vec<Source<'_>>> {
        fn source<'a>(held: &'a Held<'_>) -> PyResult<Source<'a>> {
            match held {
                Held::File(file) => Ok(Source::Read(Readable::File(*file))),
                Held::Known(known) => {
                    Ok(Source::Read(known.get().0.readable().ok_or_else(|| invalid("a closed file"))?))
                }
                // SAFETY: `is_immutable` has found `bytes` behind the buffer.
                Held::Buffer { buffer, immutable: true } => Ok(Source::Bytes(unsafe { buffer.constant_bytes()? })),
                Held::Buffer { buffer, immutable: false } => Ok(Source::Read(Readable::Shared(buffer.bytes()?))),
            }
        }
        match self {
            Sources::Held(held) => held.iter().map(source).collect(),
            Sources::Named(files) => {
                let files = &files.get().0;
                Ok((0..files.paths.len()).map(|number| Source::Named(files, number)).collect())
            }
        }
    }
}

/// Whether the memory behind `object` is that of `bytes`, which never change. (A read-only view of anything else can
/// change.)
fn is_immutable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_exact_instance_of::<PyBytes>()
        || object.is_exact_instance_of::<PyMemoryView>() && object.getattr("obj")?.is_exact_instance_of::<PyBytes>())
}

/// Objects that are held, and where the chunks of each are.
pub struct HeldObjects<'py> {
    pub sources: Sources<'py>,
    places: Vec<[Buffer<'py>; 2]>,
}

impl<'py> HeldObjects<'py> {
    /// Of triples: a source, offsets and lengths.
    pub fn of(list: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (mut sources, mut places) = (Vec::new(), Vec::new());
        for each in list.try_iter()? {
            let each = each?;
            let object = each.cast::<PyTuple>().map_err(|_| invalid("an object is a tuple"))?;
            expect_length(object, 3)?;
            sources.push(Held::looked_at(&object.get_item(0)?)?);
            places.push([Buffer::of(&object.get_item(1)?, false)?, Buffer::of(&object.get_item(2)?, false)?]);
        }
        Ok(HeldObjects { sources: Sources::Held(sources), places })
    }

    pub fn tables(&self) -> PyResult<Vec<ObjectTable<'_>>> {
        fn table<'a>([offsets, lengths]: &'a [Buffer<'_>; 2]) -> PyResult<ObjectTable<'a>> {
            Ok(ObjectTable::Index(offsets.integers()?, lengths.integers()?))
        }
        self.places.iter().map(table).collect()
    }
}

/// Objects that are files, whose paths a form makes of their grid coordinates: chunks, or shards.
#[pyclass(frozen, module = "zardine._kernel", name = "ObjectFiles")]
pub struct PyObjectFiles {
    pub below: Vec<u8>,
    pub form: PathForm,
    /// Rows of an index, whether it comes first, and has a checksum.
    pub shard: Option<(usize, bool, bool)>,
}

#[pymethods]
impl PyObjectFiles {
    #[new]
    fn new(below: Vec<u8>, form: &[u8], shard: Option<(usize, bool, bool)>) -> PyResult<Self> {
        Ok(PyObjectFiles { below, form: PathForm::new(form).map_err(invalid)?, shard })
    }
}

/// What parts are that are shards: rows of an index, whether it comes first and has a checksum, places, and ranks.
pub fn shard_form(form: &Bound<'_, PyTuple>) -> PyResult<ShardForm> {
    expect_length(form, 5)?;
    let ranks = form.get_item(4)?;
    Ok(ShardForm {
        count: form.get_item(0)?.extract()?,
        index_at_start: form.get_item(1)?.extract()?,
        has_checksum: form.get_item(2)?.extract()?,
        places: form.get_item(3)?.try_iter()?.map(|each| integers_of(&each?)).collect::<PyResult<_>>()?,
        ranks: if ranks.is_none() { None } else { Some(integers_of(&ranks)?) },
    })
}

/// Which of so many jobs make up which shard: bounds, rows, count of rows, whether the index comes first, has a checksum.
pub fn shard_table(shards: &Bound<'_, PyTuple>, jobs: usize) -> PyResult<ShardTable> {
    expect_length(shards, 5)?;
    let numbers = |at: usize| integers_of(&shards.get_item(at)?);
    let form = (shards.get_item(3)?.extract()?, shards.get_item(4)?.extract()?);
    ShardTable::new(&numbers(0)?, &numbers(1)?, shards.get_item(2)?.extract()?, form, jobs).map_err(invalid)
}

/// The axes of a selection of an array of `shape`; only the rows `used` of each.
pub fn axes(list: &Bound<'_, PySequence>, used: &[Range<usize>], shape: &[usize]) -> PyResult<Vec<AxisRows>> {
    let mut axes = Vec::with_capacity(shape.len());
    for ((each, used), &length) in list.try_iter()?.zip(used).zip(shape) {
        let each = each?;
        let axis = each.cast::<PyTuple>().map_err(|_| invalid("an axis is a tuple"))?;
        axes.push(self::axis(axis, used.clone(), length)?);
    }
    Ok(axes)
}

fn axis(axis: &Bound<'_, PyTuple>, used: Range<usize>, length: usize) -> PyResult<AxisRows> {
    let kind: String = axis.get_item(0)?.extract()?;
    let buffer = |at: usize| Buffer::of(&axis.get_item(at)?, false);
    let rows = match (kind.as_str(), axis.len()) {
        ("s", 6) => {
            let buffers = [buffer(1)?, buffer(2)?, buffer(3)?, buffer(4)?];
            let arrays = StridedArrays {
                extents: buffers[0].integers()?,
                first: buffers[1].integers()?,
                count: buffers[2].integers()?,
                out_first: buffers[3].integers()?,
                step: axis.get_item(5)?.extract()?,
            };
            AxisRows::strided(&arrays, used, length)
        }
        ("l", 5) => {
            let buffers = [buffer(1)?, buffer(2)?, buffer(3)?];
            let places = axis.get_item(4)?;
            let places = if places.is_none() { None } else { Some(Buffer::of(&places, false)?) };
            let arrays = ListedArrays {
                extents: buffers[0].integers()?,
                bounds: buffers[1].integers()?,
                indices: buffers[2].integers()?,
                places: places.as_ref().map(Buffer::integers).transpose()?,
            };
            AxisRows::listed(&arrays, used, length)
        }
        _ => return Err(invalid(format!("no axis {kind:?} of {} members", axis.len()))),
    };
    rows.map_err(invalid)
}
