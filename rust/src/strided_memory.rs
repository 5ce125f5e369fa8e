//! Memory of another owner, seen as an array: base pointer, shape and strides.

/// An array in memory. The owner keeps it alive and in place as long as this value is in use.
#[derive(Clone)]
pub struct StridedMemory {
    pub base: *mut u8,
    pub shape: Vec<usize>,
    /// In bytes; may be negative or zero.
    pub strides: Vec<isize>,
    pub item: usize,
}

// SAFETY: threads reach the memory only through the raw-pointer copies of `transfer`, at places that jobs name.
unsafe impl Send for StridedMemory {}
// SAFETY: as above.
unsafe impl Sync for StridedMemory {}

impl StridedMemory {
    /// The addresses from the lowest byte (inclusive) to the highest (exclusive).
    pub fn address_range(&self) -> (usize, usize) {
        let base = self.base as usize;
        if self.shape.contains(&0) {
            return (base, base);
        }
        let (mut low, mut high) = (base, base.wrapping_add(self.item));
        for (&length, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (length as isize - 1).wrapping_mul(stride);
            if reach < 0 {
                low = low.wrapping_add_signed(reach);
            } else {
                high = high.wrapping_add_signed(reach);
            }
        }
        (low, high)
    }
}

/// A run of bytes of another owner, who keeps it alive and in place as long as this value is in use.
#[derive(Clone, Copy)]
pub struct BorrowedBytes {
    start: *const u8,
    length: usize,
}

// SAFETY: only read.
unsafe impl Send for BorrowedBytes {}
// SAFETY: only read.
unsafe impl Sync for BorrowedBytes {}

impl BorrowedBytes {
    /// # Safety
    /// `length` bytes from `start` must be readable as long as the result or a copy of it is used.
    pub unsafe fn new(start: *const u8, length: usize) -> Self {
        BorrowedBytes { start, length }
    }

    pub fn address_range(&self) -> (usize, usize) {
        (self.start as usize, self.start as usize + self.length)
    }

    pub fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: promised to `new`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}
