//! Vertices in the order of their cells: which cell each is in (`cell_numbers`), the order of numbers (`counting`), and
//! rows in that order (`taken_rows`).

use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::arguments::invalid;
use super::buffers::{Buffer, integers_of};
use super::byte_arrays::{NewByteArray, integers};
use super::pipeline_class::guarded;
use crate::cells::cell_numbers::{self, CellGrid, Positions};
use crate::cells::counting;
use crate::cells::extents;
use crate::cells::taken_rows::{self, Runs};

/// Bytes of a number.
const NUMBER: usize = 8;

#[pyfunction]
pub fn stable_order<'py>(
    py: Python<'py>,
    numbers: &Bound<'py, PyAny>,
    count: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let buffer = Buffer::of(numbers, false)?;
    let numbers = buffer.integers()?;
    if is_far_more(count, numbers.len()) {
        return Err(invalid("far more numbers than there are"));
    }
    let size = bytes_of(numbers.len(), NUMBER)?;
    let order = |out: &mut [u8]| counting::stable_order(numbers, count, out.as_chunks_mut().0);
    NewByteArray::made_by(py, size, order)?.ok_or_else(|| invalid("numbers beyond their count"))
}

/// Lengths of cells, the first cell, and how many there are, of each axis.
type Grid = (Vec<f64>, Vec<f64>, Vec<usize>);
/// Numbers of positions; those of cells, and how many positions are in each.
type Numbered<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

#[pyfunction]
pub fn number_cells<'py>(
    py: Python<'py>,
    positions: &Bound<'py, PyAny>,
    double: bool,
    grid: Grid,
    threads: usize,
) -> PyResult<Numbered<'py>> {
    let buffer = Buffer::of(positions, false)?;
    let positions = Positions { values: buffer.bytes()?, double };
    let grid = cell_grid(grid, &positions)?;
    let mut content = NewByteArray::new(py)?;
    let numbers = content.grow(bytes_of(positions.count(&grid), NUMBER)?)?;
    let found = guarded(py, || cell_numbers::number(positions, &grid, numbers, threads))?;
    let (filled, counts) = found.ok_or_else(|| invalid("positions outside of the grid"))?;
    // SAFETY: a number was written for each position, as one is found only then.
    let numbers = unsafe { content.filled() };
    Ok((numbers, integers(py, &filled)?, integers(py, &counts)?))
}

#[pyfunction]
pub fn find_extent(
    py: Python<'_>,
    positions: &Bound<'_, PyAny>,
    double: bool,
    rank: usize,
    threads: usize,
) -> PyResult<Option<(Vec<f64>, Vec<f64>)>> {
    let buffer = Buffer::of(positions, false)?;
    let positions = Positions { values: buffer.bytes()?, double };
    guarded(py, || extents::find(positions, rank, threads))
}

#[pyfunction]
pub fn find_cell_runs<'py>(
    py: Python<'py>,
    positions: &Bound<'py, PyAny>,
    double: bool,
    grid: Grid,
    edges: &Bound<'py, PyAny>,
    threads: usize,
) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
    let (buffer, edges) = (Buffer::of(positions, false)?, integers_of(edges)?);
    let positions = Positions { values: buffer.bytes()?, double };
    let grid = cell_grid(grid, &positions)?;
    let found = guarded(py, || cell_numbers::find_runs(positions, &grid, &edges, threads))?;
    let found = found.ok_or_else(|| invalid("positions outside of the grid, or edges that are no ascending rows"))?;
    let (filled, counts) = &found.filled;
    [&found.first, &found.cells, filled, counts].into_iter().map(|numbers| integers(py, numbers)).collect()
}

#[pyfunction]
pub fn take_rows<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    size: usize,
    rows: &Bound<'py, PyAny>,
    threads: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (values, rows) = (Buffer::of(values, false)?, Buffer::of(rows, false)?);
    let (values, rows) = (values.bytes()?, rows.integers()?);
    let mut content = NewByteArray::new(py)?;
    let out = content.grow(bytes_of(rows.len(), size)?)?;
    if !guarded(py, || taken_rows::take_rows(values, size, rows, out, threads))? {
        return Err(invalid("rows beyond the values"));
    }
    // SAFETY: each row was written, as is said.
    Ok(unsafe { content.filled() })
}

#[pyfunction]
pub fn take_runs<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    size: usize,
    first: &Bound<'py, PyAny>,
    lengths: &Bound<'py, PyAny>,
    threads: usize,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (values, first, lengths) = (Buffer::of(values, false)?, Buffer::of(first, false)?, Buffer::of(lengths, false)?);
    let runs = Runs::new(values.bytes()?, size, first.integers()?, lengths.integers()?);
    let runs = runs.ok_or_else(|| invalid("rows beyond the values"))?;
    let mut content = NewByteArray::new(py)?;
    let out = content.grow(runs.total())?;
    guarded(py, || runs.take(out, threads))?;
    // SAFETY: each run was written, one behind the other, and they are as long as all of it.
    Ok(unsafe { content.filled() })
}

#[pyfunction]
pub fn find_runs<'py>(
    py: Python<'py>,
    numbers: &Bound<'py, PyAny>,
    edges: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (numbers, edges) = (Buffer::of(numbers, false)?, Buffer::of(edges, false)?);
    let (numbers, edges) = (numbers.integers()?, edges.integers()?);
    let found = guarded(py, || taken_rows::find_runs(numbers, edges))?;
    integers(py, &found.ok_or_else(|| invalid("edges that are no ascending rows"))?)
}

fn cell_grid((lengths, first, widths): Grid, positions: &Positions) -> PyResult<CellGrid> {
    let grid = CellGrid::new(&lengths, &first, &widths).map_err(invalid)?;
    if is_far_more(grid.count(), positions.count(&grid)) {
        return Err(invalid("far more cells than positions"));
    }
    Ok(grid)
}

fn bytes_of(count: usize, size: usize) -> PyResult<usize> {
    count.checked_mul(size).ok_or_else(|| invalid("too many numbers"))
}

/// Whether there are so many numbers beside those that are named that it is no way to count each.
fn is_far_more(count: usize, named: usize) -> bool {
    count > named.saturating_mul(16).saturating_add(1 << 16)
}
