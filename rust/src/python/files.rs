//! Many small files: see `many_files`.

use std::ffi::CString;
use std::os::fd::RawFd;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySequence};

use super::arguments::invalid;
use super::buffers::Buffer;
use super::pipeline_class::guarded;
use crate::many_files::{self, Place};

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
