//! Decoding: from stored bytes to elements of an array.

use crate::axis_rows::AxisRows;
use crate::chunk_geometry::ChunkGeometry;
use crate::job_table::JobTable;
use crate::pipeline::Pipeline;
use crate::read_space::{ChunkSpace, ReadSpace};
use crate::sources::{Fetched, File, Source, fetch};
use crate::steps::sum;
use crate::strided_memory::StridedMemory;
use crate::transfer::{Direction, Sides, Transfer};
use crate::workers::{Batches, Failures};
use crate::{Failure, Outcome};

/// A call: jobs of the columns source, offset, length, and the row of each axis. All rows and sources exist.
pub struct Decode<'a> {
    pub pipeline: &'a Pipeline,
    pub sources: &'a [Source],
    pub jobs: &'a JobTable,
    /// Checked against the shape of `out`.
    pub axes: &'a [AxisRows],
    pub out: &'a StridedMemory,
}

/// What a thread keeps from job to job.
#[derive(Default)]
struct Space {
    reading: ReadSpace,
    geometry: ChunkGeometry,
    transfer: Transfer,
}

impl Decode<'_> {
    /// Do all jobs; the failures of those that fail.
    pub fn run(&self, threads: usize) -> Vec<Failure> {
        let mut geometry = ChunkGeometry::default();
        let sizes =
            (0..self.jobs.len()).map(|job| self.set_geometry(&mut geometry, job).map_or(0, |()| geometry.nbytes));
        let batches = Batches::new(sizes, threads);
        let failures = Failures::default();
        let uncompressed = self.pipeline.steps.compressor.is_none();
        let start = || Space { reading: ReadSpace::kept(), ..Space::default() };
        let states = batches.run(start, |space, range| {
            let Space { reading: ReadSpace { read, chunk }, geometry, transfer } = space;
            fetch(self.sources, self.jobs, range, uncompressed, read, |job, fetched| {
                failures.watch(job, || self.job(job, fetched, chunk, geometry, transfer));
            });
        });
        states.into_iter().take(1).for_each(|space| space.reading.keep());
        failures.sorted()
    }

    fn set_geometry(&self, geometry: &mut ChunkGeometry, job: usize) -> Outcome {
        let rows = self.jobs.rows(job);
        let extents = self.axes.iter().zip(rows).map(|(axis, &row)| axis.row(row as usize).extent);
        geometry.set(extents, &self.pipeline.order, self.pipeline.item).ok_or("the chunk is too large".into())
    }

    fn job(
        &self,
        job: usize,
        fetched: Fetched,
        space: &mut ChunkSpace,
        geometry: &mut ChunkGeometry,
        transfer: &mut Transfer,
    ) -> Outcome {
        let item = self.pipeline.item;
        let rows = self.jobs.rows(job);
        let mut plan = |chunk: &[isize]| {
            let direction = Direction::Scatter;
            let sides = Sides { chunk, array: &self.out.strides, item, direction, reads_far: false };
            transfer.plan(self.axes, rows, &sides);
        };
        if let Fetched::Missing = fetched {
            plan(&vec![0; self.axes.len()]);
            // SAFETY: the rows stay within the shape of `out`, and nothing is read.
            unsafe { self.pipeline.fill.write_region(transfer, self.out.base) };
            return Ok(());
        }
        self.set_geometry(geometry, job)?;
        plan(&geometry.strides);
        let nbytes = geometry.nbytes;
        match fetched {
            Fetched::Missing => Ok(()),
            Fetched::Failed(reason) => Err(reason),
            Fetched::Bytes(stored) => self.scatter(stored, nbytes, space, transfer),
            Fetched::InFile { file, offset, length } => {
                self.scatter_file(file, offset, length, nbytes, space, transfer)
            }
        }
    }

    /// The place in `out` of a chunk that goes there as it is, in one piece.
    #[allow(clippy::mut_from_ref)] // not from `self`, but from the memory that it names
    fn one_piece(&self, transfer: &Transfer, nbytes: usize) -> Option<&mut [u8]> {
        if nbytes == 0 || transfer.single_run() != Some(nbytes) || transfer.source_start() != 0 {
            return None;
        }
        // SAFETY: the rows stay within the shape of `out`; no other job has a share in these bytes.
        Some(unsafe { std::slice::from_raw_parts_mut(self.out.base.offset(transfer.target_start()), nbytes) })
    }

    fn scatter(&self, stored: &[u8], nbytes: usize, space: &mut ChunkSpace, transfer: &Transfer) -> Outcome {
        let steps = &self.pipeline.steps;
        let body = steps.strip_outer(stored, nbytes)?;
        if steps.inner_sums == 0
            && let Some(target) = self.one_piece(transfer, nbytes)
        {
            steps.check_size(body, nbytes)?;
            steps.decompress(body, target, &mut space.decoders)?;
            self.pipeline.decode_elements(target);
            return Ok(());
        }
        let content = space.elements(self.pipeline, body, nbytes)?;
        debug_assert_eq!(content.len(), nbytes);
        // SAFETY: `content` holds the whole chunk, whose extents the rows do not leave, nor the shape of `out`.
        unsafe { transfer.copy(content.as_ptr(), self.out.base) };
        Ok(())
    }

    /// A chunk that is not compressed, read right to where it belongs if it is in one piece there.
    fn scatter_file(
        &self,
        file: File,
        offset: u64,
        length: usize,
        nbytes: usize,
        space: &mut ChunkSpace,
        transfer: &Transfer,
    ) -> Outcome {
        let sums = self.pipeline.steps.outer_sums * sum::SIZE;
        if length != nbytes.saturating_add(sums) {
            return Err(format!("{length} bytes, expected {}", nbytes.saturating_add(sums)).into());
        }
        let Some(target) = self.one_piece(transfer, nbytes) else {
            let mut read = std::mem::take(&mut space.content);
            let outcome = read.take(length).and_then(|stored| {
                file.read(offset, stored, &mut [])?;
                self.scatter(stored, nbytes, space, transfer)
            });
            space.content = read;
            return outcome;
        };
        let mut stored_sums = vec![0; sums];
        file.read(offset, target, &mut stored_sums)?;
        // each checksum is of the chunk and the checksums before
        let mut computed = sum::crc32c(0, target);
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
