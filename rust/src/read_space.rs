//! What a thread keeps from job to job to read and decode chunks. The calling thread keeps it from call to call, too.

use std::cell::RefCell;

use crate::Outcome;
use crate::parts::Parts;
use crate::pipeline::Pipeline;
use crate::scratch::Scratch;
use crate::sources::Readable;
use crate::steps::{Decoders, sum};

#[derive(Default)]
pub struct ReadSpace {
    /// What is read from files.
    pub read: Scratch,
    pub chunk: ChunkSpace,
}

/// What decoding the bytes of a chunk needs.
#[derive(Default)]
pub struct ChunkSpace {
    pub content: Scratch,
    pub decoders: Decoders,
}

/// Of each kind of memory, what is kept from call to call.
const KEPT: usize = 1 << 20;

thread_local! {
    static OF_THREAD: RefCell<Option<ReadSpace>> = const { RefCell::new(None) };
}

impl ReadSpace {
    /// What this thread has kept, or something new.
    pub fn kept() -> Self {
        OF_THREAD.with(|kept| kept.borrow_mut().take()).unwrap_or_default()
    }

    /// Keep this for the next call.
    pub fn keep(mut self) {
        for memory in [&mut self.read, &mut self.chunk.content, &mut self.chunk.decoders.block] {
            memory.shrink(KEPT);
        }
        OF_THREAD.with(|kept| *kept.borrow_mut() = Some(self));
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
        let start = parts.start();
        let content = self.content.take(parts.stop() - start)?;
        for part in parts.ranges() {
            let bytes = &mut content[part.start - start..part.end - start];
            from.read(offset + part.start as u64, bytes, &mut [])?;
            pipeline.decode_elements(bytes);
        }
        Ok(content)
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
