//! Rows of chunks that hold one byte string each, of many chunks, in any order; a chunk is read and verified as a whole, in
//! the memory of a processor's cache, and only these rows leave it.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::Outcome;
use crate::cells::elements::Elements;
use crate::threads::workers::Failures;

/// Some rows of a cell: its number, and the first one, and how many they are.
#[derive(Clone, Copy)]
struct Span {
    cell: usize,
    first: usize,
    count: usize,
}

/// A call: arrays with the same number of cells, of one chunk each.
pub struct ElementParts<'a> {
    elements: Elements<'a>,
    /// Of each array how many bytes a row has.
    sizes: Vec<usize>,
    cells: usize,
    spans: Vec<Span>,
    rows: usize,
}

/// Bytes that leave a chunk: the number of that, where they begin in its byte string, and where they go.
type Target<'o> = (usize, usize, &'o mut [u8]);

impl<'a> ElementParts<'a> {
    /// `elements` are the chunks of one array after the other, with rows of `sizes`; `spans` have the columns cell, first
    /// row and count. Nothing where a cell does not have such rows.
    pub fn new(elements: Elements<'a>, sizes: Vec<usize>, spans: &[i64]) -> Option<Self> {
        let cells = elements.count().checked_div(sizes.len())?;
        let (columns, rest) = spans.as_chunks::<3>();
        if !rest.is_empty() || cells * sizes.len() != elements.count() || sizes.contains(&0) {
            return None;
        }
        let span = |column: &[i64; 3]| {
            let [cell, first, count] = column.map(|each| usize::try_from(each).ok());
            let span = Span { cell: cell.filter(|&cell| cell < cells)?, first: first?, count: count? };
            let stop = span.first.checked_add(span.count)?;
            let inside = |(array, &size): (usize, &usize)| {
                stop.checked_mul(size).is_some_and(|stop| stop <= elements.length(array * cells + span.cell))
            };
            sizes.iter().enumerate().all(inside).then_some(span)
        };
        let spans = columns.iter().map(span).collect::<Option<Vec<_>>>()?;
        let rows = spans.iter().try_fold(0usize, |rows, span| rows.checked_add(span.count))?;
        sizes.iter().try_fold(0usize, |total, size| total.checked_add(rows.checked_mul(*size)?))?;
        Some(ElementParts { elements, sizes, cells, spans, rows })
    }

    /// Bytes of the output of each array.
    pub fn totals(&self) -> impl Iterator<Item = usize> {
        self.sizes.iter().map(|size| size * self.rows)
    }

    /// Fill an output for each array, as long as `totals` says. They hold anything where that fails.
    pub fn read(&self, outs: Vec<&mut [u8]>, threads: usize) -> Outcome {
        if !outs.iter().map(|out| out.len()).eq(self.totals()) {
            return Err("outputs of other lengths".into());
        }
        let mut targets: Vec<Target> = Vec::with_capacity(outs.len() * self.spans.len());
        for (array, (mut out, size)) in outs.into_iter().zip(&self.sizes).enumerate() {
            for span in &self.spans {
                let target = out.split_off_mut(..span.count * size).unwrap_or_default();
                targets.push((array * self.cells + span.cell, span.first * size, target));
            }
        }
        targets.sort_by_key(|target| target.0);
        let batches = self.elements.batches(threads);
        let mut rest = targets.into_iter().peekable();
        let mut some = |range: Range<usize>| {
            let mut found = Vec::new();
            while let Some(target) = rest.next_if(|target| target.0 < range.end) {
                found.push(target);
            }
            Mutex::new(found)
        };
        let parts: Vec<Mutex<Vec<Target>>> = batches.ranges().map(&mut some).collect();
        let failures = Failures::default();
        batches.run(Vec::new, |space: &mut Vec<u8>, range| {
            let mut targets = parts[batches.number(range.start)].lock().unwrap_or_else(PoisonError::into_inner);
            let mut targets = targets.iter_mut().peekable();
            let take = |job, content: &[u8]| {
                while let Some((_, from, target)) = targets.next_if(|target| target.0 == job) {
                    let stop = *from + target.len();
                    target.copy_from_slice(content.get(*from..stop).ok_or("rows beyond their cell")?);
                }
                Ok(())
            };
            let start = range.start;
            failures.watch(start, || self.elements.read_in_turn(range, space, take));
        });
        failures.sorted().into_iter().next().map_or(Ok(()), |(_, reason)| Err(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::elements::{chunk_size, fill};
    use crate::decode::sources::Source;
    use crate::memory::byte_strings::ByteString;
    use crate::memory::strided_memory::SharedBytes;
    use crate::plan::job_table::JobTable;

    /// Chunks of these byte strings, one after the other with a gap of so many bytes before each, and their jobs.
    fn stored(texts: &[Vec<u8>], gap: usize) -> (Vec<u8>, Vec<i64>) {
        let (mut bytes, mut jobs) = (Vec::new(), Vec::new());
        for text in texts {
            bytes.resize(bytes.len() + gap, 9);
            let mut chunk = vec![0; chunk_size(text.len(), 1).unwrap()];
            fill(&mut chunk, ByteString::of(&SharedBytes::of(text)), 1);
            jobs.extend([0, bytes.len() as i64, chunk.len() as i64]);
            bytes.extend(chunk);
        }
        (bytes, jobs)
    }

    fn taken(bytes: &[u8], jobs: &[i64], sizes: &[usize], spans: &[i64], threads: usize) -> Option<Vec<Vec<u8>>> {
        let table = JobTable::new(jobs.to_vec(), 3, 0).unwrap();
        let sources = [Source::Bytes(bytes)];
        let call = ElementParts::new(Elements::new(&sources, &table, 1).unwrap()?, sizes.to_vec(), spans)?;
        let mut outs: Vec<Vec<u8>> = call.totals().map(|total| vec![7; total]).collect();
        call.read(outs.iter_mut().map(Vec::as_mut_slice).collect(), threads).ok().map(|()| outs)
    }

    #[test]
    fn rows_come_in_the_order_of_their_spans() {
        let rows = |cell: usize| cell * 37 % 400;
        let text = |cell, size| (0..rows(cell) * size).map(|at| (at * 7 + cell + size) as u8).collect::<Vec<u8>>();
        let texts: Vec<Vec<u8>> = [3, 8].iter().flat_map(|&size| (0..300).map(move |cell| text(cell, size))).collect();
        let spans: Vec<[usize; 3]> = (0..500)
            .map(|number| {
                let cell = number * 71 % 300;
                let first = rows(cell) * (number % 5) / 5;
                [cell, first, (rows(cell) - first) * (number % 3) / 2]
            })
            .collect();
        let plain: Vec<i64> = spans.iter().flatten().map(|&each| each as i64).collect();
        let wanted: Vec<Vec<u8>> = [(0, 3), (1, 8)]
            .iter()
            .map(|&(array, size)| {
                let part = |&[cell, first, count]: &[usize; 3]| {
                    texts[array * 300 + cell][first * size..(first + count) * size].to_vec()
                };
                spans.iter().flat_map(part).collect()
            })
            .collect();
        for gap in [0, 5, 5000] {
            let (bytes, jobs) = stored(&texts, gap);
            for threads in [1, 3] {
                assert_eq!(taken(&bytes, &jobs, &[3, 8], &plain, threads), Some(wanted.clone()));
            }
        }
    }

    #[test]
    fn what_is_wrong_fails() {
        let texts = [vec![1; 12], vec![2; 24]];
        let (bytes, jobs) = stored(&texts, 0);
        let take = |spans: &[i64]| taken(&bytes, &jobs, &[4], spans, 1);
        assert_eq!(take(&[1, 5, 1, 0, 0, 1]), Some(vec![[[2; 4], [1; 4]].concat()]));
        assert_eq!(take(&[]), Some(vec![vec![]]));
        for wrong in
            [[0, 0, 4], [0, 3, 1], [2, 0, 1], [-1, 0, 1], [0, -1, 1], [0, 0, -1], [0, i64::MAX, 1], [0, 1, i64::MAX]]
        {
            assert_eq!(take(&wrong), None);
        }
        assert_eq!(take(&[0, 0]), None);
        assert_eq!(taken(&bytes, &jobs, &[0], &[], 1), None);
        assert_eq!(taken(&bytes, &jobs, &[], &[], 1), None);
        assert_eq!(taken(&bytes, &jobs, &[4, 4, 4], &[], 1), None);
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(taken(&bad, &jobs, &[4], &[0, 0, 1], 1), None);
        }
        assert_eq!(taken(&bytes[..bytes.len() - 1], &jobs, &[4], &[0, 0, 1], 1), None);
        let table = JobTable::new(jobs, 3, 0).unwrap();
        let sources = [Source::Bytes(&bytes)];
        let call = ElementParts::new(Elements::new(&sources, &table, 1).unwrap().unwrap(), vec![4], &[0, 0, 1]);
        assert!(call.unwrap().read(vec![&mut [0; 3]], 1).is_err());
    }
}
