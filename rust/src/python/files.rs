//! Many small files: see `many_files`; those that values are put into: `new_files`. One that is read whole: `stored_files`.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySequence, PyTuple};

use super::arguments::invalid;
use super::buffers::Buffer;
use super::pipeline_class::guarded;
use crate::files::known_file::{self, Identity, KnownFile};
use crate::files::many_files::{self, Place};
use crate::files::new_file::Replaces;
use crate::files::new_files::{Base, NamesBeside, NewFiles};
use crate::files::stored_files;

/// Bytes of a file, unless these were too many; its inode, size, and times of change (of the content, and at all);
/// whether nothing was there of what was looked for then.
type Whole<'py> = (Option<Bound<'py, PyBytes>>, u64, u64, i64, i64, bool);

/// An open file that is closed when Python forgets it, as it forgets the result of a call when Ctrl-C was pressed meanwhile.
#[pyclass(frozen, module = "zardine._kernel", name = "Descriptor")]
pub struct PyDescriptor(Mutex<Option<OwnedFd>>);

impl PyDescriptor {
    /// Take an open file whose owner has let go of it.
    pub fn of(file: RawFd) -> Self {
        // SAFETY: the caller has got the descriptor from its owner, and gives it away here.
        PyDescriptor(Mutex::new(Some(unsafe { OwnedFd::from_raw_fd(file) })))
    }
}

#[pymethods]
impl PyDescriptor {
    /// Return its number, for the caller to close.
    fn detach(&self) -> PyResult<RawFd> {
        lock(&self.0).take().map(IntoRawFd::into_raw_fd).ok_or_else(|| invalid("a file that was detached"))
    }
}

/// Where values go that are files. Closed, it has none.
#[pyclass(frozen, module = "zardine._kernel", name = "NewFiles")]
pub struct PyNewFiles {
    files: Mutex<Option<Arc<NewFiles>>>,
}

#[pymethods]
impl PyNewFiles {
    fn __enter__(files: Bound<'_, Self>) -> Bound<'_, Self> {
        files
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let files = lock(&self.files).take();
        guarded(py, || drop(files))
    }
}

impl PyNewFiles {
    pub fn open_files(&self) -> PyResult<Arc<NewFiles>> {
        lock(&self.files).clone().ok_or_else(|| invalid("files whose directories are closed"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A directory as Python names it: a descriptor, or its path and what its real path begins with.
#[derive(FromPyObject)]
pub enum PyBase {
    Open(RawFd),
    Named(Vec<u8>, Vec<u8>),
}

#[pyfunction]
#[pyo3(signature = (base, keys, conditions, beside, number))]
pub fn open_new_files(
    py: Python<'_>,
    base: PyBase,
    keys: Vec<OsString>,
    conditions: Vec<Option<String>>,
    beside: (Vec<u8>, Vec<u8>, Vec<u8>),
    number: u64,
) -> PyResult<Option<PyNewFiles>> {
    let keys: Vec<Vec<u8>> = keys.into_iter().map(OsStringExt::into_vec).collect();
    if !conditions.is_empty() && conditions.len() != keys.len() {
        return Err(invalid(format!("{} conditions for {} keys", conditions.len(), keys.len())));
    }
    let replaces = conditions.into_iter().map(|condition| match condition {
        None => Replaces::Any,
        Some(version) if version.is_empty() => Replaces::Nothing,
        Some(version) => Replaces::Version(version),
    });
    let replaces: Vec<Replaces> = replaces.collect();
    let (start, edit, end) = beside;
    let names = NamesBeside { start, edit, end, number };
    let base = match base {
        PyBase::Open(directory) => Base::Open(directory),
        PyBase::Named(path, below) => Base::Named { path, below },
    };
    let opened = guarded(py, || NewFiles::open(&base, &keys, &replaces, &names))??;
    Ok(opened.map(|files| PyNewFiles { files: Mutex::new(Some(Arc::new(files))) }))
}

#[pyfunction]
pub fn read_file<'py>(
    py: Python<'py>,
    path: OsString,
    below: Option<&Bound<'py, PyBytes>>,
    most: u64,
    beside: Vec<OsString>,
) -> PyResult<Option<Whole<'py>>> {
    let path = to_path(path)?;
    let beside = beside.into_iter().map(to_path).collect::<PyResult<Vec<_>>>()?;
    let below = below.map(|path| path.as_bytes());
    let found = guarded(py, || {
        let found = stored_files::read_whole(&path, below, most)?;
        Ok::<_, io::Error>(found.map(|(content, status)| (content, status, stored_files::none_is_there(&beside))))
    })?;
    let Some((content, status, is_alone)) = found? else { return Ok(None) };
    let Identity { inode, size, modified, changed, .. } = Identity::from(&status);
    let (Ok(modified), Ok(changed)) = (modified.try_into(), changed.try_into()) else {
        return Err(PyOSError::new_err("a time that is centuries away"));
    };
    let content = content.map(|bytes| PyBytes::new(py, &bytes));
    Ok(Some((content, inode, size, modified, changed, is_alone)))
}

#[pyfunction]
pub fn none_is_there(py: Python<'_>, paths: Vec<OsString>) -> PyResult<bool> {
    let paths = paths.into_iter().map(to_path).collect::<PyResult<Vec<_>>>()?;
    guarded(py, || stored_files::none_is_there(&paths))
}

/// A file that is known from before.
#[pyclass(frozen, module = "zardine._kernel", name = "KnownFile")]
pub struct PyKnownFile(pub KnownFile);

#[pymethods]
impl PyKnownFile {
    #[new]
    #[pyo3(signature = (path, identity, fd=None))]
    fn new(path: &Bound<'_, PyBytes>, identity: (u64, u64, u64, i128, i128), fd: Option<RawFd>) -> PyResult<Self> {
        let path = CString::new(path.as_bytes()).map_err(|_| invalid("a path with a NUL"))?;
        let (inode, device, size, modified, changed) = identity;
        Ok(PyKnownFile(KnownFile { path, identity: Identity { inode, device, size, modified, changed }, fd }))
    }
}

#[pyfunction]
pub fn has_version(py: Python<'_>, path: OsString, version: &str) -> PyResult<bool> {
    let path = to_path(path)?;
    guarded(py, || known_file::has_version(&path, version))
}

#[pyfunction]
pub fn are_current(py: Python<'_>, files: Vec<Bound<'_, PyKnownFile>>) -> PyResult<bool> {
    let files: Vec<&KnownFile> = files.iter().map(|file| &file.get().0).collect();
    guarded(py, || files.iter().all(|file| file.is_current()))
}

#[pyfunction]
pub fn make_files(
    py: Python<'_>,
    files: &Bound<'_, PySequence>,
    contents: &Bound<'_, PySequence>,
    threads: usize,
) -> PyResult<Vec<(usize, i32)>> {
    let places = places(files)?;
    let held = contents.try_iter()?.map(|each| Buffer::of(&each?, false)).collect::<PyResult<Vec<_>>>()?;
    if held.len() != places.len() {
        return Err(invalid(format!("{} contents for {} files", held.len(), places.len())));
    }
    let contents = held.iter().map(Buffer::bytes).collect::<PyResult<Vec<_>>>()?;
    guarded(py, || many_files::make(&places, &contents, threads))
}

#[pyfunction]
pub fn put_files(
    py: Python<'_>,
    files: &PyNewFiles,
    contents: &Bound<'_, PySequence>,
    threads: usize,
) -> PyResult<Vec<usize>> {
    let files = files.open_files()?;
    let held = contents.try_iter()?.map(|each| Buffer::of(&each?, false)).collect::<PyResult<Vec<_>>>()?;
    let contents = held.iter().map(Buffer::bytes).collect::<PyResult<Vec<_>>>()?;
    if contents.len() != files.files().len() {
        return Err(invalid(format!("{} contents for {} files", contents.len(), files.files().len())));
    }
    guarded(py, || files.put(&contents, threads))
}

#[pyfunction]
pub fn read_files<'py>(
    py: Python<'py>,
    files: &Bound<'py, PySequence>,
    most: u64,
    threads: usize,
) -> PyResult<Bound<'py, PyList>> {
    let places = places(files)?;
    let found = guarded(py, || many_files::read(&places, most, threads))?;
    PyList::new(py, found.into_iter().map(|content| content.map(|bytes| PyBytes::new(py, &bytes))))
}

#[pyfunction]
pub fn remove_files(py: Python<'_>, files: &Bound<'_, PySequence>, threads: usize) -> PyResult<Vec<(usize, i32)>> {
    let places = places(files)?;
    guarded(py, || many_files::remove(&places, threads))
}

#[pyfunction]
pub fn read_named_files<'py>(
    py: Python<'py>,
    below: &Bound<'py, PyBytes>,
    paths: &Bound<'py, PySequence>,
    most: u64,
) -> PyResult<Bound<'py, PyList>> {
    let mut named = Vec::new();
    for each in paths.try_iter()? {
        let path = CString::new(each?.cast::<PyBytes>()?.as_bytes());
        named.push(path.map_err(|_| invalid("a path with a zero byte"))?);
    }
    let below = Some(below.as_bytes());
    let found = guarded(py, || {
        let read = |path: &CString| stored_files::read_whole(path, below, most).ok().flatten()?.0;
        named.iter().map(read).collect::<Vec<_>>()
    })?;
    PyList::new(py, found.into_iter().map(|content| content.map(|bytes| PyBytes::new(py, &bytes))))
}

fn to_path(path: OsString) -> PyResult<CString> {
    CString::new(path.into_vec()).map_err(|_| invalid("a path with a zero byte"))
}

fn places(files: &Bound<'_, PySequence>) -> PyResult<Vec<Place>> {
    let mut places = Vec::new();
    for each in files.try_iter()? {
        let (directory, name): (RawFd, Bound<'_, PyBytes>) = each?.extract()?;
        if name.as_bytes().contains(&b'/') {
            return Err(invalid("a name with a slash"));
        }
        let name = CString::new(name.as_bytes()).map_err(|_| invalid("a name with a zero byte"))?;
        places.push(Place { directory, name });
    }
    Ok(places)
}
