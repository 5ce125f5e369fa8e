//! Memory that is written from its start to its end, and holds zeros where that does not happen.

use std::mem::MaybeUninit;
use std::ptr;

/// A run of bytes that may not be initialized yet. When this value is dropped all of them are: what was not written is
/// zero. So nobody who sees the memory afterwards sees what was there before, whatever failed or panicked.
pub struct Span<'a> {
    /// The first `filled` bytes are initialized.
    memory: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> Span<'a> {
    pub fn new(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Span { memory, filled: 0 }
    }

    /// Over bytes that are initialized already.
    pub fn over(memory: &'a mut [u8]) -> Self {
        let memory: *mut [u8] = memory;
        // SAFETY: the same memory, borrowed as long; `MaybeUninit<u8>` has the layout of `u8`, and no method of this
        // type makes a byte uninitialized, so that the owner finds bytes afterwards.
        Span { memory: unsafe { &mut *(memory as *mut [MaybeUninit<u8>]) }, filled: 0 }
    }

    /// Bytes that are still to be written.
    pub fn room(&self) -> usize {
        self.memory.len() - self.filled
    }

    /// Write `bytes` next. Panics where there is no room.
    pub fn append(&mut self, bytes: &[u8]) {
        let target = &mut self.memory[self.filled..][..bytes.len()];
        // SAFETY: `target` is as long as `bytes` and borrowed mutably, so elsewhere.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target.as_mut_ptr().cast(), bytes.len()) };
        self.filled += bytes.len();
    }

    /// Have `write` write the next `nbytes` bytes, where its argument points to. Panics where there is no room.
    ///
    /// # Safety
    /// If `write` returns, it has written all of the `nbytes` bytes, and no others.
    pub unsafe fn append_with(&mut self, nbytes: usize, write: impl FnOnce(*mut u8)) {
        let target = &mut self.memory[self.filled..][..nbytes];
        write(target.as_mut_ptr().cast());
        self.filled += nbytes;
    }

    /// What was written so far.
    pub fn written(&mut self) -> &mut [u8] {
        let written: *mut [MaybeUninit<u8>] = &mut self.memory[..self.filled];
        // SAFETY: the first `filled` bytes are initialized: only `append` and `append_with` count them, after writing
        // them.
        unsafe { &mut *(written as *mut [u8]) }
    }

    /// Take all back that was written: zeros will stand there.
    pub fn clear(&mut self) {
        self.filled = 0;
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        self.memory[self.filled..].fill(MaybeUninit::new(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_zero() {
        for clear in [false, true] {
            let mut memory = [MaybeUninit::new(9u8); 8];
            let mut span = Span::new(&mut memory);
            span.append(&[1, 2]);
            // SAFETY: two bytes are written.
            unsafe { span.append_with(2, |start| start.write_bytes(3, 2)) };
            assert_eq!(span.written(), [1, 2, 3, 3]);
            assert_eq!(span.room(), 4);
            if clear {
                span.clear();
            }
            drop(span);
            // SAFETY: initialized above.
            let bytes = memory.map(|byte| unsafe { byte.assume_init() });
            assert_eq!(bytes, if clear { [0; 8] } else { [1, 2, 3, 3, 0, 0, 0, 0] });
        }
    }

    #[test]
    fn a_panic_leaves_zeros() {
        let mut memory = [7u8; 4];
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut span = Span::over(&mut memory);
            span.append(&[1]);
            span.append(&[0; 4]); // no room
        }));
        assert!(result.is_err());
        assert_eq!(memory, [1, 0, 0, 0]);
    }
}
