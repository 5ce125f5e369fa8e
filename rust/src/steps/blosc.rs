//! `blosc`: the container of c-blosc 1 (README_CHUNK_FORMAT).
//!
//! Encoding is c-blosc's. The container is decoded here, and only single streams are handed to C, with the lengths of
//! what is really there: c-blosc itself takes memory and contexts anew for every block.

use std::ffi::{CString, c_int};
use std::ops::Range;

use crate::Outcome;
use crate::parts::Parts;
use crate::steps::blosc_streams::{Format, decompress_stream};
use crate::steps::{Decoders, shuffle};

pub struct Parameters {
    pub cname: CString,
    pub clevel: c_int,
    pub shuffle: c_int,
    pub typesize: usize,
    pub blocksize: usize,
}

/// Bytes of the header.
pub const OVERHEAD: usize = 16;
/// Bytes that are read first of a buffer of which only parts are read: the header, and most tables.
const BEGINNING: usize = 512;
const MAX_INPUT: usize = i32::MAX as usize - OVERHEAD;
const MAX_BLOCK: usize = (i32::MAX as usize - 255 * 4) / 3;
/// More than any compressor of blosc can save.
const LARGEST_RATIO: u64 = 1 << 16;
const MAX_SPLITS: usize = 16;
const MIN_SPLIT: usize = 128;

const SHUFFLED: u8 = 0x01;
const STORED: u8 = 0x02;
const BIT_SHUFFLED: u8 = 0x04;
const FUTURE: u8 = 0x08;
const NOT_SPLIT: u8 = 0x10;

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
        let Some((header, _)) = data.split_first_chunk::<OVERHEAD>() else {
            return Err(format!("{} bytes are too few for a blosc header", data.len()).into());
        };
        let [format, version, flags, typesize, ..] = *header;
        let field = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (claimed, blocksize, cbytes) = (field(4), field(8) as usize, field(12) as usize);
        if format != 2 {
            return Err(format!("blosc format version {format}, expected 2").into());
        }
        if cbytes != data.len() {
            return Err(format!("the blosc header says {cbytes} bytes, {} are stored", data.len()).into());
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
    for (i, block) in target.chunks_mut(header.blocksize).enumerate() {
        let begin = i * header.blocksize;
        let range = begin..begin + block.len();
        let Some(needed) = parts.map_or(Some(0..block.len()), |parts| parts.within(range.clone())) else { continue };
        let start = word(data, OVERHEAD + 4 * i).ok_or("a blosc table ends too early")?;
        let parts = parts.map(|parts| (parts, range));
        decompress_block(data, start, format, &header, block, (needed, parts), decoders)?;
    }
    Ok(())
}

/// Fills a range of a buffer.
pub trait Fill: FnMut(&mut [u8], Range<usize>) -> Outcome {}
impl<F: FnMut(&mut [u8], Range<usize>) -> Outcome> Fill for F {}

/// As `Header::read`, of a buffer of which nothing has been read yet.
pub fn read_header(data: &mut [u8], nbytes: usize, read: &mut impl Fill) -> Outcome<Header> {
    let beginning = BEGINNING.min(data.len());
    read(data, 0..beginning)?;
    Header::read(data, nbytes)
}

/// Decompress of the buffer `data`, of which the header has been read, what the `parts` ask for. `read` fills the ranges of
/// it that this takes; the others may hold anything. A block that goes on where another one begins is refused.
pub fn decompress_read(
    (data, header): (&mut [u8], &Header),
    target: &mut [u8],
    parts: &Parts,
    decoders: &mut Decoders,
    read: &mut impl Fill,
) -> Outcome {
    let nbytes = target.len();
    let beginning = BEGINNING.min(data.len());
    if target.is_empty() {
        return Ok(());
    }
    if header.flags & STORED != 0 {
        for part in parts.ranges() {
            // the header says that `nbytes` bytes follow it
            let stored = part.start + OVERHEAD..part.end + OVERHEAD;
            read(data, stored.clone())?;
            target[part.clone()].copy_from_slice(&data[stored]);
        }
        return Ok(());
    }
    if header.version != 1 {
        return Err("the blosc header names an unknown version of a compressor".into());
    }
    let format = Format::of_flags(header.flags).ok_or("the blosc header names an unknown compressor")?;
    // the header says that there is room for this
    let table = OVERHEAD + 4 * nbytes.div_ceil(header.blocksize);
    if table > beginning {
        read(data, beginning..table)?;
    }
    let mut starts: Vec<usize> = (OVERHEAD..table).step_by(4).filter_map(|at| word(data, at)).collect();
    starts.sort_unstable();
    for (i, block) in target.chunks_mut(header.blocksize).enumerate() {
        let begin = i * header.blocksize;
        let range = begin..begin + block.len();
        let Some(needed) = parts.within(range.clone()) else { continue };
        let start = word(data, OVERHEAD + 4 * i).ok_or("a blosc table ends too early")?;
        let stop = starts.get(starts.partition_point(|&each| each <= start)).copied().unwrap_or(data.len());
        if start < table || start >= stop || stop > data.len() {
            return Err("a blosc block begins outside of the buffer".into());
        }
        read(data, start..stop)?;
        decompress_block(&data[..stop], start, format, header, block, (needed, Some((parts, range))), decoders)?;
    }
    Ok(())
}

/// Decompress the block whose streams begin at `position` of `data`: the bytes `needed` of it at least, or, of these,
/// what the parts ask for of the range that it is of the chunk.
fn decompress_block(
    data: &[u8],
    mut position: usize,
    format: Format,
    header: &Header,
    block: &mut [u8],
    (needed, parts): (Range<usize>, Option<(&Parts, Range<usize>)>),
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
    let mut scratch = std::mem::take(&mut decoders.block);
    let mut decode = |into: &mut [u8]| -> Outcome {
        for (i, part) in into.chunks_exact_mut(part).enumerate() {
            let length = word(data, position).ok_or("a blosc block begins outside of the buffer")?;
            position += 4;
            let stop = position.checked_add(length).filter(|&stop| stop <= data.len());
            let stream = &data[position..stop.ok_or("a blosc stream ends outside of the buffer")?];
            position += length;
            let wanted = wanted(i).min(part.len());
            if length == part.len() {
                part[..wanted].copy_from_slice(&stream[..wanted]);
            } else if wanted > 0 {
                decompress_stream(format, stream, part, wanted, decoders)?;
            }
        }
        Ok(())
    };
    let outcome = if by_bytes || by_bits {
        scratch.take(size).and_then(|shuffled| {
            decode(shuffled)?;
            let unshuffle = if by_bytes { shuffle::unshuffle_bytes } else { shuffle::unshuffle_bits };
            match parts {
                None => unshuffle(shuffled, block, typesize, needed.clone()),
                Some((parts, range)) => {
                    parts.each_within(range).for_each(|part| unshuffle(shuffled, block, typesize, part));
                }
            }
            Ok(())
        })
    } else {
        decode(block)
    };
    decoders.block = scratch;
    outcome
}

/// The little-endian number (of 31 bits) at `position`.
fn word(data: &[u8], position: usize) -> Option<usize> {
    let bytes = data.get(position..position.checked_add(4)?)?;
    let value = i32::from_le_bytes(bytes.try_into().ok()?);
    usize::try_from(value).ok()
}

/// The most bytes that `nbytes` bytes take when compressed.
pub fn bound(nbytes: usize) -> Outcome<usize> {
    if nbytes > MAX_INPUT {
        return Err(format!("{nbytes} bytes are too many for blosc, which takes {MAX_INPUT}").into());
    }
    Ok(nbytes + OVERHEAD)
}

/// Append one buffer to `target`, which has room for it.
pub fn compress(content: &[u8], parameters: &Parameters, target: &mut Vec<u8>) -> Outcome {
    let room = target.spare_capacity_mut();
    let size = bound(content.len())?.min(room.len());
    // SAFETY: pointers and lengths are those of two slices, of which `room` is borrowed mutably, and `cname` ends in
    // NUL; nobody else changes `content` (it is a copy: see `encode`). The `_ctx` functions with one thread share no
    // state.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            parameters.clevel,
            parameters.shuffle,
            parameters.typesize,
            content.len(),
            content.as_ptr().cast(),
            room.as_mut_ptr().cast(),
            size,
            parameters.cname.as_ptr(),
            parameters.blocksize,
            1,
        )
    };
    match usize::try_from(written) {
        Ok(written) if 0 < written && written <= size => {
            // SAFETY: c-blosc has written the first `written` bytes of the spare capacity, which has as many.
            unsafe { target.set_len(target.len() + written) };
            Ok(())
        }
        _ => Err(format!("blosc failed ({written})").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(nbytes: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 28) as u8
        };
        (0..nbytes).map(|i| if i % 2 == 0 { next() } else { (i / 512) as u8 }).collect()
    }

    fn reference(data: &[u8], nbytes: usize) -> Option<Vec<u8>> {
        let mut target = vec![0u8; nbytes];
        // SAFETY: `target` has the length that is given; `data` is one whole buffer, as `compress` has made it.
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
                        let cname = CString::new(cname).unwrap();
                        let parameters = Parameters { cname, clevel, shuffle, typesize, blocksize };
                        let content = noise(nbytes);
                        let mut data = Vec::with_capacity(bound(nbytes).unwrap());
                        compress(&content, &parameters, &mut data).unwrap();
                        let mut target = vec![0; nbytes];
                        decompress(&data, &mut target, None, &mut decoders).unwrap();
                        assert!(target == content, "{:?} {nbytes} {typesize} {shuffle}", parameters.cname);
                        assert!(reference(&data, nbytes).unwrap() == content);
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
            let cname = CString::new("lz4").unwrap();
            let parameters = Parameters { cname, clevel: 5, shuffle, typesize, blocksize: 0 };
            let mut data = Vec::with_capacity(bound(content.len()).unwrap());
            compress(&content, &parameters, &mut data).unwrap();
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
            let cname = CString::new("lz4").unwrap();
            let parameters = Parameters { cname, clevel, shuffle, typesize: 2, blocksize };
            let content = noise(300_000);
            let mut data = Vec::with_capacity(bound(content.len()).unwrap());
            compress(&content, &parameters, &mut data).unwrap();
            for start in [0, 777, 150_000, 299_990] {
                let mut parts = Parts::default();
                parts.push(start..start + 5, 0);
                parts.push(start + 9..start + 10, 0);
                let (mut target, mut known, mut count) = (vec![0; content.len()], vec![0xa5; data.len()], 0);
                let mut read = |into: &mut [u8], range: Range<usize>| {
                    into[range.clone()].copy_from_slice(&data[range.clone()]);
                    count += range.len();
                    Ok(())
                };
                let header = read_header(&mut known, content.len(), &mut read).unwrap();
                decompress_read((&mut known, &header), &mut target, &parts, &mut decoders, &mut read).unwrap();
                for part in parts.ranges() {
                    assert!(target[part.clone()] == content[part.clone()], "{shuffle} {blocksize} {start}");
                }
                assert!(count < data.len() / 2, "{count} of {}", data.len());
            }
            // blocks that begin elsewhere than they do, or go on where others begin
            let mut parts = Parts::default();
            parts.push(content.len() / 2..content.len() / 2 + 5, 0);
            for at in (0..data.len().min(600)).step_by(3) {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut damaged = data.clone();
                    damaged[at] = value;
                    let (mut target, mut known) = (vec![0; content.len()], vec![0xa5; data.len()]);
                    let mut read = |into: &mut [u8], range: Range<usize>| {
                        into[range.clone()].copy_from_slice(&damaged[range]);
                        Ok(())
                    };
                    let mut whole = vec![0; content.len()];
                    let done = read_header(&mut known, content.len(), &mut read).and_then(|header| {
                        decompress_read((&mut known, &header), &mut target, &parts, &mut decoders, &mut read)
                    });
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
