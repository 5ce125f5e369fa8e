//! Memory of other owners (of Python objects), seen as arrays or as runs of bytes.
//!
//! Its owners keep it alive and in place, but nobody can keep other threads from writing into it. So, where content
//! could do harm that changes between two looks, it is copied first, and decoders and encoders see the copy only.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::memory::runs;

/// An array that is read. Elements may share bytes (a broadcast array has strides of 0).
#[derive(Clone)]
pub struct StridedMemory<'a> {
    base: *mut u8,
    shape: Vec<usize>,
    /// In bytes; may be negative or zero.
    strides: Vec<isize>,
    item: usize,
    /// The addresses from the lowest byte (inclusive) to the highest (exclusive).
    addresses: (usize, usize),
    owner: PhantomData<&'a [u8]>,
}

// SAFETY: the value names memory and owns none of it, so that it may be sent; who reads or writes through its pointer
// says in its own `unsafe` block why no other thread is in the way.
unsafe impl Send for StridedMemory<'_> {}
// SAFETY: as above; no method changes anything.
unsafe impl Sync for StridedMemory<'_> {}

impl<'a> StridedMemory<'a> {
    /// An array of `shape` with elements of `item` bytes, `strides` bytes apart along each axis, the first at `base`.
    ///
    /// # Safety
    /// For all of `'a`, the bytes of all elements are readable, within one allocation.
    pub unsafe fn new(base: *const u8, shape: Vec<usize>, strides: Vec<isize>, item: usize) -> Result<Self, String> {
        if shape.len() != strides.len() {
            return Err(format!("{} strides of {} axes", strides.len(), shape.len()));
        }
        let addresses = address_range(base as usize, &shape, &strides, item).ok_or("an array beyond all addresses")?;
        Ok(StridedMemory { base: base.cast_mut(), shape, strides, item, addresses, owner: PhantomData })
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Bytes of an element.
    pub fn item(&self) -> usize {
        self.item
    }

    /// Where the element with all indices 0 is, if there is one.
    pub fn base(&self) -> *const u8 {
        self.base
    }

    pub fn addresses(&self) -> (usize, usize) {
        self.addresses
    }

    /// `nbytes` bytes, `offset` bytes from the base.
    ///
    /// # Safety
    /// These bytes belong to elements of the array.
    pub unsafe fn bytes(&self, offset: isize, nbytes: usize) -> SharedBytes<'a> {
        // SAFETY: the caller promises that the bytes are the array's, and who made `self` that these are readable for
        // `'a`.
        unsafe { SharedBytes::new(self.base.offset(offset), nbytes) }
    }
}

/// An array that is written: no two of its elements share a byte.
pub struct StridedOutput<'a>(StridedMemory<'a>);

impl<'a> StridedOutput<'a> {
    /// As [`StridedMemory::new`]; an error if elements could share bytes.
    ///
    /// # Safety
    /// As there, and the bytes are writable.
    pub unsafe fn new(base: *mut u8, shape: Vec<usize>, strides: Vec<isize>, item: usize) -> Result<Self, String> {
        // SAFETY: the caller promises it.
        let memory = unsafe { StridedMemory::new(base, shape, strides, item)? };
        if !steps_over(memory.shape(), memory.strides(), item) {
            return Err(format!("elements of the output share memory (strides {:?})", memory.strides()));
        }
        Ok(StridedOutput(memory))
    }

    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    pub fn strides(&self) -> &[isize] {
        self.0.strides()
    }

    pub fn item(&self) -> usize {
        self.0.item
    }

    pub fn base(&self) -> *mut u8 {
        self.0.base
    }

    pub fn addresses(&self) -> (usize, usize) {
        self.0.addresses
    }
}

/// Lowest (inclusive) and highest (exclusive) address of an array; `None` if they are no addresses.
fn address_range(base: usize, shape: &[usize], strides: &[isize], item: usize) -> Option<(usize, usize)> {
    if shape.contains(&0) {
        return Some((base, base));
    }
    let (mut low, mut high) = (base, base.checked_add(item)?);
    for (&length, &stride) in shape.iter().zip(strides) {
        if length > 1 {
            let reach = isize::try_from(length - 1).ok()?.checked_mul(stride)?;
            if reach < 0 {
                low = low.checked_sub(reach.unsigned_abs())?;
            } else {
                high = high.checked_add(reach.unsigned_abs())?;
            }
        }
    }
    Some((low, high))
}

/// Whether each axis, from the shortest stride to the longest, steps over all that the axes before reach, so that
/// elements are apart. (So it is with slices and transpositions of arrays in one piece. Others could be apart, too;
/// they are rare.)
fn steps_over(shape: &[usize], strides: &[isize], item: usize) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let ascend = |axes: &mut dyn Iterator<Item = (usize, usize)>| {
        let mut reach = item;
        axes.filter(|&(_, length)| length > 1).all(|(stride, length)| {
            let apart = stride >= reach;
            reach = reach.saturating_add((length - 1).saturating_mul(stride));
            apart
        })
    };
    let axes = || strides.iter().map(|stride| stride.unsigned_abs()).zip(shape.iter().copied());
    // mostly they are in this order
    ascend(&mut axes().rev()) || {
        let mut sorted: Vec<(usize, usize)> = axes().collect();
        sorted.sort_unstable();
        ascend(&mut sorted.into_iter())
    }
}

/// Bytes that other threads may change at any time: they are copied from, and never borrowed.
#[derive(Clone, Copy)]
pub struct SharedBytes<'a> {
    start: *const u8,
    length: usize,
    owner: PhantomData<&'a [u8]>,
}

// SAFETY: the bytes are only read, and have no ties to a thread.
unsafe impl Send for SharedBytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedBytes<'_> {}

impl<'a> SharedBytes<'a> {
    /// # Safety
    /// `length` bytes from `start` on are readable for all of `'a`, within one allocation.
    pub unsafe fn new(start: *const u8, length: usize) -> Self {
        SharedBytes { start, length, owner: PhantomData }
    }

    /// Bytes that nobody changes meanwhile.
    pub fn of(bytes: &'a [u8]) -> Self {
        SharedBytes { start: bytes.as_ptr(), length: bytes.len(), owner: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where the bytes begin.
    pub fn start(&self) -> *const u8 {
        self.start
    }

    pub fn addresses(&self) -> (usize, usize) {
        (self.start as usize, self.start as usize + self.length)
    }

    /// `length` bytes from `offset` on, if there are so many.
    pub fn part(&self, offset: usize, length: usize) -> Option<Self> {
        if offset > self.length || length > self.length - offset {
            return None;
        }
        // SAFETY: they are among those that `new` was promised.
        Some(unsafe { SharedBytes::new(self.start.add(offset), length) })
    }

    /// Copy the bytes from `offset` on to all of `target`, which need not hold anything yet, and give it as what it is
    /// then. Panics where there are too few.
    #[inline(always)]
    pub fn copy_to_new<'t>(&self, offset: usize, target: &'t mut [MaybeUninit<u8>]) -> &'t mut [u8] {
        assert!(offset <= self.length && target.len() <= self.length - offset);
        let start = target.as_mut_ptr().cast::<u8>();
        // SAFETY: so many bytes are there, as asserted and as `new` was promised; `target` is elsewhere, as in `copy_to`.
        // All of it is written then, so that it is bytes, borrowed as it was.
        unsafe {
            ptr::copy_nonoverlapping(self.start.add(offset), start, target.len());
            std::slice::from_raw_parts_mut(start, target.len())
        }
    }

    /// Copy the bytes from `offset` on to all of `target`. Panics where there are too few.
    pub fn copy_to(&self, offset: usize, target: &mut [u8]) {
        assert!(offset <= self.length && target.len() <= self.length - offset);
        if !target.is_empty() {
            // SAFETY: so many bytes are there, as asserted and as `new` was promised. `target` is elsewhere: it is
            // borrowed mutably from an owner of ours, or (in `decode`) of an output that no source overlaps.
            unsafe { ptr::copy_nonoverlapping(self.start.add(offset), target.as_mut_ptr(), target.len()) };
        }
    }

    /// Copy all bytes to the beginning of `target`, and give the rest of it. Panics where that is too short.
    #[inline(always)]
    pub fn copy_in_front<'t>(&self, target: &'t mut [u8]) -> &'t mut [u8] {
        let (own, rest) = target.split_at_mut(self.length);
        // SAFETY: so many bytes are there, as `new` was promised, and `own` has as many; it is elsewhere, as in `copy_to`.
        unsafe { runs::copy_one(self.length, self.start, own.as_mut_ptr()) };
        rest
    }

    /// Have the first bytes come into the cache of this processor.
    #[inline(always)]
    pub fn expect(&self) {
        #[cfg(target_arch = "x86_64")]
        if let Some(last) = self.length.checked_sub(1) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            for line in (0..last.min(256)).step_by(64).chain([last]) {
                // SAFETY: the address is within the bytes; this changes nothing that a program sees.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(self.start.add(line).cast()) };
            }
        }
    }

    /// Write all bytes to `file`.
    pub fn write_to(&self, file: &File) -> io::Result<()> {
        let mut done = 0;
        while done < self.length {
            // SAFETY: so many bytes are there, as `new` was promised; that others change them meanwhile is the same to
            // the system, which copies them.
            let count = unsafe { libc::write(file.as_raw_fd(), self.start.add(done).cast(), self.length - done) };
            match usize::try_from(count) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Call `each` with copies of the bytes, as many at a time as `block` holds, while it returns true; whether it
    /// always did.
    pub fn all_blocks(&self, block: &mut [u8], mut each: impl FnMut(&[u8]) -> bool) -> bool {
        let size = block.len().max(1);
        (0..self.length).step_by(size).all(|offset| {
            let copy = &mut block[..size.min(self.length - offset)];
            self.copy_to(offset, copy);
            each(copy)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_share_bytes_are_found() {
        for (shape, strides, item, apart) in [
            (&[3usize, 4][..], &[32isize, 8][..], 8, true),
            (&[3, 4], &[8, 24], 8, true),
            (&[3, 4], &[-32, -8], 8, true),
            (&[3, 4], &[32, 0], 8, false),
            (&[3, 1], &[8, 0], 8, true),
            (&[3, 0], &[0, 0], 8, true),
            (&[3, 4], &[8, 8], 8, false),
            (&[3, 4], &[24, 8], 8, false),
            (&[3], &[4], 8, false),
            (&[2, 2], &[isize::MIN, isize::MAX], 8, false),
            (&[2, 2], &[isize::MIN, 8], 8, true),
            (&[2, 3], &[isize::MAX, isize::MAX], 8, false),
            (&[], &[], 8, true),
        ] {
            assert_eq!(steps_over(shape, strides, item), apart, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn addresses_do_not_wrap() {
        assert_eq!(address_range(100, &[3, 4], &[-32, 8], 8), Some((36, 132)));
        assert_eq!(address_range(100, &[0, 4], &[isize::MAX, 8], 8), Some((100, 100)));
        for (shape, stride) in [(2, isize::MIN), (3, isize::MAX), (2, -101), (usize::MAX, 1)] {
            assert_eq!(address_range(100, &[shape], &[stride], 8), None);
        }
    }

    #[test]
    fn shared_bytes_are_copied() {
        let content: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
        // SAFETY: the vector lives longer.
        let shared = unsafe { SharedBytes::new(content.as_ptr(), content.len()) };
        let (mut target, mut seen) = ([0; 3], Vec::<u8>::new());
        shared.copy_to(9_997, &mut target);
        assert_eq!(target, content[9_997..]);
        assert!(shared.all_blocks(&mut [0; 999], |block| {
            seen.extend(block);
            true
        }));
        assert_eq!(seen, content);
        assert!(std::panic::catch_unwind(|| shared.copy_to(9_998, &mut [0; 3])).is_err());
        let mut fresh = [MaybeUninit::uninit(); 3];
        assert_eq!(shared.copy_to_new(9_997, &mut fresh), &content[9_997..]);
        assert!(std::panic::catch_unwind(|| shared.copy_to_new(9_998, &mut [MaybeUninit::uninit(); 3]).len()).is_err());
        for length in (0..140).chain([511, 512, 513, 4000]) {
            let (mut target, part) = (vec![7; length + 3], shared.part(11, length).unwrap());
            part.expect();
            assert_eq!(part.copy_in_front(&mut target), [7; 3]);
            assert_eq!(target[..length], content[11..11 + length]);
            assert!(
                std::panic::catch_unwind(|| part.copy_in_front(&mut vec![0; length.max(1) - 1]).len()).is_err()
                    || length == 0
            );
        }
        shared.part(5, 4).unwrap().copy_to(1, &mut target);
        assert_eq!(target, content[6..9]);
        assert!(shared.part(10_000, 0).is_some_and(|part| part.is_empty()));
        assert!([(10_001, 0), (9_999, 2), (1, usize::MAX)].iter().all(|&(at, size)| shared.part(at, size).is_none()));
    }
}
