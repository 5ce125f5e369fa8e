//! Copying a selection between a chunk and an array, both strided: the geometry of one job, and the loops that do it.

use crate::axis_rows::{AxisRows, Row};

/// Which way elements go.
#[derive(Clone, Copy, PartialEq)]
pub enum Direction {
    /// From the chunk to the array.
    Scatter,
    /// From the array to the chunk.
    Gather,
}

/// One loop: `count` steps of `from` bytes in the source and `to` bytes in the target.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Loop {
    count: usize,
    from: isize,
    to: isize,
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
}

/// The two sides of a transfer.
pub struct Sides<'a> {
    /// Bytes from one element to the next along each axis of the chunk; zeros to fill the array.
    pub chunk: &'a [isize],
    pub array: &'a [isize],
    pub item: usize,
    pub direction: Direction,
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
        let (array, chunk): (fn(&Loop) -> isize, fn(&Loop) -> isize) = match sides.direction {
            Direction::Scatter => (|each| each.to, |each| each.from),
            Direction::Gather => (|each| each.from, |each| each.to),
        };
        let key = |each: &Loop| (if array(each) == 0 { chunk(each) } else { array(each) }).unsigned_abs();
        if !self.loops.is_sorted_by(|outer, inner| key(outer) >= key(inner)) {
            self.loops.sort_by_key(|each| std::cmp::Reverse(key(each)));
        }
        self.join_loops();
        if let Some(last) = self.loops.last()
            && last.listed.is_none()
            && last.to == self.run as isize
            && (last.from == last.to || (last.from == 0 && sides.chunk.iter().all(|&stride| stride == 0)))
        {
            self.run *= last.count;
            self.loops.pop();
        }
    }

    fn add_axis(&mut self, axis: &AxisRows, row: &Row, chunk: isize, array: isize, direction: Direction) {
        let sides = |index: isize, place: isize| match direction {
            Direction::Scatter => (index * chunk, place * array),
            Direction::Gather => (place * array, index * chunk),
        };
        if let Some(listed) = &row.listed {
            let start = self.offsets.len();
            let pairs = axis.indices[listed.clone()].iter().zip(&axis.places[listed.clone()]);
            self.offsets.extend(pairs.map(|(&index, &place)| sides(index as isize, place as isize)));
            let (from, to) = sides(1, 1);
            self.loops.push(Loop { count: row.count, from, to, listed: Some(start) });
            return;
        }
        let (from, to) = sides(row.first as isize, row.place as isize);
        self.from += from;
        self.to += to;
        if row.count > 1 {
            let (from, to) = sides(row.step, row.place_step);
            self.loops.push(Loop { count: row.count, from, to, listed: None });
        }
    }

    /// Make one loop of two where the inner one ends where the next step of the outer one starts.
    fn join_loops(&mut self) {
        let mut kept = 0;
        for i in 1..self.loops.len() {
            let (outer, inner) = (self.loops[kept], self.loops[i]);
            let count = inner.count as isize;
            if outer.listed.is_none()
                && inner.listed.is_none()
                && outer.from == inner.from * count
                && outer.to == inner.to * count
            {
                self.loops[kept] = Loop { count: outer.count * inner.count, ..inner };
            } else {
                kept += 1;
                self.loops[kept] = inner;
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

    /// Copy all elements.
    ///
    /// # Safety
    /// `source` and `target` are where the two sides that the transfer was planned for start; all elements that the
    /// plan's rows name are readable at the source, writable at the target, and the two do not overlap.
    pub unsafe fn copy(&self, source: *const u8, target: *mut u8) {
        if self.run == 0 {
            return;
        }
        // SAFETY: the first element is named by the rows.
        let (source, target) = unsafe { (source.offset(self.from), target.offset(self.to)) };
        // SAFETY: passed on; `N` bytes from each start, and what `Within` covers, are within a run.
        unsafe {
            match self.run {
                1 => self.nest(&self.loops, source, target, &Fixed::<1>),
                2 => self.nest(&self.loops, source, target, &Fixed::<2>),
                4 => self.nest(&self.loops, source, target, &Fixed::<4>),
                8 => self.nest(&self.loops, source, target, &Fixed::<8>),
                16 => self.nest(&self.loops, source, target, &Fixed::<16>),
                32 => self.nest(&self.loops, source, target, &Fixed::<32>),
                64 => self.nest(&self.loops, source, target, &Fixed::<64>),
                128 => self.nest(&self.loops, source, target, &Fixed::<128>),
                3 => self.nest(&self.loops, source, target, &Fixed::<3>),
                5..8 => self.nest(&self.loops, source, target, &Within::<4>(self.run)),
                9..16 => self.nest(&self.loops, source, target, &Within::<8>(self.run)),
                17..32 => self.nest(&self.loops, source, target, &Within::<16>(self.run)),
                33..64 => self.nest(&self.loops, source, target, &Within::<32>(self.run)),
                65..128 => self.nest(&self.loops, source, target, &Within::<64>(self.run)),
                _ => self.nest(&self.loops, source, target, &Long(self.run)),
            }
        }
    }

    /// # Safety
    /// As for `copy`, from the elements at `source` and `target` on.
    unsafe fn nest<R: Run>(&self, loops: &[Loop], source: *const u8, target: *mut u8, run: &R) {
        // SAFETY: every offset belongs to an element that the rows name.
        unsafe {
            let [first, rest @ ..] = loops else { return run.copy(source, target) };
            match (first.listed, rest) {
                (None, []) => copy_runs(first, source, target, run),
                (None, [inner]) if R::SINGLE_ITEM && inner.listed.is_none() && tiles(first, inner) => {
                    copy_tiles(first, inner, source, target, run);
                }
                (None, _) => {
                    for i in 0..first.count as isize {
                        self.nest(rest, source.offset(i * first.from), target.offset(i * first.to), run);
                    }
                }
                (Some(start), []) => {
                    for &(from, to) in &self.offsets[start..start + first.count] {
                        run.copy(source.offset(from), target.offset(to));
                    }
                }
                (Some(start), _) => {
                    for &(from, to) in &self.offsets[start..start + first.count] {
                        self.nest(rest, source.offset(from), target.offset(to), run);
                    }
                }
            }
        }
    }

    /// Call `write` with the start and length of every run of adjacent bytes in the target.
    ///
    /// # Safety
    /// `target` is where the side that the transfer was planned for starts, and its elements may be written.
    pub unsafe fn each_run(&self, target: *mut u8, mut write: impl FnMut(*mut u8, usize)) {
        if self.run > 0 {
            // SAFETY: passed on.
            unsafe { self.each_run_of(&self.loops, target.offset(self.to), &mut write) };
        }
    }

    /// # Safety
    /// As for `each_run`, from the element at `target` on.
    unsafe fn each_run_of(&self, loops: &[Loop], target: *mut u8, write: &mut impl FnMut(*mut u8, usize)) {
        let [first, rest @ ..] = loops else { return write(target, self.run) };
        for i in 0..first.count {
            let to = first.listed.map_or(i as isize * first.to, |start| self.offsets[start + i].1);
            // SAFETY: the offset belongs to an element that the rows name.
            unsafe { self.each_run_of(rest, target.offset(to), write) };
        }
    }
}

/// How a run of a certain length is copied fastest.
trait Run {
    /// Whether runs are as short as the elements of usual data types.
    const SINGLE_ITEM: bool = false;

    /// # Safety
    /// A run is readable at `source` and writable at `target`, and they do not overlap.
    unsafe fn copy(&self, source: *const u8, target: *mut u8);
}

/// `N` bytes.
struct Fixed<const N: usize>;
/// `N` to `2 * N` bytes.
struct Within<const N: usize>(usize);
/// Any number of bytes.
struct Long(usize);

impl<const N: usize> Run for Fixed<N> {
    const SINGLE_ITEM: bool = N <= 16;

    #[inline(always)]
    unsafe fn copy(&self, source: *const u8, target: *mut u8) {
        // SAFETY: passed on.
        unsafe { target.cast::<[u8; N]>().write_unaligned(source.cast::<[u8; N]>().read_unaligned()) };
    }
}

impl<const N: usize> Run for Within<N> {
    #[inline(always)]
    unsafe fn copy(&self, source: *const u8, target: *mut u8) {
        let last = self.0 - N;
        // SAFETY: the first and the last `N` bytes, which overlap, make up the run.
        unsafe {
            let head = source.cast::<[u8; N]>().read_unaligned();
            let tail = source.add(last).cast::<[u8; N]>().read_unaligned();
            target.cast::<[u8; N]>().write_unaligned(head);
            target.add(last).cast::<[u8; N]>().write_unaligned(tail);
        }
    }
}

impl Run for Long {
    #[inline(always)]
    unsafe fn copy(&self, source: *const u8, target: *mut u8) {
        // SAFETY: passed on.
        unsafe { std::ptr::copy_nonoverlapping(source, target, self.0) };
    }
}

/// # Safety
/// As for `Run::copy`, for every step of `rows`.
#[inline(always)]
unsafe fn copy_runs<R: Run>(rows: &Loop, source: *const u8, target: *mut u8, run: &R) {
    for i in 0..rows.count as isize {
        // SAFETY: passed on.
        unsafe { run.copy(source.offset(i * rows.from), target.offset(i * rows.to)) };
    }
}

/// Steps of both loops that are done together, so that a line of the cache is used up before it is evicted.
const TILE: usize = 16;

/// Whether the source is walked across its lines, so that tiles pay.
fn tiles(outer: &Loop, inner: &Loop) -> bool {
    let far = |step: isize| step.unsigned_abs() >= 64;
    outer.count > 1 && inner.count > TILE && far(inner.from) && !far(outer.from)
}

/// # Safety
/// As for `Run::copy`, for every step of both loops.
unsafe fn copy_tiles<R: Run>(outer: &Loop, inner: &Loop, source: *const u8, target: *mut u8, run: &R) {
    for start in (0..inner.count).step_by(TILE) {
        let part = Loop { count: TILE.min(inner.count - start), ..*inner };
        for i in 0..outer.count as isize {
            let from = i * outer.from + start as isize * inner.from;
            let to = i * outer.to + start as isize * inner.to;
            // SAFETY: passed on.
            unsafe { copy_runs(&part, source.offset(from), target.offset(to), run) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis_rows::{ListedArrays, StridedArrays};

    fn c_strides(shape: &[usize], item: usize) -> Vec<isize> {
        let mut strides = vec![item as isize; shape.len()];
        for i in (0..shape.len().saturating_sub(1)).rev() {
            strides[i] = strides[i + 1] * shape[i + 1] as isize;
        }
        strides
    }

    fn all(extent: i64, place: i64, length: usize) -> AxisRows {
        let arrays =
            StridedArrays { extents: &[extent], first: &[0], count: &[extent], out_first: &[place], step: 1 };
        AxisRows::strided(&arrays, 0..1, length).unwrap()
    }

    #[test]
    fn whole_rows_join() {
        let axes = [all(4, 2, 8), all(5, 0, 5), all(6, 0, 6)];
        let (chunk, array) = (c_strides(&[4, 5, 6], 2), c_strides(&[8, 5, 6], 2));
        let mut transfer = Transfer::default();
        let sides = Sides { chunk: &chunk, array: &array, item: 2, direction: Direction::Scatter };
        transfer.plan(&axes, &[0, 0, 0], &sides);
        assert_eq!((transfer.single_run(), transfer.target_start()), (Some(240), 120));
    }

    #[test]
    fn scatters_and_gathers_every_element() {
        // a transposed chunk of 5 x 20 x 37, of which some is listed, in an array with a negative stride
        for item in [1usize, 2, 3, 4, 6, 8, 16, 24] {
            let (extents, shape) = ([5usize, 20, 37], [9usize, 20, 40]);
            let axes = [
                AxisRows::listed(
                    &ListedArrays { extents: &[5], bounds: &[0, 3], indices: &[4, 1, 2], places: Some(&[0, 8, 3]) },
                    0..1,
                    9,
                )
                .unwrap(),
                all(20, 0, 20),
                AxisRows::strided(
                    &StridedArrays { extents: &[37], first: &[1], count: &[18], out_first: &[7], step: 2 },
                    0..1,
                    40,
                )
                .unwrap(),
            ];
            for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                let mut geometry = crate::chunk_geometry::ChunkGeometry::default();
                geometry.set(extents.into_iter(), &order, item).unwrap();
                let chunk: Vec<u8> = (0..geometry.nbytes).map(|i| (i * 7 % 251) as u8).collect();
                let mut array = vec![0u8; shape.iter().product::<usize>() * item];
                let mut strides = c_strides(&shape, item);
                strides[1] = -strides[1];
                let base = strides[1].unsigned_abs() * 19;
                let mut transfer = Transfer::default();
                let mut sides = Sides { chunk: &geometry.strides, array: &strides, item, direction: Direction::Scatter };
                transfer.plan(&axes, &[0, 0, 0], &sides);
                // SAFETY: the axes were checked against the shapes.
                unsafe { transfer.copy(chunk.as_ptr(), array.as_mut_ptr().add(base)) };
                let mut copied = 0;
                for (a, p) in [(4, 0isize), (1, 8), (2, 3)] {
                    for b in 0..20isize {
                        for c in 0..18isize {
                            let from = a * geometry.strides[0] + b * geometry.strides[1]
                                + (1 + 2 * c) * geometry.strides[2];
                            let to = base as isize + p * strides[0] + b * strides[1] + (7 + c) * strides[2];
                            let (from, to) = (from as usize, to as usize);
                            assert_eq!(chunk[from..from + item], array[to..to + item]);
                            copied += array[to..to + item].iter().filter(|&&byte| byte != 0).count();
                        }
                    }
                }
                assert_eq!(copied, array.iter().filter(|&&byte| byte != 0).count());
                let mut back = vec![0u8; chunk.len()];
                sides.direction = Direction::Gather;
                transfer.plan(&axes, &[0, 0, 0], &sides);
                // SAFETY: as above.
                unsafe { transfer.copy(array.as_ptr().add(base), back.as_mut_ptr()) };
                assert_eq!(back.iter().filter(|&&byte| byte != 0).count(), copied);
                assert!(back.iter().zip(&chunk).all(|(&got, &was)| got == 0 || got == was));
            }
        }
    }
}
