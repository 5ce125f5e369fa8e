//! The lowest and the highest coordinate of positions along each axis.

use std::ops::{Add, Mul, Range};
use std::sync::{Mutex, PoisonError};

use crate::cells::cell_numbers::{MOST_AXES, Positions};
use crate::threads::workers::Batches;

/// Positions that are looked at together.
const BLOCK: usize = 256;
/// Positions that are compared at once.
const LANES: usize = 8;
/// Positions that a thread takes on at once.
const AT_ONCE: usize = 64 * BLOCK;

/// The lowest and the highest coordinates of positions of `rank` each, which are one to four. Nothing where there are no positions,
/// or one is no finite number. A zero has no sign.
pub fn find(positions: Positions, rank: usize, threads: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let size = Some(rank).filter(|rank| (1..=MOST_AXES).contains(rank))? * positions.item();
    let count = positions.values.len() / size;
    if count == 0 || !positions.values.len().is_multiple_of(size) {
        return None;
    }
    let parts = count.div_ceil(AT_ONCE);
    let found = Mutex::new((vec![f64::INFINITY; rank], vec![f64::NEG_INFINITY; rank], true));
    Batches::new((0..parts).map(|_| AT_ONCE * size), threads).run(
        || vec![0u8; BLOCK * size],
        |block, range| {
            let rows = range.start * AT_ONCE..count.min(range.end * AT_ONCE);
            let part = match positions.double {
                true => of_part::<8, f64>(positions, size, rows, block),
                false => of_part::<4, f32>(positions, size, rows, block),
            };
            let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
            for (at, &(low, high)) in part.0.iter().enumerate() {
                all.0[at % rank] = all.0[at % rank].min(low);
                all.1[at % rank] = all.1[at % rank].max(high);
            }
            all.2 &= part.1;
        },
    );
    let (low, high, is_finite) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    // of -0 and 0, which are equal, the one that was met first would do, and who meets them is up to the threads
    let positive = |bounds: Vec<f64>| bounds.into_iter().map(|bound| bound + 0.0).collect();
    is_finite.then(|| (positive(low), positive(high)))
}

/// The lowest and the highest of some rows in each column of a block of `rows`, and whether all are finite.
type Part = (Vec<(f64, f64)>, bool);

fn of_part<const ITEM: usize, F: Float<ITEM>>(
    positions: Positions,
    size: usize,
    rows: Range<usize>,
    block: &mut [u8],
) -> Part {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function needs.
        return unsafe { of_part_avx2::<ITEM, F>(positions, size, rows, block) };
    }
    of_part_anywhere::<ITEM, F>(positions, size, rows, block)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn of_part_avx2<const ITEM: usize, F: Float<ITEM>>(
    positions: Positions,
    size: usize,
    rows: Range<usize>,
    block: &mut [u8],
) -> Part {
    of_part_anywhere::<ITEM, F>(positions, size, rows, block)
}

#[inline(always)]
fn of_part_anywhere<const ITEM: usize, F: Float<ITEM>>(
    positions: Positions,
    size: usize,
    rows: Range<usize>,
    block: &mut [u8],
) -> Part {
    match size / ITEM {
        1 => of_columns::<ITEM, F, LANES>(positions, size, rows, block),
        2 => of_columns::<ITEM, F, { 2 * LANES }>(positions, size, rows, block),
        3 => of_columns::<ITEM, F, { 3 * LANES }>(positions, size, rows, block),
        _ => of_columns::<ITEM, F, { 4 * LANES }>(positions, size, rows, block),
    }
}

/// The same of so many columns that as many rows fit in as are compared at once.
#[inline(always)]
fn of_columns<const ITEM: usize, F: Float<ITEM>, const COLUMNS: usize>(
    positions: Positions,
    size: usize,
    rows: Range<usize>,
    block: &mut [u8],
) -> Part {
    let (mut low, mut high, mut zeros) = ([F::HIGHEST; COLUMNS], [F::LOWEST; COLUMNS], [F::ZERO; COLUMNS]);
    let mut look = |values: &[[u8; ITEM]]| {
        for (((value, low), high), zero) in values.iter().zip(&mut low).zip(&mut high).zip(&mut zeros) {
            let value = F::of(*value);
            *low = if value < *low { value } else { *low };
            *high = if value > *high { value } else { *high };
            *zero = *zero + value * F::ZERO; // which is not 0 of NaN and infinities
        }
    };
    for start in rows.clone().step_by(BLOCK) {
        let block = &mut block[..size * BLOCK.min(rows.end - start)];
        positions.values.copy_to(start * size, block);
        let (whole, rest) = block.as_chunks::<ITEM>().0.as_chunks::<COLUMNS>();
        whole.iter().for_each(|values| look(values));
        look(rest);
    }
    let is_finite = zeros.iter().all(|zero| *zero == F::ZERO);
    (low.into_iter().zip(high).map(|(low, high)| (low.into(), high.into())).collect(), is_finite)
}

/// Float32 or float64, of `ITEM` bytes.
trait Float<const ITEM: usize>: Copy + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Into<f64> {
    const ZERO: Self;
    const LOWEST: Self;
    const HIGHEST: Self;

    fn of(bytes: [u8; ITEM]) -> Self;
}

impl Float<4> for f32 {
    const ZERO: f32 = 0.0;
    const LOWEST: f32 = f32::NEG_INFINITY;
    const HIGHEST: f32 = f32::INFINITY;

    #[inline(always)]
    fn of(bytes: [u8; 4]) -> f32 {
        f32::from_ne_bytes(bytes)
    }
}

impl Float<8> for f64 {
    const ZERO: f64 = 0.0;
    const LOWEST: f64 = f64::NEG_INFINITY;
    const HIGHEST: f64 = f64::INFINITY;

    #[inline(always)]
    fn of(bytes: [u8; 8]) -> f64 {
        f64::from_ne_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::strided_memory::SharedBytes;

    #[test]
    fn corners_are_those_of_all_positions() {
        for rank in 1..=4 {
            for count in [1, BLOCK, 3 * AT_ONCE + 17] {
                let values: Vec<f64> = (0..count * rank).map(|at| ((at * 7919) % 4001) as f64 - 2000.0).collect();
                let wanted = |axis: usize| values.iter().copied().skip(axis).step_by(rank);
                let low: Vec<f64> = (0..rank).map(|axis| wanted(axis).fold(f64::MAX, f64::min)).collect();
                let high: Vec<f64> = (0..rank).map(|axis| wanted(axis).fold(f64::MIN, f64::max)).collect();
                for double in [false, true] {
                    let bytes = |values: &[f64]| -> Vec<u8> {
                        match double {
                            true => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
                            false => values.iter().flat_map(|&value| (value as f32).to_ne_bytes()).collect(),
                        }
                    };
                    let found =
                        |values: &[f64]| find(Positions { values: SharedBytes::of(&bytes(values)), double }, rank, 3);
                    assert_eq!(found(&values), Some((low.clone(), high.clone())));
                    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                        let mut values = values.clone();
                        values[count * rank / 2] = wrong;
                        assert_eq!(found(&values), None);
                    }
                }
            }
        }
        let zeros = vec![[-0.0f32, 0.0]; 3 * AT_ONCE].concat();
        let bytes: Vec<u8> = zeros.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let (low, high) = find(Positions { values: SharedBytes::of(&bytes), double: false }, 2, 3).unwrap();
        assert!(low.iter().chain(&high).all(|bound| bound.to_bits() == 0));
        for (bytes, rank) in [(0, 1), (7, 1), (8, 0), (20, 5)] {
            assert_eq!(find(Positions { values: SharedBytes::of(&vec![0; bytes]), double: false }, rank, 1), None);
        }
    }
}
