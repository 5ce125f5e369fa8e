//! The bytes -> bytes codecs of a chunk: at most one compressor, checksums before and after it.

pub mod blosc;
pub mod blosc_encode;
pub mod blosc_streams;
pub mod encoders;
pub mod gzip;
pub mod lz4;
pub mod shuffle;
pub mod sum;
pub mod zstd;
pub mod zstd_frames;

use std::ops::Range;
use std::sync::Arc;

use crate::Outcome;
use crate::decode::sources;
use crate::memory::scratch::Scratch;
use crate::plan::parts::Parts;
use crate::steps::blosc_streams::Method;
use crate::steps::encoders::Encoders;
use crate::threads::crew::Crew;

pub enum Compressor {
    Gzip { level: i32 },
    Zstd { level: i32, checksum: bool },
    Blosc(blosc_encode::Parameters),
}

/// Of the blocks that blosc makes unless it is told otherwise: so much of one is decoded to get at any element in it.
const HALF_A_BLOCK: usize = 64 * 1024;
/// So many bytes of a chunk are read, in their compressed form, while one is decoded.
const READ_IN_THE_TIME_OF_ONE: usize = 8;

#[derive(Default)]
pub struct Steps {
    pub compressor: Option<Compressor>,
    /// Checksums taken before the compressor.
    pub inner_sums: usize,
    /// Checksums taken after the compressor; all of them where there is none.
    pub outer_sums: usize,
}

/// What decoding needs again and again. One for each thread.
#[derive(Default)]
pub struct Decoders {
    pub zstd: zstd::Decoder,
    pub gzip: gzip::Inflater,
    /// A block before its bytes are put back in order.
    pub block: Scratch,
    /// The encoded bytes of a block that is read by itself.
    pub stored: Scratch,
    /// Who takes part in the work of large chunks.
    pub crew: Option<Arc<Crew>>,
}

impl Steps {
    /// Bytes of the compressor's input for a chunk of `nbytes`.
    pub fn with_inner_sums(&self, nbytes: usize) -> usize {
        nbytes.saturating_add(self.inner_sums * sum::SIZE)
    }

    /// Remove the checksums outside; the compressed chunk, or the chunk itself (of `nbytes`) where nothing compresses
    /// it.
    pub fn strip_outer<'a>(&self, mut stored: &'a [u8], nbytes: usize) -> Outcome<&'a [u8]> {
        for _ in 0..self.outer_sums {
            stored = sum::verified(stored)?;
        }
        let content = self.with_inner_sums(nbytes);
        let limit = match &self.compressor {
            None => content,
            Some(Compressor::Gzip { .. } | Compressor::Zstd { .. }) => content.saturating_add(content / 4 + 4096),
            Some(Compressor::Blosc(_)) => content.saturating_add(blosc::OVERHEAD),
        };
        if self.outer_sums > 0 && stored.len() > limit {
            return Err(format!("{} bytes, at most {limit} are possible", stored.len()).into());
        }
        Ok(stored)
    }

    /// Whether `nbytes` can come out of the compressed bytes at all (told before memory is taken for them).
    pub fn check_size(&self, body: &[u8], nbytes: usize) -> Outcome {
        match &self.compressor {
            None if body.len() == nbytes => Ok(()),
            None => Err(format!("{} bytes, expected {nbytes}", body.len()).into()),
            Some(Compressor::Gzip { .. }) => gzip::check_size(body, nbytes),
            Some(Compressor::Zstd { .. }) => zstd_frames::check_size(body, nbytes),
            Some(Compressor::Blosc(_)) => blosc::Header::read(body, nbytes).map(|_| ()),
        }
    }

    /// Decompress `body` to exactly fill `target`.
    pub fn decompress(&self, body: &[u8], target: &mut [u8], decoders: &mut Decoders) -> Outcome {
        match &self.compressor {
            None if body.len() == target.len() => {
                target.copy_from_slice(body);
                Ok(())
            }
            None => Err(format!("{} bytes, expected {}", body.len(), target.len()).into()),
            Some(Compressor::Gzip { .. }) => decoders.gzip.decompress(body, target),
            Some(Compressor::Zstd { .. }) => decoders.zstd.decompress(body, target),
            Some(Compressor::Blosc(_)) => blosc::decompress(body, target, None, decoders),
        }
    }

    /// From how many bytes on a chunk in a file is better read by itself: if it needs no decompression, or if blocks of it
    /// can be read by themselves.
    pub fn worth_own_read(&self) -> Option<usize> {
        match self.compressor {
            Some(Compressor::Blosc(_)) if self.inner_sums + self.outer_sums == 0 => Some(sources::WORTH_BLOCKS_READ),
            Some(_) => None,
            None if self.outer_sums > 0 => Some(sources::WORTH_OWN_READ),
            None => Some(sources::WORTH_PARTS_READ),
        }
    }

    /// Whether threads can share chunks of `nbytes`, and that is worth it.
    pub fn can_be_shared(&self, nbytes: usize) -> bool {
        matches!(self.compressor, Some(Compressor::Blosc(_))) && nbytes >= blosc::WORTH_SHARING
    }

    /// How many bytes are copied, or decoded by lz4, in the time in which one is decoded, and in which one is encoded.
    fn effort(&self) -> (usize, usize) {
        const OF_GZIP: (usize, usize) = (6, 24);
        const OF_ZSTD: (usize, usize) = (3, 9);
        match &self.compressor {
            None => (1, 1),
            Some(Compressor::Gzip { .. }) => OF_GZIP,
            Some(Compressor::Zstd { .. }) => OF_ZSTD,
            Some(Compressor::Blosc(parameters)) => match parameters.method {
                Method::Zlib => OF_GZIP,
                Method::Zstd => OF_ZSTD,
                Method::Lz4hc => (1, 12),
                _ => (1, 2),
            },
        }
    }

    /// How much is to do, about, to decode a chunk of `nbytes`: in bytes that are copied.
    pub fn work_to_decode(&self, nbytes: usize) -> usize {
        nbytes.saturating_mul(self.effort().0)
    }

    /// How much is to do, about, to encode a chunk of `nbytes`, in the same bytes.
    pub fn work_to_encode(&self, nbytes: usize) -> usize {
        nbytes.saturating_mul(self.effort().1)
    }

    /// How much is to do, about, in bytes that are copied, where those of `span` are asked for of a chunk of `nbytes`.
    pub fn work(&self, span: Range<usize>, nbytes: usize) -> usize {
        let decoded = match &self.compressor {
            _ if self.inner_sums > 0 => nbytes,
            None => nbytes,
            Some(Compressor::Gzip { .. }) if self.outer_sums == 0 => nbytes,
            Some(Compressor::Gzip { .. }) => span.end,
            Some(Compressor::Zstd { .. }) => span.end.saturating_add(zstd::WORTH),
            Some(Compressor::Blosc(_)) => span.len().saturating_add(HALF_A_BLOCK),
        };
        self.work_to_decode(decoded.min(nbytes)).saturating_add(nbytes / READ_IN_THE_TIME_OF_ONE)
    }

    /// Whether checks that are to be made stand in the way of decompressing a part of a chunk only: those of the content,
    /// where the stored bytes have none.
    pub fn checks_content(&self, body: &[u8]) -> Outcome<bool> {
        Ok(match &self.compressor {
            _ if self.inner_sums > 0 => true,
            _ if self.outer_sums > 0 => false,
            None | Some(Compressor::Blosc(_)) => false,
            Some(Compressor::Gzip { .. }) => true,
            Some(Compressor::Zstd { .. }) => zstd_frames::has_checksum(body)?,
        })
    }

    /// As `decompress`, of which `parts` at least are needed.
    pub fn decompress_parts(&self, body: &[u8], target: &mut [u8], parts: &Parts, decoders: &mut Decoders) -> Outcome {
        match &self.compressor {
            None if body.len() == target.len() => {
                parts.ranges().iter().for_each(|part| target[part.clone()].copy_from_slice(&body[part.clone()]));
                Ok(())
            }
            None => Err(format!("{} bytes, expected {}", body.len(), target.len()).into()),
            Some(Compressor::Gzip { .. }) => decoders.gzip.decompress_beginning(body, target, parts.stop()),
            Some(Compressor::Zstd { .. }) => decoders.zstd.decompress_beginning(body, target, parts.stop()),
            Some(Compressor::Blosc(_)) => blosc::decompress(body, target, Some(parts), decoders),
        }
    }

    /// The most bytes that a chunk of `nbytes` takes when encoded.
    pub fn encoded_bound(&self, nbytes: usize) -> Outcome<usize> {
        let bound = match &self.compressor {
            None => nbytes,
            Some(Compressor::Gzip { .. }) => gzip::bound(self.with_inner_sums(nbytes)),
            Some(Compressor::Zstd { .. }) => zstd::bound(self.with_inner_sums(nbytes)),
            Some(Compressor::Blosc(_)) => blosc_encode::bound(self.with_inner_sums(nbytes))?,
        };
        Ok(bound + self.outer_sums * sum::SIZE)
    }

    /// Append the compressed form of `content` and the checksums outside to `target`, which has room for it.
    pub fn compress(&self, content: &[u8], target: &mut Vec<u8>, encoders: &mut Encoders) -> Outcome {
        let start = target.len();
        match &self.compressor {
            None => target.extend_from_slice(content),
            Some(Compressor::Gzip { level }) => encoders.gzip.compress(content, *level, target)?,
            Some(Compressor::Zstd { level, checksum }) => encoders.zstd.compress(content, *level, *checksum, target)?,
            Some(Compressor::Blosc(parameters)) => blosc_encode::compress(content, parameters, target, encoders)?,
        }
        for _ in 0..self.outer_sums {
            let sum = sum::crc32c(0, &target[start..]).to_le_bytes();
            target.extend_from_slice(&sum);
        }
        Ok(())
    }
}
