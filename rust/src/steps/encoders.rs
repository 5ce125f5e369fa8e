//! What compressors need again and again. One for each thread.

use std::sync::Arc;

use crate::memory::scratch::Scratch;
use crate::steps::{gzip, zstd};
use crate::threads::crew::Crew;

#[derive(Default)]
pub struct Encoders {
    pub zstd: zstd::Encoder,
    pub gzip: gzip::Deflater,
    /// A block of blosc whose bytes are sorted by significance.
    pub block: Scratch,
    /// A stream of a block, where it needs more room than it may take in the end.
    pub stream: Scratch,
    /// What lz4hc needs.
    pub lz4hc: Scratch,
    /// What threads make of the blocks of a large chunk, before it is put together.
    pub slots: Vec<Vec<u8>>,
    /// Who takes part in the work of large chunks.
    pub crew: Option<Arc<Crew>>,
}

impl Encoders {
    /// Let go of what takes more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        self.zstd.shrink(most);
        self.gzip.shrink(most);
        [&mut self.block, &mut self.stream, &mut self.lz4hc].into_iter().for_each(|each| each.shrink(most));
        if self.slots.iter().map(Vec::capacity).sum::<usize>() > most {
            self.slots = Vec::new();
        }
    }

    /// Bytes of memory that this has, about.
    pub fn nbytes(&self) -> usize {
        let scratch: usize = [&self.block, &self.stream, &self.lz4hc].into_iter().map(Scratch::capacity).sum();
        let slots: usize = self.slots.iter().map(Vec::capacity).sum();
        self.zstd.nbytes() + self.gzip.nbytes() + scratch + slots
    }
}
