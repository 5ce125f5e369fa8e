//! What a thread keeps from job to job to read and decode chunks, and to make new ones of them. For some threads it is
//! kept from call to call, too.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::Outcome;
use crate::files::own_files::OwnFiles;
use crate::files::readable::Readable;
use crate::memory::scratch::Scratch;
use crate::plan::parts::Parts;
use crate::plan::pipeline::Pipeline;
use crate::steps::encoders::Encoders;
use crate::steps::{Decoders, blosc, sum};
use crate::threads::crew::Crew;
use crate::threads::workers::Batches;

#[derive(Default)]
pub struct ReadSpace {
    /// What is read from files.
    pub read: Scratch,
    pub chunk: ChunkSpace,
    /// The elements of a chunk that is to be encoded.
    pub gathered: Scratch,
    /// What is made of chunks, to be written.
    pub made: Scratch,
    pub encoders: Encoders,
}

/// What decoding the bytes of a chunk needs.
#[derive(Default)]
pub struct ChunkSpace {
    pub content: Scratch,
    /// The encoded bytes of a chunk of which parts are read.
    pub stored: Scratch,
    pub decoders: Decoders,
    pub own_files: OwnFiles,
}

/// Of each kind of memory, what is kept from call to call: chunks of some megabytes are common, and to get memory for each
/// of them from the system, which clears it, takes a tenth of the time of decoding them.
const KEPT: usize = 8 << 20;

/// Bytes that all of them keep. What would be more gives back ...
const ALL: usize = 32 << 20;
/// ... what is larger than this.
const FEW: usize = 1 << 20;

/// For so many threads: who asks for more pays for the system's making of memory, which is worth less the more they are.
const MOST: usize = 32;
/// Attempts to get hold of what is kept.
const ATTEMPTS: usize = 100;

static FREE: Mutex<Vec<ReadSpace>> = Mutex::new(Vec::new());

/// What is kept, for a moment. `None` where others are at it for longer than a moment: a process that was forked while
/// another thread was will never see the end of that.
fn free() -> Option<MutexGuard<'static, Vec<ReadSpace>>> {
    (0..ATTEMPTS).find_map(|_| {
        let free = FREE.try_lock().ok();
        if free.is_none() {
            spin_loop();
        }
        free
    })
}

impl ReadSpace {
    /// What was kept last, or something new.
    pub fn kept() -> Self {
        free().and_then(|mut free| free.pop()).unwrap_or_default()
    }

    /// As `kept`, for a thread of this crew.
    pub fn of_crew(crew: Option<Arc<Crew>>) -> Self {
        let mut space = Self::kept();
        space.chunk.decoders.crew = crew.clone();
        space.encoders.crew = crew;
        space
    }

    /// As `kept`, for a thread of a call that reads these batches.
    pub fn of_call(batches: &Batches) -> Self {
        let mut space = Self::of_crew(batches.crew());
        space.chunk.own_files.begin(batches.threads());
        space
    }

    /// Keep this for a call to come.
    pub fn keep(mut self) {
        (self.chunk.decoders.crew, self.encoders.crew) = (None, None);
        self.chunk.own_files.end();
        self.shrink(KEPT);
        if let Some(mut free) = free()
            && free.len() < MOST
        {
            let all: usize = free.iter_mut().chain([&mut self]).map(ReadSpace::nbytes).sum();
            if all > ALL {
                self.shrink(FEW);
            }
            free.push(self);
        }
    }

    fn memories(&mut self) -> impl Iterator<Item = &mut Scratch> {
        let ChunkSpace { content, stored, decoders, .. } = &mut self.chunk;
        [&mut self.read, &mut self.gathered, &mut self.made, content, stored, &mut decoders.block, &mut decoders.stored]
            .into_iter()
    }

    fn shrink(&mut self, most: usize) {
        self.memories().for_each(|memory| memory.shrink(most));
        self.encoders.shrink(most);
    }

    fn nbytes(&mut self) -> usize {
        self.encoders.nbytes() + self.memories().map(|memory| memory.capacity()).sum::<usize>()
    }
}

impl ChunkSpace {
    /// As `elements`, of which the bytes `parts` are needed, and right: the others may be anything.
    pub fn parts<'a>(
        &'a mut self,
        pipeline: &Pipeline,
        body: &'a [u8],
        nbytes: usize,
        parts: &Parts,
    ) -> Outcome<&'a [u8]> {
        let steps = pipeline.steps();
        let is_there = steps.compressor.is_none() && !pipeline.changes_elements();
        if is_there || !parts.leave_much(nbytes) || steps.checks_content(body)? {
            return self.elements(pipeline, body, nbytes);
        }
        steps.check_size(body, nbytes)?;
        let content = self.content.take(nbytes)?;
        steps.decompress_parts(body, content, parts, &mut self.decoders)?;
        parts.ranges().iter().for_each(|part| pipeline.decode_elements(&mut content[part.clone()]));
        Ok(content)
    }

    /// From the first to the last of the `parts` of a chunk without any step; what lies between them may be anything.
    /// Nothing else is read.
    pub fn read_parts(
        &mut self,
        pipeline: &Pipeline,
        (from, offset): (Readable, u64),
        parts: &Parts,
    ) -> Outcome<&[u8]> {
        let from = self.own_files.of(from, parts.ranges().len());
        let start = parts.start();
        let content = self.content.take(parts.stop() - start)?;
        for part in parts.ranges() {
            let bytes = &mut content[part.start - start..part.end - start];
            from.read(offset + part.start as u64, bytes, &mut [])?;
            pipeline.decode_elements(bytes);
        }
        Ok(content)
    }

    /// As `parts`, of a chunk of blosc without checksums whose `length` encoded bytes are still to be read: only the
    /// blocks are that are needed; all of them where there are no parts.
    pub fn blocks_unread(
        &mut self,
        pipeline: &Pipeline,
        unread: (Readable, u64, usize),
        nbytes: usize,
        parts: Option<&Parts>,
    ) -> Outcome<&[u8]> {
        read_blocks(unread, nbytes, parts, &mut self.decoders, || self.content.take(nbytes)).map(|content| {
            match parts {
                None => pipeline.decode_elements(content),
                Some(parts) => {
                    parts.ranges().iter().for_each(|part| pipeline.decode_elements(&mut content[part.clone()]))
                }
            }
            &*content
        })
    }

    /// The elements, `nbytes` in all, that `body` (without outer checksums) holds.
    pub fn elements<'a>(&'a mut self, pipeline: &Pipeline, body: &'a [u8], nbytes: usize) -> Outcome<&'a [u8]> {
        let steps = pipeline.steps();
        let size = steps.with_inner_sums(nbytes);
        steps.check_size(body, size)?;
        if steps.compressor.is_none() && !pipeline.changes_elements() {
            return Ok(body);
        }
        let content = self.content.take(size)?;
        steps.decompress(body, content, &mut self.decoders)?;
        let mut inner: &[u8] = content;
        for _ in 0..steps.inner_sums {
            inner = sum::verified(inner)?;
        }
        let content = &mut content[..nbytes];
        pipeline.decode_elements(content);
        Ok(content)
    }
}

/// Read a chunk of blosc, `length` encoded bytes from `offset` on, block by block into the memory that `target` gives once
/// it is known to be needed.
pub fn read_blocks<'a>(
    (from, offset, length): (Readable, u64, usize),
    nbytes: usize,
    parts: Option<&Parts>,
    decoders: &mut Decoders,
    target: impl FnOnce() -> Outcome<&'a mut [u8]>,
) -> Outcome<&'a mut [u8]> {
    let read = |into: &mut [u8], range: Range<usize>| from.read(offset + range.start as u64, into, &mut []);
    let unread = blosc::Unread::open(length, nbytes, &read)?;
    let target = target()?;
    unread.decompress(target, parts, decoders, &read)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_little_and_comes_back() {
        // other tests use what is kept, too
        let spaces: Vec<ReadSpace> = (0..3 * MOST).map(|_| ReadSpace::kept()).collect();
        for (number, mut space) in spaces.into_iter().enumerate() {
            space.read.take(if number % 2 == 0 { 2 * KEPT } else { KEPT / 2 }).unwrap();
            space.chunk.content.take(KEPT / 2).unwrap();
            space.chunk.stored.take(100).unwrap().fill(7);
            space.keep();
        }
        let mut kept = free().unwrap();
        assert!(kept.len() <= MOST);
        assert!(kept.iter().all(|space| space.read.capacity() <= KEPT));
        let all: usize = kept.iter_mut().map(ReadSpace::nbytes).sum();
        assert!(all <= ALL + MOST * 7 * FEW);
    }

    #[test]
    fn what_cannot_be_had_is_made() {
        let held = FREE.lock().unwrap();
        let mut space = ReadSpace::kept();
        assert_eq!(space.read.take(5).unwrap(), [0; 5]);
        space.keep();
        drop(held);
    }
}
