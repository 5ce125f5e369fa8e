//! What compressors need again and again. One for each thread.

use std::sync::Arc;

use crate::crew::Crew;
use crate::scratch::Scratch;
use crate::steps::{gzip, zstd};

#[derive(Default)]
pub struct Encoders {
    pub zstd: zstd::Encoder,
    pub gzip: gzip::Deflater,
    /// What threads make of the blocks of a large chunk, before it is put together.
    pub slots: Scratch,
    /// Who takes part in the work of large chunks.
    pub crew: Option<Arc<Crew>>,
}

impl Encoders {
    /// Let go of what takes more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        self.zstd.shrink(most);
        self.gzip.shrink(most);
        self.slots.shrink(most);
    }

    /// Bytes of memory that this has, about.
    pub fn nbytes(&self) -> usize {
        self.zstd.nbytes() + self.gzip.nbytes() + self.slots.capacity()
    }
}
