//! Decoding of LZ4 blocks (lz4_Block_format.md), from their beginning up to what is needed of them.
//!
//! A block is a row of sequences, each a run of literal bytes and a match, which is a copy of bytes before. Most are short,
//! and nothing foretells how long. So each copies a step of bytes where fewer would do (what comes next writes over the rest),
//! and matches that repeat at a short distance are put in order within a register, not byte by byte. Near the ends of the
//! memory, where there is no room for that, bytes are counted.

use std::mem::size_of;

/// Bytes that are copied at once.
const STEP: usize = size_of::<u128>();
/// The length in a token that says that bytes with more of it follow.
const MORE: usize = 15;
/// A match is so much longer than its token says.
const SHORTEST_MATCH: usize = 4;
/// A block ends with so many literal bytes at least, or has no match ...
const LAST_LITERALS: usize = 5;
/// ... of which the last one begins at least so many bytes before the end.
const LAST_MATCH: usize = 12;
/// No block is longer; and no sum of its lengths, which are up to 255 times that, may overflow.
const LONGEST: usize = if usize::BITS > 32 { 0x7e00_0000 } else { usize::MAX >> 9 };
/// From so many bytes on a copy is left to the library.
const LONG: usize = 512;
/// What a sequence reads at most as long as it names no length of its literals beyond its token: that, the literals (as one
/// step), the distance and a byte of the length of the match.
const READ_AT_ONCE: usize = 1 + STEP + 2 + 1;
/// What it writes at most where its match is no longer than two steps, and what has to follow.
const WRITTEN_AT_ONCE: usize = STEP + 2 * STEP + LAST_LITERALS;

/// For each distance below `STEP`: where the bytes of two steps, which repeat at this distance, come from among the bytes that
/// begin so far before them. At `STEP`, and beyond, they are as they come.
static REPEATED: [[Order; 2]; STEP + 1] = repeated();

/// Where the bytes of a step come from.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Order([u8; STEP]);

const fn repeated() -> [[Order; 2]; STEP + 1] {
    let mut table = [[Order([0; STEP]); 2]; STEP + 1];
    let mut distance = 1;
    while distance <= STEP {
        let mut i = 0;
        while i < STEP {
            table[distance][0].0[i] = (i % distance) as u8;
            table[distance][1].0[i] = ((STEP + i) % distance) as u8;
            i += 1;
        }
        distance += 1;
    }
    table
}

/// Decode `stream` to exactly fill `target`; or, where `wanted` is less, so many bytes of it at least. Returns whether it is a
/// block, as far as it was read. More of `target` may be written than is wanted.
pub fn decompress(stream: &[u8], target: &mut [u8], wanted: usize) -> bool {
    if stream.len() > LONGEST || target.len() > LONGEST {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the function needs AVX, which the processor has, as was just found.
        return unsafe { x86::with_avx(stream, target, wanted) };
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("ssse3") {
        // SAFETY: as above, SSSE3.
        return unsafe { x86::with_ssse3(stream, target, wanted) };
    }
    #[cfg(target_arch = "aarch64")]
    return decode::<arm::Neon>(stream, target, wanted);
    #[cfg(not(target_arch = "aarch64"))]
    decode::<Portable>(stream, target, wanted)
}

/// Puts the bytes of a step in order.
trait Shuffle {
    /// # Safety
    /// `STEP` bytes are readable at `source` and writable at `target`, and the processor has the instructions.
    unsafe fn shuffle(source: *const u8, order: &Order, target: *mut u8);
}

#[cfg(any(test, not(target_arch = "aarch64")))]
struct Portable;

#[cfg(any(test, not(target_arch = "aarch64")))]
impl Shuffle for Portable {
    #[inline(always)]
    unsafe fn shuffle(source: *const u8, order: &Order, target: *mut u8) {
        // SAFETY: see above; all bytes are read before one is written.
        unsafe {
            let bytes = source.cast::<[u8; STEP]>().read_unaligned();
            target.cast::<[u8; STEP]>().write_unaligned(order.0.map(|at| bytes[usize::from(at) % STEP]));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Order, Shuffle};

    /// An instruction of SSSE3, of which AVX has a shorter form.
    struct Pshufb;

    impl Shuffle for Pshufb {
        #[inline(always)]
        unsafe fn shuffle(source: *const u8, order: &Order, target: *mut u8) {
            // SAFETY: see above; `order` has 16 bytes, at a multiple of 16.
            unsafe {
                let order = _mm_load_si128(order.0.as_ptr().cast());
                _mm_storeu_si128(target.cast(), _mm_shuffle_epi8(_mm_loadu_si128(source.cast()), order));
            }
        }
    }

    #[target_feature(enable = "avx")]
    pub fn with_avx(stream: &[u8], target: &mut [u8], wanted: usize) -> bool {
        super::decode::<Pshufb>(stream, target, wanted)
    }

    #[target_feature(enable = "ssse3")]
    pub fn with_ssse3(stream: &[u8], target: &mut [u8], wanted: usize) -> bool {
        super::decode::<Pshufb>(stream, target, wanted)
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::{Order, Shuffle};

    pub struct Neon;

    impl Shuffle for Neon {
        #[inline(always)]
        unsafe fn shuffle(source: *const u8, order: &Order, target: *mut u8) {
            // SAFETY: see above; `order` has 16 bytes; every processor of this kind has these instructions.
            unsafe { vst1q_u8(target, vqtbl1q_u8(vld1q_u8(source), vld1q_u8(order.0.as_ptr()))) }
        }
    }
}

/// See `decompress`.
#[inline(always)]
fn decode<S: Shuffle>(stream: &[u8], target: &mut [u8], wanted: usize) -> bool {
    // while whole sequences lie within both memories, with room for what is copied too much
    let within =
        (stream.len().checked_sub(READ_AT_ONCE), target.len().checked_sub(WRITTEN_AT_ONCE), wanted.checked_sub(1));
    let (mut read, mut written) = (0, 0);
    if let (Some(last_read), Some(last_written), Some(last_wanted)) = within {
        let room_of_all = target.len(); // the slice is not looked at any more while there is the pointer
        let (input, output) = (stream.as_ptr(), target.as_mut_ptr());
        // SAFETY: `from` and what is derived from it stay within `stream`, `to` and what is derived from it within `target`,
        // as these compare. A sequence begins with `READ_AT_ONCE` bytes at `from` and `WRITTEN_AT_ONCE` at `to`. Up to 14
        // literals are one step; for more, the bytes that follow `at` are compared with what is read: the literals, rounded
        // up to two steps, which is more than the three bytes after them. `place` has room for two steps and
        // `LAST_LITERALS` bytes then. A match of more than two steps is compared with the room again.
        // What is copied begins at most `place - output` bytes before `place`, and ends there or in what has been written in
        // the step before, as far as an order names the bytes.
        // No sum overflows, see `LONGEST`. The processor has what `S` needs: see `decompress`, the only caller with instructions
        // that not every one has.
        unsafe {
            let (mut from, mut to) = (input, output);
            let (last_from, last_to) = (input.add(last_read), output.add(last_written.min(last_wanted)));
            while from <= last_from && to <= last_to {
                let token = usize::from(*from);
                let mut literals = token >> 4;
                let mut at = from.add(1);
                copy(at, to);
                if literals == MORE {
                    let Some((whole, after)) = go_on(stream, at.offset_from_unsigned(input), literals) else {
                        return false;
                    };
                    (literals, at) = (whole, input.add(after));
                    let room = room_of_all - to.offset_from_unsigned(output);
                    if stream.len() - after < literals + 2 * STEP || room < literals + WRITTEN_AT_ONCE {
                        break;
                    }
                    copy_far(at, to, literals);
                }
                at = at.add(literals);
                let place = to.add(literals);

                let distance = usize::from(u16::from_le_bytes(at.cast::<[u8; 2]>().read()));
                at = at.add(2);
                if distance.wrapping_sub(1) >= place.offset_from_unsigned(output) {
                    return false;
                }
                let source = place.sub(distance);
                let [first, second] = &REPEATED[distance.min(STEP)];
                S::shuffle(source, first, place);
                let short = token & MORE;
                let mut length = short + SHORTEST_MATCH;
                if length > STEP {
                    if short == MORE {
                        length += usize::from(*at);
                        at = at.add(1);
                    }
                    S::shuffle(source.add(if distance < STEP { 0 } else { STEP }), second, place.add(STEP));
                    if length > 2 * STEP {
                        if length == SHORTEST_MATCH + MORE + usize::from(u8::MAX) {
                            let after = at.offset_from_unsigned(input);
                            let Some((whole, after)) = go_on(stream, after, length) else { return false };
                            (length, at) = (whole, input.add(after));
                        }
                        if room_of_all - place.offset_from_unsigned(output) < length + 2 * STEP {
                            break;
                        }
                        repeat(place, distance, length);
                    }
                }
                (from, to) = (at, place.add(length));
            }
            (read, written) = (from.offset_from_unsigned(input), to.offset_from_unsigned(output));
        }
    }
    (written >= wanted && wanted < target.len()) || finish(stream, target, wanted, read, written)
}

/// Copy `STEP` bytes.
///
/// # Safety
/// They are readable at `source` and writable at `target`; the two may overlap.
#[inline(always)]
unsafe fn copy(source: *const u8, target: *mut u8) {
    // SAFETY: see above; all bytes are read before one is written.
    unsafe { target.cast::<u128>().write_unaligned(source.cast::<u128>().read_unaligned()) }
}

/// Copy `length` bytes, in pairs of steps.
///
/// # Safety
/// `length + 2 * STEP` bytes are readable at `source` and writable at `target`, which lie in two memories.
#[inline(always)]
unsafe fn copy_far(source: *const u8, target: *mut u8, length: usize) {
    if length >= LONG {
        // SAFETY: see above.
        return unsafe { target.copy_from_nonoverlapping(source, length) };
    }
    let mut done = 0;
    while done < length {
        // SAFETY: `done < length`; see above.
        unsafe {
            copy(source.add(done), target.add(done));
            copy(source.add(done + STEP), target.add(done + STEP));
        }
        done += 2 * STEP;
    }
}

/// Go on with a match of `length` bytes, of which two steps are written.
///
/// # Safety
/// `distance` bytes before `place`, and the two steps, are readable, `length + 2 * STEP` bytes from there on writable.
#[inline(always)]
unsafe fn repeat(place: *mut u8, mut distance: usize, length: usize) {
    let mut done = 2 * STEP;
    if distance < STEP {
        if distance.is_power_of_two() {
            // SAFETY: every step is as the first one; `done < length`, see above.
            unsafe {
                let step = place.cast::<u128>().read_unaligned();
                while done < length {
                    place.add(done).cast::<u128>().write_unaligned(step);
                    place.add(done + STEP).cast::<u128>().write_unaligned(step);
                    done += 2 * STEP;
                }
            }
            return;
        }
        // what repeats at a distance repeats at its multiples: the least that is no shorter than a step is shorter than two
        distance = STEP.div_ceil(distance) * distance;
    }
    // SAFETY: the source of each step ends where the step begins, or before, and begins no more than `distance` (as given)
    // before `place`: `2 * STEP` is no less than a multiple, and more are done. For the library, see above.
    unsafe {
        if length >= LONG && distance >= length {
            return place.copy_from_nonoverlapping(place.sub(distance), length);
        }
        while done < length {
            copy(place.add(done).sub(distance), place.add(done));
            copy(place.add(done + STEP).sub(distance), place.add(done + STEP));
            done += 2 * STEP;
        }
    }
}

/// A length, of which the part `length` is known and the next byte is at `at`; and where it ends.
#[inline(always)]
fn go_on(stream: &[u8], mut at: usize, mut length: usize) -> Option<(usize, usize)> {
    loop {
        let more = *stream.get(at)?;
        at += 1;
        length += usize::from(more);
        if more != u8::MAX {
            return Some((length, at));
        }
    }
}

/// See `decompress`, from `read` on, with `written` bytes there: byte by byte.
#[inline(never)]
fn finish(stream: &[u8], target: &mut [u8], wanted: usize, mut read: usize, mut written: usize) -> bool {
    // whether that was the last sequence, unless it is damaged
    let mut sequence = || -> Option<bool> {
        let token = usize::from(*stream.get(read)?);
        let (mut literals, mut length) = (token >> 4, (token & MORE) + SHORTEST_MATCH);
        read += 1;
        if literals == MORE {
            (literals, read) = go_on(stream, read, literals)?;
        }
        let run = stream.get(read..read + literals)?;
        target.get_mut(written..written + literals)?.copy_from_slice(run);
        read += literals;
        written += literals;
        if read == stream.len() {
            return (written == target.len()).then_some(true);
        }
        let distance = usize::from(u16::from_le_bytes(*stream.get(read..)?.first_chunk()?));
        read += 2;
        if length == SHORTEST_MATCH + MORE {
            (length, read) = go_on(stream, read, length)?;
        }
        let room = target.len() - written;
        if distance == 0 || distance > written || room < LAST_MATCH || room - LAST_LITERALS < length {
            return None;
        }
        let (start, end) = (written - distance, written + length);
        while written < end {
            // from `start` on it repeats: more can be copied each time
            let count = (end - written).min(written - start);
            target.copy_within(start..start + count, written);
            written += count;
        }
        Some(written >= wanted && wanted < target.len())
    };
    loop {
        match sequence() {
            Some(false) => {}
            Some(true) => return true,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;

    /// What liblz4 makes of it.
    fn reference(stream: &[u8], nbytes: usize) -> Option<Vec<u8>> {
        let mut target = vec![0u8; nbytes];
        let (input, output) = (stream.as_ptr().cast(), target.as_mut_ptr().cast());
        // SAFETY: pointers and lengths are those of two vectors.
        let given = unsafe { lz4_sys::LZ4_decompress_safe(input, output, stream.len() as c_int, nbytes as c_int) };
        (given == nbytes as c_int).then_some(target)
    }

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut stream = vec![0u8; content.len() + content.len() / 200 + 64];
        // SAFETY: pointers and lengths are those of two vectors.
        let nbytes = unsafe {
            let (input, output) = (content.as_ptr().cast(), stream.as_mut_ptr().cast());
            lz4_sys::LZ4_compress_default(input, output, content.len() as c_int, stream.len() as c_int)
        };
        stream.truncate(nbytes.try_into().unwrap());
        stream
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit
        }

        fn one_of<const N: usize>(&mut self, limits: [usize; N]) -> usize {
            limits[self.below(N)]
        }
    }

    /// Bytes that repeat at short and long distances, for short and long whiles.
    fn content(random: &mut Random, nbytes: usize) -> Vec<u8> {
        let mut content = Vec::new();
        while content.len() < nbytes {
            let most = random.one_of([3, 20, 60, 400, 3000]);
            let count = 1 + random.below(most);
            if random.below(3) == 0 || content.is_empty() {
                content.extend((0..count).map(|_| random.below(256) as u8));
            } else {
                let most = random.one_of([1, 4, 20, 40, 70_000]);
                let distance = 1 + random.below(content.len().min(most));
                (0..count).for_each(|_| content.push(content[content.len() - distance]));
            }
        }
        content.truncate(nbytes);
        content
    }

    type Decode = fn(&[u8], &mut [u8], usize) -> bool;

    /// Both ways: with what the processor has, and without.
    const WAYS: [Decode; 2] = [decompress, decode::<Portable>];

    #[test]
    fn decodes_what_liblz4_encodes() {
        let mut random = Random(1);
        for nbytes in (0..300).chain([1000, 4096, 65_536, 65_537, 300_001]).cycle().take(2000) {
            let content = content(&mut random, nbytes);
            let stream = compressed(&content);
            for decode in WAYS {
                let mut target = vec![7; nbytes];
                assert!(decode(&stream, &mut target, nbytes));
                assert!(target == content, "{nbytes}");
                let wanted = random.below(nbytes + 1);
                let mut target = vec![7; nbytes];
                assert!(decode(&stream, &mut target, wanted));
                assert!(target[..wanted] == content[..wanted], "{wanted} of {nbytes}");
                assert!(!decode(&stream, &mut vec![0; nbytes + 1], nbytes + 1));
                assert!(nbytes == 0 || !decode(&stream, &mut vec![0; nbytes - 1], nbytes - 1));
            }
        }
    }

    #[test]
    fn refuses_what_liblz4_refuses() {
        let mut random = Random(2);
        let mut taken = 0;
        for i in 0..60_000 {
            let nbytes = 1 + random.below([30, 100, 1000][i % 3]);
            let mut stream = compressed(&content(&mut random, nbytes));
            for _ in 0..1 + random.below(3) {
                let at = random.below(stream.len());
                match random.below(4) {
                    0 => stream.truncate(at.max(1)),
                    1 => stream[at] = random.below(256) as u8,
                    2 => stream[at] ^= 1 << random.below(8),
                    _ => stream.insert(at, random.one_of([0, 1, 15, 240, 255]) as u8),
                }
            }
            let expected = reference(&stream, nbytes);
            for decode in WAYS {
                let mut target = vec![0; nbytes];
                // memory that ends where the stream ends, for tools that see what is read beyond
                let taken_by_us = decode(&stream.clone().into_boxed_slice(), &mut target, nbytes);
                // a distance of 0 has no meaning: liblz4 makes something up
                assert!(
                    taken_by_us == expected.is_some() || (!taken_by_us && repeats_nothing(&stream)),
                    "{stream:?} {nbytes}"
                );
                assert!(!taken_by_us || Some(target) == expected, "{stream:?} {nbytes}");
            }
            taken += usize::from(expected.is_some());
            decompress(&stream, &mut vec![0; nbytes], random.below(nbytes + 1));
        }
        assert!(taken > 5000);
    }

    /// Whether a distance in the stream is 0.
    fn repeats_nothing(stream: &[u8]) -> bool {
        let mut at = 0;
        let next = || -> Option<bool> {
            let token = usize::from(*stream.get(at)?);
            at += 1;
            let mut literals = token >> 4;
            if literals == MORE {
                (literals, at) = go_on(stream, at, literals)?;
            }
            at += literals;
            let distance = u16::from_le_bytes(*stream.get(at..)?.first_chunk()?);
            at += 2;
            if token & MORE == MORE {
                (_, at) = go_on(stream, at, 0)?;
            }
            Some(distance == 0)
        };
        std::iter::from_fn(next).any(|nothing| nothing)
    }
}
