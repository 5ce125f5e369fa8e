//! Which cell of a grid each position lies in.
//!
//! That is the quotient of each coordinate and the length of a cell, in float64, rounded down: what NumPy finds. For
//! positions in float32 the product with the reciprocal, in float32, is rounded down sooner, which takes a third of the
//! time: where none of a block is so near to a whole number that this could be another cell.

use std::mem::MaybeUninit;
use std::ops::{Add, Mul, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::memory::strided_memory::SharedBytes;
use crate::threads::workers::Batches;

/// Positions that are looked at together, so that they stay in the cache of a processor.
const BLOCK: usize = 512;
/// Positions that a thread takes on at once.
const AT_ONCE: usize = 32 * BLOCK;
pub const MOST_AXES: usize = 4;
/// Lengths of cells, and places of cells along an axis, whose reciprocals and numbers float32 holds well enough.
const FAST_LENGTHS: std::ops::Range<f64> = 1e-30..1e30;
const FAST_PLACES: f64 = (1 << 22) as f64;
/// Cells of a grid whose numbers float32 holds.
const FAST_CELLS: usize = 1 << 23;
/// How far from a whole number a quotient has to be, as a share of itself, not to be beyond it: a product with a
/// reciprocal is wrong by half of this at most, the quotient in float64 by much less. And at all.
const NEAR: f32 = 1.0 / (1 << 22) as f32;
const LEAST: f32 = 1e-30;
/// Blocks after one with a quotient that is too near, in which quotients are not looked for in the fast way: where
/// coordinates are whole numbers, there is one in most of them.
const REST: usize = 16;

/// Cells from `first` on, of `lengths`, as many as `widths` along each axis.
pub struct CellGrid {
    /// For each axis of each position of a block: length, first and width.
    lengths: Vec<f64>,
    first: Vec<f64>,
    widths: Vec<f64>,
    rank: usize,
    count: usize,
    /// Reciprocals of the lengths, first and width, in float32, where these do.
    fast: Option<(Vec<f32>, Vec<f32>, Vec<f32>)>,
}

impl CellGrid {
    pub fn new(lengths: &[f64], first: &[f64], widths: &[usize]) -> Result<Self, String> {
        let rank = lengths.len();
        if !(1..=MOST_AXES).contains(&rank) || first.len() != rank || widths.len() != rank {
            return Err("a grid has one to four axes, and a length, a first cell and a number for each".into());
        }
        if first.iter().any(|first| first.fract() != 0.0) {
            return Err("a first cell that is no whole number".into()); // between two, places would be beyond the last
        }
        let count = widths.iter().try_fold(1usize, |count, &width| count.checked_mul(width));
        let count = count.filter(|&count| i32::try_from(count).is_ok()).ok_or("a grid of too many cells")?;
        let widths: Vec<f64> = widths.iter().map(|&width| width as f64).collect();
        let is_fast = count <= FAST_CELLS
            && lengths.iter().all(|length| FAST_LENGTHS.contains(length))
            && first.iter().zip(&widths).all(|(first, width)| first.abs() + width < FAST_PLACES);
        let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>().repeat(BLOCK);
        let reciprocals: Vec<f64> = lengths.iter().map(|length| 1.0 / length).collect();
        Ok(CellGrid {
            fast: is_fast.then(|| (single(&reciprocals), single(first), single(&widths))),
            lengths: lengths.repeat(BLOCK),
            first: first.repeat(BLOCK),
            widths: widths.repeat(BLOCK),
            rank,
            count,
        })
    }

    /// Cells of the grid.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn rank(&self) -> usize {
        self.rank
    }
}

/// Positions in float32, or `double`: in float64.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    pub values: SharedBytes<'a>,
    pub double: bool,
}

impl Positions<'_> {
    /// How many whole ones there are, of as many axes as the grid has.
    pub fn count(&self, grid: &CellGrid) -> usize {
        self.values.len() / (self.item() * grid.rank)
    }

    pub fn item(&self) -> usize {
        if self.double { 8 } else { 4 }
    }
}

/// What a thread uses from block to block.
struct Space {
    block: Vec<u8>,
    quotients: Vec<f64>,
    fast: Vec<f32>,
    /// Numbers of cells.
    lines: Vec<u32>,
    /// Blocks that are still to be looked at in the slow way.
    rest: usize,
    /// How many positions are in each cell.
    counts: Vec<i64>,
}

impl Space {
    fn new(grid: &CellGrid, item: usize) -> Self {
        let values = BLOCK * grid.rank;
        Space {
            block: vec![0; values * item],
            quotients: vec![0.0; values],
            fast: vec![0.0; values],
            lines: vec![0; BLOCK],
            rest: 0,
            counts: vec![0; grid.count],
        }
    }

    /// Find the numbers of the cells of as many positions as a block has, or fewer, from `start` on; false where one is
    /// outside of the grid.
    fn find(&mut self, positions: Positions, grid: &CellGrid, start: usize, count: usize) -> bool {
        let size = positions.item() * grid.rank;
        positions.values.copy_to(start * size, &mut self.block[..count * size]);
        find_lines(self, positions.double, grid, count)
    }
}

/// What positions are in: numbers of cells, in C order, ascending; and how many positions are in each.
pub type Filled = (Vec<i64>, Vec<i64>);

/// Write to `numbers`, for each position, the place of its cell among those that any is in. Nothing where one lies
/// outside of the grid; then `numbers` hold anything.
pub fn number(
    positions: Positions,
    grid: &CellGrid,
    numbers: &mut [MaybeUninit<u8>],
    threads: usize,
) -> Option<Filled> {
    let size = positions.item() * grid.rank;
    let (numbers, rest) = numbers.as_chunks_mut::<8>();
    if !rest.is_empty() || Some(positions.values.len()) != numbers.len().checked_mul(size) {
        return None;
    }
    let parts: Vec<_> = numbers.chunks_mut(AT_ONCE).enumerate().map(Mutex::new).collect();
    let work = || (0..parts.len()).map(|_| AT_ONCE * (size + 8));
    let good = AtomicBool::new(true);
    let start = || Space::new(grid, positions.item());
    let states = Batches::new(work(), threads).run(start, |space, range| {
        for part in &parts[range] {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let (place, targets) = (part.0 * AT_ONCE, &mut part.1);
            for (number, targets) in targets.chunks_mut(BLOCK).enumerate() {
                if !space.find(positions, grid, place + number * BLOCK, targets.len()) {
                    good.store(false, Ordering::Relaxed);
                    return;
                }
                for (&line, target) in space.lines.iter().zip(targets) {
                    space.counts[line as usize] += 1;
                    *target = u64::from(line).to_ne_bytes().map(MaybeUninit::new);
                }
            }
        }
    });
    if !good.into_inner() {
        return None;
    }
    let (filled, counts) = filled(grid, states.into_iter().map(|space| space.counts));
    if filled.len() < grid.count {
        let mut places = vec![0i64; grid.count];
        filled.iter().enumerate().for_each(|(place, &cell)| places[cell as usize] = place as i64);
        let places = &places;
        Batches::new(work(), threads).run(
            || (),
            |(), range| {
                for part in &parts[range] {
                    let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                    for target in part.1.iter_mut() {
                        // SAFETY: numbers were written to all of them above: each part was gone through to its end, since
                        // no thread has found a position outside.
                        let line = target.map(|byte| unsafe { byte.assume_init() });
                        *target = places[u64::from_ne_bytes(line) as usize].to_ne_bytes().map(MaybeUninit::new);
                    }
                }
            },
        );
    }
    Some((filled, counts))
}

/// Runs of positions that follow each other in one cell.
#[derive(Debug, Default, PartialEq)]
pub struct CellRuns {
    /// The first position of each, ...
    pub first: Vec<i64>,
    /// ... and the place of its cell among those that any is in.
    pub cells: Vec<i64>,
    pub filled: Filled,
}

/// Where runs of positions begin that lie in one cell each, cut at the positions `edges`, which ascend. Nothing where one
/// lies outside of the grid, or edges are no positions, or do not ascend.
pub fn find_runs(positions: Positions, grid: &CellGrid, edges: &[i64], threads: usize) -> Option<CellRuns> {
    let size = positions.item() * grid.rank;
    let count = positions.values.len() / size;
    let is_in_order = edges.is_sorted_by(|one, next| one < next);
    let is_inside = |edge: Option<&i64>| edge.is_none_or(|&edge| (0..count as i64).contains(&edge));
    if !positions.values.len().is_multiple_of(size)
        || !is_in_order
        || !is_inside(edges.first())
        || !is_inside(edges.last())
    {
        return None;
    }
    let parts: Vec<Mutex<Vec<(usize, usize)>>> = (0..count.div_ceil(AT_ONCE)).map(|_| Mutex::default()).collect();
    let good = AtomicBool::new(true);
    let start = || Space::new(grid, positions.item());
    let batches = Batches::new((0..parts.len()).map(|_| AT_ONCE * (size + 8)), threads);
    let states = batches.run(start, |space, range| {
        for part in range {
            let (begin, end) = (part * AT_ONCE, count.min((part + 1) * AT_ONCE));
            let edges = &edges[edges.partition_point(|&edge| edge < begin as i64)..];
            match runs_of(space, (positions, grid), begin..end, edges) {
                Some(runs) => *parts[part].lock().unwrap_or_else(PoisonError::into_inner) = runs,
                None => {
                    good.store(false, Ordering::Relaxed);
                    return;
                }
            }
        }
    });
    if !good.into_inner() {
        return None;
    }
    let filled = filled(grid, states.into_iter().map(|space| space.counts));
    let mut places = vec![0i64; grid.count];
    filled.0.iter().enumerate().for_each(|(place, &cell)| places[cell as usize] = place as i64);
    let mut found = CellRuns { filled, ..CellRuns::default() };
    let mut before = usize::MAX;
    for part in parts {
        for (number, (row, line)) in part.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().enumerate() {
            let goes_on = number == 0 && line == before && edges.binary_search(&(row as i64)).is_err();
            before = line;
            if !goes_on {
                found.first.push(row as i64);
                found.cells.push(places[line]);
            }
        }
    }
    Some(found)
}

/// Where runs of some rows begin, and in which cell; `edges` are ascending, and none of them is before these rows. Nothing
/// where a position is outside of the grid.
fn runs_of(
    space: &mut Space,
    (positions, grid): (Positions, &CellGrid),
    rows: Range<usize>,
    edges: &[i64],
) -> Option<Vec<(usize, usize)>> {
    let mut runs: Vec<(usize, usize)> = Vec::with_capacity(rows.len() / 8);
    let (mut edges, mut before) = (edges.iter().map(|&edge| edge as usize).peekable(), u32::MAX); // no cell has that
    for start in rows.clone().step_by(BLOCK) {
        let length = BLOCK.min(rows.end - start);
        if !space.find(positions, grid, start, length) {
            return None;
        }
        let mut begins = [0u8; BLOCK];
        let lines = &space.lines[..length];
        begins[0] = (lines[0] != before).into();
        for (begin, pair) in begins[1..].iter_mut().zip(lines.windows(2)) {
            *begin = (pair[0] != pair[1]).into();
        }
        while let Some(edge) = edges.next_if(|&edge| edge < start + length) {
            begins[edge - start] = 1;
        }
        before = lines[length - 1];
        for (word, bytes) in begins.as_chunks::<8>().0.iter().enumerate() {
            let mut bits = u64::from_le_bytes(*bytes);
            while bits != 0 {
                let at = 8 * word + bits.trailing_zeros() as usize / 8;
                bits &= bits - 1;
                let row = start + at;
                if let Some(&(last, line)) = runs.last() {
                    space.counts[line] += (row - last) as i64;
                }
                runs.push((row, lines[at] as usize));
            }
        }
    }
    if let Some(&(last, line)) = runs.last() {
        space.counts[line] += (rows.end - last) as i64;
    }
    Some(runs)
}

/// Cells that any position is in, and how many are, of how many each thread has counted in each cell.
fn filled(grid: &CellGrid, counted: impl Iterator<Item = Vec<i64>>) -> Filled {
    let mut totals = vec![0i64; grid.count];
    for counts in counted {
        totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    let filled: Vec<i64> = (0..grid.count).filter(|&cell| totals[cell] > 0).map(|cell| cell as i64).collect();
    let counts = filled.iter().map(|&cell| totals[cell as usize]).collect();
    (filled, counts)
}

/// The numbers of the cells of `count` positions of the block; false where one is outside of the grid.
fn find_lines(space: &mut Space, double: bool, grid: &CellGrid, count: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function needs.
        return unsafe { find_lines_avx2(space, double, grid, count) };
    }
    find_lines_anywhere(space, double, grid, count)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn find_lines_avx2(space: &mut Space, double: bool, grid: &CellGrid, count: usize) -> bool {
    find_lines_anywhere(space, double, grid, count)
}

#[inline(always)]
fn find_lines_anywhere(space: &mut Space, double: bool, grid: &CellGrid, count: usize) -> bool {
    let values = count * grid.rank;
    let Space { block, quotients, fast, lines, rest, .. } = space;
    let (quotients, lines) = (&mut quotients[..values], &mut lines[..count]);
    if double {
        let block = block[..8 * values].as_chunks::<8>().0;
        quotients.iter_mut().zip(block).for_each(|(quotient, value)| *quotient = f64::from_ne_bytes(*value));
    } else {
        let block = block[..4 * values].as_chunks::<4>().0;
        if *rest > 0 {
            *rest -= 1;
        } else if let Some(of_grid) = &grid.fast {
            match find_fast(block, of_grid, &mut fast[..values]) {
                (true, inside) => {
                    join(&fast[..values], &of_grid.2[..grid.rank], lines);
                    return inside;
                }
                (false, _) => *rest = REST,
            }
        }
        quotients.iter_mut().zip(block).for_each(|(quotient, value)| {
            *quotient = f64::from(f32::from_ne_bytes(*value));
        });
    }
    let mut outside = 0u64;
    for (((quotient, length), first), width) in
        quotients.iter_mut().zip(&grid.lengths).zip(&grid.first).zip(&grid.widths)
    {
        let cell = (*quotient / length).floor() - first;
        outside |= u64::from(!((cell >= 0.0) & (cell < *width))); // which NaN is
        *quotient = cell;
    }
    join(quotients, &grid.widths[..grid.rank], lines);
    outside == 0
}

/// The cell of each coordinate along its axis; whether they are right for certain, and then, whether all are in the grid.
#[inline(always)]
fn find_fast(
    block: &[[u8; 4]],
    (reciprocals, first, widths): &(Vec<f32>, Vec<f32>, Vec<f32>),
    cells: &mut [f32],
) -> (bool, bool) {
    let (mut unsure, mut outside) = (0u32, 0u32); // as wide as what is looked at
    for ((((cell, value), reciprocal), first), width) in
        cells.iter_mut().zip(block).zip(reciprocals).zip(first).zip(widths)
    {
        let value = f32::from_ne_bytes(*value);
        let quotient = value * reciprocal;
        let apart = (quotient - quotient.round_ties_even()).abs();
        let is_sure = (apart > quotient.abs() * NEAR + LEAST) | (value == 0.0); // which is never so of NaN
        unsure |= u32::from(!is_sure);
        let place = quotient.floor() - first;
        outside |= u32::from(!((place >= 0.0) & (place < *width)));
        *cell = place;
    }
    (unsure == 0, outside == 0)
}

/// The number of each cell of these places along the axes of a grid, if they are in it; else anything.
#[inline(always)]
fn join<F: Copy + Add<Output = F> + Mul<Output = F> + Number>(places: &[F], widths: &[F], lines: &mut [u32]) {
    // numbers that either float holds, as there are no more cells
    match *widths {
        [_, b, c] => {
            for (line, place) in lines.iter_mut().zip(places.as_chunks::<3>().0) {
                *line = ((place[0] * b + place[1]) * c + place[2]).number();
            }
        }
        _ => {
            for (line, place) in lines.iter_mut().zip(places.chunks_exact(widths.len())) {
                let mut axes = place.iter().zip(widths);
                let first = axes.next().map(|(&place, _)| place);
                *line = axes.fold(first, |line, (&place, &width)| Some(line? * width + place)).map_or(0, F::number);
            }
        }
    }
}

trait Number {
    /// The whole number, if it is one of 31 bits, or less than [`FAST_CELLS`] in float32; else any.
    fn number(self) -> u32;
}

impl Number for f32 {
    #[inline(always)]
    fn number(self) -> u32 {
        const ONES: u32 = 1 << 23; // from there on to twice as many, floats are whole numbers
        (self + ONES as f32).to_bits() & (ONES - 1)
    }
}

impl Number for f64 {
    #[inline(always)]
    fn number(self) -> u32 {
        const ONES: u64 = 1 << 52;
        (self + ONES as f64).to_bits() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(
        values: &[f64],
        double: bool,
        lengths: &[f64],
        first: &[f64],
        widths: &[usize],
    ) -> Option<(Vec<u64>, Filled)> {
        let bytes: Vec<u8> = match double {
            true => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
            false => values.iter().flat_map(|&value| (value as f32).to_ne_bytes()).collect(),
        };
        let mut numbers = vec![MaybeUninit::new(9u8); values.len() / lengths.len() * 8];
        let grid = CellGrid::new(lengths, first, widths).unwrap();
        let positions = Positions { values: SharedBytes::of(&bytes), double };
        let filled = number(positions, &grid, &mut numbers, 3)?;
        // SAFETY: all of them were initialized when they were made.
        let number = |each: &[MaybeUninit<u8>; 8]| u64::from_ne_bytes(each.map(|byte| unsafe { byte.assume_init() }));
        Some((numbers.as_chunks().0.iter().map(number).collect(), filled))
    }

    #[test]
    fn positions_are_in_the_cells_that_hold_their_lower_faces() {
        for double in [false, true] {
            for rank in 1..=4 {
                let count = 3 * AT_ONCE + 77;
                let value = |at: usize| ((at * 7919) % 4001) as f64 / 8.0 - 250.0;
                let values: Vec<f64> = (0..count * rank).map(value).collect();
                let (lengths, first) = (vec![62.5; rank], vec![-4.0; rank]);
                let widths = [9, 10, 11, 9][..rank].to_vec();
                let (numbers, (filled, counts)) = numbered(&values, double, &lengths, &first, &widths).unwrap();
                assert!(filled.is_sorted_by(|a, b| a < b));
                assert_eq!(counts.iter().sum::<i64>(), count as i64);
                let mut seen = vec![0; counts.len()];
                for (position, number) in values.chunks(rank).zip(numbers) {
                    let cell = position
                        .iter()
                        .zip(&widths)
                        .fold(0, |line, (value, &width)| line * width as i64 + (value / 62.5).floor() as i64 + 4);
                    assert_eq!(filled[number as usize], cell);
                    seen[number as usize] += 1;
                }
                assert_eq!(seen, counts);
            }
        }
    }

    #[test]
    fn runs_end_where_cells_change_and_at_edges() {
        let count = 2 * AT_ONCE + 99;
        let values: Vec<f32> = (0..count).map(|at| (at / 1000 % 7) as f32 * 10.0).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let grid = CellGrid::new(&[10.0], &[0.0], &[9]).unwrap();
        let positions = Positions { values: SharedBytes::of(&bytes), double: false };
        let edges = [0, 1, 1000, 5500, AT_ONCE as i64, 2 * AT_ONCE as i64 + 98];
        for some in 0..=edges.len() {
            let edges = &edges[..some];
            let found = find_runs(positions, &grid, edges, 3).unwrap();
            let mut first: Vec<i64> =
                (0..count.div_ceil(1000)).map(|run| 1000 * run as i64).chain(edges.to_vec()).collect();
            first.sort_unstable();
            first.dedup();
            assert_eq!(found.cells, first.iter().map(|first| first / 1000 % 7).collect::<Vec<_>>());
            assert_eq!((found.first, found.filled.0), (first, (0..7).collect()));
            assert_eq!(found.filled.1.iter().sum::<i64>(), count as i64);
        }
        for edges in [&[-1][..], &[5, 5], &[6, 5], &[count as i64]] {
            assert_eq!(find_runs(positions, &grid, edges, 1), None);
        }
        let small = CellGrid::new(&[10.0], &[0.0], &[3]).unwrap();
        assert_eq!(find_runs(positions, &small, &[], 2), None);
        let none = Positions { values: SharedBytes::of(&[]), double: true };
        assert_eq!(find_runs(none, &grid, &[], 2), Some(CellRuns::default()));
    }

    #[test]
    fn quotients_near_whole_numbers_are_those_of_float64() {
        // with lengths whose reciprocals no float holds, positions on faces and next to them
        for length in [0.1, 0.3, 3.0, 7.7, 100.0, 1e-5, 3e20, 1e-33] {
            let faces = (0..2 * REST * BLOCK).map(|at| match at % (BLOCK + 7) {
                0 => 0.0,
                1 => ((at % 199) as f64 * length) as f32,
                2 => ((at % 199) as f64 * length) as f32 * (1.0 - f32::EPSILON),
                3 => ((at % 199) as f64 * length) as f32 * (1.0 + f32::EPSILON),
                4 => f32::from_bits(1 + (at % 5) as u32),
                5 => -f32::from_bits(1 + (at % 5) as u32),
                _ => ((at * 7919 % 6007) as f64 / 30.13 * length) as f32,
            });
            let values: Vec<f64> = faces.map(f64::from).collect();
            let (numbers, (filled, _)) = numbered(&values, false, &[length], &[-1.0], &[203]).unwrap();
            for (value, number) in values.iter().zip(numbers) {
                assert_eq!(filled[number as usize], (value / length).floor() as i64 + 1, "{value} {length}");
            }
        }
    }

    #[test]
    fn what_is_outside_gives_nothing() {
        for wrong in [-0.1, 20.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(numbered(&[1.0, wrong], true, &[10.0], &[0.0], &[2]), None);
        }
        // rounding before the first cell is taken off, and not after
        assert_eq!(numbered(&[-1e-20, 0.0], true, &[1.0], &[-1.0], &[2]), Some((vec![0, 1], (vec![0, 1], vec![1, 1]))));
        assert_eq!(numbered(&[], true, &[10.0], &[0.0], &[2]), Some((vec![], (vec![], vec![]))));
        assert!(CellGrid::new(&[1.0], &[0.0], &[1 << 31]).is_err());
        assert!(CellGrid::new(&[1.0; 5], &[0.0; 5], &[1; 5]).is_err());
        assert!(CellGrid::new(&[1.0; 2], &[0.0], &[1; 2]).is_err());
        for first in [-0.5, f64::NAN, f64::INFINITY] {
            assert!(CellGrid::new(&[1.0; 2], &[0.0, first], &[2, 10]).is_err());
        }
        let grid = CellGrid::new(&[1.0], &[0.0], &[1]).unwrap();
        let positions = Positions { values: SharedBytes::of(&[0; 8]), double: true };
        assert_eq!(number(positions, &grid, &mut [MaybeUninit::new(0); 16], 1), None);
    }
}
