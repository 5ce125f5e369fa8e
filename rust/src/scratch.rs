//! Memory that is reused from job to job and never cleared in between.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::Outcome;

/// Reusable bytes. They are zero when first allocated (which costs nothing for large sizes) and keep what was last
/// written after that, so they are always initialized.
pub struct Scratch {
    start: NonNull<u8>,
    capacity: usize,
}

const ALIGNMENT: usize = 64;

// SAFETY: the memory is owned and has no ties to a thread.
unsafe impl Send for Scratch {}

impl Scratch {
    pub const fn new() -> Self {
        Scratch { start: NonNull::dangling(), capacity: 0 }
    }

    /// `nbytes` bytes of unspecified content.
    pub fn take(&mut self, nbytes: usize) -> Outcome<&mut [u8]> {
        if nbytes > self.capacity {
            self.grow(nbytes)?;
        }
        // SAFETY: `capacity >= nbytes` bytes are allocated and initialized, and borrowed with `self`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), nbytes) })
    }

    /// The first `nbytes` bytes (or fewer, if there are not so many) as last written.
    pub fn written(&self, nbytes: usize) -> &[u8] {
        // SAFETY: as in `take`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), nbytes.min(self.capacity)) }
    }

    /// Give the memory back if it is more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.capacity > most {
            self.release();
        }
    }

    fn grow(&mut self, nbytes: usize) -> Outcome {
        let capacity = nbytes.checked_next_multiple_of(4096).ok_or("too many bytes")?;
        let layout = Layout::from_size_align(capacity, ALIGNMENT).map_err(|_| "too many bytes")?;
        self.release();
        // SAFETY: the layout is not empty, since `nbytes > self.capacity >= 0`.
        let start = unsafe { alloc_zeroed(layout) };
        self.start = NonNull::new(start).ok_or_else(|| format!("no memory for {nbytes} bytes"))?;
        self.capacity = capacity;
        Ok(())
    }

    fn release(&mut self) {
        if self.capacity > 0 {
            let layout = Layout::from_size_align(self.capacity, ALIGNMENT).expect("as allocated");
            // SAFETY: allocated by `grow` with this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
        self.start = NonNull::dangling();
        self.capacity = 0;
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_content_and_grows() {
        let mut scratch = Scratch::new();
        scratch.take(10).unwrap().fill(7);
        assert_eq!(scratch.take(12).unwrap()[..10], [7; 10]);
        assert_eq!(scratch.written(3), [7; 3]);
        assert!(scratch.take(1 << 20).unwrap().iter().all(|&byte| byte == 0));
        scratch.shrink(1 << 10);
        assert_eq!(scratch.written(5), [0u8; 0]);
        assert!(scratch.take(usize::MAX).is_err());
        assert_eq!(scratch.take(0).unwrap().len(), 0);
    }
}
