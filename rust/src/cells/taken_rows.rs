//! Rows of a table, in another order: one by one, or runs of them.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::memory::shared_integers::read;
use crate::memory::strided_memory::SharedBytes;
use crate::threads::workers::Batches;

/// Rows that a thread takes on at once.
const AT_ONCE: usize = 16 * 1024;
/// Bytes that it is about as much work to copy as to find a run.
const FINDING: usize = 64;

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
    let all: Vec<_> = rows.chunks(AT_ONCE).zip(out.chunks_mut(AT_ONCE.saturating_mul(size))).map(Mutex::new).collect();
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

/// Where runs begin: of rows that follow each other and have the same of `numbers`, cut at the rows `edges`, which
/// ascend. Nothing where they do not, or are no rows.
pub fn find_runs(numbers: &[AtomicI64], edges: &[AtomicI64]) -> Option<Vec<i64>> {
    let mut found = Vec::new();
    let mut edges = edges.iter().map(read);
    let (mut edge, mut before) = (edges.next(), None);
    for (row, number) in numbers.iter().enumerate() {
        let number = read(number);
        if edge == Some(row as i64) {
            edge = edges.next();
            found.push(row as i64);
        } else if before != Some(number) {
            found.push(row as i64);
        }
        before = Some(number);
    }
    edge.is_none().then_some(found)
}

/// Runs of rows of `size` bytes each that `values` has: `lengths` of them from each of `first` on.
pub struct Runs<'a> {
    values: SharedBytes<'a>,
    /// Where each begins, and how long it is, in bytes.
    spans: Vec<(usize, usize)>,
    total: usize,
}

impl<'a> Runs<'a> {
    /// Nothing where there are no such rows.
    pub fn new(values: SharedBytes<'a>, size: usize, first: &[AtomicI64], lengths: &[AtomicI64]) -> Option<Self> {
        let bytes = |rows: &AtomicI64| usize::try_from(read(rows)).ok()?.checked_mul(size);
        let span = |(first, length)| Some((bytes(first)?, bytes(length)?));
        let spans = first.iter().zip(lengths).map(span).collect::<Option<Vec<_>>>()?;
        let inside = spans.iter().all(|&(start, length)| values.part(start, length).is_some());
        let total = spans.iter().try_fold(0usize, |total, span| total.checked_add(span.1))?;
        (inside && first.len() == lengths.len()).then_some(Runs { values, spans, total })
    }

    /// Bytes of all runs.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Fill `out`, which is as long as all runs, with one after the other.
    pub fn take(&self, mut out: &mut [MaybeUninit<u8>], threads: usize) {
        assert!(out.len() == self.total);
        let batches = Batches::new(self.spans.iter().map(|span| 2 * span.1 + FINDING), threads);
        let mut next = |range: Range<usize>| {
            let length = self.spans[range.clone()].iter().map(|span| span.1).sum();
            Mutex::new((range, out.split_off_mut(..length).unwrap_or_default()))
        };
        let parts: Vec<_> = batches.ranges().map(&mut next).collect();
        batches.run(
            || (),
            |(), range| {
                let mut part = parts[batches.number(range.start)].lock().unwrap_or_else(PoisonError::into_inner);
                let (range, target) = &mut *part;
                let mut rest = std::mem::take(target);
                for &(start, length) in &self.spans[range.clone()] {
                    let (run, after) = rest.split_at_mut(length);
                    self.values.copy_to_new(start, run);
                    rest = after;
                }
            },
        );
    }
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
        assert_eq!(taken(&[], usize::MAX / 2 + 1, &[]), Some(vec![]));
        assert_eq!(taken(&[1], 0, &[]), None);
        let rows = [AtomicI64::new(0)];
        assert!(!take_rows(SharedBytes::of(&[1, 2]), 2, &rows, &mut [MaybeUninit::new(0)], 1));
    }

    fn atomic(numbers: &[i64]) -> Vec<AtomicI64> {
        numbers.iter().map(|&number| AtomicI64::new(number)).collect()
    }

    #[test]
    fn runs_end_where_numbers_change_and_at_edges() {
        let found = |numbers: &[i64], edges: &[i64]| find_runs(&atomic(numbers), &atomic(edges));
        assert_eq!(found(&[], &[]), Some(vec![]));
        assert_eq!(found(&[5, 5, 7, 7, 7, 5], &[]), Some(vec![0, 2, 5]));
        assert_eq!(found(&[5, 5, 7, 7, 7, 5], &[0, 1, 2, 4]), Some(vec![0, 1, 2, 4, 5]));
        for edges in [&[6][..], &[2, 1], &[1, 1], &[-1]] {
            assert_eq!(found(&[5, 5, 7, 7, 7, 5], edges), None);
        }
    }

    #[test]
    fn runs_come_one_after_the_other() {
        let values: Vec<u8> = (0..900_000).map(|byte| (byte * 7 / 3) as u8).collect();
        let first: Vec<i64> = (0..20_000).map(|run| run * 7919 % 299_000).collect();
        let lengths: Vec<i64> = (0..20_000).map(|run| run % 40).collect();
        let wanted: Vec<u8> = first
            .iter()
            .zip(&lengths)
            .flat_map(|(&first, &length)| values[first as usize * 3..(first + length) as usize * 3].to_vec())
            .collect();
        let runs = Runs::new(SharedBytes::of(&values), 3, &atomic(&first), &atomic(&lengths)).unwrap();
        let mut out = vec![MaybeUninit::new(7); runs.total()];
        runs.take(&mut out, 3);
        // SAFETY: all of it was initialized when it was made.
        assert!(out.iter().map(|byte| unsafe { byte.assume_init() }).eq(wanted));
        for (first, length) in [(0, 300_001), (300_000, 1), (-1, 1), (0, -1), (i64::MAX, 1), (1, i64::MAX)] {
            let runs = Runs::new(SharedBytes::of(&values), 3, &atomic(&[first]), &atomic(&[length]));
            assert!(runs.is_none());
        }
        assert!(Runs::new(SharedBytes::of(&values), 3, &atomic(&[1]), &[]).is_none());
    }
}
