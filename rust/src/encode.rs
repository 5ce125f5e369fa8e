//! Encoding: from regions of an array to encoded chunks, one after the other.

use crate::axis_rows::AxisRows;
use crate::chunk_geometry::ChunkGeometry;
use crate::job_table::JobTable;
use crate::pipeline::Pipeline;
use crate::read_space::ReadSpace;
use crate::scratch::Scratch;
use crate::sources::{Source, fetch_one};
use crate::steps::encoders::Encoders;
use crate::steps::sum;
use crate::strided_memory::StridedMemory;
use crate::transfer::{Direction, Sides, Transfer};
use crate::workers::{Batches, Failures};
use crate::{Failure, Outcome};

/// Offset and length of a chunk that is not stored.
pub const EMPTY: u64 = u64::MAX;
/// Encoded chunks are collected in pieces of memory of this size.
const PIECE: usize = 1 << 20;

/// A call: jobs whose columns are the row of each axis, after those of what is stored of the chunk, if any are changed
/// in part. All rows and sources exist.
pub struct Encode<'a> {
    pub pipeline: &'a Pipeline,
    pub sources: &'a [Source],
    /// Only read.
    pub values: &'a StridedMemory,
    pub jobs: &'a JobTable,
    /// Checked against the shape of `values`.
    pub axes: &'a [AxisRows],
    /// Whether chunks full of the fill value are encoded as well.
    pub keep_fill: bool,
    pub threads: usize,
}

/// Chunks that are encoded, or (if nothing compresses them) will be when they are written to their place.
pub struct Encoded<'a> {
    call: &'a Encode<'a>,
    chunks: Vec<Chunk>,
    pieces: Vec<Vec<Vec<u8>>>,
    pub offsets: Vec<u64>,
    pub lengths: Vec<u64>,
    /// Bytes from the start of the first to the end of the last chunk.
    pub nbytes: usize,
}

#[derive(Clone, Copy)]
enum Chunk {
    Empty,
    /// So many bytes that are still to be gathered.
    Raw(usize),
    /// Bytes in a piece of a thread.
    Held {
        thread: usize,
        piece: usize,
        start: usize,
        length: usize,
    },
}

/// What a thread keeps from job to job.
#[derive(Default)]
struct Space {
    content: Scratch,
    old: ReadSpace,
    encoders: Encoders,
    geometry: ChunkGeometry,
    transfer: Transfer,
    pieces: Vec<Vec<u8>>,
    done: Vec<(usize, Chunk)>,
}

impl<'a> Encode<'a> {
    /// Encode all jobs, as far as can be done before the place of the result is known.
    pub fn run(&'a self, head: usize) -> Result<(Encoded<'a>, Vec<Failure>), String> {
        let failures = Failures::default();
        let mut geometry = ChunkGeometry::default();
        let sizes =
            (0..self.jobs.len()).map(|job| self.set_geometry(&mut geometry, job).map_or(0, |()| geometry.nbytes));
        let batches = Batches::new(sizes, self.threads);
        let raw = self.pipeline.steps.compressor.is_none();
        let start = || Space { encoders: Encoders::kept(), ..Space::default() };
        let states = batches.run(start, |space, range| {
            for job in range {
                failures.watch(job, || {
                    let chunk = if raw { self.look(job, space)? } else { self.compress(job, space)? };
                    space.done.push((job, chunk));
                    Ok(())
                });
            }
        });
        let mut chunks = vec![Chunk::Empty; self.jobs.len()];
        let mut pieces = Vec::new();
        for (number, state) in states.into_iter().enumerate() {
            for (job, mut chunk) in state.done {
                if let Chunk::Held { thread, .. } = &mut chunk {
                    *thread = number;
                }
                chunks[job] = chunk;
            }
            pieces.push(state.pieces);
            if number == 0 {
                state.encoders.keep(); // of the calling thread
            }
        }
        let (mut offsets, mut lengths) = (Vec::with_capacity(chunks.len()), Vec::with_capacity(chunks.len()));
        let mut nbytes = 0usize;
        for chunk in &chunks {
            let length = match *chunk {
                Chunk::Empty => {
                    offsets.push(EMPTY);
                    lengths.push(EMPTY);
                    continue;
                }
                Chunk::Raw(length) | Chunk::Held { length, .. } => length,
            };
            offsets.push(head.checked_add(nbytes).ok_or("too many bytes")? as u64);
            lengths.push(length as u64);
            nbytes = nbytes.checked_add(length).ok_or("too many bytes")?;
        }
        Ok((Encoded { call: self, chunks, pieces, offsets, lengths, nbytes }, failures.sorted()))
    }

    fn set_geometry(&self, geometry: &mut ChunkGeometry, job: usize) -> Outcome {
        let rows = self.jobs.rows(job);
        let extents = self.axes.iter().zip(rows).map(|(axis, &row)| axis.row(row as usize).extent);
        geometry.set(extents, &self.pipeline.order, self.pipeline.item).ok_or("the chunk is too large".into())
    }

    /// Prepare the copy of a job's elements to its chunk; whether they are all of the chunk's elements.
    fn plan(&self, job: usize, geometry: &mut ChunkGeometry, transfer: &mut Transfer) -> Outcome<bool> {
        self.set_geometry(geometry, job)?;
        let rows = self.jobs.rows(job);
        let sides = Sides {
            chunk: &geometry.strides,
            array: &self.values.strides,
            item: self.pipeline.item,
            direction: Direction::Gather,
            // what is not compressed goes right to the result
            reads_far: self.pipeline.steps.compressor.is_some(),
        };
        transfer.plan(self.axes, rows, &sides);
        Ok(self.axes.iter().zip(rows).all(|(axis, &row)| {
            let row = axis.row(row as usize);
            row.count == row.extent && row.listed.is_none() && (row.count <= 1 || row.step.unsigned_abs() == 1)
        }))
    }

    /// The chunk's elements, if they lie in `values` as the chunk wants them.
    fn in_place(&self, transfer: &Transfer, nbytes: usize) -> Option<&[u8]> {
        if nbytes == 0 || transfer.single_run() != Some(nbytes) || transfer.target_start() != 0 {
            return None;
        }
        // SAFETY: the rows stay within the shape of `values`.
        Some(unsafe { std::slice::from_raw_parts(self.values.base.offset(transfer.source_start()), nbytes) })
    }

    /// Put the chunk's elements, in the order of the encoded chunk, into `target`, which is as large as the chunk.
    fn gather(
        &self,
        job: usize,
        transfer: &Transfer,
        whole: bool,
        target: &mut [u8],
        space: &mut ReadSpace,
    ) -> Outcome {
        if !whole {
            self.put_old(job, target, space)?;
        }
        // SAFETY: the rows leave neither the shape of `values` nor the extents of the chunk.
        unsafe { transfer.copy(self.values.base, target.as_mut_ptr()) };
        Ok(())
    }

    /// Put what is stored of a chunk into `target`; the fill value if nothing is.
    fn put_old(&self, job: usize, target: &mut [u8], space: &mut ReadSpace) -> Outcome {
        match fetch_one(self.sources, self.jobs, job, &mut space.read)? {
            None => self.pipeline.fill.write(target),
            Some(stored) => {
                let body = self.pipeline.steps.strip_outer(stored, target.len())?;
                target.copy_from_slice(space.chunk.elements(self.pipeline, body, target.len())?);
            }
        }
        Ok(())
    }

    /// Whether the first of the elements is the fill value (or there is none).
    fn begins_with_fill(&self, transfer: &Transfer) -> bool {
        transfer.first_source().is_none_or(|start| {
            // SAFETY: the rows stay within the shape of `values`.
            let element = unsafe { std::slice::from_raw_parts(self.values.base.offset(start), self.pipeline.item) };
            self.pipeline.fill.is_item(element)
        })
    }

    /// Whether a chunk that is not compressed is empty, and its size otherwise.
    fn look(&self, job: usize, space: &mut Space) -> Outcome<Chunk> {
        let Space { content, old, geometry, transfer, .. } = space;
        let whole = self.plan(job, geometry, transfer)?;
        let nbytes = geometry.nbytes;
        if !self.keep_fill && self.begins_with_fill(transfer) {
            let empty = match self.in_place(transfer, nbytes) {
                Some(elements) => self.pipeline.fill.is_all_of(elements),
                None => {
                    let target = content.take(nbytes)?;
                    self.gather(job, transfer, whole, target, old)?;
                    self.pipeline.fill.is_all_of(target)
                }
            };
            if empty {
                return Ok(Chunk::Empty);
            }
        }
        let sums = self.pipeline.steps.outer_sums * sum::SIZE;
        Ok(Chunk::Raw(nbytes.checked_add(sums).ok_or("the chunk is too large")?))
    }

    fn compress(&self, job: usize, space: &mut Space) -> Outcome<Chunk> {
        let Space { content, old, encoders, geometry, transfer, pieces, .. } = space;
        let whole = self.plan(job, geometry, transfer)?;
        let nbytes = geometry.nbytes;
        let steps = &self.pipeline.steps;
        let bound = steps.encoded_bound(nbytes)?;
        let may_be_empty = !self.keep_fill && self.begins_with_fill(transfer);
        let in_place = self.in_place(transfer, nbytes).filter(|_| self.pipeline.swapped_word.is_none());
        let elements: &[u8] = match in_place {
            Some(elements) if steps.inner_sums == 0 => {
                if may_be_empty && self.pipeline.fill.is_all_of(elements) {
                    return Ok(Chunk::Empty);
                }
                elements
            }
            _ => {
                let target = content.take(steps.with_inner_sums(nbytes))?;
                self.gather(job, transfer, whole, &mut target[..nbytes], old)?;
                if may_be_empty && self.pipeline.fill.is_all_of(&target[..nbytes]) {
                    return Ok(Chunk::Empty);
                }
                self.pipeline.encode_elements(&mut target[..nbytes]);
                add_sums(target, nbytes);
                target
            }
        };
        if pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < bound) {
            let mut piece = Vec::new();
            let size = bound.max(PIECE);
            piece.try_reserve_exact(size).map_err(|_| format!("no memory for {size} bytes"))?;
            pieces.push(piece);
        }
        let number = pieces.len() - 1;
        let piece = &mut pieces[number];
        let start = piece.len();
        steps.compress(elements, piece, encoders)?;
        Ok(Chunk::Held { thread: 0, piece: number, start, length: piece.len() - start })
    }
}

/// Fill what follows the first `nbytes` bytes with checksums, each of all that is before.
fn add_sums(target: &mut [u8], nbytes: usize) {
    let mut end = nbytes;
    while end < target.len() {
        let sum = sum::crc32c(0, &target[..end]).to_le_bytes();
        target[end..end + sum::SIZE].copy_from_slice(&sum);
        end += sum::SIZE;
    }
}

/// The place of all chunks, of which each job writes its own share.
struct Target(*mut u8);

// SAFETY: the shares of jobs do not overlap.
unsafe impl Sync for Target {}

impl Target {
    /// # Safety
    /// The memory has `start + length` bytes, and no one else uses these while the result lives.
    #[allow(clippy::mut_from_ref)] // not from `self`, but from the memory that it names
    unsafe fn share(&self, start: usize, length: usize) -> &mut [u8] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), length) }
    }
}

impl Encoded<'_> {
    /// Write all chunks to `target`, which has `nbytes` bytes; the failures of jobs that fail now.
    pub fn write(&self, target: &mut [u8]) -> Vec<Failure> {
        assert_eq!(target.len(), self.nbytes);
        let first = self.offsets.iter().find(|&&offset| offset != EMPTY).copied().unwrap_or(0);
        let failures = Failures::default();
        let target = Target(target.as_mut_ptr());
        let sizes = self.lengths.iter().map(|&length| if length == EMPTY { 0 } else { length as usize });
        Batches::new(sizes, self.call.threads).run(Space::default, |space, range| {
            for job in range {
                if self.offsets[job] == EMPTY {
                    continue;
                }
                // SAFETY: shares follow each other without overlap and add up to `nbytes`.
                let share = unsafe { target.share((self.offsets[job] - first) as usize, self.lengths[job] as usize) };
                failures.watch(job, || self.write_chunk(job, share, space));
            }
        });
        failures.sorted()
    }

    fn write_chunk(&self, job: usize, share: &mut [u8], space: &mut Space) -> Outcome {
        match self.chunks[job] {
            Chunk::Empty => {}
            Chunk::Held { thread, piece, start, length } => {
                share.copy_from_slice(&self.pieces[thread][piece][start..start + length]);
            }
            Chunk::Raw(_) => {
                let whole = self.call.plan(job, &mut space.geometry, &mut space.transfer)?;
                let nbytes = space.geometry.nbytes;
                self.call.gather(job, &space.transfer, whole, &mut share[..nbytes], &mut space.old)?;
                self.call.pipeline.encode_elements(&mut share[..nbytes]);
                add_sums(share, nbytes);
            }
        }
        Ok(())
    }
}
