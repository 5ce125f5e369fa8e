//! The innermost loops: copying many runs of adjacent bytes, all of one length, in the fastest way for that length.

/// One loop: `count` steps of `from` bytes in the source and `to` bytes in the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    pub count: usize,
    pub from: isize,
    pub to: isize,
}

/// Copy runs: the number of bytes of a run, the steps from run to run, first source, first target.
///
/// # Safety
/// At every step a run is readable at the source and writable at the target; sources and targets do not overlap.
pub type CopySteps = unsafe fn(usize, Steps, *const u8, *mut u8);

/// Copy runs: the number of bytes of a run, two nested loops (the second is the inner one), first source, first
/// target.
///
/// # Safety
/// As for `CopySteps`, at every step of both.
pub type CopyPlanes = unsafe fn(usize, Steps, Steps, *const u8, *mut u8);

/// Copy runs: the number of bytes of a run, pairs of offsets, and the source and target that these count from.
///
/// # Safety
/// As for `CopySteps`, at all offsets.
pub type CopyListed = unsafe fn(usize, &[(isize, isize)], *const u8, *mut u8);

/// The functions for runs of one length.
#[derive(Clone, Copy)]
pub struct Copiers {
    pub steps: CopySteps,
    pub listed: CopyListed,
    /// For two nested loops, of which the second is the inner one.
    pub planes: CopyPlanes,
    /// As `planes`, if the inner loop walks across the lines of the source.
    pub tiles: CopyPlanes,
}

impl Copiers {
    /// For runs of `nbytes` bytes; `reads_far`: rather the source than the target is not in the cache.
    pub fn of_length(nbytes: usize, reads_far: bool) -> Copiers {
        if reads_far { Self::of::<true>(nbytes) } else { Self::of::<false>(nbytes) }
    }

    fn of<const READS_FAR: bool>(nbytes: usize) -> Copiers {
        match nbytes {
            1 => of::<Fixed<1>, READS_FAR>(),
            2 => of::<Fixed<2>, READS_FAR>(),
            3 => of::<Fixed<3>, READS_FAR>(),
            4 => of::<Fixed<4>, READS_FAR>(),
            5..8 => of::<Within<4>, READS_FAR>(),
            8 => of::<Fixed<8>, READS_FAR>(),
            9..16 => of::<Within<8>, READS_FAR>(),
            16 => of::<Fixed<16>, READS_FAR>(),
            17..32 => of::<Within<16>, READS_FAR>(),
            32 => of::<Fixed<32>, READS_FAR>(),
            33..64 => of::<Within<32>, READS_FAR>(),
            64 => of::<Fixed<64>, READS_FAR>(),
            65..128 => of::<Within<64>, READS_FAR>(),
            128 => of::<Fixed<128>, READS_FAR>(),
            129..512 => of::<Lines, READS_FAR>(),
            _ => of::<Long, READS_FAR>(),
        }
    }
}

fn of<R: Run, const READS_FAR: bool>() -> Copiers {
    Copiers {
        steps: copy_steps::<R>,
        listed: copy_listed::<R>,
        planes: copy_planes::<R, READS_FAR>,
        tiles: copy_tiles::<R>,
    }
}

/// Copy one run of any length: sooner than by a call of the C library where it is short.
///
/// # Safety
/// `nbytes` bytes are readable at `source` and writable at `target`, which do not overlap.
#[inline(always)]
pub unsafe fn copy_one(nbytes: usize, source: *const u8, target: *mut u8) {
    // SAFETY: the caller promises the bytes, and each type is meant for such a length.
    unsafe {
        match nbytes {
            0 => {}
            1..4 => (0..nbytes).for_each(|at| Fixed::<1>::copy(1, source.add(at), target.add(at))),
            4..8 => Within::<4>::copy(nbytes, source, target),
            8..16 => Within::<8>::copy(nbytes, source, target),
            16..32 => Within::<16>::copy(nbytes, source, target),
            32..64 => Within::<32>::copy(nbytes, source, target),
            64..=512 => Lines::copy(nbytes, source, target),
            _ => Long::copy(nbytes, source, target),
        }
    }
}

/// How a run is copied.
trait Run {
    /// # Safety
    /// `nbytes` bytes, a length that the type is meant for, are readable at `source` and writable at `target`.
    unsafe fn copy(nbytes: usize, source: *const u8, target: *mut u8);
}

/// `N` bytes.
struct Fixed<const N: usize>;
/// `N` to `2 * N` bytes.
struct Within<const N: usize>;
/// 64 bytes or somewhat more.
struct Lines;
/// Any number of bytes.
struct Long;

impl<const N: usize> Run for Fixed<N> {
    #[inline(always)]
    unsafe fn copy(_: usize, source: *const u8, target: *mut u8) {
        // SAFETY: the caller promises `N` bytes on both sides; arrays of bytes need no alignment.
        unsafe { target.cast::<[u8; N]>().write_unaligned(source.cast::<[u8; N]>().read_unaligned()) };
    }
}

impl<const N: usize> Run for Within<N> {
    #[inline(always)]
    unsafe fn copy(nbytes: usize, source: *const u8, target: *mut u8) {
        let last = nbytes - N;
        // SAFETY: the caller promises `N` to `2 * N` bytes on both sides: these are the first and the last `N` of
        // them, which may overlap; all are read before any is written.
        unsafe {
            let head = source.cast::<[u8; N]>().read_unaligned();
            let tail = source.add(last).cast::<[u8; N]>().read_unaligned();
            target.cast::<[u8; N]>().write_unaligned(head);
            target.add(last).cast::<[u8; N]>().write_unaligned(tail);
        }
    }
}

impl Run for Lines {
    #[inline(always)]
    unsafe fn copy(nbytes: usize, source: *const u8, target: *mut u8) {
        let last = nbytes - 64;
        let mut at = 0;
        // SAFETY: the caller promises 64 bytes or more on both sides: lines from the start, all of which end
        // within the run, and a last one that ends with it.
        unsafe {
            while at < last {
                Fixed::<64>::copy(64, source.add(at), target.add(at));
                at += 64;
            }
            Fixed::<64>::copy(64, source.add(last), target.add(last));
        }
    }
}

impl Run for Long {
    #[inline(always)]
    unsafe fn copy(nbytes: usize, source: *const u8, target: *mut u8) {
        // SAFETY: the caller promises `nbytes` bytes on both sides, which do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(source, target, nbytes) };
    }
}

/// # Safety
/// See `CopySteps`.
#[inline(always)]
unsafe fn copy_steps<R: Run>(nbytes: usize, steps: Steps, mut source: *const u8, mut target: *mut u8) {
    for _ in 0..steps.count {
        // SAFETY: the caller promises a run at every step; the pointers behind the last one are not used.
        unsafe { R::copy(nbytes, source, target) };
        source = source.wrapping_offset(steps.from);
        target = target.wrapping_offset(steps.to);
    }
}

/// Runs that are worth being announced to the memory some time before they are read or written there.
const ANNOUNCED: std::ops::RangeInclusive<usize> = 16..=512;

/// # Safety
/// See `CopyPlanes`.
unsafe fn copy_planes<R: Run, const READS_FAR: bool>(
    nbytes: usize,
    outer: Steps,
    inner: Steps,
    source: *const u8,
    target: *mut u8,
) {
    for i in 0..outer.count as isize {
        let (source, target) = (source.wrapping_offset(i * outer.from), target.wrapping_offset(i * outer.to));
        if ANNOUNCED.contains(&nbytes) && i + 1 < outer.count as isize {
            for k in 0..inner.count as isize {
                let (from, to) = (source.wrapping_offset(k * inner.from), target.wrapping_offset(k * inner.to));
                let far = if READS_FAR { from.wrapping_offset(outer.from) } else { to.wrapping_offset(outer.to) };
                announce(far, nbytes);
                // SAFETY: the caller promises a run at every step of both loops.
                unsafe { R::copy(nbytes, from, to) };
            }
        } else {
            // SAFETY: the caller promises a run at every step of both loops.
            unsafe { copy_steps::<R>(nbytes, inner, source, target) };
        }
    }
}

/// Have the lines of a run fetched, in order to use them soon.
#[inline(always)]
fn announce(start: *const u8, nbytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = start.cast::<i8>();
        // SAFETY: a prefetch is a hint that never faults, whatever the address, and SSE is part of x86-64.
        unsafe {
            for at in (0..nbytes).step_by(64) {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at));
            }
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(nbytes - 1));
        }
    }
}

/// # Safety
/// See `CopyListed`.
unsafe fn copy_listed<R: Run>(nbytes: usize, offsets: &[(isize, isize)], source: *const u8, target: *mut u8) {
    for &(from, to) in offsets {
        // SAFETY: the caller promises a run at every pair of offsets.
        unsafe { R::copy(nbytes, source.offset(from), target.offset(to)) };
    }
}

/// Steps of the outer and the inner loop that are done together, so that a line of the cache is used up before it is
/// evicted.
const TILE: (usize, usize) = (32, 16);

/// # Safety
/// See `CopyPlanes`.
unsafe fn copy_tiles<R: Run>(nbytes: usize, outer: Steps, inner: Steps, source: *const u8, target: *mut u8) {
    for above in (0..outer.count).step_by(TILE.0) {
        for start in (0..inner.count).step_by(TILE.1) {
            let part = Steps { count: TILE.1.min(inner.count - start), ..inner };
            for i in above..outer.count.min(above + TILE.0) {
                let (i, start) = (i as isize, start as isize);
                let (from, to) = (i * outer.from + start * inner.from, i * outer.to + start * inner.to);
                // SAFETY: the caller promises a run at every step of both loops, of which these are some.
                unsafe { copy_steps::<R>(nbytes, part, source.offset(from), target.offset(to)) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths() {
        for nbytes in 1..700 {
            let source: Vec<u8> = (0..5 * nbytes).map(|i| (i % 253) as u8 + 1).collect();
            let mut target = vec![0; 4 * (nbytes + 3)];
            let steps = Steps { count: 4, from: nbytes as isize, to: nbytes as isize + 3 };
            // SAFETY: as long as the steps say.
            unsafe { (Copiers::of_length(nbytes, false).steps)(nbytes, steps, source.as_ptr(), target.as_mut_ptr()) };
            for i in 0..4 {
                assert_eq!(source[i * nbytes..(i + 1) * nbytes], target[i * (nbytes + 3)..][..nbytes]);
                assert_eq!(target[(i + 1) * (nbytes + 3) - 3..][..3], [0; 3]);
            }
        }
    }
}
