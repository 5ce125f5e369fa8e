//! Blosc's shuffles, which sort the bytes, or bits, of elements by significance; and how they are undone.

use std::ops::Range;

/// A block whose elements are shuffled: `typesize` planes, each with one byte (or eight bits) of all elements, and what is left
/// over. All planes lie in one piece, or each in one of its own.
pub struct Planes<'a> {
    pieces: &'a [&'a [u8]],
    typesize: usize,
    count: usize,
}

impl<'a> Planes<'a> {
    /// The planes of `nbytes` bytes in one piece, or in `typesize` pieces which are equally long.
    pub fn new(pieces: &'a [&'a [u8]], nbytes: usize, typesize: usize) -> Self {
        let count = nbytes / typesize;
        let in_one = pieces.len() == 1 && pieces[0].len() == nbytes;
        let in_many = pieces.len() == typesize && pieces.iter().all(|piece| piece.len() == count);
        assert!(in_one || (in_many && nbytes == count * typesize));
        Planes { pieces, typesize, count }
    }

    /// Plane number `at < typesize`, of `count` bytes.
    fn plane(&self, at: usize) -> &'a [u8] {
        match self.pieces {
            [piece] => &piece[at * self.count..(at + 1) * self.count],
            pieces => pieces[at],
        }
    }

    /// Go through the planes.
    fn each(&self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.typesize).map(|at| self.plane(at))
    }

    /// What is left over at the end, which is not shuffled.
    fn rest(&self) -> &'a [u8] {
        match self.pieces {
            [piece] => &piece[self.typesize * self.count..],
            _ => &[],
        }
    }
}

/// From all first bytes, all second bytes, ... back to elements, and what is left over at the end. `target` is as long as
/// these; of it the bytes `needed` are written, and perhaps more.
pub fn unshuffle_bytes(planes: &Planes, target: &mut [u8], needed: Range<usize>) {
    let (typesize, count) = (planes.typesize, planes.count);
    let (elements, tail) = target.split_at_mut(typesize * count);
    tail.copy_from_slice(planes.rest());
    interleave(planes, elements, needed.start / typesize..needed.end.div_ceil(typesize).min(count));
}

/// From all lowest bits, ... back to elements. As c-blosc does it: nothing was shuffled unless the number of elements is a
/// multiple of 8. `target` is as long as the planes and what is left over; of it the bytes `needed` are written, and
/// perhaps more.
pub fn unshuffle_bits(planes: &Planes, target: &mut [u8], needed: Range<usize>) {
    let (typesize, count) = (planes.typesize, planes.count);
    let (elements, tail) = target.split_at_mut(typesize * count);
    tail.copy_from_slice(planes.rest());
    if count == 0 {
        return;
    }
    if !count.is_multiple_of(8) {
        elements.chunks_exact_mut(count).zip(planes.each()).for_each(|(part, plane)| part.copy_from_slice(plane));
        return;
    }
    let first = needed.start / typesize / TILE * TILE;
    let stop = needed.end.div_ceil(typesize).min(count);
    let mut bytes = [0; TILE * LARGEST_TILED];
    if typesize > LARGEST_TILED {
        return join_bits(planes, elements, first..stop);
    }
    let bytes = &mut bytes[..TILE * typesize];
    let done = (count / TILE * TILE).min(stop.next_multiple_of(TILE));
    for start in (first..done).step_by(TILE) {
        // eight rows, one for each bit, hold one of the bytes of all elements
        for (rows, plane) in planes.each().zip(bytes.as_chunks_mut::<TILE>().0) {
            join_rows(rows, count / 8, start / 8, plane);
        }
        let target = &mut elements[start * typesize..(start + TILE) * typesize];
        interleave(&Planes::new(&[bytes], bytes.len(), typesize), target, 0..TILE);
    }
    join_bits(planes, elements, done..stop);
}

/// Elements whose bits are put together at once.
const TILE: usize = 256;
const LARGEST_TILED: usize = 16;

/// Put the bits of the elements `needed` (from a multiple of 8 on) together.
fn join_bits(planes: &Planes, elements: &mut [u8], needed: Range<usize>) {
    let (typesize, row) = (planes.typesize, planes.count / 8);
    for (at, rows) in planes.each().enumerate() {
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

/// Sort the bytes of elements: all first bytes, all second bytes, ..., and what is left over at the end. `shuffled` is as
/// long as `block`.
pub fn shuffle_bytes(block: &[u8], shuffled: &mut [u8], typesize: usize) {
    let whole = block.len() / typesize * typesize;
    let (planes, tail) = shuffled.split_at_mut(whole);
    tail.copy_from_slice(&block[whole..]);
    divide(&block[..whole], planes, typesize);
}

/// Sort the bits of elements: all lowest bits, ..., and what is left over at the end. As c-blosc does it: not unless the
/// number of elements is a multiple of 8. `shuffled` is as long as `block`.
pub fn shuffle_bits(block: &[u8], shuffled: &mut [u8], typesize: usize) {
    let count = block.len() / typesize;
    if count == 0 || !count.is_multiple_of(8) {
        return shuffled.copy_from_slice(block);
    }
    let (elements, rest) = block.split_at(count * typesize);
    let (planes, tail) = shuffled.split_at_mut(count * typesize);
    tail.copy_from_slice(rest);
    let tiled = if typesize <= LARGEST_TILED { count / TILE * TILE } else { 0 };
    let mut bytes = [0; TILE * LARGEST_TILED];
    let bytes = &mut bytes[..TILE * typesize.min(LARGEST_TILED)];
    for start in (0..tiled).step_by(TILE) {
        divide(&elements[start * typesize..(start + TILE) * typesize], bytes, typesize);
        for (plane, rows) in bytes.as_chunks::<TILE>().0.iter().zip(planes.chunks_exact_mut(count)) {
            divide_rows(plane, rows, count / 8, start / 8);
        }
    }
    for (at, rows) in planes.chunks_exact_mut(count).enumerate() {
        for i in tiled / 8..count / 8 {
            let bytes = std::array::from_fn(|j| elements[(8 * i + j) * typesize + at]);
            for (k, bits) in transpose_bits(bytes).into_iter().enumerate() {
                rows[k * (count / 8) + i] = bits;
            }
        }
    }
}

/// Put each byte of the elements into a plane of its own.
fn divide(elements: &[u8], planes: &mut [u8], typesize: usize) {
    let count = elements.len() / typesize;
    let done = match typesize {
        _ if count == 0 => return,
        1 => return planes.copy_from_slice(elements),
        2 => divide_registers::<2>(elements, planes),
        4 => divide_registers::<4>(elements, planes),
        8 => divide_registers::<8>(elements, planes),
        16 => divide_registers::<16>(elements, planes),
        _ => 0,
    };
    for (at, plane) in planes.chunks_exact_mut(count).enumerate() {
        for (element, byte) in elements[done * typesize..].chunks_exact(typesize).zip(&mut plane[done..]) {
            *byte = element[at];
        }
    }
}

/// The same of as many elements of `N` bytes as fit whole registers; returns how many these are.
fn divide_registers<const N: usize>(elements: &[u8], planes: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2, which the processor has, as was just found. It checks the lengths itself.
        return unsafe { x86::divide::<N>(elements, planes) };
    }
    0
}

/// From bytes to 32 bytes of each of eight rows, which are `row` bytes long.
fn divide_rows(bytes: &[u8; TILE], rows: &mut [u8], row: usize, start: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2, which the processor has, as was just found. It checks the lengths itself.
        return unsafe { x86::divide_rows(bytes, rows, row, start) };
    }
    for (i, &bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
        for (k, bits) in transpose_bits(bytes).into_iter().enumerate() {
            rows[k * row + start + i] = bits;
        }
    }
}

/// Put planes, each with one of the bytes of all elements, together: the elements `needed`, and perhaps more.
fn interleave(planes: &Planes, elements: &mut [u8], needed: Range<usize>) {
    let typesize = planes.typesize;
    let done = match typesize {
        _ if planes.count == 0 => return,
        1 => return elements[needed.clone()].copy_from_slice(&planes.plane(0)[needed]),
        2 => interleave_registers::<2>(planes, elements, &needed),
        4 => interleave_registers::<4>(planes, elements, &needed),
        8 => interleave_registers::<8>(planes, elements, &needed),
        16 => interleave_registers::<16>(planes, elements, &needed),
        _ => needed.start,
    };
    let rest = done..needed.end.max(done);
    let elements = &mut elements[rest.start * typesize..rest.end * typesize];
    for (at, plane) in planes.each().enumerate() {
        for (element, &byte) in elements.chunks_exact_mut(typesize).zip(&plane[rest.clone()]) {
            element[at] = byte;
        }
    }
}

/// Put `N` planes together, from the first element of `needed` on, as many as fit whole registers; returns where these
/// end.
fn interleave_registers<const N: usize>(planes: &Planes, elements: &mut [u8], needed: &Range<usize>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2, which the processor has, as was just found. It checks the lengths itself.
        return unsafe { x86::interleave::<N>(std::array::from_fn(|at| planes.plane(at)), elements, needed) };
    }
    needed.start
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use std::ops::Range;

    /// See `interleave_registers`: 32 elements at a time.
    #[target_feature(enable = "avx2")]
    pub fn interleave<const N: usize>(planes: [&[u8]; N], elements: &mut [u8], needed: &Range<usize>) -> usize {
        let count = elements.len() / N;
        assert!(elements.len() == count * N && planes.iter().all(|plane| plane.len() == count));
        let mut i = needed.start;
        while i < needed.end && i + 32 <= count {
            let mut registers = [_mm256_setzero_si256(); N];
            for (plane, register) in planes.iter().zip(&mut registers) {
                // SAFETY: `i + 32 <= count`, so that these 32 bytes lie within the plane, which the assertion says to have
                // `count` bytes.
                *register = unsafe { _mm256_loadu_si256(plane.as_ptr().add(i).cast()) };
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

    /// See `super::divide_registers`: 32 elements at a time.
    #[target_feature(enable = "avx2")]
    pub fn divide<const N: usize>(elements: &[u8], planes: &mut [u8]) -> usize {
        let count = elements.len() / N;
        assert!(elements.len() == count * N && planes.len() == count * N);
        let mut i = 0;
        while i + 32 <= count {
            let mut registers = [_mm256_setzero_si256(); N];
            for (k, register) in registers.iter_mut().enumerate() {
                // SAFETY: `k < N` and `i + 32 <= count`, so that these 32 bytes lie within `count` elements of `N` bytes;
                // the assertion says that there are so many.
                *register = unsafe { _mm256_loadu_si256(elements.as_ptr().add(i * N + 32 * k).cast()) };
            }
            // each round divides pairs of registers into every other byte and the rest, so that in the end they are in order
            let mut width = 1;
            while width < N {
                let mut divided = [_mm256_setzero_si256(); N];
                let low = _mm256_set1_epi16(0x00ff);
                for k in 0..N / 2 {
                    let (a, b) = (registers[2 * k], registers[2 * k + 1]);
                    let even = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
                    let odd = _mm256_packus_epi16(_mm256_srli_epi16::<8>(a), _mm256_srli_epi16::<8>(b));
                    divided[k] = _mm256_permute4x64_epi64::<0b11_01_10_00>(even);
                    divided[k + N / 2] = _mm256_permute4x64_epi64::<0b11_01_10_00>(odd);
                }
                registers = divided;
                width *= 2;
            }
            for (plane, &register) in registers.iter().enumerate() {
                // SAFETY: `i + 32 <= count`, so that these 32 bytes lie within plane number `plane < N` of `count` bytes;
                // the assertion says that there are so many.
                unsafe { _mm256_storeu_si256(planes.as_mut_ptr().add(plane * count + i).cast(), register) };
            }
            i += 32;
        }
        i
    }

    /// See `super::divide_rows`.
    #[target_feature(enable = "avx2")]
    pub fn divide_rows(bytes: &[u8; super::TILE], rows: &mut [u8], row: usize, start: usize) {
        for (i, bytes) in bytes.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: these are 32 bytes.
            let mut register = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
            for k in (0..8).rev() {
                let bits = _mm256_movemask_epi8(register);
                rows[k * row + start + 4 * i..][..4].copy_from_slice(&bits.to_le_bytes());
                register = _mm256_slli_epi16::<1>(register);
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

    /// Check that `shuffled` gives `content` and any part of it, in one piece and, if it can be, in many.
    fn goes_back(unshuffle: fn(&Planes, &mut [u8], Range<usize>), shuffled: &[u8], content: &[u8], typesize: usize) {
        let nbytes = content.len();
        let planes: Vec<&[u8]> = shuffled.chunks_exact(nbytes / typesize).collect();
        let whole = [shuffled];
        let ways = [Some(&whole[..]), nbytes.is_multiple_of(typesize).then_some(&planes[..])];
        for pieces in ways.into_iter().flatten() {
            for needed in parts_of(nbytes) {
                let mut target = vec![0; nbytes];
                unshuffle(&Planes::new(pieces, nbytes, typesize), &mut target, needed.clone());
                assert_eq!(target[needed.clone()], content[needed], "{typesize} {nbytes}");
            }
        }
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
                goes_back(unshuffle_bytes, &shuffled, &content, typesize);
                let mut again = vec![0; nbytes];
                shuffle_bytes(&content, &mut again, typesize);
                assert_eq!(again, shuffled, "{typesize} {nbytes}");
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
                goes_back(unshuffle_bits, &shuffled, &content, typesize);
                let mut again = vec![0; content.len()];
                shuffle_bits(&content, &mut again, typesize);
                assert_eq!(again, shuffled, "{typesize} {count}");
            }
        }
    }
}
