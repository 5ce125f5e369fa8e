//! Encoding of `blosc`: the container of c-blosc 1 (README_CHUNK_FORMAT), as c-blosc makes it but for the memory and the
//! contexts that it takes anew for every buffer.

use std::sync::Mutex;

use crate::Outcome;
use crate::decode::read_space::ReadSpace;
use crate::steps::blosc::{
    BIT_SHUFFLED, MAX_BLOCK, MAX_INPUT, MAX_SPLITS, MIN_SPLIT, NOT_SPLIT, OVERHEAD, SHUFFLED, STORED, WORTH_SHARING,
};
use crate::steps::blosc_streams::{Method, compress_stream};
use crate::steps::encoders::Encoders;
use crate::steps::shuffle;

#[derive(Debug)]
pub struct Parameters {
    pub method: Method,
    /// From 0, nothing, to 9.
    pub level: i32,
    pub shuffle: Shuffle,
    /// From 1 to 255.
    pub typesize: usize,
    /// Bytes of a block; 0: by the level.
    pub blocksize: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shuffle {
    No,
    Bytes,
    Bits,
}

/// About so many bytes are compressed by a thread at a time, where several do.
const WORTH_A_UNIT: usize = 256 * 1024;
/// Buffers of fewer bytes are not compressed.
const MIN_BUFFER: usize = 128;
/// Buffers of fewer bytes are one block.
const MIN_DIVIDED: usize = 32 * 1024;
/// The version of the container, and that of all formats of streams.
const VERSIONS: [u8; 2] = [2, 1];

/// The most bytes that `nbytes` bytes take when compressed.
pub fn bound(nbytes: usize) -> Outcome<usize> {
    if nbytes > MAX_INPUT {
        return Err(format!("{nbytes} bytes are too many for blosc, which takes {MAX_INPUT}").into());
    }
    Ok(nbytes + OVERHEAD)
}

/// Append one buffer to `target`, which has room for it. Threads of a crew that have nothing else to do take part in the
/// work of a large one, and what is made is the same.
pub fn compress(content: &[u8], parameters: &Parameters, target: &mut Vec<u8>, encoders: &mut Encoders) -> Outcome {
    let (start, most) = (target.len(), bound(content.len())?);
    let is_worth_it = parameters.level > 0 && content.len() >= MIN_BUFFER.max(parameters.typesize);
    if !is_worth_it || !compress_blocks(content, parameters, target, start + most, encoders)? {
        target.truncate(start);
        let blocksize = if is_worth_it { parameters.size_of_blocks(content.len()) } else { content.len() };
        push_header(target, parameters, STORED, [content.len(), blocksize, most]);
        target.extend_from_slice(content);
    }
    Ok(())
}

fn push_header(target: &mut Vec<u8>, parameters: &Parameters, more: u8, sizes: [usize; 3]) {
    let [_, blocksize, _] = sizes;
    let shuffled = match parameters.shuffle {
        Shuffle::No => 0,
        Shuffle::Bytes => SHUFFLED,
        Shuffle::Bits => BIT_SHUFFLED,
    };
    let split = if parameters.splits(blocksize) { 0 } else { NOT_SPLIT };
    let format = (parameters.method.format() as u8) << 5;
    target.extend(VERSIONS);
    target.extend([shuffled | split | format | more, parameters.typesize as u8]);
    sizes.into_iter().for_each(|size| target.extend((size as u32).to_le_bytes()));
}

/// Append a buffer whose blocks are compressed, where that ends at `end` or before.
fn compress_blocks(
    content: &[u8],
    parameters: &Parameters,
    target: &mut Vec<u8>,
    end: usize,
    encoders: &mut Encoders,
) -> Outcome<bool> {
    let start = target.len();
    let blocksize = parameters.size_of_blocks(content.len());
    push_header(target, parameters, 0, [content.len(), blocksize, 0]);
    let table = target.len();
    if content.len().div_ceil(blocksize) > (end - table) / 4 {
        return Ok(false);
    }
    target.resize(table + 4 * content.len().div_ceil(blocksize), 0);
    let mut number = 0;
    let mut note = |target: &mut Vec<u8>, place: usize| {
        target[table + 4 * number..][..4].copy_from_slice(&((place - start) as u32).to_le_bytes());
        number += 1;
    };
    match share(content, parameters, blocksize, end - target.len(), encoders)? {
        Some(units) => {
            for (blocks, starts) in units {
                let begin = target.len();
                target.extend_from_slice(blocks);
                starts.into_iter().for_each(|at| note(target, begin + at));
            }
        }
        None => {
            for block in content.chunks(blocksize) {
                let place = target.len();
                note(target, place);
                if !compress_block(block, parameters, blocksize, target, end, encoders)? {
                    return Ok(false);
                }
            }
        }
    }
    let size = target.len() - start;
    target[start + 12..][..4].copy_from_slice(&(size as u32).to_le_bytes());
    Ok(true)
}

/// The compressed blocks of some blocks, one after the other, and where each begins.
type Unit<'a> = (&'a [u8], Vec<usize>);

/// The blocks of a large buffer, made by several threads, if there are any; `None` also where `room` is so scarce that the
/// place of a block may have a say in what is made of it.
fn share<'a>(
    content: &[u8],
    parameters: &Parameters,
    blocksize: usize,
    room: usize,
    encoders: &'a mut Encoders,
) -> Outcome<Option<Vec<Unit<'a>>>> {
    let unit = WORTH_A_UNIT.next_multiple_of(blocksize);
    let crew = encoders.crew.clone().filter(|crew| content.len() >= WORTH_SHARING && crew.has_hands());
    let Some(crew) = crew.filter(|_| content.len() > unit) else {
        return Ok(None);
    };
    let count = content.len().div_ceil(unit);
    encoders.slots.resize_with(encoders.slots.len().max(count), Vec::new);
    let slots = &mut encoders.slots[..count];
    let most = unit + unit.div_ceil(blocksize) * 4 * MAX_SPLITS;
    for slot in &mut *slots {
        slot.clear();
        slot.try_reserve(most).map_err(|_| crate::Reason::NoMemory(most))?;
    }
    let units: Vec<_> = content.chunks(unit).zip(&mut *slots).map(|each| Mutex::new((each, Vec::new()))).collect();
    let one = |space: &mut ReadSpace, number: usize| {
        let ((content, slot), starts) = &mut *units[number].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for block in content.chunks(blocksize) {
            starts.push(slot.len());
            compress_block(block, parameters, blocksize, slot, most, &mut space.encoders)?;
        }
        Ok(())
    };
    crew.share(units.len(), ReadSpace::kept, one, ReadSpace::keep)?;
    let starts: Vec<Vec<usize>> =
        units.into_iter().map(|unit| unit.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).1).collect();
    let made: usize = slots.iter().map(Vec::len).sum();
    if made + blocksize > room {
        return Ok(None);
    }
    Ok(Some(slots.iter().map(Vec::as_slice).zip(starts).collect()))
}

/// Append the streams of one block, where they end at `end` or before.
fn compress_block(
    block: &[u8],
    parameters: &Parameters,
    blocksize: usize,
    target: &mut Vec<u8>,
    end: usize,
    encoders: &mut Encoders,
) -> Outcome<bool> {
    let mut memory = std::mem::take(&mut encoders.block);
    let typesize = parameters.typesize;
    let content: &[u8] = match parameters.shuffle {
        Shuffle::Bytes if typesize > 1 => {
            let shuffled = memory.take(block.len())?;
            shuffle::shuffle_bytes(block, shuffled, typesize);
            shuffled
        }
        Shuffle::Bits if block.len() >= typesize => {
            let shuffled = memory.take(block.len())?;
            shuffle::shuffle_bits(block, shuffled, typesize);
            shuffled
        }
        _ => block,
    };
    let is_split = parameters.splits(blocksize);
    let part = if is_split && block.len() == blocksize { block.len() / typesize } else { block.len() };
    let mut fits = true;
    for stream in content.chunks_exact(part) {
        fits = push_stream(stream, parameters, is_split, target, end, encoders)?;
        if !fits {
            break;
        }
    }
    encoders.block = memory;
    Ok(fits)
}

/// Append a stream and its length, or the bytes themselves where it would be no shorter.
fn push_stream(
    stream: &[u8],
    parameters: &Parameters,
    is_split: bool,
    target: &mut Vec<u8>,
    end: usize,
    encoders: &mut Encoders,
) -> Outcome<bool> {
    let start = target.len() + 4;
    if start >= end {
        return Ok(false);
    }
    target.extend([0; 4]);
    let room = &mut target.spare_capacity_mut()[..stream.len().min(end - start)];
    match compress_stream(parameters.method, parameters.level, is_split, stream, room, encoders)? {
        // SAFETY: the first `length` bytes of the spare capacity are written, and there are as many.
        Some(length) if length < stream.len() => unsafe { target.set_len(start + length) },
        _ if stream.len() > end - start => return Ok(false),
        _ => target.extend_from_slice(stream),
    }
    let length = (target.len() - start) as u32;
    target[start - 4..start].copy_from_slice(&length.to_le_bytes());
    Ok(true)
}

impl Parameters {
    /// Whether each byte of the elements has a stream of its own, in blocks of so many bytes.
    fn splits(&self, blocksize: usize) -> bool {
        self.method != Method::Zstd && self.typesize <= MAX_SPLITS && blocksize / self.typesize >= MIN_SPLIT
    }

    /// Of how many bytes the blocks of a buffer of `nbytes` are, at a level above 0.
    fn size_of_blocks(&self, nbytes: usize) -> usize {
        let slow = self.method.is_slow();
        let mut size = match (self.blocksize, self.level) {
            (0, _) if nbytes < MIN_DIVIDED => nbytes,
            (0, 1) => 16 * 1024,
            (0, 2) => 32 * 1024,
            (0, 3) => 64 * 1024,
            (0, 4 | 5) => 128 * 1024,
            (0, 9) if slow => 512 * 1024,
            (0, _) => 256 * 1024,
            (given, _) => given.clamp(MIN_SPLIT, MAX_BLOCK),
        };
        if self.blocksize == 0 && nbytes >= MIN_DIVIDED && slow {
            size *= 2;
        }
        if self.splits(size) {
            size = (size.min(256 * 1024) * self.typesize).clamp(64 * 1024, 1024 * 1024);
        }
        size = size.min(nbytes);
        if size > self.typesize { size / self.typesize * self.typesize } else { size }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::steps::Decoders;
    use crate::steps::blosc::decompress;
    use crate::steps::blosc::tests::{c_blosc, noise, reference};
    use crate::threads::crew::Crew;

    fn parameters(cname: &str, (level, shuffle, typesize, blocksize): (i32, i32, usize, usize)) -> Parameters {
        let shuffle = [Shuffle::No, Shuffle::Bytes, Shuffle::Bits][shuffle as usize];
        Parameters { method: Method::named(cname).unwrap(), level, shuffle, typesize, blocksize }
    }

    fn compressed(content: &[u8], parameters: &Parameters, encoders: &mut Encoders) -> Vec<u8> {
        let mut data = Vec::with_capacity(bound(content.len()).unwrap());
        compress(content, parameters, &mut data, encoders).unwrap();
        assert!(data.len() <= bound(content.len()).unwrap());
        data
    }

    #[test]
    fn encodes_as_c_blosc_does() {
        let (mut encoders, mut decoders) = (Encoders::default(), Decoders::default());
        let mut random = 1u64;
        let mut incompressible = |nbytes: usize| -> Vec<u8> {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 56) as u8
            };
            (0..nbytes).map(|_| next()).collect()
        };
        for nbytes in [0, 1, 5, 127, 128, 200, 2000, 8192, 20_000, 32_768, 65_536, 300_001, 1_200_000] {
            let mut mixed = incompressible(nbytes);
            mixed[..nbytes / 3].copy_from_slice(&noise(nbytes)[..nbytes / 3]);
            for content in [noise(nbytes), incompressible(nbytes), vec![7; nbytes], mixed] {
                for (number, typesize) in [1, 2, 3, 4, 8, 12, 16, 17, 200].into_iter().enumerate() {
                    for (cname, blocksize) in [
                        ("lz4", 0),
                        ("lz4", 4096),
                        ("zstd", 0),
                        ("lz4hc", 0),
                        ("blosclz", 0),
                        ("blosclz", 300),
                        ("zlib", 0),
                        ("snappy", 0),
                    ] {
                        let level = [0, 1, 2, 3, 5, 7, 8, 9, 4][(number + nbytes) % 9];
                        if nbytes > 100_000 && level > 5 && ["zstd", "lz4hc", "zlib"].contains(&cname) {
                            continue; // that takes long
                        }
                        let shuffle = (number + nbytes / 5) as i32 % 3;
                        let settings = (level, shuffle, typesize, blocksize);
                        let ours = compressed(&content, &parameters(cname, settings), &mut encoders);
                        if !["zlib", "snappy"].contains(&cname) && level > 0 && nbytes >= MIN_BUFFER.max(typesize) {
                            let theirs = c_blosc(&content, cname, settings);
                            assert!(ours == theirs, "{cname} {settings:?} {nbytes}: {} {}", ours.len(), theirs.len());
                        }
                        if nbytes > 0 {
                            assert!(reference(&ours, nbytes).unwrap() == content, "{cname} {settings:?} {nbytes}");
                        }
                        let mut target = vec![0; nbytes];
                        decompress(&ours, &mut target, None, &mut decoders).unwrap();
                        assert!(target == content, "{cname} {settings:?} {nbytes}");
                    }
                }
            }
        }
    }

    #[test]
    fn threads_share_the_blocks_of_a_buffer() {
        let crew = Arc::new(Crew::default());
        let [own, one, other] = [(); 3].map(|()| crew.come());
        crew.note_all_taken();
        let mut random = 1u64;
        let mut encoders = Encoders { crew: Some(crew.clone()), ..Encoders::default() };
        let even: Vec<u8> = (0..1_200_001u32).map(|i| (i / 700 * (i % 5)) as u8).collect();
        let incompressible: Vec<u8> = (0..600_000)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 56) as u8
            })
            .collect();
        thread::scope(|scope| {
            scope.spawn(move || one.help());
            scope.spawn(move || other.help());
            let filters =
                [(1, 1, 0), (2, 1, 0), (3, 2, 0), (8, 1, 0), (17, 1, 0), (300, 0, 0), (4, 1, 10_000), (2, 2, 77)];
            let levels = [0, 1, 2, 3, 4, 5, 6, 9];
            for (number, cname) in ["lz4", "lz4hc", "blosclz", "zstd", "zlib"].into_iter().enumerate() {
                for (i, (typesize, shuffle, blocksize)) in filters.into_iter().enumerate() {
                    for clevel in [levels[(i + number) % 8], levels[(i + 3 * number + 4) % 8]] {
                        let parameters = parameters(cname, (clevel, shuffle, typesize, blocksize));
                        for content in [&even[..600_001], &even, &incompressible] {
                            let alone = compressed(content, &parameters, &mut Encoders::default());
                            let together = compressed(content, &parameters, &mut encoders);
                            assert!(alone == together, "{parameters:?} {}", content.len());
                        }
                    }
                }
            }
            own.help();
        });
    }
}
