//! Rows of a table, in another order.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::shared_integers::read;
use crate::strided_memory::SharedBytes;
use crate::workers::Batches;

/// Rows that a thread takes on at once.
const AT_ONCE: usize = 16 * 1024;

/// Fill `out` with the rows of `size` bytes each that `values` has at the places `rows`. False where there is no such
/// row; then it holds anything.
pub fn take_rows(
    values: SharedBytes,
    size: usize,
    rows: &[AtomicI64],
    out: &mut [MaybeUninit<u8>],
    threads: usize,
) -> bool {
    if size == 0 || Some(out.len()) != rows.len().checked_mul(size) {
        return false;
    }
    let all: Vec<_> = rows.chunks(AT_ONCE).zip(out.chunks_mut(AT_ONCE * size)).map(Mutex::new).collect();
    let work = all.iter().map(|part| 2 * part.lock().unwrap_or_else(PoisonError::into_inner).1.len());
    let good = AtomicBool::new(true);
    Batches::new(work, threads).run(
        || (),
        |(), range| {
            for part in &all[range] {
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                let (rows, target) = &mut *part;
                let done = match size {
                    1 => take::<1>(values, rows, target),
                    2 => take::<2>(values, rows, target),
                    4 => take::<4>(values, rows, target),
                    8 => take::<8>(values, rows, target),
                    12 => take::<12>(values, rows, target),
                    16 => take::<16>(values, rows, target),
                    24 => take::<24>(values, rows, target),
                    _ => take_any(values, size, rows, target),
                };
                if !done {
                    good.store(false, Ordering::Relaxed);
                }
            }
        },
    );
    good.into_inner()
}

/// The same for rows of a length that is known.
fn take<const SIZE: usize>(values: SharedBytes, rows: &[AtomicI64], out: &mut [MaybeUninit<u8>]) -> bool {
    let count = values.len() / SIZE;
    for (row, target) in rows.iter().zip(out.as_chunks_mut::<SIZE>().0) {
        let row = read(row) as usize; // a negative one is beyond all
        if row >= count {
            return false;
        }
        values.copy_to_new(row * SIZE, target);
    }
    true
}

fn take_any(values: SharedBytes, size: usize, rows: &[AtomicI64], out: &mut [MaybeUninit<u8>]) -> bool {
    let count = values.len() / size;
    for (row, target) in rows.iter().zip(out.chunks_exact_mut(size)) {
        let row = read(row) as usize;
        if row >= count {
            return false;
        }
        values.copy_to_new(row * size, target);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(values: &[u8], size: usize, rows: &[i64]) -> Option<Vec<u8>> {
        let rows: Vec<AtomicI64> = rows.iter().map(|&row| AtomicI64::new(row)).collect();
        let mut out = vec![MaybeUninit::new(7); rows.len() * size];
        let done = take_rows(SharedBytes::of(values), size, &rows, &mut out, 3);
        // SAFETY: all of it was initialized when it was made.
        done.then(|| out.iter().map(|byte| unsafe { byte.assume_init() }).collect())
    }

    #[test]
    fn rows_of_any_length_come_in_the_order_that_is_asked_for() {
        for size in [1usize, 2, 3, 4, 6, 8, 12, 16, 24, 31] {
            let count = 3 * AT_ONCE / size + 5;
            let values: Vec<u8> = (0..count * size).map(|byte| (byte * 7 / 3) as u8).collect();
            let rows: Vec<i64> = (0..count as i64 + 9).map(|row| row * 7919 % count as i64).collect();
            let wanted: Vec<u8> = rows.iter().flat_map(|&row| values[row as usize * size..][..size].to_vec()).collect();
            assert!(taken(&values, size, &rows) == Some(wanted));
            assert_eq!(taken(&values, size, &[0, count as i64]), None);
            assert_eq!(taken(&values, size, &[-1, 0]), None);
        }
        assert_eq!(taken(&[], 4, &[]), Some(vec![]));
        assert_eq!(taken(&[1], 0, &[]), None);
        let rows = [AtomicI64::new(0)];
        assert!(!take_rows(SharedBytes::of(&[1, 2]), 2, &rows, &mut [MaybeUninit::new(0)], 1));
    }
}
