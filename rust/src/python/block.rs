//! Which block of elements is meant, and where it is: integers that every read asks for. In Python they take longer
//! than reading a small chunk.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

use crate::plan::chunk_box::BoxAxis;

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

/// Chunks of one shape in objects of one shape: of each axis the length of a chunk, the chunks of an object, and the rows
/// of an object's index from one chunk to the next.
#[pyclass(frozen, module = "zardine._kernel", name = "UniformGrid")]
pub struct PyUniformGrid(Vec<[i64; 3]>);

#[pymethods]
impl PyUniformGrid {
    #[new]
    fn new(shape: Vec<i64>, per_object: Vec<i64>, strides: Vec<i64>) -> PyResult<Self> {
        if [per_object.len(), strides.len()] != [shape.len(); 2] {
            return Err(PyValueError::new_err("axes of different numbers"));
        }
        if shape.iter().chain(&per_object).any(|&length| length <= 0) || strides.iter().any(|&stride| stride < 0) {
            return Err(PyValueError::new_err("chunks without elements, or objects without chunks"));
        }
        let axes = shape.into_iter().zip(per_object).zip(strides);
        Ok(PyUniformGrid(axes.map(|((size, ratio), stride)| [size, ratio, stride]).collect()))
    }

    /// Where a block is, if it lies in one chunk: the object, the row of the chunk in its index, the first element there.
    fn locate<'py>(&self, starts: &Bound<'py, PyTuple>, counts: &Bound<'py, PyTuple>) -> PyResult<Option<Place<'py>>> {
        let ndim = self.0.len();
        if [starts.len(), counts.len()] != [ndim; 2] {
            return Err(PyValueError::new_err("axes of different numbers"));
        }
        let (mut row, mut objects, mut first) = (0i64, Vec::with_capacity(ndim), Vec::with_capacity(ndim));
        for (axis, &[size, ratio, stride]) in self.0.iter().enumerate() {
            let number = |of: &Bound<'py, PyTuple>| of.get_item(axis)?.extract::<i64>();
            let (start, count) = (number(starts)?, number(counts)?);
            if start < 0 {
                return Err(PyValueError::new_err("a block before its array"));
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
}

impl PyUniformGrid {
    /// The axes of a box of elements of `shape` that begins at `first`.
    pub fn axes(&self, first: &[usize], shape: &[usize]) -> PyResult<Vec<BoxAxis>> {
        if self.0.len() != first.len() {
            return Err(PyValueError::new_err(format!("a grid of other than {} axes", first.len())));
        }
        let axis = |((&[size, ratio, stride], &first), &count): ((&[i64; 3], &usize), &usize)| BoxAxis {
            chunk: size as usize, // none of them is negative
            per_object: ratio as usize,
            stride: stride as usize,
            first,
            count,
        };
        Ok(self.0.iter().zip(first).zip(shape).map(axis).collect())
    }
}
