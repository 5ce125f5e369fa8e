//! Byte strings that lie in memory in runs, one after the other.

use std::slice;

use crate::memory::strided_memory::SharedBytes;

/// How many runs later the one is that is fetched from memory while one is copied.
const AHEAD: usize = 12;

/// A byte string of some runs of bytes.
#[derive(Clone, Copy)]
pub struct ByteString<'a> {
    runs: &'a [SharedBytes<'a>],
    length: usize,
}

impl<'a> ByteString<'a> {
    /// Nothing where they are too many bytes.
    pub fn new(runs: &'a [SharedBytes<'a>]) -> Option<Self> {
        let length = runs.iter().try_fold(0usize, |length, run| length.checked_add(run.len()))?;
        Some(ByteString { runs, length })
    }

    /// One of a single run.
    pub fn of(run: &'a SharedBytes<'a>) -> Self {
        ByteString { runs: slice::from_ref(run), length: run.len() }
    }

    /// Each of `runs` as a byte string.
    pub fn each(runs: &'a [SharedBytes<'a>]) -> Vec<Self> {
        runs.iter().map(ByteString::of).collect()
    }

    /// As many byte strings as there are `bounds` but one: of the runs from each of these to the next (exclusive), which
    /// are all. Nothing where they are not that.
    pub fn between(runs: &'a [SharedBytes<'a>], bounds: &[i64]) -> Option<Vec<Self>> {
        let is_end =
            |bound: Option<&i64>, end: usize| bound.and_then(|&bound| usize::try_from(bound).ok()) == Some(end);
        if !is_end(bounds.first(), 0) || !is_end(bounds.last(), runs.len()) {
            return None;
        }
        let some = |pair: &[i64]| {
            let (start, end) = (usize::try_from(pair[0]).ok()?, usize::try_from(pair[1]).ok()?);
            ByteString::new(runs.get(start..end)?)
        };
        bounds.windows(2).map(some).collect()
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Have its first runs come into the cache of this processor, since it is copied soon.
    pub fn expect(&self) {
        self.runs.iter().take(AHEAD).for_each(SharedBytes::expect);
    }

    /// Copy it to `target`, which is as long.
    pub fn copy_to(&self, mut target: &mut [u8]) {
        for (number, run) in self.runs.iter().enumerate() {
            if let Some(later) = self.runs.get(number + AHEAD) {
                later.expect();
            }
            target = run.copy_in_front(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_one_after_the_other() {
        let text: Vec<u8> = (0..100).collect();
        let runs = [7..9, 50..50, 90..100, 0..1].map(|range: std::ops::Range<usize>| SharedBytes::of(&text[range]));
        let strings = ByteString::between(&runs, &[0, 0, 3, 4]).unwrap();
        assert_eq!(strings.iter().map(ByteString::len).collect::<Vec<_>>(), [0, 12, 1]);
        let mut target = [0; 12];
        strings[1].copy_to(&mut target);
        assert_eq!(target[..], [&text[7..9], &text[90..]].concat());
        assert_eq!(ByteString::each(&runs).iter().map(ByteString::len).collect::<Vec<_>>(), [2, 0, 10, 1]);
        for bounds in [&[][..], &[0], &[0, 3], &[1, 4], &[0, 5], &[0, 3, 2, 4], &[0, -1, 4], &[-4, 4]] {
            assert!(ByteString::between(&runs, bounds).is_none());
        }
        assert_eq!(ByteString::between(&[], &[0]).map(|strings| strings.len()), Some(0));
    }
}
