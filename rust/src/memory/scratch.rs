//! Memory that is reused from job to job and never cleared in between.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use crate::{Outcome, Reason};

/// Reusable bytes. They are zero when first allocated (which costs nothing for large sizes) and keep what was last
/// written after that, so they are always initialized.
pub struct Scratch {
    /// What is allocated: `capacity + ALIGNMENT` bytes, or nothing.
    allocated: NonNull<u8>,
    /// The first of `capacity` bytes among these.
    start: NonNull<u8>,
    capacity: usize,
}

/// Of the first byte: that of a line of the processor's cache.
const ALIGNMENT: usize = 64;
/// Of the allocation. Memory that is asked for with a larger one is cleared byte by byte, and so touched.
const ALLOCATED: usize = 16;

#[cfg(target_os = "linux")]
const LARGE_PAGE: usize = 2 << 20;

// SAFETY: the memory is owned by this value alone, as a `Box` would own it, and any thread may free it.
unsafe impl Send for Scratch {}

impl Scratch {
    pub const fn new() -> Self {
        Scratch { allocated: NonNull::dangling(), start: NonNull::dangling(), capacity: 0 }
    }

    /// `nbytes` bytes of unspecified content.
    pub fn take(&mut self, nbytes: usize) -> Outcome<&mut [u8]> {
        // exactly as many as asked for in debug builds, so that tools see who goes beyond
        if nbytes > self.capacity || (cfg!(debug_assertions) && nbytes < self.capacity) {
            self.grow(nbytes)?;
        }
        // SAFETY: `grow` has allocated `capacity >= nbytes` bytes from `start` on, all zero, and only bytes are written
        // since (if nothing is allocated, `nbytes` is 0 and the pointer dangling, as is fine then). They are borrowed as
        // long as `self`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), nbytes) })
    }

    /// Give the memory back if it is more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.capacity > most {
            self.release();
        }
    }

    /// Bytes that there is memory for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    fn grow(&mut self, nbytes: usize) -> Outcome {
        let capacity = if cfg!(debug_assertions) { nbytes } else { nbytes.saturating_add(nbytes / 8) };
        let layout = Self::layout(capacity).ok_or("too many bytes")?;
        self.release();
        if nbytes == 0 {
            return Ok(());
        }
        // SAFETY: the layout is not empty: `capacity >= nbytes > 0`.
        let allocated = unsafe { alloc_zeroed(layout) };
        self.allocated = NonNull::new(allocated).ok_or(Reason::NoMemory(nbytes))?;
        let before = self.allocated.addr().get().next_multiple_of(ALIGNMENT) - self.allocated.addr().get();
        // SAFETY: `before < ALIGNMENT`, and `ALIGNMENT` bytes more than `capacity` are allocated.
        self.start = unsafe { self.allocated.add(before) };
        self.capacity = capacity;
        self.ask_for_large_pages();
        Ok(())
    }

    /// Much memory comes from the system in few large pages, if it can: it takes as long to hand out each.
    #[cfg(target_os = "linux")]
    fn ask_for_large_pages(&self) {
        let start = self.start.addr().get().next_multiple_of(LARGE_PAGE);
        let end = (self.start.addr().get() + self.capacity) / LARGE_PAGE * LARGE_PAGE;
        if start < end {
            let first = self.start.as_ptr().with_addr(start);
            // SAFETY: whole pages within what is allocated, of which nothing but the size of pages changes.
            unsafe { libc::madvise(first.cast(), end - start, libc::MADV_HUGEPAGE) };
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn ask_for_large_pages(&self) {}

    fn layout(capacity: usize) -> Option<Layout> {
        Layout::from_size_align(capacity.checked_add(ALIGNMENT)?, ALLOCATED).ok()
    }

    fn release(&mut self) {
        if self.capacity > 0 {
            let layout = Self::layout(self.capacity).expect("as allocated");
            // SAFETY: `grow` allocated this with this layout; `capacity` is set to 0 below, so this happens once.
            unsafe { dealloc(self.allocated.as_ptr(), layout) };
        }
        (self.allocated, self.start) = (NonNull::dangling(), NonNull::dangling());
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
    fn grows() {
        let mut scratch = Scratch::new();
        scratch.take(10).unwrap().fill(7);
        assert_eq!(scratch.take(10).unwrap(), [7; 10]);
        assert!(scratch.take(10).unwrap().as_ptr().addr().is_multiple_of(ALIGNMENT));
        assert!(scratch.take(1 << 20).unwrap().iter().all(|&byte| byte == 0));
        assert!(scratch.take(usize::MAX).is_err());
        assert_eq!(scratch.take(0).unwrap().len(), 0);
    }
}
