//! Undoing blosc's shuffles: elements whose bytes, or bits, were sorted by significance.

/// From all first bytes, all second bytes, ... back to elements of `typesize` bytes; what is left over at the end is
/// copied. Both slices are equally long.
pub fn unshuffle_bytes(shuffled: &[u8], target: &mut [u8], typesize: usize) {
    let count = shuffled.len() / typesize;
    let (planes, rest) = shuffled.split_at(count * typesize);
    let (elements, tail) = target.split_at_mut(count * typesize);
    tail.copy_from_slice(rest);
    let done = match typesize {
        2 => interleave::<2>(planes, elements),
        4 => interleave::<4>(planes, elements),
        8 => interleave::<8>(planes, elements),
        16 => interleave::<16>(planes, elements),
        _ => 0,
    };
    for (plane, bytes) in planes.chunks_exact(count.max(1)).enumerate() {
        for (element, &byte) in elements.chunks_exact_mut(typesize).zip(bytes).skip(done) {
            element[plane] = byte;
        }
    }
}

/// From all lowest bits, ... back to elements of `typesize` bytes. As c-blosc does it: nothing was shuffled unless the
/// number of elements is a multiple of 8.
pub fn unshuffle_bits(shuffled: &[u8], target: &mut [u8], typesize: usize) {
    let count = shuffled.len() / typesize;
    if count % 8 != 0 || count == 0 {
        target.copy_from_slice(shuffled);
        return;
    }
    let (planes, rest) = shuffled.split_at(count * typesize);
    let (elements, tail) = target.split_at_mut(count * typesize);
    tail.copy_from_slice(rest);
    let row = count / 8;
    // eight rows, one for each bit, hold byte number `at` of all elements
    for (at, rows) in planes.chunks_exact(count).enumerate() {
        for i in 0..row {
            let mut bits = [0u8; 8];
            for (k, bit) in bits.iter_mut().enumerate() {
                *bit = rows[k * row + i];
            }
            let bytes = transpose_bits(u64::from_le_bytes(bits)).to_le_bytes();
            for (j, byte) in bytes.into_iter().enumerate() {
                elements[(8 * i + j) * typesize + at] = byte;
            }
        }
    }
}

/// Bit `j` of byte `k` becomes bit `k` of byte `j`.
fn transpose_bits(mut x: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x
}

/// Put `N` planes together, as many elements as fit whole registers; returns how many these are.
fn interleave<const N: usize>(planes: &[u8], elements: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let count = planes.len() / N;
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { x86::interleave_avx2::<N>(planes, elements, count) };
        }
    }
    0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// See `interleave`: 32 elements at a time.
    #[target_feature(enable = "avx2")]
    pub fn interleave_avx2<const N: usize>(planes: &[u8], elements: &mut [u8], count: usize) -> usize {
        assert!(planes.len() == count * N && elements.len() == count * N);
        let done = count / 32 * 32;
        for i in (0..done).step_by(32) {
            let mut registers = [_mm256_setzero_si256(); N];
            for (plane, register) in registers.iter_mut().enumerate() {
                // SAFETY: `i + 32 <= count`, so within the plane.
                *register = unsafe { _mm256_loadu_si256(planes.as_ptr().add(plane * count + i).cast()) };
            }
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
            // the lower halves hold the first 16 elements, the upper halves the others
            for (k, &register) in registers.iter().enumerate() {
                // SAFETY: elements `i` to `i + 32` take `32 * N` bytes, half of them for each loop of 16 bytes.
                unsafe {
                    let start = elements.as_mut_ptr().add(i * N + 16 * k);
                    _mm_storeu_si128(start.cast(), _mm256_castsi256_si128(register));
                    _mm_storeu_si128(start.add(16 * N).cast(), _mm256_extracti128_si256::<1>(register));
                }
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_back() {
        for typesize in [2usize, 3, 4, 5, 8, 16, 17] {
            for nbytes in [typesize, 31 * typesize, 32 * typesize, 67 * typesize + 1, 1000] {
                let content: Vec<u8> = (0..nbytes).map(|i| (i * 37 % 256) as u8).collect();
                let count = nbytes / typesize;
                let mut shuffled = content.clone();
                for i in 0..count {
                    for j in 0..typesize {
                        shuffled[j * count + i] = content[i * typesize + j];
                    }
                }
                let mut target = vec![0; nbytes];
                unshuffle_bytes(&shuffled, &mut target, typesize);
                assert_eq!(target, content, "{typesize} {nbytes}");
            }
        }
    }

    #[test]
    fn bits_transpose() {
        for i in 0..64 {
            assert_eq!(transpose_bits(1 << i), 1 << (i % 8 * 8 + i / 8));
        }
    }
}
