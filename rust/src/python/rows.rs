//! Rows of integers: see `rows`; and those that cells name: see `fragment_ranges`.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};

use super::arguments::invalid;
use super::buffers::{Buffer, integers_of};
use super::byte_arrays::{NewByteArray, integers, write_integers};
use super::elements::MOST_AXES;
use super::pipeline_class::guarded;
use crate::cells::cell_texts::CellTexts;
use crate::cells::line_parts::Lines;
use crate::cells::link_placement::{self, Placed};
use crate::cells::{fragment_ranges, manifests, rows};
use crate::memory::shared_integers::read;

/// Bytes of numbers of fragments, of first rows and of counts; and whether they tile their cells.
type Ranges<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, bool);

#[pyfunction]
pub fn unique_rows<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    width: usize,
) -> PyResult<Option<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)>> {
    let rows = whole_rows(rows, width)?;
    let Some((distinct, numbers)) = guarded(py, || rows::unique(&rows, width))? else { return Ok(None) };
    Ok(Some((integers(py, &distinct)?, integers(py, &numbers)?)))
}

#[pyfunction]
pub fn find_rows<'py>(
    py: Python<'py>,
    table: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
    width: usize,
) -> PyResult<Option<Bound<'py, PyByteArray>>> {
    let (table, rows) = (whole_rows(table, width)?, whole_rows(rows, width)?);
    let found = guarded(py, || rows::find(&table, &rows, width))?;
    found.map(|numbers| integers(py, &numbers)).transpose()
}

#[pyfunction]
pub fn cell_texts<'py>(py: Python<'py>, cells: &Bound<'py, PyAny>, rank: usize) -> PyResult<Bound<'py, PyList>> {
    let cells = whole_rows(cells, rank)?;
    let texts = guarded(py, || CellTexts::new(&cells, rank))?;
    PyList::new(py, texts.iter())
}

#[pyfunction]
pub fn decode_ranges<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    lengths: &Bound<'py, PyAny>,
    row_counts: &Bound<'py, PyAny>,
) -> PyResult<Option<Ranges<'py>>> {
    let buffer = Buffer::of(data, false)?;
    let shared = buffer.bytes()?;
    let mut copy = Vec::new();
    copy.try_reserve_exact(shared.len()).map_err(|_| invalid("not enough memory"))?;
    copy.resize(shared.len(), 0);
    shared.copy_to(0, &mut copy);
    let (lengths, row_counts) = (integers_of(lengths)?, integers_of(row_counts)?);
    let found = guarded(py, || fragment_ranges::decode(&copy, &lengths, &row_counts))?;
    let bytes = |numbers: &[i64]| {
        PyBytes::new_with(py, size_of_val(numbers), |out| {
            write_integers(numbers, out);
            Ok(())
        })
    };
    let each = |found: fragment_ranges::FragmentRanges| {
        Ok((bytes(&found.numbers)?, bytes(&found.first)?, bytes(&found.counts)?, found.tile))
    };
    found.map(each).transpose()
}

#[pyfunction]
pub fn encode_tiles<'py>(
    py: Python<'py>,
    before: &Bound<'py, PyAny>,
    counts: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (before, counts) = (integers_of(before)?, integers_of(counts)?);
    let size = fragment_ranges::size(&before).ok_or_else(|| invalid("numbers of fragments that do not ascend"))?;
    let made = NewByteArray::made_by(py, size, |out| fragment_ranges::encode(&before, &counts, out))?;
    made.ok_or_else(|| invalid("counts that do not fit to their numbers"))
}

#[pyfunction]
pub fn find_cells<'py>(
    py: Python<'py>,
    starts: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
    let (starts, rows) = (integers_of(starts)?, integers_of(rows)?);
    let found = guarded(py, || link_placement::find_cells(&starts, &rows))?;
    let (cells, local) = found.ok_or_else(|| invalid("rows that are in no cell"))?;
    Ok((integers(py, &cells)?, integers(py, &local)?))
}

#[pyfunction]
pub fn place_links<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    cells: &Bound<'py, PyAny>,
    rows: &Bound<'py, PyAny>,
    canonical: bool,
) -> PyResult<Option<Vec<Bound<'py, PyByteArray>>>> {
    let buffers = [Buffer::of(keys, false)?, Buffer::of(cells, false)?, Buffer::of(rows, false)?];
    let (&[_, rank], &[_, width]) = (buffers[0].shape().as_slice(), buffers[1].shape().as_slice()) else {
        return Err(invalid("keys and cells are rows of integers"));
    };
    let [keys, cells, rows] = [0, 1, 2].map(|each| buffers[each].copied_integers());
    let (keys, cells, rows) = (keys?, cells?, rows?);
    let found = guarded(py, || link_placement::place((&keys, rank), (cells, rows, width), canonical))?;
    found.map(|placed| told(py, placed)).transpose()
}

fn told(py: Python<'_>, placed: Placed) -> PyResult<Vec<Bound<'_, PyByteArray>>> {
    let Placed { offsets, families, cells, starts, given, words, edges } = placed;
    [offsets, families, cells, starts, given, words, edges].iter().map(|numbers| integers(py, numbers)).collect()
}

/// Where the runs of each line begin, the lists of fragments, and links as `place_links` tells of them.
type LineParts<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Vec<Bound<'py, PyByteArray>>);

#[pyfunction]
pub fn line_parts<'py>(
    py: Python<'py>,
    first: &Bound<'py, PyAny>,
    cells: &Bound<'py, PyAny>,
    edges: &Bound<'py, PyAny>,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Option<LineParts<'py>>> {
    let held = [Buffer::of(first, false)?, Buffer::of(cells, false)?, Buffer::of(edges, false)?];
    let keys = Buffer::of(keys, false)?;
    let &[_, rank] = keys.shape().as_slice() else { return Err(invalid("keys are rows of integers")) };
    if !(1..=MOST_AXES).contains(&rank) {
        return Err(invalid(format!("chunks of {rank} axes")));
    }
    let keys = keys.copied_integers()?;
    let [first, cells, edges] = [held[0].integers()?, held[1].integers()?, held[2].integers()?];
    let size = edges.len().checked_sub(1).and_then(|objects| manifests::size(objects, first.len(), rank));
    let mut found = None;
    let manifests = NewByteArray::made_by(py, size.ok_or_else(|| invalid("too many bytes"))?, |out| {
        let [first, cells, edges] = [first, cells, edges].map(|each| each.iter().map(read).collect::<Vec<i64>>());
        let lines = Lines { first: &first, cells: &cells, edges: &edges, keys: &keys, rank };
        found = lines.find(out);
        found.is_some()
    })?;
    let (Some(manifests), Some((starts, placed))) = (manifests, found) else { return Ok(None) };
    Ok(Some((integers(py, &starts)?, manifests, told(py, placed)?)))
}

fn whole_rows(rows: &Bound<'_, PyAny>, width: usize) -> PyResult<Vec<i64>> {
    let found = integers_of(rows)?;
    if width == 0 || found.len() % width != 0 {
        return Err(invalid(format!("{} integers are no rows of {width}", found.len())));
    }
    Ok(found)
}
