//! Encoding: from regions of an array to encoded chunks, one after the other: in memory (`run`), into new files
//! (`run_into`), or into files that keep the rest of what they hold (`run_changes`).

use std::fs::{File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::decode::boxes::check_axes;
use crate::decode::read_space::ReadSpace;
use crate::decode::sources::{Source, fetch_one};
use crate::encode::merged_shard::MergedShard;
use crate::files::new_file::{NewFile, OldFile};
use crate::files::readable::{self, Readable};
use crate::memory::scratch::Scratch;
use crate::memory::span::Span;
use crate::memory::strided_memory::{SharedBytes, StridedMemory};
use crate::memory::transfer::{Direction, Sides, Transfer};
use crate::plan::axis_rows::AxisRows;
use crate::plan::chunk_geometry::ChunkGeometry;
use crate::plan::job_table::JobTable;
use crate::plan::pipeline::Pipeline;
use crate::plan::shard_table::{Entry, MISSING, Placed, ShardTable};
use crate::steps::sum;
use crate::threads::crew::Crew;
use crate::threads::workers::{Batches, Failures, Turns};
use crate::{Failure, Outcome, Reason};

/// Encoded chunks are collected in pieces of memory of this size.
const PIECE: usize = 1 << 20;
/// Chunks of so many bytes are compressed before they are written to their place: they are in memory twice until then.
const GROUP: usize = 32 << 20;
/// To make a file takes as long as to encode so many bytes.
const FILE_BYTES: usize = 64 * 1024;

/// So many bytes that are not read are worth a system call.
const WORTH_TWO_READS: usize = 16 * 1024;

/// So many threads, at least, make one large shard, if there are as many: one writes while another one encodes.
const THREADS_OF_A_SHARD: usize = 2;

/// A call. Every job has rows on `axes`, which are those of `values`: `new` has checked it.
pub struct Encode<'a> {
    pipeline: &'a Pipeline,
    sources: &'a [Source<'a>],
    values: &'a StridedMemory<'a>,
    jobs: &'a JobTable,
    axes: &'a [AxisRows],
    how: How,
}

/// How chunks are encoded.
#[derive(Clone, Copy)]
pub struct How {
    /// Whether chunks full of the fill value are encoded as well.
    pub write_empty: bool,
    pub threads: usize,
    /// Bytes in front of the chunks: where their offsets begin.
    pub head: usize,
}

/// Chunks that are encoded, or (if nothing compresses them) will be when they are written to their place.
pub struct Encoded<'a> {
    call: &'a Encode<'a>,
    /// Number of the first job.
    first: usize,
    chunks: Vec<Chunk>,
    pieces: Vec<Vec<Vec<u8>>>,
    pub offsets: Vec<u64>,
    pub lengths: Vec<u64>,
    /// Bytes from the start of the first to the end of the last chunk.
    pub nbytes: usize,
}

/// What became of a chunk that was to be put into a file.
#[derive(Clone, Copy)]
pub enum Put {
    /// It is the caller's to do.
    Left = 0,
    Done = 1,
    /// It is full of the fill value, and was not put anywhere.
    Empty = 2,
}

/// A file that was changed.
pub struct Changed {
    /// What the system says of the new file, if that is a shard.
    pub status: Option<Metadata>,
    /// Where its chunks are, by their rows in the index of a shard.
    pub entries: Vec<Entry>,
    /// The file before, still open where to close it may take long.
    pub old: Option<RawFd>,
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

/// Number, offset and length of each chunk that was written, unless it is empty, and where the last one ends.
type Streamed = io::Result<(Vec<Placed>, u64)>;

/// What a thread keeps from job to job.
#[derive(Default)]
struct Space {
    content: Scratch,
    old: ReadSpace,
    geometry: ChunkGeometry,
    transfer: Transfer,
    pieces: Vec<Vec<u8>>,
    done: Vec<(usize, Chunk)>,
}

impl Space {
    /// One with what earlier calls have left, for a thread of this crew.
    fn kept(crew: Option<Arc<Crew>>) -> Space {
        let mut old = ReadSpace::of_crew(crew);
        Space { content: std::mem::take(&mut old.gathered), old, ..Space::default() }
    }

    /// The same, memory for what is made, and nothing found yet.
    fn with_memory<T>(crew: Option<Arc<Crew>>) -> (Space, Scratch, Vec<T>) {
        let mut space = Space::kept(crew);
        let memory = std::mem::take(&mut space.old.made);
        (space, memory, Vec::new())
    }

    /// Leave what is worth it to later calls.
    fn keep(mut self, memory: Scratch) {
        (self.old.gathered, self.old.made) = (self.content, memory);
        self.old.keep();
    }
}

impl<'a> Encode<'a> {
    /// `jobs` of a column for the row of each axis, after those of what is stored of the chunk, if any are changed in
    /// part.
    pub fn new(
        pipeline: &'a Pipeline,
        sources: &'a [Source<'a>],
        values: &'a StridedMemory<'a>,
        jobs: &'a JobTable,
        axes: &'a [AxisRows],
        how: How,
    ) -> Result<Self, String> {
        check_axes(pipeline, jobs, axes, values.shape(), values.item())?;
        jobs.check_sources(sources.len())?;
        Ok(Encode { pipeline, sources, values, jobs, axes, how })
    }

    /// All jobs in groups, to be encoded one after the other: so no more than one group is in memory twice.
    pub fn groups(&self) -> Vec<Range<usize>> {
        let mut groups = Vec::new();
        let (mut geometry, mut first, mut size) = (ChunkGeometry::default(), 0, 0usize);
        if self.pipeline.steps().compressor.is_some() {
            for job in 0..self.jobs.len() {
                size = size.saturating_add(self.nbytes(&mut geometry, job));
                if size >= GROUP {
                    groups.push(first..job + 1);
                    (first, size) = (job + 1, 0);
                }
            }
        }
        if first < self.jobs.len() {
            groups.push(first..self.jobs.len());
        }
        groups
    }

    /// Encode the jobs of a group, as far as can be done before the place of the result is known, `before` bytes behind
    /// the first chunk of all.
    pub fn run(&'a self, group: Range<usize>, before: usize) -> Result<(Encoded<'a>, Vec<Failure>), String> {
        let failures = Failures::default();
        let first = group.start;
        let batches = self.batches(group.clone(), self.how.threads);
        let raw = self.pipeline.steps().compressor.is_none();
        let states = batches.run(
            || Space::kept(batches.crew()),
            |space, range| {
                for job in range.map(|number| first + number) {
                    failures.watch(job, || {
                        let chunk = if raw { self.look(job, space)? } else { self.compress(job, space)? };
                        space.done.push((job, chunk));
                        Ok(())
                    });
                }
            },
        );
        let mut chunks = vec![Chunk::Empty; group.len()];
        let mut pieces = Vec::new();
        for (number, mut state) in states.into_iter().enumerate() {
            for (job, mut chunk) in state.done.drain(..) {
                if let Chunk::Held { thread, .. } = &mut chunk {
                    *thread = number;
                }
                chunks[job - first] = chunk;
            }
            pieces.push(std::mem::take(&mut state.pieces));
            let memory = std::mem::take(&mut state.old.made);
            state.keep(memory);
        }
        let (mut offsets, mut lengths) = (Vec::with_capacity(chunks.len()), Vec::with_capacity(chunks.len()));
        let mut nbytes = 0usize;
        for chunk in &chunks {
            let length = match *chunk {
                Chunk::Empty => {
                    offsets.push(MISSING);
                    lengths.push(MISSING);
                    continue;
                }
                Chunk::Raw(length) | Chunk::Held { length, .. } => length,
            };
            let offset = self.how.head.checked_add(before).and_then(|offset| offset.checked_add(nbytes));
            offsets.push(offset.ok_or("too many bytes")? as u64);
            lengths.push(length as u64);
            nbytes = nbytes.checked_add(length).ok_or("too many bytes")?;
        }
        Ok((Encoded { call: self, first, chunks, pieces, offsets, lengths, nbytes }, failures.sorted()))
    }

    /// Bytes of the chunk of a job.
    fn nbytes(&self, geometry: &mut ChunkGeometry, job: usize) -> usize {
        self.set_geometry(geometry, job).map_or(0, |()| geometry.nbytes)
    }

    /// How much a job is to do, about, in bytes that are copied.
    fn work(&self, geometry: &mut ChunkGeometry, job: usize) -> usize {
        self.pipeline.steps().work_to_encode(self.nbytes(geometry, job))
    }

    /// Encode all jobs, each into the file of its number, or those of a shard of `shards` into that of the shard's
    /// number, and say of each file what became of it.
    pub fn run_into(&'a self, files: &[NewFile], shards: Option<&ShardTable>) -> (Vec<Put>, Vec<Failure>) {
        let (puts, failures) = self.for_files(files, shards, |file, space, memory| match shards {
            None => self.put(file, &files[file], space),
            Some(shards) => self.put_shard(file, shards, &files[file], space, |file, jobs, start, space| {
                self.stream_alone(file, jobs, start, (space, memory))
            }),
        });
        (puts.into_iter().map(|put| put.unwrap_or(Put::Left)).collect(), failures)
    }

    /// As `run_into`, a few shards at a time, each by several threads, who write to its file what they have encoded: what
    /// is written to one file is written by one thread at a time. `go_on` is asked now and then by the calling thread:
    /// where it says no, the shards that are not done are left.
    pub fn run_into_few_at_a_time(
        &'a self,
        files: &[NewFile],
        shards: &ShardTable,
        go_on: impl Fn() -> bool + Sync,
    ) -> (Vec<Put>, Vec<Failure>) {
        assert_eq!(files.len(), shards.shards());
        let at_once = shards_at_once(files.len(), self.how.threads);
        let (calling, stopped) = (thread::current().id(), AtomicBool::new(false));
        let go_on = || {
            if thread::current().id() == calling && !go_on() {
                stopped.store(true, Ordering::Relaxed);
            }
            !stopped.load(Ordering::Relaxed)
        };
        let failures = Failures::default();
        let found = Batches::each(files.len(), at_once).within(self.how.threads).run(
            || (Space::default(), Vec::new()),
            |(space, puts), range| {
                for shard in range {
                    failures.watch(shard, || {
                        if go_on() {
                            let put = self.put_shard(shard, shards, &files[shard], space, |file, jobs, start, _| {
                                self.stream(file, jobs, start, self.how.threads / at_once, &go_on)
                            })?;
                            puts.push((shard, put));
                        }
                        Ok(())
                    });
                }
            },
        );
        let mut puts = vec![Put::Left; files.len()];
        found.into_iter().flat_map(|(_, puts)| puts).for_each(|(shard, put)| puts[shard] = put);
        (puts, failures.sorted())
    }

    /// As `run_into`, where a file keeps what is stored and not named by the jobs: of their chunks, none of which may have
    /// more than `most` bytes, and all others of a shard. Nothing for a file that is the caller's to change.
    pub fn run_changes(
        &'a self,
        files: &[NewFile],
        shards: Option<&ShardTable>,
        most: u64,
    ) -> (Vec<Option<Changed>>, Vec<Failure>) {
        let (changed, failures) = self.for_files(files, shards, |file, space, memory| {
            self.change(file, shards, &files[file], most, space, memory)
        });
        (changed.into_iter().map(Option::flatten).collect(), failures)
    }

    /// Call `work` for the number of each file, in threads, and return what it gave.
    fn for_files<T: Send>(
        &'a self,
        files: &[NewFile],
        shards: Option<&ShardTable>,
        work: impl Fn(usize, &mut Space, &mut Scratch) -> Outcome<T> + Sync,
    ) -> (Vec<Option<T>>, Vec<Failure>) {
        assert_eq!(files.len(), shards.map_or(self.jobs.len(), ShardTable::shards));
        let failures = Failures::default();
        let mut geometry = ChunkGeometry::default();
        let sizes = (0..files.len()).map(|file| {
            let mut jobs = shards.map_or(file..file + 1, |shards| shards.jobs(file));
            jobs.try_fold(FILE_BYTES, |size, job| size.checked_add(self.work(&mut geometry, job))).unwrap_or(usize::MAX)
        });
        let batches = self.shared(Batches::new(sizes, self.how.threads), 0..self.jobs.len());
        let states = batches.run(
            || Space::with_memory(batches.crew()),
            |(space, memory, found), range| {
                for file in range {
                    failures.watch(file, || {
                        found.push((file, work(file, space, memory)?));
                        Ok(())
                    });
                }
            },
        );
        let mut all: Vec<Option<T>> = files.iter().map(|_| None).collect();
        for (space, memory, found) in states {
            for (file, each) in found {
                all[file] = Some(each);
            }
            space.keep(memory);
        }
        (all, failures.sorted())
    }

    fn put(&self, job: usize, file: &NewFile, space: &mut Space) -> Outcome<Put> {
        let steps = self.pipeline.steps();
        let chunk = if steps.compressor.is_none() { self.look(job, space)? } else { self.compress(job, space)? };
        let done = match chunk {
            Chunk::Empty => return Ok(Put::Empty),
            Chunk::Held { piece, start, length, .. } => {
                let done = file.put(&[SharedBytes::of(&space.pieces[piece][start..start + length])], false);
                space.pieces.drain(..piece); // too short for what comes
                space.pieces[0].clear();
                done
            }
            Chunk::Raw(length) => {
                let Space { content, old, geometry, transfer, .. } = space;
                let whole = self.plan(job, geometry, transfer)?;
                match self.in_place(transfer, length) {
                    Some(elements) if whole && !self.pipeline.changes_elements() => file.put(&[elements], false),
                    _ => {
                        let mut span = Span::over(content.take(length)?);
                        self.gather(job, transfer, whole, geometry.nbytes, &mut span, old)?;
                        self.pipeline.encode_elements(span.written());
                        append_sums(&mut span);
                        file.put(&[SharedBytes::of(span.written())], false)
                    }
                }
            }
        };
        Ok(if done { Put::Done } else { Put::Left })
    }

    /// Put a shard into its file, to which `stream` writes jobs, from a byte on.
    fn put_shard(
        &'a self,
        shard: usize,
        shards: &ShardTable,
        file: &NewFile,
        space: &mut Space,
        stream: impl FnOnce(&File, Range<usize>, usize, &mut Space) -> Outcome<Streamed>,
    ) -> Outcome<Put> {
        let mut index = Scratch::new();
        let index = index.take(shards.index_size())?;
        if let Some((content, chunks)) = self.shard_in_place(shard, shards, space)? {
            shards.write_index(&chunks, index);
            return Ok(if file.put(&[content, SharedBytes::of(index)], true) { Put::Done } else { Put::Left });
        }
        let (mut outcome, mut is_empty) = (Ok(()), false);
        let done = file.put_by(
            |file| {
                let (chunks, end) = match stream(file, shards.jobs(shard), shards.head(), space) {
                    Ok(streamed) => streamed?,
                    Err(reason) => {
                        outcome = Err(reason);
                        return Ok(false);
                    }
                };
                is_empty = chunks.is_empty();
                if is_empty {
                    return Ok(false);
                }
                shards.write_index(&chunks, index);
                file.write_all_at(index, if shards.head() > 0 { 0 } else { end })?;
                Ok(true)
            },
            true,
        );
        outcome?;
        Ok(match done {
            true => Put::Done,
            false if is_empty => Put::Empty,
            false => Put::Left,
        })
    }

    /// Encode jobs and write them to `file` one after the other, from its byte `end` on, some in `memory` at a time.
    fn stream_alone(
        &self,
        file: &File,
        jobs: Range<usize>,
        start: usize,
        (space, memory): (&mut Space, &mut Scratch),
    ) -> Outcome<Streamed> {
        let (mut all, mut end) = (Vec::with_capacity(jobs.len()), start as u64);
        for range in self.batches(jobs.clone(), 1).ranges() {
            let batch = jobs.start + range.start..jobs.start + range.end;
            let memory = memory.take(self.bound(batch.clone(), space)?)?;
            let (chunks, length) = self.fill(batch, memory, 0, space)?;
            if let Err(error) = file.write_all_at(&memory[..length], end) {
                return Ok(Err(error));
            }
            all.extend(chunks.into_iter().map(|(job, place, length)| (job, end + place, length)));
            end += length as u64;
        }
        Ok(Ok((all, end)))
    }

    fn batches(&self, jobs: Range<usize>, threads: usize) -> Batches {
        let mut geometry = ChunkGeometry::default();
        self.shared(Batches::new(jobs.clone().map(|job| self.work(&mut geometry, job)), threads), jobs)
    }

    /// Threads share the chunks of these jobs if these are large enough.
    fn shared(&self, batches: Batches, mut jobs: Range<usize>) -> Batches {
        let (steps, mut geometry) = (self.pipeline.steps(), ChunkGeometry::default());
        let shared = jobs.any(|job| steps.can_be_shared(self.nbytes(&mut geometry, job)));
        if shared { batches.shared() } else { batches }
    }

    /// As `stream_alone`, by so many threads.
    fn stream(
        &self,
        file: &File,
        jobs: Range<usize>,
        start: usize,
        threads: usize,
        go_on: &(impl Fn() -> bool + Sync),
    ) -> Outcome<Streamed> {
        let (failures, broken) = (Failures::default(), Mutex::new(None));
        let batches = self.batches(jobs.clone(), threads).within(self.how.threads);
        let turns = Turns::new(start as u64);
        let caller = thread::current().id();
        let states = batches.run(
            || Space::with_memory(batches.crew()),
            |(space, memory, found), range| {
                let number = batches.number(range.start);
                let batch = jobs.start + range.start..jobs.start + range.end;
                let mut encoded = None;
                if turns.go_on() {
                    failures.watch(batch.start, || {
                        if thread::current().id() == caller && !go_on() {
                            return Ok(());
                        }
                        let memory = memory.take(self.bound(batch.clone(), space)?)?;
                        let (chunks, end) = self.fill(batch, memory, 0, space)?;
                        encoded = Some((chunks, &memory[..end]));
                        Ok(())
                    });
                }
                // whoever has nothing to write stops all others
                let Some(offset) = turns.take(number, encoded.as_ref().map(|(_, bytes)| bytes.len())) else { return };
                let Some((chunks, bytes)) = encoded else { return };
                if let Err(error) = file.write_all_at(bytes, offset) {
                    turns.stop();
                    *broken.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                }
                found.extend(chunks.into_iter().map(|(job, place, length)| (job, offset + place, length)));
            },
        );
        if let Some((_, reason)) = failures.sorted().into_iter().next() {
            return Err(reason);
        }
        if let Some(error) = broken.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            return Ok(Err(error));
        }
        let Some(end) = turns.end() else { return Ok(Err(io::ErrorKind::Interrupted.into())) };
        let mut all = Vec::with_capacity(jobs.len());
        for (space, memory, found) in states {
            all.extend(found);
            space.keep(memory);
        }
        Ok(Ok((all, end)))
    }

    /// The most bytes that some jobs take one after the other.
    fn bound(&self, mut jobs: Range<usize>, space: &mut Space) -> Outcome<usize> {
        jobs.try_fold(0usize, |most, job| {
            let bound = self.pipeline.steps().encoded_bound(self.nbytes(&mut space.geometry, job))?;
            most.checked_add(bound).ok_or("the shard is too large".into())
        })
    }

    /// Encode jobs one after the other into `memory`, from its byte `start` on: number, offset and length of each that is
    /// not empty, and where the last one ends.
    fn fill(
        &self,
        jobs: Range<usize>,
        memory: &mut [u8],
        start: usize,
        space: &mut Space,
    ) -> Outcome<(Vec<Placed>, usize)> {
        let raw = self.pipeline.steps().compressor.is_none();
        let (mut chunks, mut end) = (Vec::with_capacity(jobs.len()), start);
        for job in jobs {
            let chunk = if raw { self.look(job, space)? } else { self.compress(job, space)? };
            let length = match chunk {
                Chunk::Empty => continue,
                Chunk::Raw(length) | Chunk::Held { length, .. } => length,
            };
            let mut span = Span::over(&mut memory[end..end + length]);
            if let Chunk::Held { piece, start, .. } = chunk {
                span.append(&space.pieces[piece][start..start + length]);
                space.pieces.drain(..piece); // too short for what comes
                space.pieces[0].clear();
            } else {
                self.write_raw(job, &mut span, space)?;
            }
            chunks.push((job, end as u64, length as u64));
            end += length;
        }
        Ok((chunks, end))
    }

    /// Change the chunks of a file that are jobs: lock it, read and change what is stored, write a new file, and rename it.
    /// The lock ends when `old` goes.
    fn change(
        &self,
        number: usize,
        shards: Option<&ShardTable>,
        file: &NewFile,
        most: u64,
        space: &mut Space,
        memory: &mut Scratch,
    ) -> Outcome<Option<Changed>> {
        let Some(old) = file.before(shards.is_some()).unwrap_or(None) else { return Ok(None) };
        if let (None, Some(elements)) = (shards, self.chunk_in_place(number, space)?) {
            let done = file.renew(old.as_ref(), |file| elements.write_to(file));
            let changed = || Changed { status: None, entries: Vec::new(), old: old.and_then(OldFile::release) };
            return Ok(done.then(changed));
        }
        let stored = old.as_ref().map(|old| Readable::File(readable::File::of_size(old.fd(), old.size())));
        if let (None, Some(stored)) = (shards, stored)
            && let Some(content) =
                self.changed_in_place(number, (stored, old.as_ref().map_or(0, OldFile::size)), space, memory)?
        {
            let done = file.renew(old.as_ref(), |file| SharedBytes::of(content).write_to(file));
            let changed = || Changed { status: None, entries: Vec::new(), old: old.and_then(OldFile::release) };
            return Ok(done.then(changed));
        }
        let before = match (shards, &old, stored) {
            (Some(shards), Some(old), Some(stored)) => shards.read_index(stored, old.size(), most)?,
            (Some(shards), ..) => Some(shards.nothing()?),
            (None, Some(old), _) => (old.size() <= most).then(|| vec![Entry { offset: 0, length: old.size() }]),
            (None, None, _) => Some(vec![Entry::MISSING]),
        };
        let Some(before) = before else { return Ok(None) };
        let jobs = shards.map_or(number..number + 1, |shards| shards.jobs(number));
        let mut table = Vec::with_capacity(jobs.len() * (3 + self.axes.len()));
        for job in jobs.clone() {
            let entry = before[shards.map_or(0, |shards| shards.row(job))];
            table.extend([0, entry.offset as i64, entry.length as i64]);
            table.extend_from_slice(self.jobs.rows(job));
        }
        let table = JobTable::new(table, 3, self.axes.len())?;
        let sources: Vec<Source> = stored.map(Source::Read).into_iter().collect();
        let own = Encode::new(self.pipeline, &sources, self.values, &table, self.axes, self.how)?;
        let memory = memory.take(own.bound(0..table.len(), space)?)?;
        let (chunks, end) = own.fill(0..table.len(), memory, 0, space)?;
        let new = &memory[..end];
        let (status, entries) = match shards {
            None if chunks.is_empty() => return Ok(None),
            None if file.renew(old.as_ref(), |file| SharedBytes::of(new).write_to(file)) => (None, Vec::new()),
            None => return Ok(None),
            Some(shards) => {
                let mut rows: Vec<_> = jobs.map(|job| (shards.row(job), None)).collect();
                for (job, offset, length) in chunks {
                    rows[job].1 = Some(offset as usize..(offset + length) as usize);
                }
                let Some(merged) = MergedShard::new(shards, &before, &rows) else { return Ok(None) };
                let place = old.as_ref().map(|old| (old.fd(), old.size()));
                let made = file.make(old.as_ref(), |file| merged.write(shards, new, place, file));
                if made.is_none() {
                    return Ok(None);
                }
                (made, merged.entries)
            }
        };
        Ok(Some(Changed { status, entries, old: old.and_then(OldFile::release) }))
    }

    /// The chunk of a job, if all of it is new, not empty, and stored as it lies in `values`.
    fn chunk_in_place(&self, job: usize, space: &mut Space) -> Outcome<Option<SharedBytes<'a>>> {
        if !self.is_stored_as_it_is() || !self.plan(job, &mut space.geometry, &mut space.transfer)? {
            return Ok(None);
        }
        let elements = self.in_place(&space.transfer, space.geometry.nbytes);
        Ok(elements.filter(|elements| self.how.write_empty || !self.pipeline.fill().is_all_of_shared(*elements)))
    }

    /// The chunk of a job, of which a part is `stored` in a file of this size, in `memory`, if it is not empty, and stored as it lies there. What
    /// is new is not read where it is one large run.
    fn changed_in_place<'m>(
        &self,
        job: usize,
        (stored, size): (Readable, u64),
        space: &mut Space,
        memory: &'m mut Scratch,
    ) -> Outcome<Option<&'m [u8]>> {
        let Space { geometry, transfer, .. } = space;
        if !self.is_stored_as_it_is() || self.plan(job, geometry, transfer)? || size != geometry.nbytes as u64 {
            return Ok(None); // of another size it is damaged, which is said where it is to be decoded
        }
        let content = memory.take(geometry.nbytes)?;
        let run = transfer.single_run().filter(|&run| run >= WORTH_TWO_READS);
        let new = run.and_then(|run| {
            let start = usize::try_from(transfer.target_start()).ok()?;
            (start <= content.len() && run <= content.len() - start).then_some(start..start + run)
        });
        match new {
            Some(Range { start, end }) => {
                stored.read(0, &mut content[..start], &mut [])?;
                stored.read(end as u64, &mut content[end..], &mut [])?;
            }
            None => stored.read(0, content, &mut [])?,
        }
        // SAFETY: as in `gather`: the rows name elements of `values`, and bytes of a chunk of so many.
        unsafe { transfer.copy(self.values.base(), content.as_mut_ptr()) };
        let is_empty = !self.how.write_empty && self.pipeline.fill().is_all_of(content);
        Ok((!is_empty).then_some(content))
    }

    /// Whether the bytes of chunks are those of their elements.
    fn is_stored_as_it_is(&self) -> bool {
        let steps = self.pipeline.steps();
        steps.compressor.is_none() && steps.inner_sums + steps.outer_sums == 0 && !self.pipeline.changes_elements()
    }

    /// The chunks of a shard, if they are stored as they lie in `values`, one after the other there, too, and where each
    /// is in the shard.
    fn shard_in_place(
        &self,
        shard: usize,
        shards: &ShardTable,
        space: &mut Space,
    ) -> Outcome<Option<(SharedBytes<'a>, Vec<Placed>)>> {
        if !self.is_stored_as_it_is() || shards.head() > 0 {
            return Ok(None);
        }
        let (mut chunks, mut begin, mut size) = (Vec::with_capacity(shards.jobs(shard).len()), None, 0usize);
        for job in shards.jobs(shard) {
            let Chunk::Raw(length) = self.look(job, space)? else { return Ok(None) };
            if self.in_place(&space.transfer, length).is_none() {
                return Ok(None);
            }
            let start = space.transfer.source_start();
            if *begin.get_or_insert(start) + size as isize != start {
                return Ok(None);
            }
            chunks.push((job, size as u64, length as u64));
            size += length;
        }
        // SAFETY: each chunk is in place, in elements of `values`, and begins where the one before ends.
        Ok(begin.map(|begin| (unsafe { self.values.bytes(begin, size) }, chunks)))
    }

    /// Fill `span` with a chunk that nothing compresses.
    fn write_raw(&self, job: usize, span: &mut Span, space: &mut Space) -> Outcome {
        let Space { old, geometry, transfer, .. } = space;
        let whole = self.plan(job, geometry, transfer)?;
        self.gather(job, transfer, whole, geometry.nbytes, span, old)?;
        self.pipeline.encode_elements(span.written());
        append_sums(span);
        Ok(())
    }

    fn set_geometry(&self, geometry: &mut ChunkGeometry, job: usize) -> Outcome {
        let rows = self.jobs.rows(job);
        self.pipeline.shape(geometry, self.axes.iter().zip(rows).map(|(axis, &row)| axis.row(row as usize).extent))
    }

    /// Prepare the copy of a job's elements to its chunk; whether they are all of the chunk's elements.
    fn plan(&self, job: usize, geometry: &mut ChunkGeometry, transfer: &mut Transfer) -> Outcome<bool> {
        self.set_geometry(geometry, job)?;
        let rows = self.jobs.rows(job);
        let sides = Sides {
            chunk: &geometry.strides,
            array: self.values.strides(),
            item: self.pipeline.item(),
            direction: Direction::Gather,
            // what is not compressed goes right to the result
            reads_far: self.pipeline.steps().compressor.is_some(),
        };
        transfer.plan(self.axes, rows, &sides);
        Ok(self.axes.iter().zip(rows).all(|(axis, &row)| {
            let row = axis.row(row as usize);
            row.count == row.extent && row.listed.is_none() && (row.count <= 1 || row.step.unsigned_abs() == 1)
        }))
    }

    /// The chunk's elements, if they lie in `values` as the chunk wants them.
    fn in_place(&self, transfer: &Transfer, nbytes: usize) -> Option<SharedBytes<'a>> {
        if nbytes == 0 || transfer.single_run() != Some(nbytes) || transfer.target_start() != 0 {
            return None;
        }
        // SAFETY: one run holds all elements that the rows name, which are elements of `values`: `new` has compared
        // its shape with the lengths that `AxisRows` keeps to.
        Some(unsafe { self.values.bytes(transfer.source_start(), nbytes) })
    }

    /// Append the chunk's elements, in the order of the encoded chunk and `nbytes` in all, to `span`.
    ///
    /// `transfer` is what `plan` made for this job, and `whole` what it returned.
    fn gather(
        &self,
        job: usize,
        transfer: &Transfer,
        whole: bool,
        nbytes: usize,
        span: &mut Span,
        space: &mut ReadSpace,
    ) -> Outcome {
        let source = self.values.base();
        if whole {
            // SAFETY: the rows name elements of `values` (see `in_place`), and bytes of a chunk of `nbytes`, to whose
            // extents `AxisRows` keeps. They name all of these: along each axis as many as there are, one after the
            // other. The target is memory of ours, borrowed mutably by `span`.
            unsafe { span.append_with(nbytes, |target| transfer.copy(source, target)) };
            return Ok(());
        }
        self.put_old(job, nbytes, span, space)?;
        let end = span.written().len();
        let target = &mut span.written()[end - nbytes..];
        // SAFETY: as above, but that the rest of the chunk has been written already.
        unsafe { transfer.copy(source, target.as_mut_ptr()) };
        Ok(())
    }

    /// Append what is stored of a chunk to `span`; the fill value if nothing is.
    fn put_old(&self, job: usize, nbytes: usize, span: &mut Span, space: &mut ReadSpace) -> Outcome {
        match fetch_one(self.sources, self.jobs, job, &mut space.read)? {
            None => self.pipeline.fill().append_to(span, nbytes),
            Some(stored) => {
                let body = self.pipeline.steps().strip_outer(stored, nbytes)?;
                span.append(&space.chunk.elements(self.pipeline, body, nbytes)?[..nbytes]);
            }
        }
        Ok(())
    }

    /// Whether the first of the elements is the fill value (or there is none).
    fn begins_with_fill(&self, transfer: &Transfer) -> bool {
        transfer.first_source().is_none_or(|start| {
            // SAFETY: the rows name elements of `values` (see `in_place`), of which this is one.
            self.pipeline.fill().is_all_of_shared(unsafe { self.values.bytes(start, self.pipeline.item()) })
        })
    }

    /// Whether a chunk that is not compressed is empty, and its size otherwise.
    fn look(&self, job: usize, space: &mut Space) -> Outcome<Chunk> {
        let Space { content, old, geometry, transfer, .. } = space;
        let whole = self.plan(job, geometry, transfer)?;
        let nbytes = geometry.nbytes;
        if !self.how.write_empty && self.begins_with_fill(transfer) {
            let empty = match self.in_place(transfer, nbytes) {
                Some(elements) => self.pipeline.fill().is_all_of_shared(elements),
                None => {
                    let mut span = Span::over(content.take(nbytes)?);
                    self.gather(job, transfer, whole, nbytes, &mut span, old)?;
                    self.pipeline.fill().is_all_of(span.written())
                }
            };
            if empty {
                return Ok(Chunk::Empty);
            }
        }
        let sums = self.pipeline.steps().outer_sums * sum::SIZE;
        Ok(Chunk::Raw(nbytes.checked_add(sums).ok_or("the chunk is too large")?))
    }

    fn compress(&self, job: usize, space: &mut Space) -> Outcome<Chunk> {
        let Space { content, old, geometry, transfer, pieces, .. } = space;
        let whole = self.plan(job, geometry, transfer)?;
        let nbytes = geometry.nbytes;
        let steps = self.pipeline.steps();
        let bound = steps.encoded_bound(nbytes)?;
        // always a copy: compressors look at their input more than once, and `values` may change in between
        let mut span = Span::over(content.take(steps.with_inner_sums(nbytes))?);
        self.gather(job, transfer, whole, nbytes, &mut span, old)?;
        if !self.how.write_empty && self.pipeline.fill().is_all_of(span.written()) {
            return Ok(Chunk::Empty);
        }
        self.pipeline.encode_elements(span.written());
        append_sums(&mut span);
        let elements = &*span.written();
        if pieces.last().is_none_or(|piece| piece.capacity() - piece.len() < bound) {
            let mut piece = Vec::new();
            let size = bound.max(PIECE);
            piece.try_reserve_exact(size).map_err(|_| Reason::NoMemory(size))?;
            pieces.push(piece);
        }
        let number = pieces.len() - 1;
        let piece = &mut pieces[number];
        let start = piece.len();
        steps.compress(elements, piece, &mut old.encoders)?;
        Ok(Chunk::Held { thread: 0, piece: number, start, length: piece.len() - start })
    }
}

/// How many of so many shards are made at a time, each by an equal share of the threads: no more than can have two of
/// them, and as many each time.
fn shards_at_once(shards: usize, threads: usize) -> usize {
    let most = (threads / THREADS_OF_A_SHARD).max(1);
    shards.div_ceil(shards.div_ceil(most).max(1)).max(1)
}

/// Fill the room of `span` with checksums, each of all that is before.
fn append_sums(span: &mut Span) {
    let mut computed = if span.room() > 0 { sum::crc32c(0, span.written()) } else { 0 };
    while span.room() > 0 {
        let sum = computed.to_le_bytes();
        span.append(&sum);
        if span.room() > 0 {
            computed = sum::crc32c(computed, &sum);
        }
    }
}

impl Encoded<'_> {
    /// Write all chunks to `target`, which has `nbytes` bytes; the failures of jobs that fail now, which are not stored
    /// then. All bytes of `target` are initialized afterwards: zeros are where a job failed.
    pub fn write(&mut self, target: &mut [MaybeUninit<u8>]) -> Vec<Failure> {
        let failures = self.write_all(target);
        for (job, _) in &failures {
            let number = job - self.first;
            (self.offsets[number], self.lengths[number]) = (MISSING, MISSING);
        }
        failures
    }

    fn write_all(&self, target: &mut [MaybeUninit<u8>]) -> Vec<Failure> {
        assert_eq!(target.len(), self.nbytes);
        let failures = Failures::default();
        let length = |number: usize| if self.lengths[number] == MISSING { 0 } else { self.lengths[number] as usize };
        let batches = Batches::new((0..self.lengths.len()).map(length), self.call.how.threads);
        // chunks lie one after the other: each batch has a share, and in that each chunk
        let mut rest = target;
        let cut = |range: Range<usize>| {
            let (share, others) = std::mem::take(&mut rest).split_at_mut(range.map(length).sum());
            rest = others;
            Mutex::new(share)
        };
        let shares: Vec<_> = batches.ranges().map(cut).collect();
        batches.run(Space::default, |space, range| {
            let mut share = shares[batches.number(range.start)].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let mut rest = &mut **share;
            for number in range.filter(|&number| self.offsets[number] != MISSING) {
                let (own, others) = rest.split_at_mut(length(number));
                rest = others;
                let mut span = Span::new(own);
                if !failures.watch(self.first + number, || self.write_chunk(number, &mut span, space)) {
                    span.clear();
                }
            }
        });
        failures.sorted()
    }

    fn write_chunk(&self, number: usize, span: &mut Span, space: &mut Space) -> Outcome {
        match self.chunks[number] {
            Chunk::Empty => {}
            Chunk::Held { thread, piece, start, length } => {
                span.append(&self.pieces[thread][piece][start..start + length]);
            }
            Chunk::Raw(_) => self.call.write_raw(self.first + number, span, space)?,
        }
        if span.room() > 0 { Err("too few bytes".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::shared_integers::integers;
    use crate::plan::axis_rows::StridedArrays;
    use crate::steps::{Compressor, Steps};

    /// Two chunks of 8 bytes, each changed in part, of which the second is stored damaged.
    #[test]
    fn what_fails_leaves_zeros() {
        for compressor in [None, Some(Compressor::Gzip { level: 1 })] {
            let raw = compressor.is_none();
            let steps = Steps { compressor, inner_sums: 0, outer_sums: 1 };
            let pipeline = Pipeline::new(vec![0], None, false, vec![0], steps).unwrap();
            let mut stored = Vec::with_capacity(1000);
            pipeline.steps().compress(&[5; 8], &mut stored, &mut crate::steps::encoders::Encoders::default()).unwrap();
            let length = stored.len() as i64;
            let mut damaged = stored.clone();
            damaged[length as usize - 1] ^= 1;
            let sources = [Source::Bytes(&stored), Source::Bytes(&damaged)];
            let jobs = JobTable::new(vec![0, 0, length, 0, 1, 0, length, 1, 0, 0, length, 0], 3, 1).unwrap();
            let content = [9; 2];
            // SAFETY: two bytes are there.
            let values = unsafe { StridedMemory::new(content.as_ptr(), vec![2], vec![1], 1) }.unwrap();
            let arrays = StridedArrays {
                extents: &integers([8, 8]),
                first: &integers([3, 3]),
                count: &integers([1, 1]),
                out_first: &integers([0, 1]),
                step: 1,
            };
            let axes = [AxisRows::strided(&arrays, 0..2, 2).unwrap()];
            let how = How { write_empty: false, threads: 2, head: 100 };
            let call = Encode::new(&pipeline, &sources, &values, &jobs, &axes, how).unwrap();
            assert_eq!(call.groups().len(), 1);
            let (mut encoded, failures) = call.run(0..3, 0).unwrap();
            let (lengths, nbytes) = (encoded.lengths.clone(), encoded.nbytes);
            let mut target = vec![MaybeUninit::new(0xab); nbytes];
            let later = encoded.write(&mut target);
            assert_eq!((failures.len(), later.len()), if raw { (0, 1) } else { (1, 0) });
            // SAFETY: initialized above, and by `write`.
            let bytes: Vec<u8> = target.iter().map(|byte| unsafe { byte.assume_init() }).collect();
            let size = lengths[0] as usize;
            assert_eq!(bytes[..size], bytes[bytes.len() - size..]);
            if raw {
                assert_eq!(bytes[..8], [5, 5, 5, 9, 5, 5, 5, 5]);
                assert_eq!(bytes[12..24], [0; 12]);
                assert_eq!((encoded.offsets[1], encoded.offsets[2]), (MISSING, 124));
            }
            // in another group, behind what is there already
            let (mut last, none) = call.run(2..3, 7).unwrap();
            let mut target = vec![MaybeUninit::new(0xab); last.nbytes];
            assert_eq!((none, last.write(&mut target)), (vec![], vec![]));
            assert_eq!((last.offsets[0], last.lengths[0]), (107, size as u64));
        }
    }

    #[test]
    fn groups_are_all_jobs() {
        let axes = [AxisRows::block(GROUP as i64 / 3, 0, 1).unwrap()];
        let content = [9; 1];
        // SAFETY: one byte is there.
        let values = unsafe { StridedMemory::new(content.as_ptr(), vec![1], vec![1], 1) }.unwrap();
        let how = How { write_empty: false, threads: 1, head: 0 };
        for (compressor, stops) in [(None, vec![7]), (Some(Compressor::Gzip { level: 1 }), vec![4, 7])] {
            let steps = Steps { compressor, inner_sums: 0, outer_sums: 0 };
            let pipeline = Pipeline::new(vec![0], None, false, vec![0], steps).unwrap();
            for (count, stops) in [(7, stops), (0, vec![])] {
                let jobs = JobTable::new(vec![0; count], 0, 1).unwrap();
                let groups = Encode::new(&pipeline, &[], &values, &jobs, &axes, how).unwrap().groups();
                assert!(groups.iter().map(|group| group.end).eq(stops));
                assert!(groups.iter().flat_map(|group| group.clone()).eq(0..count));
            }
        }
    }

    #[test]
    fn calls_that_do_not_fit_together_cannot_be_made() {
        let pipeline = Pipeline::new(vec![0], None, false, vec![0], Steps::default()).unwrap();
        let content = [9; 4];
        // SAFETY: four bytes are there.
        let values = unsafe { StridedMemory::new(content.as_ptr(), vec![4], vec![1], 1) }.unwrap();
        let how = How { write_empty: false, threads: 1, head: 0 };
        let jobs = JobTable::new(vec![0], 0, 1).unwrap();
        for (axes, right) in [
            (vec![AxisRows::block(4, 0, 4).unwrap()], true),
            (vec![AxisRows::block(5, 0, 5).unwrap()], false),
            (vec![AxisRows::block(5, 0, 3).unwrap()], false),
            (vec![], false),
        ] {
            assert_eq!(Encode::new(&pipeline, &[], &values, &jobs, &axes, how).is_ok(), right);
        }
    }
}
