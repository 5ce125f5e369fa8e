//! Chunks that hold one byte string each, read one after the other into one piece of memory.
//!
//! Such a chunk is the number of its elements, which is one, and that of their bytes, both words of four bytes, little
//! endian; then the bytes; then checksums, each of all that stands before it. Those that follow each other in a file, or
//! nearly so, are read by one call of the system, each to where it belongs. Whatever is unusual fails, and is the caller's to do.

use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::decode::sources::Source;
use crate::files::readable::Readable;
use crate::memory::byte_strings::ByteString;
use crate::memory::strided_memory::SharedBytes;
use crate::plan::job_table::{JobTable, Stored};
use crate::plan::shard_table::ShardTable;
use crate::steps::sum;
use crate::threads::workers::{Batches, Failures};
use crate::{Outcome, Reason};

/// Bytes in front of the byte string.
const HEAD: usize = 8;
/// Chunks that are read together.
const MOST_TOGETHER: usize = 250;
/// Reading a chunk takes as long as to look at so many bytes.
const READING: usize = 4 * 1024;

/// Bytes between two chunks that are read with them sooner than that a second call is made.
const GAP: usize = 4 * 1024;

/// Bytes that are read at a time where they are looked at in turn: what a processor's cache holds.
const SPACE: usize = 128 * 1024;

/// What is used from run to run: bytes between the chunks of a run, and space for what is around their byte strings, and
/// for those between them.
#[derive(Default)]
struct Space {
    gaps: Vec<usize>,
    around: Vec<u8>,
    between: Vec<u8>,
}

/// A call.
pub struct Elements<'a> {
    sources: &'a [Source<'a>],
    jobs: &'a JobTable,
    sums: usize,
    /// Of each byte string; 0 of one that is not stored.
    lengths: Vec<usize>,
    total: usize,
}

impl<'a> Elements<'a> {
    /// `jobs` of the columns source, offset and length, which have so many checksums each; nothing where a chunk is too
    /// short for that.
    pub fn new(sources: &'a [Source<'a>], jobs: &'a JobTable, sums: usize) -> Result<Option<Self>, String> {
        jobs.check_sources(sources.len())?;
        let around = sums.checked_mul(sum::SIZE).and_then(|size| size.checked_add(HEAD)).ok_or("too many checksums")?;
        let length = |job| match jobs.stored(job) {
            Stored::Missing => Some(0),
            Stored::At { length, .. } => length.checked_sub(around),
            Stored::Impossible => None,
        };
        let Some(lengths) = (0..jobs.len()).map(length).collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let total = lengths.iter().try_fold(0usize, |total, &length| total.checked_add(length));
        Ok(total.map(|total| Elements { sources, jobs, sums, lengths, total }))
    }

    /// Bytes of all byte strings.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Bytes of the byte strings of some jobs.
    pub fn total_of(&self, jobs: Range<usize>) -> usize {
        self.lengths[jobs].iter().sum()
    }

    /// How many jobs there are.
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes of the byte string of a job.
    pub fn length(&self, job: usize) -> usize {
        self.lengths[job]
    }

    /// The jobs for some threads.
    pub fn batches(&self, threads: usize) -> Batches {
        Batches::new(self.lengths.iter().map(|&length| length.saturating_add(READING)), threads)
    }

    /// Fill `out`, which is as long as all byte strings. It holds anything where that fails.
    pub fn read(&self, out: &mut [u8], threads: usize) -> Outcome {
        self.read_apart(vec![(self.lengths.len(), out)], threads)
    }

    /// As `read`, into several outputs: each with the number of the first job that is not for it, up to that of all.
    pub fn read_apart(&self, outs: Vec<(usize, &mut [u8])>, threads: usize) -> Outcome {
        let mut start = 0;
        for (end, out) in &outs {
            if !(start..=self.lengths.len()).contains(end) || out.len() != self.total_of(start..*end) {
                return Err("an output of another length".into());
            }
            start = *end;
        }
        if start != self.lengths.len() {
            return Err("jobs without an output".into());
        }
        let batches = self.batches(threads);
        let mut outs = outs.into_iter();
        let mut out: (usize, &mut [u8]) = (0, &mut []);
        let mut next = |job: usize| {
            while job >= out.0 {
                out = outs.next().expect("there are outputs for all jobs");
            }
            out.1.split_off_mut(..self.lengths[job]).unwrap_or_default()
        };
        let parts: Vec<Mutex<Vec<&mut [u8]>>> =
            batches.ranges().map(|range| Mutex::new(range.map(&mut next).collect())).collect();
        let failures = Failures::default();
        batches.run(Space::default, |space, range| {
            let mut targets = parts[batches.number(range.start)].lock().unwrap_or_else(PoisonError::into_inner);
            let mut start = range.start;
            while start < range.end {
                let end = self.end_of_run(start, range.end, &mut space.gaps);
                let some = &mut targets[start - range.start..end - range.start];
                if !failures.watch(start, || self.read_run(start..end, some, space)) {
                    break;
                }
                start = end;
            }
        });
        failures.sorted().into_iter().next().map_or(Ok(()), |(_, reason)| Err(reason))
    }

    /// Read some jobs into `space`, a few at a time, and give each byte string to `take`; that of one that is not stored
    /// is empty.
    pub fn read_in_turn(
        &self,
        jobs: Range<usize>,
        space: &mut Vec<u8>,
        mut take: impl FnMut(usize, &[u8]) -> Outcome,
    ) -> Outcome {
        let (mut start, mut gaps) = (jobs.start, Vec::new());
        let around = HEAD + self.sums * sum::SIZE;
        while start < jobs.end {
            let Stored::At { source, offset, .. } = self.jobs.stored(start) else {
                take(start, &[])?;
                start += 1;
                continue;
            };
            let mut end = self.end_of_run(start, jobs.end, &mut gaps);
            let mut size = self.lengths[start] + around;
            for job in start + 1..end {
                let more = gaps[job - start - 1] + self.lengths[job] + around;
                if size + more > SPACE {
                    end = job;
                    break;
                }
                size += more;
            }
            let from = self.readable(source)?;
            from.check(offset, size)?;
            if space.len() < size {
                let more = size - space.len();
                space.try_reserve_exact(more).map_err(|_| Reason::NoMemory(size))?;
                space.resize(size, 0);
            }
            from.read(offset, &mut space[..size], &mut [])?;
            let mut rest = &space[..size];
            for job in start..end {
                let gap = if job == start { 0 } else { gaps[job - start - 1] };
                let (head, after) = rest[gap..].split_at(HEAD);
                let (content, after) = after.split_at(self.lengths[job]);
                let (sums, after) = after.split_at(self.sums * sum::SIZE);
                check(head, content, sums)?;
                take(job, content)?;
                rest = after;
            }
            start = end;
        }
        Ok(())
    }

    fn readable(&self, source: usize) -> Outcome<Readable<'_>> {
        match &self.sources[source] {
            Source::Bytes(bytes) => Ok(Readable::Shared(SharedBytes::of(bytes))),
            Source::Read(readable) => Ok(*readable),
            Source::Named(..) => Err("a file that is still to be opened".into()),
        }
    }

    /// The jobs from `start` to this one (exclusive), before `end`, follow each other in one source; and the bytes
    /// between them, noted in `gaps` for each of them but the first.
    fn end_of_run(&self, start: usize, end: usize, gaps: &mut Vec<usize>) -> usize {
        gaps.clear();
        let Stored::At { source, offset, length } = self.jobs.stored(start) else { return start + 1 };
        let mut stop = offset.checked_add(length as u64);
        for job in start + 1..end.min(start + MOST_TOGETHER) {
            let Stored::At { source: other, offset, length } = self.jobs.stored(job) else { return job };
            let gap = stop.and_then(|stop| offset.checked_sub(stop)).filter(|&gap| gap <= GAP as u64);
            match gap {
                Some(gap) if other == source => gaps.push(gap as usize),
                _ => return job,
            }
            stop = offset.checked_add(length as u64);
        }
        end.min(start + MOST_TOGETHER)
    }

    /// Read chunks that follow each other, with the gaps that `space` tells of.
    fn read_run(&self, jobs: Range<usize>, targets: &mut [&mut [u8]], space: &mut Space) -> Outcome {
        let Stored::At { source, offset, .. } = self.jobs.stored(jobs.start) else { return Ok(()) };
        let from = self.readable(source)?;
        let width = HEAD + self.sums * sum::SIZE;
        let Space { gaps, around, between } = space;
        let inside = targets.iter().fold(jobs.len() * width, |size, target| size + target.len());
        from.check(offset, gaps.iter().fold(inside, |size, gap| size + gap))?;
        around.resize(jobs.len() * width, 0);
        between.resize(gaps.iter().sum(), 0);
        let mut rest = between.as_mut_slice();
        let mut pieces = Vec::with_capacity(4 * jobs.len());
        for (number, (target, around)) in targets.iter_mut().zip(around.chunks_exact_mut(width)).enumerate() {
            let gap = number.checked_sub(1).and_then(|before| gaps.get(before)).copied().unwrap_or(0);
            if gap > 0 {
                pieces.push(IoSliceMut::new(rest.split_off_mut(..gap).unwrap_or_default()));
            }
            let (head, sums) = around.split_at_mut(HEAD);
            pieces.extend([head, target, sums].map(IoSliceMut::new));
        }
        from.read_pieces(offset, &mut pieces)?;
        let mut each = targets.iter().zip(around.chunks_exact(width));
        each.try_for_each(|(content, around)| check(&around[..HEAD], content, &around[HEAD..]))
    }
}

/// Bytes of a chunk of a byte string of so many; nothing where that is too long.
pub fn chunk_size(string: usize, sums: usize) -> Option<usize> {
    u32::try_from(string).ok()?;
    sums.checked_mul(sum::SIZE)?.checked_add(HEAD)?.checked_add(string)
}

/// Fill `chunk`, of the `chunk_size` of `string`, with that chunk.
pub fn fill(chunk: &mut [u8], string: ByteString, sums: usize) {
    let content = HEAD + string.len();
    chunk[..4].copy_from_slice(&1u32.to_le_bytes());
    chunk[4..HEAD].copy_from_slice(&(string.len() as u32).to_le_bytes());
    string.copy_to(&mut chunk[HEAD..content]);
    let (mut computed, mut end) = (0, 0);
    for number in 0..sums {
        let stop = content + number * sum::SIZE;
        computed = sum::crc32c(computed, &chunk[end..stop]);
        chunk[stop..stop + sum::SIZE].copy_from_slice(&computed.to_le_bytes());
        end = stop;
    }
}

/// Byte strings that become chunks, each with what stands around it: values of their own, or one after the other in
/// shards, with the index of each.
pub struct Packing<'a> {
    strings: Vec<ByteString<'a>>,
    /// Checksums of each chunk.
    sums: usize,
    /// Bytes of a chunk beside its byte string.
    around: usize,
    table: Option<ShardTable>,
    sizes: Vec<usize>,
    total: usize,
}

impl<'a> Packing<'a> {
    /// `table` says in which shard and row each byte string goes, and has as many jobs; without one, each is a value.
    /// Chunks have so many checksums.
    pub fn new(strings: Vec<ByteString<'a>>, sums: usize, table: Option<ShardTable>) -> Result<Self, String> {
        let around = sums.checked_mul(sum::SIZE).and_then(|size| size.checked_add(HEAD)).ok_or("too many checksums")?;
        if strings.iter().any(|string| u32::try_from(string.len()).is_err()) {
            return Err("a byte string of more bytes than its length can tell".into());
        }
        let (count, index) = match &table {
            None => (strings.len(), 0),
            Some(table) => (table.shards(), table.index_size()),
        };
        let mut packing = Packing { strings, sums, around, table, sizes: Vec::new(), total: 0 };
        let size = |value| {
            let mut jobs = packing.jobs(value);
            jobs.try_fold(index, |size, job| size.checked_add(packing.strings.get(job)?.len())?.checked_add(around))
        };
        packing.sizes = (0..count).map(size).collect::<Option<Vec<usize>>>().ok_or("too many bytes")?;
        let total = packing.sizes.iter().try_fold(0usize, |total, &size| total.checked_add(size));
        packing.total = total.ok_or("too many bytes")?;
        Ok(packing)
    }

    /// Bytes of each value.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// The chunks of a value.
    pub fn jobs(&self, value: usize) -> Range<usize> {
        self.table.as_ref().map_or(value..value + 1, |table| table.jobs(value))
    }

    /// Bytes in front of the chunks of a value.
    pub fn head(&self) -> usize {
        self.table.as_ref().map_or(0, ShardTable::head)
    }

    /// Bytes behind the chunks of a value.
    pub fn tail(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.index_size() - table.head())
    }

    /// Bytes of a chunk.
    pub fn chunk_size(&self, job: usize) -> usize {
        self.around + self.strings[job].len()
    }

    /// Fill `out`, which is as long as all values, with one after the other.
    pub fn pack(&self, mut out: &mut [u8], threads: usize) -> Outcome {
        if out.len() != self.total {
            return Err("an output of another length".into());
        }
        let mut next = |&size: &usize| Mutex::new(out.split_off_mut(..size).unwrap_or_default());
        let targets: Vec<Mutex<&mut [u8]>> = self.sizes.iter().map(&mut next).collect();
        let failures = Failures::default();
        Batches::new(self.sizes.iter().copied(), threads).run(
            || (),
            |(), range| {
                for value in range {
                    let mut target = targets[value].lock().unwrap_or_else(PoisonError::into_inner);
                    failures.watch(value, || {
                        let (head, size) = (self.head(), target.len());
                        self.write_chunks(self.jobs(value), &mut target[head..size - self.tail()]);
                        let index = if head > 0 { 0..head } else { size - self.tail()..size };
                        self.write_index(value, &mut target[index]);
                        Ok(())
                    });
                }
            },
        );
        failures.sorted().into_iter().next().map_or(Ok(()), |(_, reason)| Err(reason))
    }

    /// Fill `target`, which is as long as these chunks, with one after the other.
    pub fn write_chunks(&self, jobs: Range<usize>, mut target: &mut [u8]) {
        for job in jobs {
            let chunk = target.split_off_mut(..self.chunk_size(job)).expect("so long is the target");
            self.strings.get(job + 1).inspect(|next| next.expect());
            fill(chunk, self.strings[job], self.sums);
        }
    }

    /// Fill `target`, as long as it is, with the index of a value that is a shard.
    pub fn write_index(&self, value: usize, target: &mut [u8]) {
        let Some(table) = &self.table else { return };
        let mut at = table.head() as u64;
        let place = |job| {
            let length = self.chunk_size(job) as u64;
            at += length;
            (job, at - length, length)
        };
        let placed: Vec<_> = table.jobs(value).map(place).collect();
        table.write_index(&placed, target);
    }
}

/// Where in a `chunk`, with so many checksums, its byte string is; `None` where it is not what such a chunk is.
pub fn string_of(chunk: &[u8], sums: usize) -> Option<Range<usize>> {
    let end = chunk.len().checked_sub(sums.checked_mul(sum::SIZE)?)?;
    let (head, content) = chunk[..end].split_at_checked(HEAD)?;
    check(head, content, &chunk[end..]).ok()?;
    Some(HEAD..end)
}

/// See that what stands around a byte string is what has to be there.
fn check(head: &[u8], content: &[u8], sums: &[u8]) -> Outcome {
    if head[..4] != 1u32.to_le_bytes() || head[4..] != (content.len() as u64).to_le_bytes()[..4] {
        return Err("no byte string as long as its chunk".into());
    }
    let mut computed = sum::crc32c(sum::crc32c(0, head), content);
    for stored in sums.chunks_exact(sum::SIZE) {
        if stored != computed.to_le_bytes() {
            return Err("a checksum that is another one".into());
        }
        computed = sum::crc32c(computed, stored);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(content: &[u8], sums: usize) -> Vec<u8> {
        let mut chunk = [1u32.to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
        chunk.extend(content);
        for _ in 0..sums {
            let value = sum::crc32c(0, &chunk);
            chunk.extend(value.to_le_bytes());
        }
        chunk
    }

    fn read(stored: &[u8], jobs: Vec<i64>, sums: usize) -> Option<Vec<u8>> {
        let jobs = JobTable::new(jobs, 3, 0).unwrap();
        let shared = [Source::Read(Readable::Shared(SharedBytes::of(stored)))];
        let constant = [Source::Bytes(stored)];
        let [one, other] = [&shared, &constant].map(|sources| {
            let call = Elements::new(sources, &jobs, sums).unwrap()?;
            let mut out = vec![7; call.total()];
            call.read(&mut out, 3).ok().map(|()| out)
        });
        assert_eq!(one, other);
        one
    }

    #[test]
    fn byte_strings_come_one_after_the_other() {
        for sums in 0..3 {
            let texts: Vec<Vec<u8>> = (0..700).map(|number: usize| vec![number as u8; number * 7 % 300]).collect();
            let (mut stored, mut jobs, mut wanted) = (vec![9; 5], Vec::new(), Vec::new());
            for (number, text) in texts.iter().enumerate() {
                if number % 50 == 49 {
                    jobs.extend([0, -1, -1]);
                    stored.push(3);
                    continue;
                }
                let chunk = chunk(text, sums);
                jobs.extend([0, stored.len() as i64, chunk.len() as i64]);
                stored.extend(chunk);
                wanted.extend(text);
            }
            assert_eq!(read(&stored, jobs, sums), Some(wanted));
        }
    }

    #[test]
    fn what_is_between_chunks_goes_nowhere_and_outputs_are_apart() {
        let texts: Vec<Vec<u8>> = (0..9u8).map(|number| vec![number; 40 * usize::from(number)]).collect();
        let gaps = [0, 1, GAP, GAP + 1, 7, 0, 3 * GAP, 2, 5];
        let (mut stored, mut jobs) = (Vec::new(), Vec::new());
        for (text, gap) in texts.iter().zip(gaps) {
            stored.resize(stored.len() + gap, 77);
            jobs.extend([0, stored.len() as i64, chunk(text, 1).len() as i64]);
            stored.extend(chunk(text, 1));
        }
        assert_eq!(read(&stored, jobs.clone(), 1), Some(texts.concat()));
        let table = JobTable::new(jobs, 3, 0).unwrap();
        let sources = [Source::Bytes(&stored)];
        let call = Elements::new(&sources, &table, 1).unwrap().unwrap();
        let ends = [0, 4, 4, 9];
        let mut outs: Vec<Vec<u8>> = vec![vec![], vec![7; call.total_of(0..4)], vec![], vec![7; call.total_of(4..9)]];
        let pairs = |outs: &mut Vec<Vec<u8>>, ends: &[usize]| {
            let given = outs.iter_mut().zip(ends).map(|(out, &end)| (end, out.as_mut_slice())).collect();
            call.read_apart(given, 2)
        };
        pairs(&mut outs, &ends).unwrap();
        assert_eq!((outs[1].clone(), outs[3].clone()), (texts[..4].concat(), texts[4..].concat()));
        for wrong in [&[0, 4, 4, 10][..], &[0, 4, 3, 9], &[0, 3, 4, 9], &[0, 4, 4]] {
            assert!(pairs(&mut outs, wrong).is_err());
        }
        stored.truncate(stored.len() - 1);
        let sources = [Source::Bytes(&stored)];
        let call = Elements::new(&sources, &table, 1).unwrap().unwrap();
        assert!(call.read(&mut vec![0; call.total()], 1).is_err());
    }

    #[test]
    fn shards_are_those_whose_chunks_were_made_one_by_one() {
        let texts: Vec<Vec<u8>> = (0..40).map(|number: usize| vec![number as u8; number * 31 % 70]).collect();
        let runs: Vec<_> = texts.iter().map(|text| SharedBytes::of(text)).collect();
        let strings = || ByteString::each(&runs);
        let bounds = [0, 0, 15, 16, 40];
        let rows: Vec<i64> = (0..40).map(|number| number * 7 % 40).collect();
        for (sums, at_start) in [(0, false), (1, true), (2, false)] {
            let table = || ShardTable::new(&bounds, &rows, 40, (at_start, true), 40).unwrap();
            let call = Packing::new(strings(), sums, Some(table())).unwrap();
            let mut out = vec![7; call.total()];
            call.pack(&mut out, 3).unwrap();
            let mut wanted = Vec::new();
            for shard in 0..4 {
                let (mut body, mut placed) = (Vec::new(), Vec::new());
                for job in table().jobs(shard) {
                    let chunk = chunk(&texts[job], sums);
                    placed.push((job, (table().head() + body.len()) as u64, chunk.len() as u64));
                    body.extend(chunk);
                }
                let mut index = vec![0; table().index_size()];
                table().write_index(&placed, &mut index);
                let whole = if at_start { [index, body] } else { [body, index] }.concat();
                assert_eq!(call.sizes()[shard], whole.len());
                wanted.extend(whole);
            }
            assert_eq!(out, wanted);
            assert!(call.pack(&mut [0; 3], 1).is_err());
            let alone = Packing::new(strings(), sums, None).unwrap();
            let mut out = vec![7; alone.total()];
            alone.pack(&mut out, 3).unwrap();
            assert_eq!(out, texts.iter().flat_map(|text| chunk(text, sums)).collect::<Vec<u8>>());
        }
        let table = ShardTable::new(&bounds, &rows, 40, (false, true), 40).unwrap();
        assert!(Packing::new(ByteString::each(&runs[..1]), 1, Some(table)).is_err());
    }

    #[test]
    fn what_is_wrong_or_unusual_fails() {
        let (good, size) = (chunk(b"text", 1), 16);
        assert_eq!(read(&good, vec![0, 0, size], 1), Some(b"text".to_vec()));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(read(&bad, vec![0, 0, size], 1), None);
        }
        for (offset, length) in [(0, 15), (0, 17), (1, 16), (0, 11), (-1, 16), (0, -2), (i64::MAX, 16), (0, i64::MAX)] {
            let jobs = JobTable::new(vec![0, offset, length], 3, 0).unwrap();
            let sources = [Source::Bytes(&good)];
            if length < 99 {
                let call = Elements::new(&sources, &jobs, 1).unwrap();
                assert!(call.is_none_or(|call| call.read(&mut vec![0; call.total()], 1).is_err()));
            }
        }
        assert_eq!(read(&chunk(&[], 1), vec![0, 0, 12], 1), Some(vec![]));
        let other_count = [2u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
        assert_eq!(read(&other_count, vec![0, 0, 8], 0), None);
        let jobs = JobTable::new(vec![1, 0, 8], 3, 0).unwrap();
        assert!(Elements::new(&[Source::Bytes(&good)], &jobs, 0).is_err());
        let call = JobTable::new(vec![0, 0, size], 3, 0).unwrap();
        let sources = [Source::Bytes(&good)];
        assert!(Elements::new(&sources, &call, 1).unwrap().unwrap().read(&mut [0; 3], 1).is_err());
    }
}
