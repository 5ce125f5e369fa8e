//! The order of numbers: see `counting`.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::arguments::invalid;
use super::buffers::Buffer;
use super::pipeline_class::{NewByteArray, guarded};
use crate::counting;

#[pyfunction]
pub fn stable_order<'py>(
    py: Python<'py>,
    numbers: &Bound<'py, PyAny>,
    count: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let buffer = Buffer::of(numbers, false)?;
    let numbers = buffer.integers()?;
    if count > numbers.len().saturating_mul(16).saturating_add(1 << 16) {
        return Err(invalid("far more numbers than there are"));
    }
    let size = numbers.len().checked_mul(8).ok_or_else(|| invalid("too many numbers"))?;
    let mut content = NewByteArray::new(py)?;
    let (order, _) = content.grow_with_zeros(size)?.as_chunks_mut();
    if !guarded(py, || counting::stable_order(numbers, count, order))? {
        return Err(invalid("numbers beyond their count"));
    }
    // SAFETY: zeros were written to all of it.
    Ok(unsafe { content.filled() })
}
