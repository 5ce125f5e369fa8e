//! The streams within a blosc buffer, each of one of five formats.

use std::ffi::{c_char, c_int, c_void};

use crate::Outcome;
use crate::steps::{Decoders, lz4};

#[derive(Clone, Copy)]
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
    // exported by libblosc and libsnappy, not declared by their crates
    fn blosclz_decompress(input: *const c_void, length: c_int, output: *mut c_void, maxout: c_int) -> c_int;
    fn snappy_uncompress(input: *const c_char, length: usize, output: *mut c_char, nbytes: *mut usize) -> c_int;
}

// links libsnappy
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
