//! A box of elements across chunks of one shape, which lie in objects of one shape: its axes, and its jobs.

use std::ops::RangeInclusive;

use crate::memory::shared_integers::{SharedIntegers, read};
use crate::plan::axis_rows::AxisRows;
use crate::plan::job_table::JobTable;
use crate::plan::shard_table::Entry;

/// One axis of the grid of chunks, and of the box.
pub struct BoxAxis {
    /// Length of a chunk.
    pub chunk: usize,
    /// Chunks of an object.
    pub per_object: usize,
    /// Rows of the index of an object from one chunk to the next.
    pub stride: usize,
    /// The first element.
    pub first: usize,
    pub count: usize,
}

/// Where the chunks of an object are.
pub enum ObjectTable<'a> {
    /// The object is one chunk of so many bytes.
    Whole(i64),
    /// Offset and length of each of its chunks.
    Index(SharedIntegers<'a>, SharedIntegers<'a>),
    Entries(&'a [Entry]),
    /// Nothing is stored.
    Missing,
}

impl BoxAxis {
    /// The chunks that the box touches.
    fn numbers(&self) -> Result<RangeInclusive<usize>, String> {
        if self.chunk == 0 || self.per_object == 0 {
            return Err("chunks without elements, or objects without chunks".into());
        }
        let last = self.first.checked_add(self.count.saturating_sub(1)).ok_or("a box beyond all arrays")?;
        Ok(self.first / self.chunk..=last / self.chunk)
    }

    /// For each of them the number of its object, counted from the first that is touched, and the rows of the index that
    /// it adds.
    fn chunks(&self) -> Result<Vec<(usize, usize)>, String> {
        let numbers = self.numbers()?;
        let first = numbers.start() / self.per_object;
        let place = |chunk: usize| {
            let row = (chunk % self.per_object).checked_mul(self.stride).ok_or("an index with too many rows")?;
            Ok((chunk / self.per_object - first, row))
        };
        numbers.map(place).collect()
    }
}

/// The coordinates of the objects that a box touches, in C order; `None` for more than `most`.
pub fn touched_objects(axes: &[BoxAxis], most: usize) -> Result<Option<Vec<Vec<usize>>>, String> {
    let (mut ranges, mut count) = (Vec::with_capacity(axes.len()), 1usize);
    for axis in axes {
        let numbers = axis.numbers()?;
        let (first, last) = (numbers.start() / axis.per_object, numbers.end() / axis.per_object);
        count = count.saturating_mul((last - first).saturating_add(1));
        if count > most {
            return Ok(None);
        }
        ranges.push(first..=last);
    }
    let mut objects = Vec::with_capacity(count);
    for number in 0..count {
        let mut rest = number;
        let mut at = vec![0; ranges.len()];
        for (at, range) in at.iter_mut().zip(&ranges).rev() {
            let width = range.end() - range.start() + 1;
            *at = range.start() + rest % width;
            rest /= width;
        }
        objects.push(at);
    }
    Ok(Some(objects))
}

/// Axes and jobs of a box. `objects`: those that it touches, in C order; their chunks have `most` bytes at most. `None`
/// if one has more, or (unless `missing` are fine) is not stored.
pub fn plan_box(
    axes: &[BoxAxis],
    objects: &[ObjectTable],
    most: i64,
    missing: bool,
) -> Result<Option<(Vec<AxisRows>, JobTable)>, String> {
    let touched = Touched::by(axes)?;
    if touched.objects != Some(objects.len()) {
        return Err(touched.others(objects.len()));
    }
    let mut jobs = Vec::new();
    let complete = touched.each_chunk(|number, row, at| {
        let (offset, length) = match &objects[number] {
            ObjectTable::Whole(length) => (0, *length),
            ObjectTable::Index(offsets, lengths) => {
                let (Some(offset), Some(length)) = (offsets.get(row), lengths.get(row)) else {
                    return Err(format!("an index of {} rows has none of number {row}", offsets.len()));
                };
                (read(offset), read(length))
            }
            ObjectTable::Entries(entries) => {
                let entry = entries.get(row).ok_or_else(|| format!("no row {row} of {} of an index", entries.len()))?;
                (entry.offset as i64, entry.length as i64)
            }
            ObjectTable::Missing => (0, -1),
        };
        if length > most || (length == -1 && !missing) {
            return Ok(false);
        }
        jobs.extend([number as i64, offset, length]);
        jobs.extend(at.iter().map(|&at| at as i64));
        Ok(true)
    })?;
    Ok(if complete { Some((touched.rows, JobTable::new(jobs, 3, axes.len())?)) } else { None })
}

/// The chunks that a box touches.
struct Touched {
    rows: Vec<AxisRows>,
    /// Of each axis: see `BoxAxis::chunks`.
    chunks: Vec<Vec<(usize, usize)>>,
    /// Objects along each axis.
    widths: Vec<usize>,
    /// All of them; nothing where there are more than can be counted.
    objects: Option<usize>,
}

impl Touched {
    /// What is wrong if there are so many objects.
    fn others(&self, objects: usize) -> String {
        let touched = self.objects.map_or("more than can be counted".into(), |objects| objects.to_string());
        format!("{objects} objects for a box that touches {touched}")
    }

    fn by(axes: &[BoxAxis]) -> Result<Self, String> {
        // first of all axes: where one is empty the others may have any number of elements
        if axes.iter().any(|axis| axis.count == 0) {
            return Err("an empty box".into());
        }
        let chunks: Vec<Vec<(usize, usize)>> = axes.iter().map(BoxAxis::chunks).collect::<Result<_, _>>()?;
        let rows = axes.iter().map(|axis| AxisRows::regular(axis.chunk, axis.first, axis.count));
        let rows = rows.collect::<Result<_, _>>()?;
        let widths: Vec<usize> = chunks.iter().map(|axis| axis.last().map_or(0, |last| last.0 + 1)).collect();
        let objects = widths.iter().try_fold(1usize, |product, &width| product.checked_mul(width));
        Ok(Touched { rows, chunks, widths, objects })
    }

    /// Call `visit` with object, row in its index and rows of the axes of each chunk: in the order of objects, and in that
    /// of their chunks, so that near ones are read together. It stops, with `false`, where that says so.
    fn each_chunk(
        &self,
        mut visit: impl FnMut(usize, usize, &[usize]) -> Result<bool, String>,
    ) -> Result<bool, String> {
        for number in 0..self.objects.unwrap_or(0) {
            let mut rest = number;
            let mut ranges = vec![0..0; self.chunks.len()];
            for ((range, chunks), width) in ranges.iter_mut().zip(&self.chunks).zip(&self.widths).rev() {
                let object = rest % width;
                rest /= width;
                let low = chunks.partition_point(|chunk| chunk.0 < object);
                *range = low..chunks.partition_point(|chunk| chunk.0 <= object);
            }
            let mut at: Vec<usize> = ranges.iter().map(|range| range.start).collect();
            'chunks: loop {
                let row = at.iter().zip(&self.chunks).try_fold(0usize, |row, (&at, axis)| row.checked_add(axis[at].1));
                if !visit(number, row.ok_or("an index with too many rows")?, &at)? {
                    return Ok(false);
                }
                for axis in (0..at.len()).rev() {
                    at[axis] += 1;
                    if at[axis] < ranges[axis].end {
                        continue 'chunks;
                    }
                    at[axis] = ranges[axis].start;
                }
                break;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_integers::integers;
    use crate::plan::job_table::Stored;

    fn axis(chunk: usize, per_object: usize, stride: usize, first: usize, count: usize) -> BoxAxis {
        BoxAxis { chunk, per_object, stride, first, count }
    }

    #[test]
    fn every_chunk_is_a_job() {
        // chunks of 4 x 5, shards of 2 x 3 of them; rows 6 to 9, columns 12 to 17
        let axes = [axis(4, 2, 3, 6, 4), axis(5, 3, 1, 12, 6)];
        let (offsets, lengths) = (integers([10, 11, 12, 13, 14, 15]), integers([1, 2, 3, 4, -1, 6]));
        let table = || ObjectTable::Index(&offsets, &lengths);
        let (rows, jobs) = plan_box(&axes, &[table(), table(), table(), table()], 6, true).unwrap().unwrap();
        let found: Vec<_> = (0..jobs.len()).map(|job| (jobs.stored(job), jobs.rows(job).to_vec())).collect();
        let at = |source, offset, length| Stored::At { source, offset, length };
        assert_eq!(
            found,
            [
                (at(0, 15, 6), vec![0, 0]),
                (at(1, 13, 4), vec![0, 1]),
                (at(2, 12, 3), vec![1, 0]),
                (at(3, 10, 1), vec![1, 1])
            ]
        );
        let row = |axis: usize, number: usize| {
            let row = rows[axis].row(number);
            (row.extent, row.first, row.count, row.place)
        };
        assert_eq!((row(0, 0), row(0, 1)), ((4, 2, 2, 0), (4, 0, 2, 2)));
        assert_eq!((row(1, 0), row(1, 1)), ((5, 2, 3, 0), (5, 0, 3, 3)));
        assert!(plan_box(&axes, &[table(), table(), table(), table()], 5, true).unwrap().is_none());
        assert!(plan_box(&axes, &[table(), table()], 6, true).is_err());
    }

    #[test]
    fn objects_that_a_box_touches() {
        let axes = [axis(4, 2, 3, 6, 4), axis(5, 3, 1, 12, 6)];
        assert_eq!(touched_objects(&axes, 4).unwrap().unwrap(), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert!(touched_objects(&axes, 3).unwrap().is_none());
        assert_eq!(touched_objects(&[], 1).unwrap().unwrap(), [[0; 0]]);
        assert!(touched_objects(&[axis(1, 1, 0, 0, usize::MAX)], usize::MAX - 1).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (offsets, lengths) = (integers([0, 0]), integers([1, -1]));
        let plan =
            |axis: BoxAxis, missing: bool| plan_box(&[axis], &[ObjectTable::Index(&offsets, &lengths)], 9, missing);
        assert_eq!(plan(axis(4, 2, 1, 0, 8), true).unwrap().unwrap().1.len(), 2);
        assert!(plan(axis(4, 2, 1, 0, 8), false).unwrap().is_none());
        assert!(plan(axis(4, 3, 1, 0, 12), true).is_err());
        assert!(plan(axis(0, 2, 1, 0, 8), true).is_err());
        assert!(plan_box(&[axis(1, 1, 0, 0, usize::MAX), axis(1, 1, 0, 0, 0)], &[], 9, true).is_err());
        assert!(plan(axis(4, 0, 1, 0, 8), true).is_err());
        assert!(plan(axis(4, 2, usize::MAX, 4, 1), true).is_err());
        assert!(plan(axis(4, 3, usize::MAX, 8, 1), true).is_err());
        assert!(plan(axis(4, 2, 1, usize::MAX, 2), true).is_err());
        let whole = plan_box(&[axis(4, 1, 0, 0, 4)], &[ObjectTable::Whole(7)], 9, false).unwrap().unwrap().1;
        assert_eq!(whole.stored(0), Stored::At { source: 0, offset: 0, length: 7 });
        assert_eq!(plan_box(&[], &[ObjectTable::Whole(7)], 9, false).unwrap().unwrap().1.len(), 1);
    }
}
