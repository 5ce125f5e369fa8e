//! Decoding of `blosc`: the container of c-blosc 1 (README_CHUNK_FORMAT).
//!
//! Only single streams are handed to C, with the lengths of what is really there: c-blosc itself takes memory and contexts
//! anew for every block.

use std::ops::Range;
use std::sync::Mutex;

use crate::Outcome;
use crate::decode::read_space::ReadSpace;
use crate::memory::scratch::Scratch;
use crate::plan::parts::Parts;
use crate::steps::Decoders;
use crate::steps::blosc_streams::{Format, decompress_stream};
use crate::steps::shuffle::{self, Planes};

/// Bytes of the header.
pub const OVERHEAD: usize = 16;
/// Chunks of so many bytes are worth being shared by threads.
pub const WORTH_SHARING: usize = 512 * 1024;
/// So many bytes of one of these, at least, are decoded by a thread at a time, if there are as many.
const WORTH_TAKING: usize = 64 * 1024;
/// Blocks of so many bytes are worth being read one by one, where all of them are needed.
const WORTH_READING: usize = 16 * 1024;
/// Bytes that are read first of a buffer of which only parts are read: the header, and most tables.
const BEGINNING: usize = 512;
pub const MAX_INPUT: usize = i32::MAX as usize - OVERHEAD;
pub const MAX_BLOCK: usize = (i32::MAX as usize - 255 * 4) / 3;
/// More than any compressor of blosc can save.
const LARGEST_RATIO: u64 = 1 << 16;
pub const MAX_SPLITS: usize = 16;
pub const MIN_SPLIT: usize = 128;

pub const SHUFFLED: u8 = 0x01;
pub const STORED: u8 = 0x02;
pub const BIT_SHUFFLED: u8 = 0x04;
const FUTURE: u8 = 0x08;
pub const NOT_SPLIT: u8 = 0x10;

/// The header of a buffer, of which everything has been checked that can be told from the header alone.
pub struct Header {
    version: u8,
    flags: u8,
    typesize: usize,
    blocksize: usize,
}

impl Header {
    /// The header of `data`, a buffer that has to give `nbytes` bytes.
    pub fn read(data: &[u8], nbytes: usize) -> Outcome<Header> {
        Self::of_beginning(data, data.len(), nbytes)
    }

    /// As `read`, of a buffer of `length` bytes of which `data` is the beginning.
    fn of_beginning(data: &[u8], length: usize, nbytes: usize) -> Outcome<Header> {
        let Some((header, _)) = data.split_first_chunk::<OVERHEAD>() else {
            return Err(format!("{length} bytes are too few for a blosc header").into());
        };
        let [format, version, flags, typesize, ..] = *header;
        let field = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (claimed, blocksize, cbytes) = (field(4), field(8) as usize, field(12) as usize);
        if format != 2 {
            return Err(format!("blosc format version {format}, expected 2").into());
        }
        if cbytes != length {
            return Err(format!("the blosc header says {cbytes} bytes, {length} are stored").into());
        }
        if claimed as usize != nbytes {
            return Err(format!("the blosc header says {claimed} decoded bytes, expected {nbytes}").into());
        }
        if nbytes > MAX_INPUT || u64::from(claimed) > LARGEST_RATIO * cbytes as u64 {
            return Err(format!("{nbytes} bytes cannot come out of {cbytes} of blosc").into());
        }
        let header = Header { version, flags, typesize: typesize.into(), blocksize };
        if nbytes == 0 {
            return Ok(header);
        }
        if typesize == 0 || blocksize == 0 || blocksize > nbytes || blocksize > MAX_BLOCK || flags & FUTURE != 0 {
            return Err("the blosc header is damaged".into());
        }
        if flags & STORED != 0 {
            if cbytes != nbytes + OVERHEAD {
                return Err(format!("the blosc header says {nbytes} stored bytes, other than follow").into());
            }
        } else if nbytes.div_ceil(blocksize) > (cbytes - OVERHEAD) / 4 {
            return Err("the blosc buffer is too short for the table of its blocks".into());
        }
        Ok(header)
    }
}

/// Decompress the buffer `data` to exactly fill `target`; or, of that, `parts` at least.
pub fn decompress(data: &[u8], target: &mut [u8], parts: Option<&Parts>, decoders: &mut Decoders) -> Outcome {
    let header = Header::read(data, target.len())?;
    if target.is_empty() {
        return Ok(());
    }
    if header.flags & STORED != 0 {
        let content = &data[OVERHEAD..];
        match parts {
            None => target.copy_from_slice(content),
            Some(parts) => {
                parts.ranges().iter().for_each(|part| target[part.clone()].copy_from_slice(&content[part.clone()]));
            }
        }
        return Ok(());
    }
    if header.version != 1 {
        return Err("the blosc header names an unknown version of a compressor".into());
    }
    let format = Format::of_flags(header.flags).ok_or("the blosc header names an unknown compressor")?;
    each_block(&header, target, parts, decoders, |(i, block, part), _, decoders| {
        let start = word(data, OVERHEAD + 4 * i).ok_or("a blosc table ends too early")?;
        decompress_block(data, start, format, &header, block, part, decoders)
    })
}

/// What is needed of a block: the bytes from the first to the last of it, or, of these, what the parts ask for of the range
/// that it is of the chunk.
type Needed<'a> = (Range<usize>, Option<(&'a Parts, Range<usize>)>);

/// Call `decode` for the number of each block of `target` of which parts are needed, in as many threads as have nothing
/// else to do, each with memory for the encoded bytes of a block.
fn each_block(
    header: &Header,
    target: &mut [u8],
    parts: Option<&Parts>,
    decoders: &mut Decoders,
    decode: impl Fn((usize, &mut [u8], Needed), &mut Scratch, &mut Decoders) -> Outcome + Sync,
) -> Outcome {
    let size = target.len();
    let one = |i: usize, block: &mut [u8], stored: &mut Scratch, decoders: &mut Decoders| {
        let begin = i * header.blocksize;
        let range = begin..begin + block.len();
        let Some(needed) = parts.map_or(Some(0..block.len()), |parts| parts.within(range.clone())) else {
            return Ok(());
        };
        decode((i, block, (needed, parts.map(|parts| (parts, range)))), stored, decoders)
    };
    let some = |first: usize, blocks: &mut [u8], stored: &mut Scratch, decoders: &mut Decoders| {
        let mut each = blocks.chunks_mut(header.blocksize).enumerate();
        each.try_for_each(|(i, block)| one(first + i, block, stored, decoders))
    };
    // small blocks go together: there may be as many of them as a quarter of the bytes that are stored
    let together = (WORTH_TAKING / header.blocksize).max(1);
    let unit = together * header.blocksize;
    let Some(crew) = decoders.crew.clone().filter(|crew| size >= WORTH_SHARING && size > unit && crew.has_hands())
    else {
        let mut stored = std::mem::take(&mut decoders.stored);
        let outcome = some(0, target, &mut stored, decoders);
        decoders.stored = stored;
        return outcome;
    };
    let units: Vec<Mutex<&mut [u8]>> = target.chunks_mut(unit).map(Mutex::new).collect();
    let decode = |space: &mut ReadSpace, i: usize| {
        let mut blocks = units[i].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        some(i * together, &mut blocks, &mut space.read, &mut space.chunk.decoders)
    };
    crew.share(units.len(), ReadSpace::kept, decode, ReadSpace::keep)
}

/// Fills memory with a range of a buffer.
pub trait Fill: Fn(&mut [u8], Range<usize>) -> Outcome + Sync {}
impl<F: Fn(&mut [u8], Range<usize>) -> Outcome + Sync> Fill for F {}

/// A buffer that is read in pieces, of which the beginning has been.
pub struct Unread {
    header: Header,
    length: usize,
    nbytes: usize,
    beginning: Vec<u8>,
}

impl Unread {
    /// One of `length` bytes that has to give `nbytes` bytes. `read` gives ranges of it.
    pub fn open(length: usize, nbytes: usize, read: &impl Fill) -> Outcome<Unread> {
        let mut beginning = vec![0; BEGINNING.min(length)];
        read(&mut beginning, 0..BEGINNING.min(length))?;
        Ok(Unread { header: Header::of_beginning(&beginning, length, nbytes)?, length, nbytes, beginning })
    }

    /// Decompress it to exactly fill `target`; or, of that, `parts` at least: no other blocks are read. One that is read by
    /// itself and goes on where another one begins is refused.
    pub fn decompress(
        mut self,
        target: &mut [u8],
        parts: Option<&Parts>,
        decoders: &mut Decoders,
        read: &impl Fill,
    ) -> Outcome {
        if target.len() != self.nbytes {
            return Err(format!("room for {} bytes, expected {}", target.len(), self.nbytes).into());
        }
        if target.is_empty() {
            return Ok(());
        }
        if self.header.flags & STORED != 0 {
            // the header says that `nbytes` bytes follow it
            let mut copy =
                |part: Range<usize>| read(&mut target[part.clone()], part.start + OVERHEAD..part.end + OVERHEAD);
            return match parts {
                None => copy(0..self.nbytes),
                Some(parts) => parts.ranges().iter().cloned().try_for_each(copy),
            };
        }
        if self.header.version != 1 {
            return Err("the blosc header names an unknown version of a compressor".into());
        }
        if parts.is_none() && self.header.blocksize < WORTH_READING {
            let mut stored = std::mem::take(&mut decoders.stored);
            let outcome = stored.take(self.length).and_then(|data| {
                read(data, 0..self.length)?;
                decompress(data, target, None, decoders)
            });
            decoders.stored = stored;
            return outcome;
        }
        let format = Format::of_flags(self.header.flags).ok_or("the blosc header names an unknown compressor")?;
        // the header says that there is room for this
        let end = OVERHEAD + 4 * self.nbytes.div_ceil(self.header.blocksize);
        let known = self.beginning.len();
        if known < end {
            self.beginning.resize(end, 0);
            read(&mut self.beginning[known..], known..end)?;
        }
        let (table, length) = (&self.beginning[..end], self.length);
        let mut starts: Vec<usize> = (OVERHEAD..end).step_by(4).filter_map(|at| word(table, at)).collect();
        starts.sort_unstable();
        each_block(&self.header, target, parts, decoders, |(i, block, part), stored, decoders| {
            let start = word(table, OVERHEAD + 4 * i).ok_or("a blosc table ends too early")?;
            let stop = starts.get(starts.partition_point(|&each| each <= start)).copied().unwrap_or(length);
            if start < end || start >= stop || stop > length {
                return Err("a blosc block begins outside of the buffer".into());
            }
            let stored = stored.take(stop - start)?;
            read(stored, start..stop)?;
            decompress_block(stored, 0, format, &self.header, block, part, decoders)
        })
    }
}

/// Decompress the block whose streams begin at `position` of `data`: what is needed of it at least.
fn decompress_block(
    data: &[u8],
    mut position: usize,
    format: Format,
    header: &Header,
    block: &mut [u8],
    (needed, parts): Needed,
    decoders: &mut Decoders,
) -> Outcome {
    let size = block.len();
    let typesize = header.typesize;
    let by_bytes = header.flags & SHUFFLED != 0 && typesize > 1;
    let by_bits = !by_bytes && header.flags & BIT_SHUFFLED != 0 && size >= typesize;
    let whole = size == header.blocksize;
    let split = header.flags & NOT_SPLIT == 0 && typesize <= MAX_SPLITS && size / typesize >= MIN_SPLIT && whole;
    let streams = if split { typesize } else { 1 };
    if !size.is_multiple_of(streams) {
        return Err("a blosc block cannot be split evenly".into());
    }
    // how many bytes at the start of a stream are needed
    let part = size / streams;
    let wanted = |stream: usize| {
        if by_bits {
            return part;
        }
        if !by_bytes {
            return if needed.start < (stream + 1) * part { needed.end.saturating_sub(stream * part) } else { 0 };
        }
        let count = size / typesize;
        match needed.end.div_ceil(typesize) {
            elements if elements > count => part, // some of what is left over at the end
            elements if split => elements,
            elements => (typesize - 1) * count + elements,
        }
    };
    let mut next = || -> Outcome<&[u8]> {
        let length = word(data, position).ok_or("a blosc block begins outside of the buffer")?;
        let start = position + 4;
        let stop = start.checked_add(length).filter(|&stop| stop <= data.len());
        position = stop.ok_or("a blosc stream ends outside of the buffer")?;
        Ok(&data[start..position])
    };
    if !by_bytes && !by_bits {
        for (i, into) in block.chunks_exact_mut(part).enumerate() {
            let (stream, wanted) = (next()?, wanted(i).min(part));
            if stream.len() == part {
                into[..wanted].copy_from_slice(&stream[..wanted]);
            } else if wanted > 0 {
                decompress_stream(format, stream, into, wanted, decoders)?;
            }
        }
        return Ok(());
    }
    let mut scratch = std::mem::take(&mut decoders.block);
    let outcome = scratch.take(size).and_then(|room| {
        let mut pieces: [&[u8]; MAX_SPLITS] = [&[]; MAX_SPLITS];
        for ((i, into), piece) in room.chunks_exact_mut(part).enumerate().zip(&mut pieces) {
            let (stream, wanted) = (next()?, wanted(i).min(part));
            *piece = if stream.len() == part {
                stream
            } else {
                if wanted > 0 {
                    decompress_stream(format, stream, into, wanted, decoders)?;
                }
                into
            };
        }
        let planes = Planes::new(&pieces[..streams], size, typesize);
        let mut unshuffle = |part: Range<usize>| {
            if by_bytes {
                shuffle::unshuffle_bytes(&planes, block, part);
            } else {
                shuffle::unshuffle_bits(&planes, block, part);
            }
        };
        match parts {
            None => unshuffle(needed.clone()),
            Some((parts, range)) => parts.each_within(range).for_each(unshuffle),
        }
        Ok(())
    });
    decoders.block = scratch;
    outcome
}

/// The little-endian number (of 31 bits) at `position`.
fn word(data: &[u8], position: usize) -> Option<usize> {
    let bytes = data.get(position..position.checked_add(4)?)?;
    let value = i32::from_le_bytes(bytes.try_into().ok()?);
    usize::try_from(value).ok()
}

#[cfg(test)]
pub mod tests {
    use std::ffi::CString;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::threads::crew::Crew;

    /// What c-blosc makes: the settings are level, shuffle, size of elements and of blocks.
    pub fn c_blosc(
        content: &[u8],
        cname: &str,
        (level, shuffle, typesize, blocksize): (i32, i32, usize, usize),
    ) -> Vec<u8> {
        let mut data = vec![0; content.len() + OVERHEAD];
        let cname = CString::new(cname).unwrap();
        let (input, output) = (content.as_ptr().cast(), data.as_mut_ptr().cast());
        // SAFETY: pointers and lengths are those of two vectors, and `cname` ends in NUL.
        let written = unsafe {
            let (nbytes, room, name) = (content.len(), data.len(), cname.as_ptr());
            blosc_src::blosc_compress_ctx(level, shuffle, typesize, nbytes, input, output, room, name, blocksize, 1)
        };
        data.truncate(written.try_into().unwrap());
        data
    }

    pub fn noise(nbytes: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 28) as u8
        };
        (0..nbytes).map(|i| if i % 2 == 0 { next() } else { (i / 512) as u8 }).collect()
    }

    /// What c-blosc reads.
    pub fn reference(data: &[u8], nbytes: usize) -> Option<Vec<u8>> {
        let mut target = vec![0u8; nbytes];
        // SAFETY: `target` has the length that is given; `data` is one whole buffer that an encoder has made.
        let given =
            unsafe { blosc_src::blosc_decompress_ctx(data.as_ptr().cast(), target.as_mut_ptr().cast(), nbytes, 1) };
        (given == nbytes as i32).then_some(target)
    }

    #[test]
    fn decodes_what_c_blosc_encodes() {
        let mut decoders = Decoders::default();
        for cname in ["lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"] {
            for (nbytes, blocksize) in [(8192, 0), (65536, 0), (300_001, 0), (70_000, 4096), (97, 0), (5, 0), (1, 0)] {
                for typesize in [1, 2, 3, 4, 8, 12, 16, 17, 100] {
                    for (shuffle, clevel) in [(0, 5), (1, 5), (2, 5), (1, 0), (2, 9)] {
                        let content = noise(nbytes);
                        let data = c_blosc(&content, cname, (clevel, shuffle, typesize, blocksize));
                        let mut target = vec![0; nbytes];
                        decompress(&data, &mut target, None, &mut decoders).unwrap();
                        assert!(target == content, "{cname} {nbytes} {typesize} {shuffle}");
                        for (start, stop) in [(0, 1), (nbytes / 2, nbytes / 2 + 1), (nbytes / 3, nbytes), (1, nbytes)] {
                            let mut parts = Parts::default();
                            parts.push(start..stop.max(start), 0);
                            let mut target = vec![0; nbytes];
                            decompress(&data, &mut target, Some(&parts), &mut decoders).unwrap();
                            assert!(
                                target[start..stop.max(start)] == content[start..stop.max(start)],
                                "{start} {stop}"
                            );
                        }
                        let mut parts = Parts::default();
                        let places: Vec<usize> = (0..nbytes).step_by(777).collect();
                        places.iter().for_each(|&at| parts.push(at..at + 1, 0));
                        let mut target = vec![0; nbytes];
                        decompress(&data, &mut target, Some(&parts), &mut decoders).unwrap();
                        assert!(places.iter().all(|&at| target[at] == content[at]));
                        assert!(decompress(&data[..data.len() - 1], &mut target, None, &mut decoders).is_err());
                        assert!(decompress(&data, &mut vec![0; nbytes + 1], None, &mut decoders).is_err());
                    }
                }
            }
        }
    }

    #[test]
    fn parts_of_what_repeats_are_as_they_are() {
        let mut decoders = Decoders::default();
        let mut content = vec![0; 1_000_000];
        content.iter_mut().step_by(90_001).for_each(|byte| *byte = 3);
        for (shuffle, typesize) in [(0, 1), (1, 2), (1, 16), (2, 4)] {
            let data = c_blosc(&content, "lz4", (5, shuffle, typesize, 0));
            for part in [0..1, 90_000..90_002, 300_000..700_000, 999_999..1_000_000] {
                let mut parts = Parts::default();
                parts.push(part.clone(), 0);
                let mut target = vec![7; content.len()];
                decompress(&data, &mut target, Some(&parts), &mut decoders).unwrap();
                assert!(target[part.clone()] == content[part], "{shuffle} {typesize}");
            }
        }
    }

    #[test]
    fn only_blocks_that_are_needed_are_read() {
        let mut decoders = Decoders::default();
        for (shuffle, clevel, blocksize) in [(1, 5, 4096), (2, 5, 65536), (0, 5, 64), (1, 0, 4096)] {
            let content = noise(300_000);
            let data = c_blosc(&content, "lz4", (clevel, shuffle, 2, blocksize));
            for start in [0, 777, 150_000, 299_990] {
                let mut parts = Parts::default();
                parts.push(start..start + 5, 0);
                parts.push(start + 9..start + 10, 0);
                let (mut target, count) = (vec![0; content.len()], AtomicUsize::new(0));
                let read = |into: &mut [u8], range: Range<usize>| {
                    count.fetch_add(range.len(), Ordering::Relaxed);
                    into.copy_from_slice(&data[range]);
                    Ok(())
                };
                let unread = Unread::open(data.len(), content.len(), &read).unwrap();
                unread.decompress(&mut target, Some(&parts), &mut decoders, &read).unwrap();
                for part in parts.ranges() {
                    assert!(target[part.clone()] == content[part.clone()], "{shuffle} {blocksize} {start}");
                }
                let count = count.into_inner();
                assert!(count < data.len() / 2, "{count} of {}", data.len());
            }
            // blocks that begin elsewhere than they do, or go on where others begin
            let mut parts = Parts::default();
            parts.push(content.len() / 2..content.len() / 2 + 5, 0);
            for at in (0..data.len().min(600)).step_by(3) {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut damaged = data.clone();
                    damaged[at] = value;
                    let mut target = vec![0; content.len()];
                    let read = |into: &mut [u8], range: Range<usize>| {
                        into.copy_from_slice(&damaged[range]);
                        Ok(())
                    };
                    let mut whole = vec![0; content.len()];
                    let done = Unread::open(data.len(), content.len(), &read)
                        .and_then(|unread| unread.decompress(&mut target, Some(&parts), &mut decoders, &read));
                    if done.is_ok() {
                        decompress(&damaged, &mut whole, Some(&parts), &mut decoders).unwrap();
                        let part = parts.ranges()[0].clone();
                        assert!(target[part.clone()] == whole[part]);
                    }
                }
            }
        }
    }

    #[test]
    fn threads_share_the_blocks_of_a_chunk() {
        let content = noise(3_000_001);
        for (shuffle, cname, blocksize) in [(1, "lz4", 0), (2, "zstd", 0), (0, "blosclz", 0), (1, "zstd", 1000)] {
            let data = c_blosc(&content, cname, (5, shuffle, 4, blocksize));
            let mut damaged = data.clone();
            damaged[OVERHEAD + 4 * 3 + 3] = 0x7f; // the place of the fourth block
            let mut parts = Parts::default();
            (0..30).for_each(|number| parts.push(number * 100_000 + 7..number * 100_000 + 900, 0));
            let crew = Arc::new(Crew::default());
            let [own, one, other] = [(); 3].map(|()| crew.come());
            crew.note_all_taken();
            thread::scope(|scope| {
                scope.spawn(move || one.help());
                scope.spawn(move || other.help());
                let mut decoders = Decoders { crew: Some(crew.clone()), ..Decoders::default() };
                let mut target = vec![0; content.len()];
                decompress(&data, &mut target, None, &mut decoders).unwrap();
                assert!(target == content);
                let mut target = vec![0; content.len()];
                decompress(&data, &mut target, Some(&parts), &mut decoders).unwrap();
                assert!(parts.ranges().iter().all(|part| target[part.clone()] == content[part.clone()]));
                let read = |into: &mut [u8], range: Range<usize>| {
                    into.copy_from_slice(&data[range]);
                    Ok(())
                };
                for parts in [None, Some(&parts)] {
                    let mut target = vec![0; content.len()];
                    let unread = Unread::open(data.len(), content.len(), &read).unwrap();
                    unread.decompress(&mut target, parts, &mut decoders, &read).unwrap();
                    match parts {
                        None => assert!(target == content),
                        Some(parts) => {
                            assert!(parts.ranges().iter().all(|part| target[part.clone()] == content[part.clone()]));
                        }
                    }
                }
                let alone = decompress(&damaged, &mut vec![0; content.len()], None, &mut Decoders::default());
                assert!(alone.is_err());
                assert_eq!(decompress(&damaged, &mut vec![0; content.len()], None, &mut decoders), alone);
                own.help();
            });
        }
    }

    #[test]
    fn small_blocks_are_read_together() {
        let content = noise(1_000_000);
        for (blocksize, most) in [(512, 2), (65_536, 18)] {
            let data = c_blosc(&content, "zstd", (5, 1, 4, blocksize));
            let (mut target, count) = (vec![0; content.len()], AtomicUsize::new(0));
            let read = |into: &mut [u8], range: Range<usize>| {
                count.fetch_add(1, Ordering::Relaxed);
                into.copy_from_slice(&data[range]);
                Ok(())
            };
            let unread = Unread::open(data.len(), content.len(), &read).unwrap();
            unread.decompress(&mut target, None, &mut Decoders::default(), &read).unwrap();
            assert!(target == content);
            assert!(count.into_inner() <= most);
        }
    }

    #[test]
    fn claims_are_checked_before_memory_is_taken() {
        let mut data = vec![2, 1, 0x11, 2, 0xff, 0xff, 0xff, 0x7e, 0, 0, 1, 0, 20, 0, 0, 0, 0, 0, 0, 0];
        assert!(Header::read(&data, 0x7eff_ffff).is_err());
        data[4..8].copy_from_slice(&[0, 0, 1, 0]);
        assert!(Header::read(&data, 65536).is_ok());
        assert!(Header::read(&data, 65535).is_err());
        for (at, value) in [(0, 3), (2, 0x19), (3, 0), (8, 1), (10, 0), (12, 21), (2, 2)] {
            let mut damaged = data.clone();
            damaged[at] = value;
            assert!(Header::read(&damaged, 65536).is_err(), "{at}");
        }
    }
}
