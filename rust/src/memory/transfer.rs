//! Copying a selection between a chunk and an array, both strided: the geometry of one job, and the loops that do it.

use crate::memory::runs::{Copiers, Steps};
use crate::plan::axis_rows::{AxisRows, Row};
use crate::plan::parts::Parts;

/// Bytes of a line of the cache.
const LINE: usize = 64;
/// Runs that are copied in tiles where that saves lines.
const LARGEST_TILED: usize = 16;
/// Runs of which a line holds so many that another order of loops pays, too.
const LARGEST_PAIRED: usize = 4;

/// Which way elements go.
#[derive(Clone, Copy, PartialEq)]
pub enum Direction {
    /// From the chunk to the array.
    Scatter,
    /// From the array to the chunk.
    Gather,
}

/// One loop.
#[derive(Clone, Copy)]
struct Loop {
    steps: Steps,
    /// Not evenly spaced: the offsets are `Transfer::offsets` from here on instead.
    listed: Option<usize>,
}

/// The elements of one job, as nested loops over runs of adjacent bytes.
#[derive(Default)]
pub struct Transfer {
    loops: Vec<Loop>,
    offsets: Vec<(isize, isize)>,
    /// Where the first element is: bytes from the start of the source and of the target.
    from: isize,
    to: isize,
    /// Adjacent bytes that are copied at once; 0 if there is nothing to copy.
    run: usize,
    /// See `Sides`.
    reads_far: bool,
}

/// The two sides of a transfer.
pub struct Sides<'a> {
    /// Bytes from one element to the next along each axis of the chunk; zeros to fill the array.
    pub chunk: &'a [isize],
    pub array: &'a [isize],
    pub item: usize,
    pub direction: Direction,
    /// Whether the source, rather than the target, is not in the cache.
    pub reads_far: bool,
}

impl Transfer {
    /// Plan the copy of what the row `rows[i]` of each axis `axes[i]` names.
    ///
    /// The chunk's elements are those within the extents of the rows, the array's those within the length that the
    /// axes were checked against.
    pub fn plan(&mut self, axes: &[AxisRows], rows: &[i64], sides: &Sides) {
        self.loops.clear();
        self.offsets.clear();
        (self.from, self.to, self.run) = (0, 0, sides.item);
        self.reads_far = sides.reads_far;
        for (i, (axis, &number)) in axes.iter().zip(rows).enumerate() {
            let row = axis.row(number as usize);
            if row.count == 0 {
                self.loops.clear();
                self.run = 0;
                return;
            }
            self.add_axis(axis, row, sides.chunk[i], sides.array[i], sides.direction);
        }
        // memory is read or written along the array, the chunk is in the cache
        let key = |each: &Loop| {
            let Steps { from, to, .. } = each.steps;
            let (array, chunk) = if sides.direction == Direction::Scatter { (to, from) } else { (from, to) };
            (if array == 0 { chunk } else { array }).unsigned_abs()
        };
        if !self.loops.is_sorted_by(|outer, inner| key(outer) >= key(inner)) {
            self.loops.sort_by_key(|each| std::cmp::Reverse(key(each)));
        }
        self.join_loops();
        if let Some(last) = self.loops.last()
            && last.listed.is_none()
            && last.steps.to == self.run as isize
            && (last.steps.from == last.steps.to || sides.chunk.iter().all(|&stride| stride == 0))
        {
            self.run *= last.steps.count;
            self.loops.pop();
        }
        self.pair_loops(sides.direction);
    }

    /// Where single elements are copied across the lines of the chunk: have the loop along these lines directly
    /// around the innermost one, so that the two can be done in tiles.
    fn pair_loops(&mut self, direction: Direction) {
        let chunk = |each: &Loop| {
            let step = if direction == Direction::Scatter { each.steps.from } else { each.steps.to };
            if each.listed.is_some() { usize::MAX } else { step.unsigned_abs() }
        };
        let Some((inner, outer)) = self.loops.split_last() else { return };
        if self.run <= LARGEST_PAIRED
            && chunk(inner) >= LINE
            && let Some(along) = (0..outer.len()).min_by_key(|&i| chunk(&outer[i]))
            && chunk(&outer[along]) < LINE
        {
            let last = outer.len();
            self.loops[along..last].rotate_left(1);
        }
    }

    fn add_axis(&mut self, axis: &AxisRows, row: &Row, chunk: isize, array: isize, direction: Direction) {
        let sides = |index: isize, place: isize| match direction {
            Direction::Scatter => (index * chunk, place * array),
            Direction::Gather => (place * array, index * chunk),
        };
        if let Some(listed) = &row.listed {
            let start = self.offsets.len();
            let (indices, places) = axis.lists(listed.clone());
            self.offsets
                .extend(indices.iter().zip(places).map(|(&index, &place)| sides(index as isize, place as isize)));
            let (from, to) = sides(1, 1);
            self.loops.push(Loop { steps: Steps { count: row.count, from, to }, listed: Some(start) });
            return;
        }
        let (from, to) = sides(row.first as isize, row.place as isize);
        self.from += from;
        self.to += to;
        if row.count > 1 {
            let (from, to) = sides(row.step, row.place_step);
            self.loops.push(Loop { steps: Steps { count: row.count, from, to }, listed: None });
        }
    }

    /// Make one loop of two where the inner one ends where the next step of the outer one starts.
    fn join_loops(&mut self) {
        let mut kept = 0;
        for i in 1..self.loops.len() {
            let next = self.loops[i];
            let (outer, inner) = (self.loops[kept].steps, next.steps);
            let count = inner.count as isize;
            let even = self.loops[kept].listed.is_none() && next.listed.is_none();
            // what lies one step beyond a chunk as large as the address space has no offset
            let follows = |outer: isize, inner: isize| inner.checked_mul(count) == Some(outer);
            if even && follows(outer.from, inner.from) && follows(outer.to, inner.to) {
                self.loops[kept].steps = Steps { count: outer.count * inner.count, ..inner };
            } else {
                kept += 1;
                self.loops[kept] = next;
            }
        }
        self.loops.truncate(kept + 1);
    }

    /// If all elements lie one after the other in source and target: how many bytes they are.
    pub fn single_run(&self) -> Option<usize> {
        self.loops.is_empty().then_some(self.run)
    }

    /// Bytes from the start of the source to the first element.
    pub fn source_start(&self) -> isize {
        self.from
    }

    /// Bytes from the start of the target to the first element.
    pub fn target_start(&self) -> isize {
        self.to
    }

    /// Bytes from the start of the source to the first element that is copied, if one is.
    pub fn first_source(&self) -> Option<isize> {
        let listed = |each: &Loop| each.listed.map_or(0, |start| self.offsets[start].0);
        (self.run > 0).then(|| self.from + self.loops.iter().map(listed).sum::<isize>())
    }

    /// Have `parts` be the bytes of the source that are copied, with those between that are no more than `gap`.
    pub fn source_parts(&self, gap: usize, parts: &mut Parts) {
        parts.clear();
        if self.run == 0 {
            return;
        }
        // from the widest steps to the narrowest, upwards: so parts come in order
        let mut levels: Vec<Vec<usize>> = Vec::new();
        let mut loops: Vec<&Loop> = self.loops.iter().collect();
        loops.sort_by_key(|each| std::cmp::Reverse(each.steps.from.unsigned_abs()));
        let (mut start, mut span) = (self.from, self.run);
        while let Some(each) = loops.pop() {
            let Steps { count, from: step, .. } = each.steps;
            let (low, high, widest) = match each.listed {
                None => {
                    let reach = step * (count as isize - 1);
                    (reach.min(0), reach.max(0), step.unsigned_abs())
                }
                Some(_) => {
                    let mut offsets: Vec<isize> = self.listed(each).iter().map(|offset| offset.0).collect();
                    offsets.sort_unstable();
                    let widest = offsets.windows(2).map(|pair| pair[1].abs_diff(pair[0])).max();
                    (offsets[0], offsets[count - 1], widest.unwrap_or(0))
                }
            };
            if widest > span.saturating_add(gap) {
                loops.push(each);
                break;
            }
            start += low;
            span += high.abs_diff(low);
        }
        for each in loops {
            let Steps { count, from: step, .. } = each.steps;
            let mut offsets: Vec<isize> = match each.listed {
                None => (0..count as isize).map(|i| i * step).collect(),
                Some(_) => self.listed(each).iter().map(|offset| offset.0).collect(),
            };
            offsets.sort_unstable();
            start += offsets[0];
            levels.push(offsets.iter().map(|offset| offset.abs_diff(offsets[0])).collect());
        }
        push_all(&levels, start as usize, span, gap, parts);
    }

    /// Have the source begin `nbytes` bytes later: those before are not there, and no element is among them.
    pub fn shorten_source(&mut self, nbytes: usize) {
        self.from -= nbytes as isize;
    }

    /// Copy all elements.
    ///
    /// # Safety
    /// `source` and `target` are where the two sides that the transfer was planned for start; all elements that the
    /// plan's rows name are readable at the source, writable at the target, and the two do not overlap.
    pub unsafe fn copy(&self, source: *const u8, target: *mut u8) {
        if self.run > 0 {
            // SAFETY: there are elements, so that `from` and `to` are where the first one lies on each side; the
            // caller promises that all are there, and `plan` has made the loops of the rows that name them.
            unsafe {
                let (source, target) = (source.offset(self.from), target.offset(self.to));
                self.nest(&self.loops, source, target, &Copiers::of_length(self.run, self.reads_far));
            }
        }
    }

    /// # Safety
    /// As for `copy`, from the elements at `source` and `target` on.
    unsafe fn nest(&self, loops: &[Loop], source: *const u8, target: *mut u8, copiers: &Copiers) {
        // SAFETY: `plan` has made the loops of the rows, so that every step and offset leads to elements that these
        // name; the caller promises that they are there.
        unsafe {
            match *loops {
                [] => std::ptr::copy_nonoverlapping(source, target, self.run),
                [ref last] => match last.listed {
                    None => (copiers.steps)(self.run, last.steps, source, target),
                    Some(_) => (copiers.listed)(self.run, self.listed(last), source, target),
                },
                [ref outer, ref inner] if self.tiles(outer, inner) => {
                    (copiers.tiles)(self.run, outer.steps, inner.steps, source, target);
                }
                [ref outer, ref inner] if outer.listed.is_none() && inner.listed.is_none() => {
                    (copiers.planes)(self.run, outer.steps, inner.steps, source, target);
                }
                [ref first, ref rest @ ..] if first.listed.is_none() => {
                    for i in 0..first.steps.count as isize {
                        let (from, to) = (i * first.steps.from, i * first.steps.to);
                        self.nest(rest, source.offset(from), target.offset(to), copiers);
                    }
                }
                [ref first, ref rest @ ..] => {
                    for &(from, to) in self.listed(first) {
                        self.nest(rest, source.offset(from), target.offset(to), copiers);
                    }
                }
            }
        }
    }

    /// The offsets of a listed loop.
    fn listed(&self, each: &Loop) -> &[(isize, isize)] {
        let start = each.listed.unwrap_or(0);
        &self.offsets[start..start + each.steps.count]
    }

    /// Whether the inner loop walks across the lines of one side, the outer one along them, so that tiles pay.
    fn tiles(&self, outer: &Loop, inner: &Loop) -> bool {
        let across = |outer: isize, inner: isize| inner.unsigned_abs() >= LINE && outer.unsigned_abs() < LINE;
        self.run <= LARGEST_TILED
            && outer.listed.is_none()
            && inner.listed.is_none()
            && (across(outer.steps.from, inner.steps.from) || across(outer.steps.to, inner.steps.to))
    }

    /// Call `with` with every run of adjacent bytes: where it is in the source, its start in the target, and its length.
    ///
    /// # Safety
    /// `target` is where the side that the transfer was planned for starts, and its elements may be written.
    pub unsafe fn each_run(&self, target: *mut u8, mut with: impl FnMut(isize, *mut u8, usize)) {
        if self.run > 0 {
            // SAFETY: there are elements, so that `to` is where the first one lies; the caller promises that it is
            // there.
            unsafe { self.each_run_of(&self.loops, self.from, target.offset(self.to), &mut with) };
        }
    }

    /// # Safety
    /// As for `each_run`, from the element at `target` on.
    unsafe fn each_run_of(
        &self,
        loops: &[Loop],
        source: isize,
        target: *mut u8,
        with: &mut impl FnMut(isize, *mut u8, usize),
    ) {
        let [first, rest @ ..] = loops else { return with(source, target, self.run) };
        for i in 0..first.steps.count {
            let even = (i as isize * first.steps.from, i as isize * first.steps.to);
            let (from, to) = first.listed.map_or(even, |start| self.offsets[start + i]);
            // SAFETY: as `plan` has made the loops, the offset leads to an element that the rows name; the caller
            // promises that it is there.
            unsafe { self.each_run_of(rest, source + from, target.offset(to), with) };
        }
    }

    /// How many runs of adjacent bytes there are.
    pub fn runs(&self) -> usize {
        if self.run == 0 {
            return 0;
        }
        self.loops.iter().fold(1, |runs, each| runs.saturating_mul(each.steps.count))
    }
}

/// Add the parts of `span` bytes that nested loops over offsets lead to, from `start` on.
fn push_all(levels: &[Vec<usize>], start: usize, span: usize, gap: usize, parts: &mut Parts) {
    match levels {
        [] => parts.push(start..start + span, gap),
        [offsets, rest @ ..] => offsets.iter().for_each(|offset| push_all(rest, start + offset, span, gap, parts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_integers::integers;
    use crate::plan::axis_rows::{ListedArrays, StridedArrays};

    fn c_strides(shape: &[usize], item: usize) -> Vec<isize> {
        let mut strides = vec![item as isize; shape.len()];
        for i in (0..shape.len().saturating_sub(1)).rev() {
            strides[i] = strides[i + 1] * shape[i + 1] as isize;
        }
        strides
    }

    fn all(extent: i64, place: i64, length: usize) -> AxisRows {
        let arrays = StridedArrays {
            extents: &integers([extent]),
            first: &integers([0]),
            count: &integers([extent]),
            out_first: &integers([place]),
            step: 1,
        };
        AxisRows::strided(&arrays, 0..1, length).unwrap()
    }

    #[test]
    fn whole_rows_join() {
        let axes = [all(4, 2, 8), all(5, 0, 5), all(6, 0, 6)];
        let (chunk, array) = (c_strides(&[4, 5, 6], 2), c_strides(&[8, 5, 6], 2));
        let mut transfer = Transfer::default();
        let sides = Sides { chunk: &chunk, array: &array, item: 2, direction: Direction::Scatter, reads_far: false };
        transfer.plan(&axes, &[0, 0, 0], &sides);
        assert_eq!((transfer.single_run(), transfer.target_start()), (Some(240), 120));
    }

    #[test]
    fn the_largest_chunks_have_a_plan() {
        let extent = isize::MAX / 2;
        let columns = StridedArrays {
            extents: &integers([extent as i64]),
            first: &integers([0]),
            count: &integers([2]),
            out_first: &integers([0]),
            step: extent as i64 - 1,
        };
        let axes = [all(2, 0, 2), AxisRows::strided(&columns, 0..1, 2).unwrap()];
        let (chunk, array) = ([1, 2], [2, 1]); // transposed
        let mut transfer = Transfer::default();
        let sides = Sides { chunk: &chunk, array: &array, item: 1, direction: Direction::Scatter, reads_far: false };
        transfer.plan(&axes, &[0, 0], &sides);
        assert_eq!((transfer.single_run(), transfer.loops.len()), (None, 2));
    }

    #[test]
    fn scatters_and_gathers_every_element() {
        // a transposed chunk of 5 x 20 x 37, of which some is listed, in an array with a negative stride
        for item in [1usize, 2, 3, 4, 6, 8, 16, 24] {
            let (extents, shape) = ([5usize, 20, 37], [9usize, 20, 40]);
            let axes = [
                AxisRows::listed(
                    &ListedArrays {
                        extents: &integers([5]),
                        bounds: &integers([0, 3]),
                        indices: &integers([4, 1, 2]),
                        places: Some(&integers([0, 8, 3])),
                    },
                    0..1,
                    9,
                )
                .unwrap(),
                all(20, 0, 20),
                AxisRows::strided(
                    &StridedArrays {
                        extents: &integers([37]),
                        first: &integers([1]),
                        count: &integers([18]),
                        out_first: &integers([7]),
                        step: 2,
                    },
                    0..1,
                    40,
                )
                .unwrap(),
            ];
            for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                let mut geometry = crate::plan::chunk_geometry::ChunkGeometry::default();
                geometry.set(extents.into_iter(), &order, item).unwrap();
                let chunk: Vec<u8> = (0..geometry.nbytes).map(|i| (i * 7 % 251) as u8).collect();
                let mut array = vec![0u8; shape.iter().product::<usize>() * item];
                let mut strides = c_strides(&shape, item);
                strides[1] = -strides[1];
                let base = strides[1].unsigned_abs() * 19;
                let mut transfer = Transfer::default();
                let direction = Direction::Scatter;
                let mut sides = Sides { chunk: &geometry.strides, array: &strides, item, direction, reads_far: false };
                transfer.plan(&axes, &[0, 0, 0], &sides);
                // SAFETY: the axes were checked against the shapes.
                unsafe { transfer.copy(chunk.as_ptr(), array.as_mut_ptr().add(base)) };
                let mut parts = Parts::default();
                transfer.source_parts(0, &mut parts);
                let mut asked: Vec<usize> = parts.ranges().iter().cloned().flatten().collect();
                transfer.source_parts(geometry.nbytes, &mut parts);
                let (least, most) = (asked[0], asked[asked.len() - 1]);
                assert_eq!((parts.ranges().len(), parts.within(0..geometry.nbytes)), (1, Some(least..most + 1)));
                let mut expected = Vec::new();
                let mut copied = 0;
                for (a, p) in [(4, 0isize), (1, 8), (2, 3)] {
                    for b in 0..20isize {
                        for c in 0..18isize {
                            let from =
                                a * geometry.strides[0] + b * geometry.strides[1] + (1 + 2 * c) * geometry.strides[2];
                            let to = base as isize + p * strides[0] + b * strides[1] + (7 + c) * strides[2];
                            let (from, to) = (from as usize, to as usize);
                            expected.extend(from..from + item);
                            assert_eq!(chunk[from..from + item], array[to..to + item]);
                            copied += array[to..to + item].iter().filter(|&&byte| byte != 0).count();
                        }
                    }
                }
                expected.sort_unstable();
                asked.sort_unstable();
                assert!(asked == expected);
                assert_eq!(copied, array.iter().filter(|&&byte| byte != 0).count());
                let mut back = vec![0u8; chunk.len()];
                (sides.direction, sides.reads_far) = (Direction::Gather, true);
                transfer.plan(&axes, &[0, 0, 0], &sides);
                // SAFETY: as above.
                unsafe { transfer.copy(array.as_ptr().add(base), back.as_mut_ptr()) };
                assert_eq!(back.iter().filter(|&&byte| byte != 0).count(), copied);
                assert!(back.iter().zip(&chunk).all(|(&got, &was)| got == 0 || got == was));
            }
        }
    }
}
