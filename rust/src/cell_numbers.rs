//! Which cell of a grid each position lies in.
//!
//! That is the quotient of each coordinate and the length of a cell, in float64, rounded down: what NumPy finds.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::strided_memory::SharedBytes;
use crate::workers::Batches;

/// Positions that are looked at together, so that they stay in the cache of a processor.
const BLOCK: usize = 512;
/// Positions that a thread takes on at once.
const AT_ONCE: usize = 32 * BLOCK;
const MOST_AXES: usize = 4;

/// Cells from `first` on, of `lengths`, as many as `widths` along each axis.
pub struct CellGrid {
    /// For each axis of each position of a block: length, first and width.
    lengths: Vec<f64>,
    first: Vec<f64>,
    widths: Vec<f64>,
    rank: usize,
    count: usize,
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
        let count = count.filter(|&count| count <= 1 << 53).ok_or("a grid of too many cells")?;
        let widths: Vec<f64> = widths.iter().map(|&width| width as f64).collect();
        Ok(CellGrid {
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

    fn item(&self) -> usize {
        if self.double { 8 } else { 4 }
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
    let start = || (vec![0i64; grid.count], vec![0u8; BLOCK * size], vec![0f64; BLOCK * grid.rank], vec![0f64; BLOCK]);
    let states = Batches::new(work(), threads).run(start, |(counts, block, quotients, lines), range| {
        for part in &parts[range] {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let (place, targets) = (part.0 * AT_ONCE, &mut part.1);
            for (number, targets) in targets.chunks_mut(BLOCK).enumerate() {
                let block = &mut block[..targets.len() * size];
                positions.values.copy_to((place + number * BLOCK) * size, block);
                let quotients = &mut quotients[..targets.len() * grid.rank];
                let lines = &mut lines[..targets.len()];
                if !find_lines(block, positions.double, grid, quotients, lines) {
                    good.store(false, Ordering::Relaxed);
                    return;
                }
                for (line, target) in lines.iter().zip(targets) {
                    let line = *line as usize;
                    counts[line] += 1;
                    *target = (line as u64).to_ne_bytes().map(MaybeUninit::new);
                }
            }
        }
    });
    if !good.into_inner() {
        return None;
    }
    let (filled, counts) = filled(grid, states.into_iter().map(|(counts, ..)| counts));
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
    let start = || (vec![0i64; grid.count], vec![0u8; BLOCK * size], vec![0f64; BLOCK * grid.rank], vec![0f64; BLOCK]);
    let batches = Batches::new((0..parts.len()).map(|_| AT_ONCE * (size + 8)), threads);
    let states = batches.run(start, |(counts, block, quotients, lines), range| {
        for part in range {
            let mut runs = Vec::new();
            let (begin, end) = (part * AT_ONCE, count.min((part + 1) * AT_ONCE));
            let mut edges = edges[edges.partition_point(|&edge| edge < begin as i64)..].iter();
            let (mut edge, mut before) = (edges.next(), f64::NAN);
            for start in (begin..end).step_by(BLOCK) {
                let length = BLOCK.min(end - start);
                let block = &mut block[..length * size];
                positions.values.copy_to(start * size, block);
                let lines = &mut lines[..length];
                if !find_lines(block, positions.double, grid, &mut quotients[..length * grid.rank], lines) {
                    good.store(false, Ordering::Relaxed);
                    return;
                }
                let mut at = 0;
                while at < length {
                    let (row, line) = (start + at, lines[at]);
                    let is_edge = edge == Some(&(row as i64));
                    if is_edge {
                        edge = edges.next();
                    }
                    if line != before || is_edge {
                        runs.push((row, line as usize));
                        before = line;
                    }
                    let stop = edge.map_or(length, |&edge| length.min(edge as usize - start));
                    let run = lines[at..stop].iter().position(|&other| other != line).unwrap_or(stop - at);
                    counts[line as usize] += run as i64;
                    at += run;
                }
            }
            *parts[part].lock().unwrap_or_else(PoisonError::into_inner) = runs;
        }
    });
    if !good.into_inner() {
        return None;
    }
    let filled = filled(grid, states.into_iter().map(|(counts, ..)| counts));
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

/// The number of the cell of each position of a `block`; false where one is outside of the grid.
fn find_lines(block: &[u8], double: bool, grid: &CellGrid, quotients: &mut [f64], lines: &mut [f64]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function needs.
        return unsafe { find_lines_avx2(block, double, grid, quotients, lines) };
    }
    find_lines_anywhere(block, double, grid, quotients, lines)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn find_lines_avx2(block: &[u8], double: bool, grid: &CellGrid, quotients: &mut [f64], lines: &mut [f64]) -> bool {
    find_lines_anywhere(block, double, grid, quotients, lines)
}

#[inline(always)]
fn find_lines_anywhere(block: &[u8], double: bool, grid: &CellGrid, quotients: &mut [f64], lines: &mut [f64]) -> bool {
    if double {
        let values = block.as_chunks::<8>().0;
        quotients.iter_mut().zip(values).for_each(|(quotient, value)| *quotient = f64::from_ne_bytes(*value));
    } else {
        let values = block.as_chunks::<4>().0;
        quotients
            .iter_mut()
            .zip(values)
            .for_each(|(quotient, value)| *quotient = f64::from(f32::from_ne_bytes(*value)));
    }
    let mut inside = true;
    for (((quotient, length), first), width) in
        quotients.iter_mut().zip(&grid.lengths).zip(&grid.first).zip(&grid.widths)
    {
        let cell = (*quotient / length).floor() - first;
        inside &= cell >= 0.0 && cell < *width; // which NaN is not
        *quotient = cell;
    }
    // numbers that float64 holds, as there are no more cells
    let widths = &grid.widths[..grid.rank];
    match *widths {
        [_, b, c] => {
            for (line, cell) in lines.iter_mut().zip(quotients.as_chunks::<3>().0) {
                *line = (cell[0] * b + cell[1]) * c + cell[2];
            }
        }
        _ => {
            for (line, cell) in lines.iter_mut().zip(quotients.chunks_exact(grid.rank)) {
                *line = cell.iter().zip(widths).fold(0.0, |line, (cell, width)| line * width + cell);
            }
        }
    }
    inside
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
    fn what_is_outside_gives_nothing() {
        for wrong in [-0.1, 20.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(numbered(&[1.0, wrong], true, &[10.0], &[0.0], &[2]), None);
        }
        // rounding before the first cell is taken off, and not after
        assert_eq!(numbered(&[-1e-20, 0.0], true, &[1.0], &[-1.0], &[2]), Some((vec![0, 1], (vec![0, 1], vec![1, 1]))));
        assert_eq!(numbered(&[], true, &[10.0], &[0.0], &[2]), Some((vec![], (vec![], vec![]))));
        assert!(CellGrid::new(&[1.0], &[0.0], &[1 << 54]).is_err());
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
