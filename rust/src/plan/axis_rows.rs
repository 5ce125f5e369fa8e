//! One axis of a plan: for each chunk along it (a row), which of its elements go where. Checked, and copied, so that
//! nothing can change afterwards.

use std::ops::Range;

use crate::memory::distinct::distinct;
use crate::memory::shared_integers::{SharedIntegers, read};

/// What one chunk takes part with along one axis.
#[derive(Clone, Debug)]
pub struct Row {
    /// Full length of the chunk.
    pub extent: usize,
    pub count: usize,
    /// Element `first + n * step` of the chunk goes to (or comes from) place `place + n * place_step` of the array.
    pub first: usize,
    pub step: isize,
    pub place: usize,
    pub place_step: isize,
    /// If the elements are not evenly spaced: where in the axis's lists they are.
    pub listed: Option<Range<usize>>,
}

impl Row {
    /// The least and the largest index of an element; `None` if there are none, or they are not evenly spaced.
    pub fn ends(&self) -> Option<(usize, usize)> {
        if self.listed.is_some() {
            return None;
        }
        let last = self.first.checked_add_signed(self.step * self.count.checked_sub(1)? as isize)?;
        Some((self.first.min(last), self.first.max(last)))
    }
}

/// Every index of a row is less than its extent, every place less than the length of the array that the axis is of:
/// the functions that make this value have checked it, and nothing changes it. Copies without bounds checks rely on
/// that.
#[derive(Clone, Debug)]
pub struct AxisRows {
    rows: Vec<Row>,
    /// Number of the first of `rows`: those before are not used.
    low: usize,
    /// Length of the array.
    length: usize,
    indices: Vec<usize>,
    places: Vec<usize>,
}

/// The arrays of a strided axis as the caller gives them.
pub struct StridedArrays<'a> {
    pub extents: SharedIntegers<'a>,
    pub first: SharedIntegers<'a>,
    pub count: SharedIntegers<'a>,
    pub out_first: SharedIntegers<'a>,
    pub step: i64,
}

/// The arrays of a listed axis as the caller gives them.
pub struct ListedArrays<'a> {
    pub extents: SharedIntegers<'a>,
    pub bounds: SharedIntegers<'a>,
    pub indices: SharedIntegers<'a>,
    pub places: Option<SharedIntegers<'a>>,
}

impl AxisRows {
    fn new(length: usize, low: usize) -> Self {
        AxisRows { rows: Vec::new(), low, length, indices: Vec::new(), places: Vec::new() }
    }

    /// Length of the array along this axis.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The numbers of the rows that are there.
    pub fn used(&self) -> Range<usize> {
        self.low..self.low + self.rows.len()
    }

    /// Indices and places of a listed row.
    pub fn lists(&self, listed: Range<usize>) -> (&[usize], &[usize]) {
        (&self.indices[listed.clone()], &self.places[listed])
    }

    /// Whether no place is named twice, by one row or by two.
    pub fn is_disjoint(&self) -> bool {
        if !self.places.is_empty() {
            return distinct(self.length as u64, self.places.iter().map(|&place| place as u64));
        }
        // rows without lists name intervals
        let intervals = || self.rows.iter().filter(|row| row.count > 0).map(|row| (row.place, row.place + row.count));
        if intervals().is_sorted_by(|before, after| before.1 <= after.0) {
            return true;
        }
        let mut sorted: Vec<(usize, usize)> = intervals().collect();
        sorted.sort_unstable();
        sorted.is_sorted_by(|before, after| before.1 <= after.0)
    }

    pub fn row(&self, number: usize) -> &Row {
        &self.rows[number - self.low]
    }

    /// One row: `count` elements from `first` on, to the same number of places from 0 on.
    pub fn block(extent: i64, first: i64, count: usize) -> Result<Self, String> {
        let (extent, start) = (natural(extent)?, natural(first)?);
        if start.checked_add(count).is_none_or(|stop| stop > extent) {
            return Err(format!("{count} elements from {first} on leave a chunk of {extent}"));
        }
        let row = Row { extent, count, first: start, step: 1, place: 0, place_step: 1, listed: None };
        Ok(AxisRows { rows: vec![row], ..AxisRows::new(count, 0) })
    }

    /// The rows of `count` elements from `first` on of an axis with chunks of `extent`, to as many places from 0 on.
    pub fn regular(extent: usize, first: usize, count: usize) -> Result<Self, String> {
        if extent == 0 || first.checked_add(count).is_none() {
            return Err(format!("{count} elements from {first} on, in chunks of {extent}"));
        }
        let mut rows = Vec::with_capacity(count.div_ceil(extent) + 1);
        let mut place = 0;
        while place < count {
            let first = (first + place) % extent;
            let taken = (extent - first).min(count - place);
            rows.push(Row { extent, count: taken, first, step: 1, place, place_step: 1, listed: None });
            place += taken;
        }
        Ok(AxisRows { rows, ..AxisRows::new(count, 0) })
    }

    /// The rows `used` of a strided axis of an array that is `length` long.
    pub fn strided(arrays: &StridedArrays, used: Range<usize>, length: usize) -> Result<Self, String> {
        let StridedArrays { extents, first, count, out_first, step } = *arrays;
        let given = extents.len();
        if [first.len(), count.len(), out_first.len()] != [given; 3] {
            return Err("the arrays of a strided axis differ in length".into());
        }
        let used = within(used, given)?;
        let step = isize::try_from(step).map_err(|_| "the step is too large")?;
        let mut rows = Vec::with_capacity(used.len());
        for i in used.clone() {
            let (extent, count) = (natural(read(&extents[i]))?, natural(read(&count[i]))?);
            let (first, place) = (read(&first[i]), read(&out_first[i]));
            if count > 0 {
                let last = (count as i64 - 1).checked_mul(step as i64).and_then(|reach| reach.checked_add(first));
                let inside = |index: i64| index >= 0 && (index as u64) < extent as u64;
                if !inside(first) || !last.is_some_and(inside) {
                    return Err(format!("row {i} leaves its chunk"));
                }
                if place < 0 || (place as u64).saturating_add(count as u64) > length as u64 {
                    return Err(format!("row {i} leaves the array"));
                }
            }
            let (first, place) = if count > 0 { (first as usize, place as usize) } else { (0, 0) };
            rows.push(Row { extent, count, first, step, place, place_step: 1, listed: None });
        }
        Ok(AxisRows { rows, ..AxisRows::new(length, used.start) })
    }

    /// The rows `used` of a listed axis of an array that is `length` long.
    pub fn listed(arrays: &ListedArrays, used: Range<usize>, length: usize) -> Result<Self, String> {
        let ListedArrays { extents, bounds, indices, places } = *arrays;
        if bounds.len() != extents.len() + 1 {
            return Err("a listed axis has one more bound than extents".into());
        }
        if places.is_some_and(|places| places.len() != indices.len()) {
            return Err("indices and places differ in length".into());
        }
        let used = within(used, extents.len())?;
        if used.is_empty() {
            return Ok(AxisRows::new(length, used.start));
        }
        let (begin, end) = (natural(read(&bounds[used.start]))?, natural(read(&bounds[used.end]))?);
        if begin > end || end > indices.len() {
            return Err("bounds leave the list".into());
        }
        let mut axis = AxisRows {
            rows: Vec::with_capacity(used.len()),
            low: used.start,
            length,
            indices: Vec::with_capacity(end - begin),
            places: Vec::with_capacity(end - begin),
        };
        for i in used {
            let extent = natural(read(&extents[i]))?;
            let (low, high) = (natural(read(&bounds[i]))?, natural(read(&bounds[i + 1]))?);
            if low < begin || low > high || high > end {
                return Err("bounds are not ascending".into());
            }
            let start = axis.indices.len();
            for at in low..high {
                let index = read(&indices[at]);
                if index < 0 || index as u64 >= extent as u64 {
                    return Err(format!("row {i} leaves its chunk"));
                }
                let place = places.map_or(at as i64, |places| read(&places[at]));
                if place < 0 || place as u64 >= length as u64 {
                    return Err(format!("row {i} leaves the array"));
                }
                axis.indices.push(index as usize);
                axis.places.push(place as usize);
            }
            axis.push(extent, start..axis.indices.len());
        }
        Ok(axis)
    }

    fn push(&mut self, extent: usize, listed: Range<usize>) {
        let (indices, places) = (&self.indices[listed.clone()], &self.places[listed.clone()]);
        let mut row = Row { extent, count: indices.len(), first: 0, step: 1, place: 0, place_step: 1, listed: None };
        match (even_step(indices), even_step(places)) {
            _ if indices.is_empty() => {}
            (Some(step), Some(place_step)) => {
                row = Row { first: indices[0], step, place: places[0], place_step, ..row };
            }
            _ => row.listed = Some(listed),
        }
        self.rows.push(row);
    }
}

/// The distance between neighbours, if all are equally far apart.
fn even_step(values: &[usize]) -> Option<isize> {
    let [first, second, ..] = values else { return Some(1) };
    let step = *second as isize - *first as isize;
    values.windows(2).all(|pair| pair[1] as isize - pair[0] as isize == step).then_some(step)
}

fn within(used: Range<usize>, count: usize) -> Result<Range<usize>, String> {
    if used.start > used.end || used.end > count {
        return Err(format!("jobs name row {} of an axis of {count}", used.end.saturating_sub(1)));
    }
    Ok(used)
}

fn natural(value: i64) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| format!("{value} is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_integers::integers;
    use std::sync::atomic::AtomicI64;

    fn shared(values: &[i64]) -> Vec<AtomicI64> {
        values.iter().map(|&value| AtomicI64::new(value)).collect()
    }

    fn strided(first: i64, count: i64, out_first: i64, step: i64) -> Result<AxisRows, String> {
        let arrays = StridedArrays {
            extents: &integers([4, 9]),
            first: &integers([9, first]),
            count: &integers([9, count]),
            out_first: &integers([9, out_first]),
            step,
        };
        AxisRows::strided(&arrays, 1..2, 6)
    }

    #[test]
    fn strided_rows_stay_inside() {
        assert_eq!(strided(2, 4, 2, 2).unwrap().row(1).count, 4);
        assert!(strided(3, 4, 2, 2).is_err());
        assert!(strided(2, 4, 3, 2).is_err());
        assert!(strided(-1, 1, 0, 1).is_err());
        assert!(strided(0, -1, 0, 1).is_err());
        assert!(strided(0, 2, -1, 1).is_err());
        assert!(strided(0, 2, i64::MAX, 1).is_err());
        assert!(strided(0, 3, 0, i64::MAX).is_err());
        assert!(strided(8, 5, 0, -2).is_ok());
        assert!(strided(7, 5, 0, -2).is_err());
        assert!(strided(77, 0, -5, 1).is_ok());
    }

    #[test]
    fn places_that_are_named_twice_are_found() {
        let strided = |count: &[i64], out_first: &[i64]| {
            let (zeros, nines) = (shared(&vec![0; count.len()]), shared(&vec![9; count.len()]));
            let (count, out_first) = (&shared(count)[..], &shared(out_first)[..]);
            let arrays = StridedArrays { extents: &nines, first: &zeros, count, out_first, step: 1 };
            AxisRows::strided(&arrays, 0..count.len(), 20).unwrap().is_disjoint()
        };
        assert!(strided(&[3, 4, 5], &[0, 3, 7]) && strided(&[3, 4, 5], &[9, 5, 0]) && strided(&[3, 0, 5], &[0, 1, 3]));
        assert!(!strided(&[3, 4], &[0, 2]) && !strided(&[3, 4], &[3, 0]) && !strided(&[9, 1, 1], &[0, 4, 12]));
        assert!(strided(&[], &[]));
        let listed = |places: &[i64]| {
            let arrays = ListedArrays {
                extents: &integers([9, 9]),
                bounds: &integers([0, 2, 4]),
                indices: &integers([0, 1, 2, 4]),
                places: Some(&shared(places)),
            };
            AxisRows::listed(&arrays, 0..2, 20).unwrap().is_disjoint()
        };
        assert!(listed(&[0, 1, 2, 3]) && listed(&[3, 0, 2, 19]) && listed(&[0, 2, 1, 3]));
        assert!(!listed(&[0, 0, 2, 3]) && !listed(&[0, 1, 1, 0]) && !listed(&[0, 1, 3, 0]));
    }

    #[test]
    fn listed_rows_stay_inside_and_even_lists_become_strided() {
        let listed = |bounds: &[i64], indices: &[i64], places: Option<&[i64]>| {
            let (bounds, indices, places) = (shared(bounds), shared(indices), places.map(shared));
            let (extents, places) = (&integers([4, 9]), places.as_deref());
            AxisRows::listed(&ListedArrays { extents, bounds: &bounds, indices: &indices, places }, 0..2, 6)
        };
        let axis = listed(&[0, 2, 5], &[3, 0, 1, 5, 6], None).unwrap();
        assert_eq!((axis.row(0).step, axis.row(0).first, axis.row(0).listed.clone()), (-3, 3, None));
        assert_eq!(axis.row(1).listed, Some(2..5));
        assert!(listed(&[0, 2, 6], &[3, 0, 1, 5, 6], None).is_err());
        assert!(listed(&[0, 3, 2], &[3, 0, 1, 5, 6], None).is_err());
        assert!(listed(&[0, 2, 5], &[4, 0, 1, 5, 6], None).is_err());
        assert!(listed(&[0, 2, 5], &[3, 0, 1, 5, 6], Some(&[0, 1, 2, 3, 6])).is_err());
        assert!(listed(&[0, 2, 5], &[3, 0, 1, 5, 6], Some(&[0, 1, 2, 3])).is_err());
        assert!(listed(&[-1, 2, 5], &[3, 0, 1, 5, 6], None).is_err());
    }
}
