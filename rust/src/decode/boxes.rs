//! Decoding: from stored bytes to elements of an array.

use std::ops::Range;

use crate::decode::read_space::{ChunkSpace, ReadSpace, read_blocks};
use crate::decode::sources::{Fetched, Source, fetch, open_bytes};
use crate::files::readable::Readable;
use crate::memory::strided_memory::StridedOutput;
use crate::memory::transfer::{Direction, Sides, Transfer};
use crate::plan::axis_rows::{AxisRows, Row};
use crate::plan::chunk_geometry::ChunkGeometry;
use crate::plan::job_table::JobTable;
use crate::plan::parts::Parts;
use crate::plan::pipeline::Pipeline;
use crate::steps::sum;
use crate::threads::workers::{Batches, Failures};
use crate::{Failure, Outcome};

/// A call. What threads rely on, who write into one array side by side, `new` has checked: every job has rows of its
/// own on `axes`, which are those of `out`, no two jobs share an element of it, and no source overlaps it.
pub struct Decode<'a> {
    pipeline: &'a Pipeline,
    sources: &'a [Source<'a>],
    jobs: &'a JobTable,
    axes: &'a [AxisRows],
    out: &'a StridedOutput<'a>,
}

/// What a thread keeps from job to job.
#[derive(Default)]
struct Space {
    reading: ReadSpace,
    geometry: ChunkGeometry,
    transfer: Transfer,
}

/// Whether `axes` are those of an array of `shape` with elements of `item` bytes, for chunks of `pipeline`, and have
/// the rows that `jobs` name.
pub fn check_axes(
    pipeline: &Pipeline,
    jobs: &JobTable,
    axes: &[AxisRows],
    shape: &[usize],
    item: usize,
) -> Result<(), String> {
    if item != pipeline.item() || shape.len() != pipeline.ndim() || axes.len() != pipeline.ndim() {
        return Err("array, axes and pipeline do not fit together".into());
    }
    if axes.iter().zip(shape).any(|(axis, &length)| axis.length() != length) {
        return Err("axes of an array of another shape".into());
    }
    let used = jobs.used_rows();
    let there = |(used, axis): (&Range<usize>, &AxisRows)| {
        let rows = axis.used();
        used.is_empty() || rows.start <= used.start && used.end <= rows.end
    };
    if used.len() != axes.len() || !used.iter().zip(axes).all(there) {
        return Err("jobs name rows that axes do not have".into());
    }
    Ok(())
}

/// Whether no source lies where `out` is written.
pub fn check_apart(sources: &[Source], out: &StridedOutput) -> Result<(), String> {
    let (low, high) = out.addresses();
    let overlaps = |source: &Source| {
        let (start, stop) = source.addresses();
        start < high && low < stop && start < stop
    };
    if sources.iter().any(overlaps) { Err("a source overlaps the output".into()) } else { Ok(()) }
}

impl<'a> Decode<'a> {
    /// `jobs` of the columns source, offset, length, and the row of each axis.
    pub fn new(
        pipeline: &'a Pipeline,
        sources: &'a [Source<'a>],
        jobs: &'a JobTable,
        axes: &'a [AxisRows],
        out: &'a StridedOutput<'a>,
    ) -> Result<Self, String> {
        check_axes(pipeline, jobs, axes, out.shape(), out.item())?;
        jobs.check_sources(sources.len())?;
        check_apart(sources, out)?;
        // jobs differ in a row of some axis, and so in all places along it
        if jobs.len() > 1 {
            if !axes.iter().all(AxisRows::is_disjoint) {
                return Err("rows of an axis share places".into());
            }
            if !jobs.is_distinct() {
                return Err("two jobs share places".into());
            }
        }
        Ok(Decode { pipeline, sources, jobs, axes, out })
    }

    /// Do all jobs; the failures of those that fail.
    pub fn run(&self, threads: usize) -> Vec<Failure> {
        let mut geometry = ChunkGeometry::default();
        let open = open_bytes(self.sources);
        let sizes = (0..self.jobs.len())
            .map(|job| open + self.set_geometry(&mut geometry, job).map_or(0, |()| self.work(job, &geometry)));
        let mut largest = 0;
        let batches = Batches::new(sizes.inspect(|&size| largest = largest.max(size)), threads);
        let batches = if self.pipeline.steps().can_be_shared(largest) { batches.shared() } else { batches };
        let failures = Failures::default();
        let unread = self.pipeline.steps().worth_own_read();
        let start = || Space { reading: ReadSpace::of_call(&batches), ..Space::default() };
        let states = batches.run(start, |space, range| {
            let Space { reading: ReadSpace { read, chunk, .. }, geometry, transfer } = space;
            fetch(self.sources, self.jobs, range, unread, read, |job, fetched| {
                failures.watch(job, || self.job(job, fetched, chunk, geometry, transfer));
            });
        });
        states.into_iter().for_each(|space| space.reading.keep());
        failures.sorted()
    }

    fn set_geometry(&self, geometry: &mut ChunkGeometry, job: usize) -> Outcome {
        let rows = self.jobs.rows(job);
        self.pipeline.shape(geometry, self.axes.iter().zip(rows).map(|(axis, &row)| axis.row(row as usize).extent))
    }

    /// How much a job is to do, in bytes that are read or decoded: those of the chunk, unless a part of it is enough.
    fn work(&self, job: usize, geometry: &ChunkGeometry) -> usize {
        let steps = self.pipeline.steps();
        let nbytes = geometry.nbytes;
        if steps.compressor.is_some() || steps.outer_sums > 0 {
            let mut span = 0..self.pipeline.item();
            for ((axis, &row), &stride) in self.axes.iter().zip(self.jobs.rows(job)).zip(&geometry.strides) {
                let Some((first, last)) = axis.row(row as usize).ends() else { return nbytes };
                // within the chunk, whose size fits
                span.start += first * stride as usize;
                span.end += last * stride as usize;
            }
            return steps.work(span, nbytes);
        }
        let rows = || self.axes.iter().zip(self.jobs.rows(job)).map(|(axis, &row)| axis.row(row as usize));
        if rows().all(|row| row.count == row.extent) {
            return nbytes;
        }
        // as `Transfer::source_parts` has it: from the narrowest steps to the widest, read together while that is less
        let step = |row: &Row, stride: isize| stride.unsigned_abs().saturating_mul(row.step.unsigned_abs());
        let mut steps: Vec<(usize, usize)> =
            rows().zip(&geometry.strides).map(|(row, &stride)| (step(row, stride), row.count)).collect();
        steps.sort_unstable();
        let (mut span, mut reads) = (self.pipeline.item(), 1usize);
        for (step, count) in steps {
            if reads == 1 && step <= span.saturating_add(Parts::FILE_GAP) {
                span = span.saturating_add(step.saturating_mul(count.saturating_sub(1)));
            } else {
                reads = reads.saturating_mul(count);
            }
        }
        reads.saturating_mul(span.saturating_add(Parts::FILE_GAP)).min(nbytes)
    }

    fn job(
        &self,
        job: usize,
        fetched: Fetched,
        space: &mut ChunkSpace,
        geometry: &mut ChunkGeometry,
        transfer: &mut Transfer,
    ) -> Outcome {
        let item = self.pipeline.item();
        let rows = self.jobs.rows(job);
        let mut plan = |chunk: &[isize]| {
            let direction = Direction::Scatter;
            let sides = Sides { chunk, array: self.out.strides(), item, direction, reads_far: false };
            transfer.plan(self.axes, rows, &sides);
        };
        if let Fetched::Missing = fetched {
            plan(&vec![0; self.axes.len()]);
            // SAFETY: the rows name elements of `out` (`new` has compared its shape with the lengths that `AxisRows`
            // keeps to), which are those of this job alone (`new`, too). Nothing is read.
            unsafe { self.pipeline.fill().write_region(transfer, self.out.base()) };
            return Ok(());
        }
        self.set_geometry(geometry, job)?;
        plan(&geometry.strides);
        let nbytes = geometry.nbytes;
        match fetched {
            Fetched::Missing => Ok(()),
            Fetched::Failed(reason) => Err(reason),
            Fetched::Bytes(stored) => self.scatter(stored, nbytes, space, transfer),
            Fetched::Unread { from, offset, length } => {
                self.scatter_unread(from, offset, length, nbytes, space, transfer)
            }
        }
    }

    /// The place in `out` of a chunk that goes there as it is, in one piece.
    fn one_piece(&self, transfer: &Transfer, nbytes: usize) -> Option<&mut [u8]> {
        self.one_run(transfer).filter(|target| target.len() == nbytes && transfer.source_start() == 0)
    }

    /// The place in `out` of the elements of a job that lie one after the other in the chunk and in `out`.
    #[allow(clippy::mut_from_ref)] // not from `self`, but from the memory that it names
    fn one_run(&self, transfer: &Transfer) -> Option<&mut [u8]> {
        let nbytes = transfer.single_run().filter(|&nbytes| nbytes > 0)?;
        // SAFETY: one run holds all elements that the rows name, which belong to `out` and to this job alone, as `new`
        // has checked; no source overlaps them. Who made `out` promised that they are writable. (Python code that uses
        // the same array at the same time sees, or leaves, any mixture of bytes. Nothing but content is read back from
        // there.)
        Some(unsafe { std::slice::from_raw_parts_mut(self.out.base().offset(transfer.target_start()), nbytes) })
    }

    fn scatter(&self, stored: &[u8], nbytes: usize, space: &mut ChunkSpace, transfer: &Transfer) -> Outcome {
        let steps = self.pipeline.steps();
        let body = steps.strip_outer(stored, nbytes)?;
        if steps.inner_sums == 0
            && let Some(target) = self.one_piece(transfer, nbytes)
        {
            steps.check_size(body, nbytes)?;
            steps.decompress(body, target, &mut space.decoders)?;
            self.pipeline.decode_elements(target);
            return Ok(());
        }
        let mut parts = Parts::default();
        transfer.source_parts(Parts::gap(nbytes), &mut parts);
        let content = space.parts(self.pipeline, body, nbytes, &parts)?;
        assert!(content.len() >= nbytes);
        // SAFETY: `content` holds the whole chunk, whose extents `AxisRows` keeps to; the places are elements of `out`
        // and those of this job alone, as `new` has checked; the content is a source, which does not overlap it, or
        // memory of ours.
        unsafe { transfer.copy(content.as_ptr(), self.out.base()) };
        Ok(())
    }

    /// Of a chunk without any step, only what is asked for is read: right to where it belongs if it is in one piece.
    fn scatter_parts_unread(
        &self,
        from: Readable,
        offset: u64,
        space: &mut ChunkSpace,
        transfer: &mut Transfer,
    ) -> Outcome {
        if let Some(target) = self.one_run(transfer) {
            from.read(offset + transfer.source_start() as u64, target, &mut [])?;
            self.pipeline.decode_elements(target);
            return Ok(());
        }
        let mut parts = Parts::default();
        transfer.source_parts(Parts::FILE_GAP, &mut parts);
        if parts.ranges().len() == transfer.runs() {
            let from = space.own_files.of(from, parts.ranges().len());
            let mut outcome = Ok(());
            let read = |source: isize, target: *mut u8, nbytes: usize| {
                if outcome.is_ok() {
                    // SAFETY: a run of elements that the rows name: see `one_run`.
                    let target = unsafe { std::slice::from_raw_parts_mut(target, nbytes) };
                    outcome = from.read(offset + source as u64, target, &mut []);
                    self.pipeline.decode_elements(target);
                }
            };
            // SAFETY: as in `scatter`.
            unsafe { transfer.each_run(self.out.base(), read) };
            return outcome;
        }
        let content = space.read_parts(self.pipeline, (from, offset), &parts)?;
        transfer.shorten_source(parts.start());
        assert!(content.len() >= parts.stop() - parts.start());
        // SAFETY: as in `scatter`: all elements lie in the parts, and `content` holds these and what is between them.
        unsafe { transfer.copy(content.as_ptr(), self.out.base()) };
        Ok(())
    }

    /// Of a chunk of blosc without checksums, only the blocks are read that are needed. Large chunks are read block by
    /// block, too, so that each is decoded while it is at hand, by whoever has nothing else to do.
    fn scatter_blocks_unread(
        &self,
        unread: (Readable, u64, usize),
        nbytes: usize,
        space: &mut ChunkSpace,
        transfer: &Transfer,
    ) -> Outcome {
        let (from, offset, length) = unread;
        let large = self.pipeline.steps().can_be_shared(nbytes);
        if large && let Some(target) = self.one_piece(transfer, nbytes) {
            let target = read_blocks(unread, nbytes, None, &mut space.decoders, || Ok(target))?;
            self.pipeline.decode_elements(target);
            return Ok(());
        }
        let mut parts = Parts::default();
        transfer.source_parts(Parts::gap(nbytes), &mut parts);
        let much = parts.leave_much(nbytes);
        if !much && !large {
            let mut stored = std::mem::take(&mut space.stored);
            let outcome = stored.take(length).and_then(|bytes| {
                from.read(offset, bytes, &mut [])?;
                self.scatter(bytes, nbytes, space, transfer)
            });
            space.stored = stored;
            return outcome;
        }
        let content = space.blocks_unread(self.pipeline, unread, nbytes, much.then_some(&parts))?;
        assert!(content.len() >= nbytes);
        // SAFETY: as in `scatter`; what lies between the parts is initialized, and not asked for.
        unsafe { transfer.copy(content.as_ptr(), self.out.base()) };
        Ok(())
    }

    /// A chunk that is not compressed, read right to where it belongs if it is in one piece there.
    fn scatter_unread(
        &self,
        from: Readable,
        offset: u64,
        length: usize,
        nbytes: usize,
        space: &mut ChunkSpace,
        transfer: &mut Transfer,
    ) -> Outcome {
        if self.pipeline.steps().compressor.is_some() {
            return self.scatter_blocks_unread((from, offset, length), nbytes, space, transfer);
        }
        let sums = self.pipeline.steps().outer_sums * sum::SIZE;
        if length != nbytes.saturating_add(sums) {
            return Err(format!("{length} bytes, expected {}", nbytes.saturating_add(sums)).into());
        }
        let Some(target) = self.one_piece(transfer, nbytes) else {
            if let Readable::Shared(bytes) = from
                && sums == 0
                && !self.pipeline.changes_elements()
            {
                // as below, from the one look that is taken at these bytes
                from.check(offset, length)?;
                let source = bytes.start().wrapping_add(offset as usize);
                // SAFETY: as in `scatter`, out of `length == nbytes` bytes of the source that are there.
                unsafe { transfer.copy(source, self.out.base()) };
                return Ok(());
            }
            if sums == 0 {
                return self.scatter_parts_unread(from, offset, space, transfer);
            }
            let mut read = std::mem::take(&mut space.content);
            let outcome = read.take(length).and_then(|stored| {
                from.read(offset, stored, &mut [])?;
                self.scatter(stored, nbytes, space, transfer)
            });
            space.content = read;
            return outcome;
        };
        let mut stored_sums = vec![0; sums];
        from.read(offset, target, &mut stored_sums)?;
        // each checksum is of the chunk and the checksums before
        let mut computed = if sums > 0 { sum::crc32c(0, target) } else { 0 };
        for stored in stored_sums.chunks_exact(sum::SIZE) {
            if stored != computed.to_le_bytes() {
                return Err("a stored checksum does not match".into());
            }
            computed = sum::crc32c(computed, stored);
        }
        self.pipeline.decode_elements(target);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_integers::integers;
    use crate::plan::axis_rows::StridedArrays;
    use crate::steps::Steps;

    fn axis(rows: [(i64, i64); 2], length: usize) -> AxisRows {
        let arrays = StridedArrays {
            extents: &integers([4, 4]),
            first: &integers([0, 0]),
            count: &integers(rows.map(|row| row.1)),
            out_first: &integers(rows.map(|row| row.0)),
            step: 1,
        };
        AxisRows::strided(&arrays, 0..2, length).unwrap()
    }

    /// What becomes of the jobs that name `rows`, all of which read the same 16 bytes, into an array of 6 x 6.
    fn decode(axes: &[AxisRows], rows: &[[i64; 2]], item: usize) -> Result<Vec<u8>, String> {
        let pipeline = Pipeline::new(vec![0; item], None, false, vec![0, 1], Steps::default())?;
        let jobs = rows.iter().flat_map(|row| [0, 0, 16 * item as i64, row[0], row[1]]).collect();
        let jobs = JobTable::new(jobs, 3, 2)?;
        let mut memory = vec![0; 36];
        // SAFETY: 36 bytes are there, and are used by `out` alone as long as it is.
        let out = unsafe { StridedOutput::new(memory.as_mut_ptr(), vec![6, 6], vec![6, 1], 1)? };
        let content = vec![7; 16 * item];
        let sources = [Source::Bytes(&content)];
        let failures = Decode::new(&pipeline, &sources, &jobs, axes, &out)?.run(4);
        assert_eq!(failures, []);
        Ok(memory)
    }

    /// What a job is to do that takes `counts` elements of a chunk of 1024 x 1024 bytes.
    fn work(order: [usize; 2], counts: [usize; 2]) -> usize {
        let pipeline = Pipeline::new(vec![0], None, false, order.to_vec(), Steps::default()).unwrap();
        let axes = counts.map(|count| AxisRows::block(1024, 7, count).unwrap());
        let jobs = JobTable::new(vec![0; 5], 3, 2).unwrap();
        let mut memory = vec![0; counts[0] * counts[1]];
        let strides = vec![counts[1] as isize, 1];
        // SAFETY: so many bytes are there, and are used by `out` alone as long as it is.
        let out = unsafe { StridedOutput::new(memory.as_mut_ptr(), counts.to_vec(), strides, 1) }.unwrap();
        let sources = [Source::Bytes(&[])];
        let call = Decode::new(&pipeline, &sources, &jobs, &axes, &out).unwrap();
        let mut geometry = ChunkGeometry::default();
        call.set_geometry(&mut geometry, 0).unwrap();
        call.work(0, &geometry)
    }

    #[test]
    fn what_lies_together_is_little_work() {
        let (little, all) = (1000 + Parts::FILE_GAP, 1024 * 1024);
        assert_eq!(work([0, 1], [1, 1000]), little);
        assert_eq!(work([1, 0], [1000, 1]), little);
        assert_eq!(work([0, 1], [3, 1000]), little + 2 * 1024);
        assert!(work([0, 1], [1000, 1]) > all / 2); // read with what is between
        assert_eq!(work([1, 0], [1, 1]), 1 + Parts::FILE_GAP);
    }

    #[test]
    fn calls_that_do_not_fit_together_cannot_be_made() {
        let right = || axis([(0, 4), (4, 2)], 6);
        let all = [[0, 0], [1, 1], [0, 1], [1, 0]];
        assert_eq!(decode(&[right(), right()], &all, 1).unwrap(), [7; 36]);
        assert!(decode(&[right()], &all, 1).is_err());
        assert!(decode(&[right(), right(), right()], &all, 1).is_err());
        assert!(decode(&[right(), axis([(0, 4), (4, 2)], 7)], &all, 1).is_err());
        assert!(decode(&[right(), axis([(0, 4), (0, 2)], 5)], &all, 1).is_err());
        assert!(decode(&[right(), right()], &[[0, 2]], 1).is_err());
        assert!(decode(&[right(), right()], &all, 2).is_err());
        assert!(decode(&[right(), axis([(0, 4), (3, 2)], 6)], &all, 1).is_err());
        assert!(decode(&[right(), right()], &[[0, 0], [1, 1], [0, 0]], 1).is_err());
    }
}
