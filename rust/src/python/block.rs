//! Which block of elements is meant, and where it is: integers that every read asks for. In Python they take longer
//! than reading a small chunk.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

/// First indices, counts, and what takes the axes of single integers out of the result.
type Block<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>, Option<Bound<'py, PyTuple>>);
/// Coordinates of an object, a row of its index, first elements.
type Place<'py> = (Bound<'py, PyTuple>, i64, Bound<'py, PyTuple>);

#[pyfunction]
pub fn block_of_elements<'py>(
    selection: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyTuple>,
) -> PyResult<Option<Block<'py>>> {
    let py = selection.py();
    let ndim = shape.len();
    let mut items = Vec::with_capacity(ndim);
    match selection.cast_exact::<PyTuple>() {
        Ok(tuple) => items.extend(tuple.iter()),
        Err(_) => items.push(selection.clone()),
    }
    let is_ellipsis = |item: &Bound<'py, PyAny>| item.is(py.Ellipsis());
    let mut ellipses = (0..items.len()).filter(|&at| is_ellipsis(&items[at]));
    // axes of which all is meant: those of an ellipsis, or the last ones
    let (all, named) = match (ellipses.next(), ellipses.next()) {
        (None, _) => (items.len(), items.len()),
        (Some(at), None) => (at, items.len() - 1),
        _ => return Ok(None),
    };
    let has_ellipsis = named < items.len();
    if named > ndim || (ndim == 0 && has_ellipsis) || (ndim > 0 && items.is_empty()) {
        return Ok(None);
    }
    let more = ndim - named;
    let (mut starts, mut counts) = (Vec::with_capacity(ndim), Vec::with_capacity(ndim));
    let mut dropped = vec![false; ndim];
    for (axis, is_integer) in dropped.iter_mut().enumerate() {
        let Ok(length) = shape.get_item(axis)?.extract::<isize>() else { return Ok(None) };
        if (all..all + more).contains(&axis) {
            if length <= 0 {
                return Ok(None);
            }
            starts.push(0);
            counts.push(length);
            continue;
        }
        let item = &items[if axis < all { axis } else { axis - more + usize::from(has_ellipsis) }];
        let (start, count) = if let Ok(slice) = item.cast_exact::<PySlice>() {
            let found = match slice.indices(length) {
                Ok(found) => found,
                Err(error) if is_plain(py, &error) => return Ok(None),
                Err(error) => return Err(error),
            };
            if found.step != 1 {
                return Ok(None);
            }
            (found.start, found.stop - found.start)
        } else if let Ok(number) = item.cast_exact::<PyInt>() {
            let Ok(number) = number.extract::<isize>() else { return Ok(None) };
            *is_integer = true;
            (if number < 0 { number.saturating_add(length) } else { number }, 1)
        } else {
            return Ok(None);
        };
        if count <= 0 || !(0..length).contains(&start) {
            return Ok(None);
        }
        starts.push(start);
        counts.push(count);
    }
    if has_ellipsis && !dropped.contains(&false) {
        return Ok(None); // an array without dimensions, where integers alone mean an element
    }
    let dropped = if dropped.contains(&true) || ndim == 0 {
        let full = PySlice::full(py).into_any();
        let zero = 0i64.into_pyobject(py)?.into_any();
        Some(PyTuple::new(py, dropped.iter().map(|&dropped| if dropped { &zero } else { &full }))?)
    } else {
        None
    };
    Ok(Some((PyTuple::new(py, starts)?, PyTuple::new(py, counts)?, dropped)))
}

/// Whether an error is one of a selection that makes no sense.
fn is_plain(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py)
}

#[pyfunction]
pub fn locate_block<'py>(
    starts: &Bound<'py, PyTuple>,
    counts: &Bound<'py, PyTuple>,
    shape: &Bound<'py, PyTuple>,
    per_object: &Bound<'py, PyTuple>,
    strides: &Bound<'py, PyTuple>,
) -> PyResult<Option<Place<'py>>> {
    let ndim = starts.len();
    if [counts, shape, per_object, strides].iter().any(|each| each.len() != ndim) {
        return Err(PyValueError::new_err("axes of different numbers"));
    }
    let (mut row, mut objects, mut first) = (0i64, Vec::with_capacity(ndim), Vec::with_capacity(ndim));
    for axis in 0..ndim {
        let number = |of: &Bound<'py, PyTuple>| of.get_item(axis)?.extract::<i64>();
        let numbers = (number(starts)?, number(counts)?, number(shape), number(per_object), number(strides));
        // what is too large for an integer is too large to be read
        let (start, count, Ok(size), Ok(ratio), Ok(stride)) = numbers else { return Ok(None) };
        if start < 0 || size <= 0 || ratio <= 0 {
            return Err(PyValueError::new_err("a block before its array, or chunks without elements"));
        }
        let (chunk, begin) = (start / size, start % size);
        if count > size - begin {
            return Ok(None);
        }
        let added = (chunk % ratio).checked_mul(stride).and_then(|rows| row.checked_add(rows));
        row = added.ok_or_else(|| PyValueError::new_err("an index with too many rows"))?;
        objects.push(chunk / ratio);
        first.push(begin);
    }
    Ok(Some((PyTuple::new(starts.py(), objects)?, row, PyTuple::new(starts.py(), first)?)))
}
