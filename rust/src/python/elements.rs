//! Byte strings of many chunks: see `elements`.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::arguments::{Sources, invalid};
use super::pipeline_class::{NewByteArray, guarded, job_table};
use crate::elements::Elements;

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
