//! Decoding single elements: points sorted by chunk, to places in a flat output.

use std::ops::Range;

use crate::chunk_geometry::ChunkGeometry;
use crate::job_table::JobTable;
use crate::pipeline::Pipeline;
use crate::read_space::{ChunkSpace, ReadSpace};
use crate::sources::{Fetched, Source, fetch};
use crate::strided_memory::StridedMemory;
use crate::workers::{Batches, Failures};
use crate::{Failure, Outcome, Reason};

/// A call: jobs of the columns source, offset, length, and row of the chunk.
pub struct DecodePoints<'a> {
    pub pipeline: &'a Pipeline,
    pub sources: &'a [Source],
    pub jobs: &'a JobTable,
    pub points: &'a Points<'a>,
    /// One-dimensional.
    pub out: &'a StridedMemory,
}

/// The points of a plan: those of chunk `r` are `bounds[r]` to `bounds[r + 1]` (exclusive).
pub struct Points<'a> {
    /// Shape of each chunk, one slice for each axis.
    pub extents: Vec<&'a [i64]>,
    pub bounds: &'a [i64],
    /// Index of each point in its chunk, one slice for each axis.
    pub indices: Vec<&'a [i64]>,
    /// Place of each point in the output.
    pub places: &'a [i64],
}

impl Points<'_> {
    /// Whether all points of the chunks `used` lie in their chunk and in an output of `length` elements.
    pub fn check(&self, used: Range<usize>, length: usize) -> Result<(), String> {
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
                let extent = extents[chunk];
                if extent < 0 || !indices[range.clone()].iter().all(|&index| (0..extent).contains(&index)) {
                    return Err(format!("points of row {chunk} leave their chunk"));
                }
            }
            if !self.places[range].iter().all(|&place| place >= 0 && (place as u64) < length as u64) {
                return Err(format!("points of row {chunk} leave the output"));
            }
        }
        Ok(())
    }

    fn range(&self, chunk: usize) -> Option<Range<usize>> {
        let (low, high) = (usize::try_from(self.bounds[chunk]).ok()?, usize::try_from(self.bounds[chunk + 1]).ok()?);
        (low <= high && high <= self.places.len()).then_some(low..high)
    }
}

#[derive(Default)]
struct Space {
    reading: ReadSpace,
    geometry: ChunkGeometry,
}

impl DecodePoints<'_> {
    /// Do all jobs; the failures of those that fail.
    pub fn run(&self, threads: usize) -> Vec<Failure> {
        let mut geometry = ChunkGeometry::default();
        let sizes =
            (0..self.jobs.len()).map(|job| self.set_geometry(&mut geometry, job).map_or(0, |()| geometry.nbytes));
        let batches = Batches::new(sizes, threads);
        let failures = Failures::default();
        let start = || Space { reading: ReadSpace::kept(), ..Space::default() };
        let states = batches.run(start, |space, range| {
            let Space { reading: ReadSpace { read, chunk }, geometry } = space;
            fetch(self.sources, self.jobs, range, false, read, |job, fetched| {
                failures.watch(job, || self.job(job, fetched, chunk, geometry));
            });
        });
        states.into_iter().take(1).for_each(|space| space.reading.keep());
        failures.sorted()
    }

    fn chunk(&self, job: usize) -> usize {
        self.jobs.rows(job)[0] as usize
    }

    fn set_geometry(&self, geometry: &mut ChunkGeometry, job: usize) -> Outcome {
        let chunk = self.chunk(job);
        let extents = self.points.extents.iter().map(|axis| axis[chunk] as usize);
        geometry.set(extents, &self.pipeline.order, self.pipeline.item).ok_or("the chunk is too large".into())
    }

    fn job(&self, job: usize, fetched: Fetched, space: &mut ChunkSpace, geometry: &mut ChunkGeometry) -> Outcome {
        let item = self.pipeline.item;
        let range = self.points.range(self.chunk(job)).ok_or("bounds leave the points")?;
        let places = &self.points.places[range.clone()];
        let stored = match fetched {
            Fetched::Missing => return self.fill(places),
            Fetched::Failed(reason) => return Err(reason),
            Fetched::InFile { .. } => return Err("was to be read".into()),
            Fetched::Bytes(stored) => stored,
        };
        self.set_geometry(geometry, job)?;
        let body = self.pipeline.steps.strip_outer(stored, geometry.nbytes)?;
        let content = space.elements(self.pipeline, body, geometry.nbytes)?;
        for (point, &place) in range.zip(places) {
            let mut offset = 0usize;
            for (indices, &stride) in self.points.indices.iter().zip(&geometry.strides) {
                offset = offset.wrapping_add((indices[point] as usize).wrapping_mul(stride as usize));
            }
            let element = offset.checked_add(item).and_then(|stop| content.get(offset..stop)).ok_or(MOVED)?;
            self.put(place, element)?;
        }
        Ok(())
    }

    fn fill(&self, places: &[i64]) -> Outcome {
        let mut element = vec![0; self.pipeline.item];
        self.pipeline.fill.write(&mut element);
        places.iter().try_for_each(|&place| self.put(place, &element))
    }

    #[inline]
    fn put(&self, place: i64, element: &[u8]) -> Outcome {
        if place < 0 || place as u64 >= self.out.shape[0] as u64 {
            return Err(MOVED);
        }
        // SAFETY: the place is within the output, whose elements are as long as this one.
        unsafe {
            let target = self.out.base.offset(place as isize * self.out.strides[0]);
            match element.len() {
                1 => *target = element[0],
                2 => std::ptr::copy_nonoverlapping(element.as_ptr(), target, 2),
                4 => std::ptr::copy_nonoverlapping(element.as_ptr(), target, 4),
                8 => std::ptr::copy_nonoverlapping(element.as_ptr(), target, 8),
                nbytes => std::ptr::copy_nonoverlapping(element.as_ptr(), target, nbytes),
            }
        }
        Ok(())
    }
}

/// Points are checked before, and not copied.
const MOVED: Reason = Reason::Borrowed("the points were changed under way");
