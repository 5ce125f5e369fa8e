//! What compressors need again and again. One for each thread; the calling thread keeps it from call to call, too.

use std::cell::RefCell;

use crate::steps::{gzip, zstd};

#[derive(Default)]
pub struct Encoders {
    pub zstd: zstd::Encoder,
    pub gzip: gzip::Deflater,
}

/// Bytes of a compressor's memory that are kept from call to call.
const KEPT: usize = 1 << 22;

thread_local! {
    static OF_THREAD: RefCell<Option<Encoders>> = const { RefCell::new(None) };
}

impl Encoders {
    /// What this thread has kept, or something new.
    pub fn kept() -> Self {
        OF_THREAD.with(|kept| kept.borrow_mut().take()).unwrap_or_default()
    }

    /// Keep this for the next call.
    pub fn keep(mut self) {
        self.zstd.shrink(KEPT);
        self.gzip.shrink();
        OF_THREAD.with(|kept| *kept.borrow_mut() = Some(self));
    }
}
