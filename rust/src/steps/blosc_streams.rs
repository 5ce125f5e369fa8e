//! The streams within a blosc buffer, each of one of five formats.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use crate::Outcome;
use crate::steps::encoders::Encoders;
use crate::steps::{Decoders, lz4};

#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Blosclz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

/// The longest blosclz stream whose lengths cannot overflow within c-blosc (255 for each byte, in an `int`).
const LONGEST_BLOSCLZ: usize = 1 << 23;

unsafe extern "C" {
    // exported by libblosc, liblz4 and libsnappy, not declared by their crates
    fn blosclz_compress(
        level: c_int,
        input: *const c_void,
        length: c_int,
        output: *mut c_void,
        maxout: c_int,
        split_block: c_int,
    ) -> c_int;
    fn LZ4_compress_fast(
        input: *const c_char,
        output: *mut c_char,
        length: c_int,
        maxout: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_compress_HC_extStateHC(
        state: *mut c_void,
        input: *const c_char,
        output: *mut c_char,
        length: c_int,
        maxout: c_int,
        level: c_int,
    ) -> c_int;
    fn LZ4_sizeofStateHC() -> c_int;
    fn snappy_compress(input: *const c_char, length: usize, output: *mut c_char, nbytes: *mut usize) -> c_int;
    fn snappy_max_compressed_length(length: usize) -> usize;
    fn blosclz_decompress(input: *const c_void, length: c_int, output: *mut c_void, maxout: c_int) -> c_int;
    fn snappy_uncompress(input: *const c_char, length: usize, output: *mut c_char, nbytes: *mut usize) -> c_int;
}

// links these libraries
use blosc_src as _;
use snappy_src as _;

impl Format {
    pub fn of_flags(flags: u8) -> Option<Format> {
        Some(match flags >> 5 {
            0 => Format::Blosclz,
            1 => Format::Lz4,
            2 => Format::Snappy,
            3 => Format::Zlib,
            4 => Format::Zstd,
            _ => return None,
        })
    }
}

/// Decompress `stream` to exactly fill `target`; or, where that is less work, its first `wanted` bytes.
pub fn decompress_stream(
    format: Format,
    stream: &[u8],
    target: &mut [u8],
    wanted: usize,
    decoders: &mut Decoders,
) -> Outcome {
    let (Ok(taken), Ok(given)) = (c_int::try_from(stream.len()), c_int::try_from(target.len())) else {
        return Err("a blosc stream is too long".into());
    };
    let full = match format {
        Format::Zlib => return decoders.gzip.decompress_zlib(stream, target),
        Format::Zstd => return decoders.zstd.decompress_beginning(stream, target, wanted),
        Format::Blosclz if stream.len() > LONGEST_BLOSCLZ => false,
        // SAFETY: pointers and lengths are those of two slices, of which `target` is borrowed mutably, and nobody else
        // changes `stream` (memory of ours, or immutable: see `sources`). Whatever the bytes are, the function reads
        // and writes within these bounds, as long as its sums fit into an `int`: hence `LONGEST_BLOSCLZ`.
        Format::Blosclz => unsafe {
            blosclz_decompress(stream.as_ptr().cast(), taken, target.as_mut_ptr().cast(), given) == given
        },
        Format::Lz4 => lz4::decompress(stream, target, wanted),
        Format::Snappy => {
            let mut nbytes = target.len();
            // SAFETY: as above; the function gives up where more than `nbytes` would come out.
            let status = unsafe {
                snappy_uncompress(stream.as_ptr().cast(), stream.len(), target.as_mut_ptr().cast(), &mut nbytes)
            };
            status == 0 && nbytes == target.len()
        }
    };
    if full { Ok(()) } else { Err("a damaged stream in a blosc buffer".into()) }
}

/// What makes streams, by the names that c-blosc has for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    Blosclz,
    Lz4,
    Lz4hc,
    Snappy,
    Zlib,
    Zstd,
}

impl Method {
    pub fn named(name: &str) -> Option<Method> {
        Some(match name {
            "blosclz" => Method::Blosclz,
            "lz4" => Method::Lz4,
            "lz4hc" => Method::Lz4hc,
            "snappy" => Method::Snappy,
            "zlib" => Method::Zlib,
            "zstd" => Method::Zstd,
            _ => return None,
        })
    }

    /// The format of the streams.
    pub fn format(self) -> Format {
        match self {
            Method::Blosclz => Format::Blosclz,
            Method::Lz4 | Method::Lz4hc => Format::Lz4,
            Method::Snappy => Format::Snappy,
            Method::Zlib => Format::Zlib,
            Method::Zstd => Format::Zstd,
        }
    }

    /// Whether it takes long, and finds more in larger blocks.
    pub fn is_slow(self) -> bool {
        matches!(self, Method::Lz4hc | Method::Zlib | Method::Zstd)
    }
}

/// Compress `stream` (of a block that `is_split`, or not) at a level from 1 to 9 to the beginning of `room`: how many bytes
/// it has, which were all written; `None` if there is no room for it, which may be said of one that just fits.
pub fn compress_stream(
    method: Method,
    level: i32,
    is_split: bool,
    stream: &[u8],
    room: &mut [MaybeUninit<u8>],
    encoders: &mut Encoders,
) -> Outcome<Option<usize>> {
    let (Ok(length), Ok(most)) = (c_int::try_from(stream.len()), c_int::try_from(room.len())) else {
        return Err("a blosc stream is too long".into());
    };
    let (input, output) = (stream.as_ptr(), room.as_mut_ptr());
    let written = match method {
        Method::Zlib => return encoders.gzip.compress_zlib(stream, level, room),
        // as c-blosc does, whose last level is the library's
        Method::Zstd => {
            return encoders.zstd.compress_into(stream, if level < 9 { 2 * level - 1 } else { 22 }, false, room);
        }
        Method::Snappy => {
            // SAFETY: the function only counts.
            let mut nbytes = unsafe { snappy_max_compressed_length(stream.len()) };
            let made = encoders.stream.take(nbytes)?;
            // SAFETY: pointers and lengths are those of two slices, of which `made` is borrowed mutably and has as many bytes
            // as the library asks for; nobody else changes `stream` (it is a copy: see `encode`).
            let status = unsafe { snappy_compress(input.cast(), stream.len(), made.as_mut_ptr().cast(), &mut nbytes) };
            let made = made.get(..nbytes).filter(|_| status == 0).ok_or("snappy failed")?;
            let Some(room) = room.get_mut(..nbytes) else { return Ok(None) };
            room.iter_mut().zip(made).for_each(|(to, &byte)| _ = to.write(byte));
            return Ok(Some(nbytes));
        }
        // SAFETY: pointers and lengths are those of two slices, of which `room` is borrowed mutably and only written to;
        // nobody else changes `stream` (it is a copy: see `encode`).
        Method::Blosclz => unsafe {
            blosclz_compress(level, input.cast(), length, output.cast(), most, is_split.into())
        },
        // SAFETY: as above.
        Method::Lz4 => unsafe { LZ4_compress_fast(input.cast(), output.cast(), length, most, 10 - level) },
        Method::Lz4hc => {
            // SAFETY: the function has no conditions.
            let size = unsafe { LZ4_sizeofStateHC() };
            let state = encoders.lz4hc.take(usize::try_from(size).map_err(|_| "liblz4 failed")?)?;
            // SAFETY: as above; the state has as many bytes as the library asks for, at a multiple of 64.
            unsafe {
                let state = state.as_mut_ptr().cast();
                LZ4_compress_HC_extStateHC(state, input.cast(), output.cast(), length, most, level)
            }
        }
    };
    match usize::try_from(written) {
        Ok(written) if written <= room.len() => Ok(Some(written).filter(|&written| written > 0)),
        _ => Err("a compressor of blosc failed".into()),
    }
}
