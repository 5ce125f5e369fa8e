//! Undoing blosc's shuffles: elements whose bytes, or bits, were sorted by significance.

use std::ops::Range;

/// From all first bytes, all second bytes, ... back to elements of `typesize` bytes; what is left over at the end is
/// copied. Both slices are equally long. Of `target` the bytes `needed` are written, and perhaps more.
pub fn unshuffle_bytes(shuffled: &[u8], target: &mut [u8], typesize: usize, needed: Range<usize>) {
    let whole = shuffled.len() / typesize * typesize;
    let (planes, rest) = shuffled.split_at(whole);
    let (elements, tail) = target.split_at_mut(whole);
    tail.copy_from_slice(rest);
    let count = whole / typesize;
    interleave(planes, elements, typesize, needed.start / typesize..needed.end.div_ceil(typesize).min(count));
}

/// From all lowest bits, ... back to elements of `typesize` bytes. As c-blosc does it: nothing was shuffled unless the
/// number of elements is a multiple of 8. Of `target` the bytes `needed` are written, and perhaps more.
pub fn unshuffle_bits(shuffled: &[u8], target: &mut [u8], typesize: usize, needed: Range<usize>) {
    let count = shuffled.len() / typesize;
    if !count.is_multiple_of(8) || count == 0 {
        target.copy_from_slice(shuffled);
        return;
    }
    let first = needed.start / typesize / TILE * TILE;
    let stop = needed.end.div_ceil(typesize).min(count);
    let whole = count * typesize;
    let (planes, rest) = shuffled.split_at(whole);
    let (elements, tail) = target.split_at_mut(whole);
    tail.copy_from_slice(rest);
    let mut bytes = [0; TILE * LARGEST_TILED];
    if typesize > LARGEST_TILED {
        return join_bits(planes, elements, typesize, first..stop);
    }
    let bytes = &mut bytes[..TILE * typesize];
    let done = (count / TILE * TILE).min(stop.next_multiple_of(TILE));
    for start in (first..done).step_by(TILE) {
        // eight rows, one for each bit, hold one of the bytes of all elements
        for (rows, plane) in planes.chunks_exact(count).zip(bytes.as_chunks_mut::<TILE>().0) {
            join_rows(rows, count / 8, start / 8, plane);
        }
        interleave(bytes, &mut elements[start * typesize..(start + TILE) * typesize], typesize, 0..TILE);
    }
    join_bits(planes, elements, typesize, done..stop);
}

/// Elements whose bits are put together at once.
const TILE: usize = 256;
const LARGEST_TILED: usize = 16;

/// Put the bits of the elements `needed` (from a multiple of 8 on) together.
fn join_bits(planes: &[u8], elements: &mut [u8], typesize: usize, needed: Range<usize>) {
    let count = planes.len() / typesize;
    let row = count / 8;
    for (at, rows) in planes.chunks_exact(count).enumerate() {
        for i in needed.start / 8..needed.end.div_ceil(8) {
            let bits = std::array::from_fn(|k| rows[k * row + i]);
            for (j, byte) in transpose_bits(bits).into_iter().enumerate() {
                elements[(8 * i + j) * typesize + at] = byte;
            }
        }
    }
}

/// From 32 bytes of each of eight rows, which are `row` bytes long, to bytes.
fn join_rows(rows: &[u8], row: usize, start: usize, bytes: &mut [u8; TILE]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2, which the processor has, as was just found. It checks the lengths itself.
        return unsafe { x86::join_rows(rows, row, start, bytes) };
    }
    for (i, joined) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *joined = transpose_bits(std::array::from_fn(|k| rows[k * row + start + i]));
    }
}

/// Bit `j` of byte `k` becomes bit `k` of byte `j`.
fn transpose_bits(bytes: [u8; 8]) -> [u8; 8] {
    let mut x = u64::from_le_bytes(bytes);
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x.to_le_bytes()
}

/// Put planes, each with one of the bytes of all elements, together: the elements `needed`, and perhaps more.
fn interleave(planes: &[u8], elements: &mut [u8], typesize: usize, needed: Range<usize>) {
    let count = planes.len() / typesize;
    let done = match typesize {
        _ if count == 0 => return,
        1 => return elements[needed.clone()].copy_from_slice(&planes[needed]),
        2 => interleave_registers::<2>(planes, elements, &needed),
        4 => interleave_registers::<4>(planes, elements, &needed),
        8 => interleave_registers::<8>(planes, elements, &needed),
        16 => interleave_registers::<16>(planes, elements, &needed),
        _ => needed.start,
    };
    let rest = done..needed.end.max(done);
    let elements = &mut elements[rest.start * typesize..rest.end * typesize];
    for (at, plane) in planes.chunks_exact(count).enumerate() {
        for (element, &byte) in elements.chunks_exact_mut(typesize).zip(&plane[rest.clone()]) {
            element[at] = byte;
        }
    }
}

/// Put `N` planes together, from the first element of `needed` on, as many as fit whole registers; returns where these
/// end.
fn interleave_registers<const N: usize>(planes: &[u8], elements: &mut [u8], needed: &Range<usize>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2, which the processor has, as was just found. It checks the lengths itself.
        return unsafe { x86::interleave::<N>(planes, elements, needed) };
    }
    needed.start
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use std::ops::Range;

    /// See `interleave_registers`: 32 elements at a time.
    #[target_feature(enable = "avx2")]
    pub fn interleave<const N: usize>(planes: &[u8], elements: &mut [u8], needed: &Range<usize>) -> usize {
        let count = planes.len() / N;
        assert!(planes.len() == count * N && elements.len() == count * N);
        let mut i = needed.start;
        while i < needed.end && i + 32 <= count {
            let mut registers = [_mm256_setzero_si256(); N];
            for (plane, register) in registers.iter_mut().enumerate() {
                // SAFETY: `i + 32 <= count`, so that these 32 bytes lie within plane number `plane < N` of `count`
                // bytes; the assertion says that there are so many.
                *register = unsafe { _mm256_loadu_si256(planes.as_ptr().add(plane * count + i).cast()) };
            }
            // SAFETY: elements `i` to `i + 32 <= count` of `N` bytes; the assertion says that there are so many.
            unsafe { store_joined(registers, elements.as_mut_ptr().add(i * N)) };
            i += 32;
        }
        i
    }

    /// Store byte 0 of all registers, then byte 1 of all registers, ...
    ///
    /// # Safety
    /// `32 * N` bytes are writable at `target`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store_joined<const N: usize>(mut registers: [__m256i; N], target: *mut u8) {
        // each round joins registers that are half the number apart, so that in the end they are in order
        let mut width = 1;
        while width < N {
            let mut joined = [_mm256_setzero_si256(); N];
            for k in 0..N / 2 {
                let (a, b) = (registers[k], registers[k + N / 2]);
                joined[2 * k] = _mm256_unpacklo_epi8(a, b);
                joined[2 * k + 1] = _mm256_unpackhi_epi8(a, b);
            }
            registers = joined;
            width *= 2;
        }
        // the lower halves hold what comes from the first 16 bytes, the upper halves the rest
        for (k, &register) in registers.iter().enumerate() {
            // SAFETY: `k < N`, so that both stores lie within the `32 * N` bytes that the caller promises.
            unsafe {
                let start = target.add(16 * k);
                _mm_storeu_si128(start.cast(), _mm256_castsi256_si128(register));
                _mm_storeu_si128(start.add(16 * N).cast(), _mm256_extracti128_si256::<1>(register));
            }
        }
    }

    /// See `super::join_rows`.
    #[target_feature(enable = "avx2")]
    pub fn join_rows(rows: &[u8], row: usize, start: usize, bytes: &mut [u8; super::TILE]) {
        assert!(rows.len() == 8 * row && start + 32 <= row);
        let mut registers = [_mm256_setzero_si256(); 8];
        for (k, register) in registers.iter_mut().enumerate() {
            // SAFETY: `start + 32 <= row`, so that these bytes lie within row `k < 8`; the assertion says that there
            // are 8.
            *register = unsafe { _mm256_loadu_si256(rows.as_ptr().add(k * row + start).cast()) };
        }
        // transpose matrices of 8 x 8 bits: blocks of 4 x 4, then 2 x 2, then single bits
        exchange::<4>(&mut registers, 0x0f);
        exchange::<2>(&mut registers, 0x33);
        exchange::<1>(&mut registers, 0x55);
        // SAFETY: `bytes` has 256 bytes, 32 for each of 8 registers.
        unsafe { store_joined(registers, bytes.as_mut_ptr()) };
    }

    /// Exchange the upper `D` bits of each register's groups with the lower ones `D` registers on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn exchange<const D: i32>(registers: &mut [__m256i; 8], mask: i8) {
        let mask = _mm256_set1_epi8(mask);
        for k in (0..8).filter(|k| k & D as usize == 0) {
            let (a, b) = (registers[k], registers[k + D as usize]);
            let swap = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi16::<D>(a), b), mask);
            registers[k] = _mm256_xor_si256(a, _mm256_slli_epi16::<D>(swap));
            registers[k + D as usize] = _mm256_xor_si256(b, swap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(nbytes: usize) -> Vec<u8> {
        (0..nbytes).map(|i| (i * 37 + i / 256 * 11) as u8).collect()
    }

    /// Some parts of `nbytes` bytes.
    fn parts_of(nbytes: usize) -> Vec<Range<usize>> {
        let bounds = [0, 1, nbytes / 3, nbytes / 2 + 3, nbytes - 1, nbytes];
        let after = |start: usize| bounds.into_iter().map(move |stop| start..stop.clamp(start, nbytes));
        bounds.into_iter().filter(|&start| start <= nbytes).flat_map(after).filter(|part| part.end <= nbytes).collect()
    }

    #[test]
    fn bytes_go_back() {
        for typesize in [2usize, 3, 4, 5, 8, 16, 17] {
            for nbytes in [typesize, 31 * typesize, 32 * typesize, 67 * typesize + 1, 1000] {
                let content = content(nbytes);
                let count = nbytes / typesize;
                let mut shuffled = content.clone();
                for i in 0..count {
                    for j in 0..typesize {
                        shuffled[j * count + i] = content[i * typesize + j];
                    }
                }
                let mut target = vec![0; nbytes];
                unshuffle_bytes(&shuffled, &mut target, typesize, 0..nbytes);
                assert_eq!(target, content, "{typesize} {nbytes}");
                for needed in parts_of(nbytes) {
                    let mut target = vec![0; nbytes];
                    unshuffle_bytes(&shuffled, &mut target, typesize, needed.clone());
                    assert_eq!(target[needed.clone()], content[needed]);
                }
            }
        }
    }

    #[test]
    fn bits_go_back() {
        for typesize in [1usize, 2, 3, 4, 8, 16, 17] {
            for count in [8, 248, 256, 264, 1024 + 8] {
                let content = content(count * typesize + 5 % typesize);
                let mut shuffled = content.clone();
                shuffled[..count * typesize].fill(0);
                for i in 0..count {
                    for bit in 0..8 * typesize {
                        let value = content[i * typesize + bit / 8] >> (bit % 8) & 1;
                        shuffled[bit * (count / 8) + i / 8] |= value << (i % 8);
                    }
                }
                let mut target = vec![0; content.len()];
                unshuffle_bits(&shuffled, &mut target, typesize, 0..content.len());
                assert_eq!(target, content, "{typesize} {count}");
                for needed in parts_of(content.len()) {
                    let mut target = vec![0; content.len()];
                    unshuffle_bits(&shuffled, &mut target, typesize, needed.clone());
                    assert_eq!(target[needed.clone()], content[needed]);
                }
            }
        }
    }
}
