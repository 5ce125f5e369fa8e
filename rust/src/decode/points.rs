//! Decoding single elements: points sorted by chunk, to places in a flat output.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::decode::boxes::check_apart;
use crate::decode::read_space::{ChunkSpace, ReadSpace};
use crate::decode::sources::{Fetched, Source, fetch, open_bytes};
use crate::memory::shared_integers::{SharedIntegers, read};
use crate::memory::strided_memory::StridedOutput;
use crate::plan::chunk_geometry::ChunkGeometry;
use crate::plan::job_table::JobTable;
use crate::plan::parts::Parts;
use crate::plan::pipeline::Pipeline;
use crate::threads::workers::{Batches, Failures};
use crate::{Failure, Outcome, Reason};

/// Points of one chunk that are looked at one by one.
const MOST_SORTED: usize = 256;

/// The points of a plan: those of chunk `r` are `bounds[r]` to `bounds[r + 1]` (exclusive).
pub struct Points<'a> {
    /// Shape of each chunk, one slice for each axis.
    pub extents: Vec<SharedIntegers<'a>>,
    pub bounds: SharedIntegers<'a>,
    /// Index of each point in its chunk, one slice for each axis.
    pub indices: Vec<SharedIntegers<'a>>,
    /// Place of each point in the output.
    pub places: SharedIntegers<'a>,
}

impl Points<'_> {
    /// Whether all points of the chunks `used` lie in their chunk and in an output of `length` elements.
    fn check(&self, used: Range<usize>, length: usize) -> Result<(), String> {
        let chunks = self.bounds.len().saturating_sub(1);
        if used.end > chunks || self.extents.iter().any(|axis| axis.len() != chunks) {
            return Err("jobs, extents and bounds of points do not fit together".into());
        }
        if self.indices.len() != self.extents.len() || self.indices.iter().any(|axis| axis.len() != self.places.len()) {
            return Err("points and places do not fit together".into());
        }
        for chunk in used {
            let range = self.range(chunk).ok_or("bounds leave the points")?;
            for (extents, indices) in self.extents.iter().zip(&self.indices) {
                let extent = read(&extents[chunk]);
                if extent < 0 || !indices[range.clone()].iter().all(|index| (0..extent).contains(&read(index))) {
                    return Err(format!("points of row {chunk} leave their chunk"));
                }
            }
            if !self.places[range].iter().map(read).all(|place| place >= 0 && (place as u64) < length as u64) {
                return Err(format!("points of row {chunk} leave the output"));
            }
        }
        Ok(())
    }

    fn range(&self, chunk: usize) -> Option<Range<usize>> {
        let bound = |at: usize| usize::try_from(read(&self.bounds[at])).ok();
        let (low, high) = (bound(chunk)?, bound(chunk + 1)?);
        (low <= high && high <= self.places.len()).then_some(low..high)
    }
}

/// A call.
pub struct DecodePoints<'a> {
    pipeline: &'a Pipeline,
    sources: &'a [Source<'a>],
    jobs: &'a JobTable,
    points: &'a Points<'a>,
    out: Places<'a>,
}

/// The output. Points may name a place twice, from chunks that are decoded at the same time: so elements are written
/// by atomic stores, which cost the same, and such a place gets one of them, or (where it is longer than a word) parts
/// of both.
struct Places<'a> {
    out: &'a StridedOutput<'a>,
    /// Bytes of the largest word that elements are made of, and aligned to.
    word: usize,
}

impl<'a> Places<'a> {
    fn new(out: &'a StridedOutput<'a>) -> Self {
        let all = out.item() | out.base() as usize | out.strides()[0].unsigned_abs();
        Places { out, word: 1 << all.trailing_zeros().min(3) }
    }

    /// Write one element of `WORD` bytes, a word, or of any number of words where `WORD` is 0.
    #[inline(always)]
    fn put<const WORD: usize>(&self, place: i64, element: &[u8]) -> Outcome {
        if place < 0 || place as u64 >= self.out.shape()[0] as u64 || element.len() != self.out.item() {
            return Err(Reason::Changed);
        }
        // SAFETY: `place` is one of the output, so this is the address of an element, as who made the output promised.
        let target = unsafe { self.out.base().offset(place as isize * self.out.strides()[0]) };
        macro_rules! store {
            ($atomic:ty, $word:ty) => {
                for (i, word) in element.as_chunks::<{ size_of::<$word>() }>().0.iter().enumerate() {
                    // SAFETY: the word lies within the element, whose length is a multiple of that of words, and is
                    // aligned, since the base, the stride and so every element are (`new`). It is writable, as who
                    // made the output promised, and threads of the kernel use it by stores of this size only.
                    let target = unsafe { <$atomic>::from_ptr(target.cast::<$word>().add(i)) };
                    target.store(<$word>::from_ne_bytes(*word), Ordering::Relaxed);
                }
            };
        }
        match if WORD > 0 { WORD } else { self.word } {
            8 => store!(AtomicU64, u64),
            4 => store!(AtomicU32, u32),
            2 => store!(AtomicU16, u16),
            _ => store!(AtomicU8, u8),
        }
        Ok(())
    }
}

#[derive(Default)]
struct Space {
    reading: ReadSpace,
    geometry: ChunkGeometry,
}

impl<'a> DecodePoints<'a> {
    /// `jobs` of the columns source, offset, length, and row of the chunk. `out` has one axis.
    pub fn new(
        pipeline: &'a Pipeline,
        sources: &'a [Source<'a>],
        jobs: &'a JobTable,
        points: &'a Points<'a>,
        out: &'a StridedOutput<'a>,
    ) -> Result<Self, String> {
        if out.shape().len() != 1 || out.item() != pipeline.item() || points.extents.len() != pipeline.ndim() {
            return Err("output, points and pipeline do not fit together".into());
        }
        let [used] = jobs.used_rows() else { return Err("jobs of points have one row each".into()) };
        points.check(used.clone(), out.shape()[0])?;
        jobs.check_sources(sources.len())?;
        check_apart(sources, out)?;
        Ok(DecodePoints { pipeline, sources, jobs, points, out: Places::new(out) })
    }

    /// Do all jobs; the failures of those that fail.
    pub fn run(&self, threads: usize) -> Vec<Failure> {
        let mut geometry = ChunkGeometry::default();
        let steps = self.pipeline.steps();
        let open = open_bytes(self.sources);
        let sizes = (0..self.jobs.len()).map(|job| {
            open + self.set_geometry(&mut geometry, job).map_or(0, |()| steps.work_to_decode(geometry.nbytes))
        });
        let batches = Batches::new(sizes, threads);
        let failures = Failures::default();
        let unread = steps.worth_own_read().filter(|_| steps.outer_sums == 0 && steps.compressor.is_none());
        let start = || Space { reading: ReadSpace::of_call(&batches), ..Space::default() };
        let states = batches.run(start, |space, range| {
            let Space { reading: ReadSpace { read, chunk, .. }, geometry } = space;
            fetch(self.sources, self.jobs, range, unread, read, |job, fetched| {
                failures.watch(job, || self.job(job, fetched, chunk, geometry));
            });
        });
        states.into_iter().for_each(|space| space.reading.keep());
        failures.sorted()
    }

    fn chunk(&self, job: usize) -> usize {
        self.jobs.rows(job)[0] as usize
    }

    fn set_geometry(&self, geometry: &mut ChunkGeometry, job: usize) -> Outcome {
        let chunk = self.chunk(job);
        self.pipeline.shape(geometry, self.points.extents.iter().map(|axis| read(&axis[chunk]) as usize))
    }

    fn job(&self, job: usize, fetched: Fetched, space: &mut ChunkSpace, geometry: &mut ChunkGeometry) -> Outcome {
        let item = self.pipeline.item();
        let range = self.points.range(self.chunk(job)).ok_or("bounds leave the points")?;
        let places = &self.points.places[range.clone()];
        match fetched {
            Fetched::Missing => return self.fill(places),
            Fetched::Failed(reason) => return Err(reason),
            Fetched::Unread { .. } | Fetched::Bytes(_) => {}
        }
        self.set_geometry(geometry, job)?;
        let nbytes = geometry.nbytes;
        let (content, start) = match fetched {
            Fetched::Bytes(stored) => {
                let body = self.pipeline.steps().strip_outer(stored, nbytes)?;
                let parts = self.parts(range.clone(), geometry, Parts::gap(nbytes));
                (space.parts(self.pipeline, body, nbytes, &parts)?, 0)
            }
            Fetched::Unread { length, .. } if length != nbytes => {
                return Err(format!("{length} bytes, expected {nbytes}").into());
            }
            Fetched::Unread { from, offset, .. } => {
                let parts = self.parts(range.clone(), geometry, Parts::FILE_GAP);
                (space.read_parts(self.pipeline, (from, offset), &parts)?, parts.start())
            }
            Fetched::Missing | Fetched::Failed(_) => return Ok(()),
        };
        match item {
            8 if self.out.word == 8 => self.points::<8>(content, start, range, places, geometry),
            4 if self.out.word == 4 => self.points::<4>(content, start, range, places, geometry),
            2 if self.out.word == 2 => self.points::<2>(content, start, range, places, geometry),
            1 => self.points::<1>(content, start, range, places, geometry),
            _ => self.points::<0>(content, start, range, places, geometry),
        }
    }

    /// What of their chunk the points `range` are in; with all between the first and the last, where they are many.
    fn parts(&self, range: Range<usize>, geometry: &ChunkGeometry, gap: usize) -> Parts {
        let (item, nbytes) = (self.pipeline.item(), geometry.nbytes);
        // indices may change meanwhile; places within the chunk are no promise of theirs
        let start = |point: usize| self.offset(point, geometry).min(nbytes.saturating_sub(item));
        let mut parts = Parts::default();
        if range.len() > MOST_SORTED {
            let low = range.clone().map(start).min().unwrap_or(0);
            let high = range.map(start).max().unwrap_or(0);
            parts.push(low..high + item, gap);
            return parts;
        }
        let mut starts: Vec<usize> = range.map(start).collect();
        starts.sort_unstable();
        starts.into_iter().for_each(|start| parts.push(start..start + item, gap));
        parts
    }

    /// Where in the content of its chunk a point is.
    #[inline(always)]
    fn offset(&self, point: usize, geometry: &ChunkGeometry) -> usize {
        let indices = self.points.indices.iter().zip(&geometry.strides);
        indices.fold(0usize, |offset, (indices, &stride)| {
            offset.wrapping_add((read(&indices[point]) as usize).wrapping_mul(stride as usize))
        })
    }

    /// Write the points `range` out of the `content` of their chunk, from its byte `start` on; for `WORD` see `Places::put`.
    fn points<const WORD: usize>(
        &self,
        content: &[u8],
        start: usize,
        range: Range<usize>,
        places: SharedIntegers,
        geometry: &ChunkGeometry,
    ) -> Outcome {
        let item = if WORD > 0 { WORD } else { self.pipeline.item() };
        for (point, place) in range.zip(places) {
            let offset = self.offset(point, geometry).wrapping_sub(start);
            let element = offset.checked_add(item).and_then(|stop| content.get(offset..stop)).ok_or(Reason::Changed)?;
            self.out.put::<WORD>(read(place), element)?;
        }
        Ok(())
    }

    fn fill(&self, places: SharedIntegers) -> Outcome {
        let mut element = vec![0; self.pipeline.item()];
        self.pipeline.fill().write(&mut element);
        places.iter().try_for_each(|place| self.out.put::<0>(read(place), &element))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_integers::integers;
    use crate::steps::Steps;

    #[test]
    fn elements_of_any_length_are_written_where_they_belong() {
        for item in [1usize, 2, 3, 4, 6, 8, 12, 16, 24, 31] {
            for (offset, stride) in [(0, item), (1, item), (8, 2 * item), (16, item + 3)] {
                let pipeline = Pipeline::new(vec![1; item], None, false, vec![0], Steps::default()).unwrap();
                let content: Vec<u8> = (0..4 * item).map(|i| i as u8 + 2).collect();
                let jobs = vec![0, 0, content.len() as i64, 0, 0, 0, -1, 1];
                let jobs = JobTable::new(jobs, 3, 1).unwrap();
                let mut memory = vec![0u8; 300];
                let (base, stride_of) = (memory[offset..].as_mut_ptr(), vec![stride as isize]);
                // SAFETY: four elements are there: 16 + 3 * (31 + 3) + 31 < 300, 8 + 7 * 31 < 300.
                let out = unsafe { StridedOutput::new(base, vec![4], stride_of, item) };
                let (out, sources) = (out.unwrap(), [Source::Bytes(&content)]);
                let (extents, bounds) = (integers([4, 4]), integers([0, 3, 4]));
                let (indices, places) = (integers([3, 0, 3, 1]), integers([0, 2, 0, 3]));
                let points =
                    Points { extents: vec![&extents], bounds: &bounds, indices: vec![&indices], places: &places };
                let call = DecodePoints::new(&pipeline, &sources, &jobs, &points, &out).unwrap();
                assert_eq!(call.run(2), []);
                let at = |place: usize| memory[offset + place * stride..][..item].to_vec();
                assert_eq!(
                    (at(0), at(1), at(2)),
                    (content[3 * item..].to_vec(), vec![0; item], content[..item].to_vec())
                );
                assert_eq!(at(3), vec![1; item]);
                let written = memory.iter().filter(|&&byte| byte != 0).count();
                assert_eq!(written, 3 * item);
            }
        }
    }
}
