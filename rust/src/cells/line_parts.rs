//! What is stored of lines beside their vertices: which fragments each is made of, and the links from one of these to the
//! next. A fragment is a run of vertices in one cell.

use crate::cells::link_placement::{self, Placed};
use crate::cells::manifests;

/// Lines of `rank` axes: where each of their runs begins, and the number of its cell; where each line begins, and the
/// number of all vertices; and the coordinates of each cell. Runs and lines come in the order of vertices.
pub struct Lines<'a> {
    pub first: &'a [i64],
    pub cells: &'a [i64],
    pub edges: &'a [i64],
    pub keys: &'a [i64],
    pub rank: usize,
}

/// Where the runs of each line begin, and how many there are; and its links, which are given from run to run.
pub type Found = (Vec<i64>, Placed);

impl Lines<'_> {
    /// Bytes of the lists of fragments: see [`manifests::size`].
    pub fn size(&self) -> Option<usize> {
        manifests::size(self.edges.len().checked_sub(1)?, self.first.len(), self.rank)
    }

    /// Find the links, and fill `out`, which is as long as `size` says, with the lists of fragments. Nothing where what
    /// there is does not fit together, or cells are too far apart; then it holds anything.
    pub fn find(&self, out: &mut [u8]) -> Option<Found> {
        let starts = self.starts()?;
        let many = self.keys.len().checked_div(self.rank)?;
        // of each cell how many runs and vertices of it came so far: fragments lie in it in this order
        let mut before = vec![(0i64, 0i64); many];
        let ends = self.first[1.min(self.first.len())..].iter().chain(self.edges.last());
        let mut places = Vec::with_capacity(self.first.len());
        for ((start, end), &cell) in self.first.iter().zip(ends).zip(self.cells) {
            let before = before.get_mut(usize::try_from(cell).ok()?)?;
            places.push(*before);
            *before = (before.0 + 1, before.1 + (end - start));
        }
        let (mut cells, mut rows) = (Vec::new(), Vec::new());
        let most = 2 * self.first.len().saturating_sub(starts.windows(2).filter(|pair| pair[0] < pair[1]).count());
        cells.reserve(most);
        rows.reserve(most);
        for line in starts.windows(2) {
            for run in line[0] as usize + 1..line[1] as usize {
                let length = self.first[run] - self.first[run - 1];
                cells.extend(&self.cells[run - 1..=run]);
                rows.extend([places[run - 1].1 + length - 1, places[run].1]);
            }
        }
        let mut runs = self.cells.iter().zip(&places);
        let next = || {
            let (&cell, place) = runs.next()?;
            Some((self.keys[cell as usize * self.rank..][..self.rank].iter().copied(), place.0))
        };
        let counts = starts.windows(2).map(|pair| u32::try_from(pair[1] - pair[0]).ok());
        if !manifests::encode_by(counts, self.rank, next, out) {
            return None;
        }
        let placed = link_placement::place((self.keys, self.rank), (cells, rows, 2), true)?;
        Some((starts, placed))
    }

    /// At which run each line begins. Nothing where one begins within a run, or either do not ascend.
    fn starts(&self) -> Option<Vec<i64>> {
        let end = *self.edges.last()?;
        let fits = self.first.len() == self.cells.len()
            && self.first.is_sorted_by(|one, next| one < next)
            && self.edges.is_sorted()
            && self.edges[0] == 0
            && self.first.first().copied().unwrap_or(end) == 0
            && self.first.last().is_none_or(|&last| last < end);
        if !fits {
            return None;
        }
        let mut runs = self.first.iter().chain([&end]).zip(0..).peekable();
        let mut run = |edge: i64| {
            while runs.next_if(|(first, _)| **first < edge).is_some() {}
            runs.peek().filter(|(first, _)| **first == edge).map(|&(_, run)| run)
        };
        self.edges.iter().map(|&edge| run(edge)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'a>(first: &'a [i64], cells: &'a [i64], edges: &'a [i64], keys: &'a [i64]) -> Lines<'a> {
        Lines { first, cells, edges, keys, rank: 2 }
    }

    fn found(lines: &Lines) -> Option<(Vec<u8>, Found)> {
        let mut out = vec![7; lines.size()?];
        let found = lines.find(&mut out)?;
        Some((out, found))
    }

    #[test]
    fn fragments_and_links_are_those_of_the_lines() {
        // lines of 5, 0 and 4 vertices; the first goes from cell 0 to 1 and back
        let keys = [4, 5, 4, 6];
        let given = lines(&[0, 2, 3, 5, 6], &[0, 1, 0, 1, 0], &[0, 5, 5, 9], &keys);
        let (out, (starts, placed)) = found(&given).unwrap();
        assert_eq!(starts, [0, 3, 3, 5]);
        let list = |blocks: &[(usize, i64)]| {
            let size = (4 + blocks.len() * manifests::block_size(2)) as u32;
            let mut text = [size.to_le_bytes(), (blocks.len() as u32).to_le_bytes()].concat();
            for &(cell, fragment) in blocks {
                text.extend(keys[2 * cell..][..2].iter().flat_map(|key| key.to_le_bytes()));
                text.push(0);
                text.extend(fragment.to_le_bytes());
            }
            text
        };
        let wanted = [list(&[(0, 0), (1, 0), (0, 1)]), list(&[]), list(&[(1, 1), (0, 2)])].concat();
        assert_eq!(out, wanted);
        let cells = vec![0, 1, 1, 0, 1, 0];
        let rows = vec![1, 0, 0, 2, 1, 4];
        assert_eq!(Some(placed), link_placement::place((&keys, 2), (cells, rows, 2), true));
        let (out, (starts, placed)) = found(&lines(&[], &[], &[0, 0], &keys)).unwrap();
        assert_eq!((out, starts, placed.families), (list(&[]), vec![0, 0], vec![0]));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let keys = [4, 5, 4, 6];
        let good = || lines(&[0, 2], &[0, 1], &[0, 5], &keys);
        assert!(found(&good()).is_some());
        for wrong in [
            Lines { first: &[0, 0], ..good() },
            Lines { first: &[1, 2], ..good() },
            Lines { first: &[0, 5], ..good() },
            Lines { first: &[0], ..good() },
            Lines { first: &[], cells: &[], ..good() },
            Lines { cells: &[0, 2], ..good() },
            Lines { cells: &[0, -1], ..good() },
            Lines { edges: &[0, 1, 5], ..good() },
            Lines { edges: &[0, 5, 2], ..good() },
            Lines { edges: &[2, 5], ..good() },
            Lines { edges: &[], ..good() },
            Lines { keys: &[], ..good() },
            Lines { keys: &[4, 5, 4], ..good() },
            Lines { rank: 0, ..good() },
        ] {
            assert!(found(&wrong).is_none());
        }
        assert_eq!(good().find(&mut [0; 3]), None);
    }
}
