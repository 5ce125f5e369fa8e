//! Which bytes of a chunk are asked for: what decoders need not give otherwise.

use std::ops::Range;

/// Ranges of bytes of a chunk, in ascending order and apart from each other.
#[derive(Default)]
pub struct Parts(Vec<Range<usize>>);

/// Bytes between two parts that are decoded with them: to leave them out saves nothing.
const GAP: usize = 512;
/// So many parts at most, about, whatever a chunk's size.
const MOST: usize = 256;
/// Parts that leave less than one of so many bytes out are as good as everything.
const WORTH: usize = 8;

impl Parts {
    /// The bytes between two parts of a file that are read with them: as many as are copied in the time of a call.
    pub const FILE_GAP: usize = 8 * 1024;

    /// The bytes between two parts of a chunk of `nbytes` that are decoded with them.
    pub fn gap(nbytes: usize) -> usize {
        (nbytes / MOST).max(GAP)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Add bytes that begin where the last part began, or later; one part of two that no more than `gap` bytes lie
    /// between.
    pub fn push(&mut self, range: Range<usize>, gap: usize) {
        match self.0.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => last.end = last.end.max(range.end),
            _ => self.0.push(range),
        }
    }

    pub fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }

    /// Where the first part begins.
    pub fn start(&self) -> usize {
        self.0.first().map_or(0, |first| first.start)
    }

    /// Where the last part ends.
    pub fn stop(&self) -> usize {
        self.0.last().map_or(0, |last| last.end)
    }

    /// Whether much of a chunk of `nbytes` is not asked for.
    pub fn leave_much(&self, nbytes: usize) -> bool {
        let asked: usize = self.0.iter().map(Range::len).sum();
        asked <= nbytes - nbytes / WORTH
    }

    /// What is asked for of `block`, counted from where the block begins.
    pub fn each_within(&self, block: Range<usize>) -> impl Iterator<Item = Range<usize>> + Clone {
        let first = self.0.partition_point(|part| part.end <= block.start);
        let stop = self.0.partition_point(|part| part.start < block.end);
        let touching = self.0.get(first..stop).unwrap_or_default();
        touching
            .iter()
            .map(move |part| part.start.max(block.start) - block.start..part.end.min(block.end) - block.start)
    }

    /// From the first to the last byte of `block` that is asked for, counted from where the block begins.
    pub fn within(&self, block: Range<usize>) -> Option<Range<usize>> {
        let mut parts = self.each_within(block);
        let first = parts.next()?;
        Some(first.start..parts.last().unwrap_or(first).end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_parts_are_one() {
        let mut parts = Parts::default();
        for range in [10..20, 15..18, 24..30, 35..40, 36..38] {
            parts.push(range, 4);
        }
        assert_eq!(parts.ranges(), [10..30, 35..40]);
        assert_eq!(parts.stop(), 40);
        assert!(parts.leave_much(40) && !parts.leave_much(26));
        assert_eq!(parts.within(0..10), None);
        assert_eq!(parts.within(0..12), Some(10..12));
        assert_eq!(parts.within(12..20), Some(0..8));
        assert_eq!(parts.within(30..35), None);
        assert_eq!(parts.within(20..100), Some(0..20));
        assert_eq!(parts.within(40..50), None);
        assert_eq!(parts.each_within(15..37).collect::<Vec<_>>(), [0..15, 20..22]);
        assert_eq!(parts.each_within(31..34).count(), 0);
        parts.clear();
        assert_eq!((parts.within(0..10), parts.stop()), (None, 0));
    }
}
