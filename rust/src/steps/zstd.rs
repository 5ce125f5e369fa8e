//! `zstd`: Zstandard frames.

use std::mem::MaybeUninit;

use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name};

use crate::Outcome;
use crate::steps::zstd_frames::each_frame;

/// The most bytes that `nbytes` bytes take when compressed.
pub fn bound(nbytes: usize) -> usize {
    compress_bound(nbytes)
}

/// The library decompresses blocks of so many bytes: a beginning that is no more than this shorter costs as much.
pub const WORTH: usize = 128 * 1024;

#[derive(Default)]
pub struct Decoder(Option<DCtx<'static>>);

impl Decoder {
    /// The first `wanted` bytes of what `body` gives, if that is less work than all of it, which would fill `target`.
    pub fn decompress_beginning(&mut self, body: &[u8], target: &mut [u8], wanted: usize) -> Outcome {
        if wanted.saturating_add(WORTH) > target.len() {
            return self.decompress(body, target);
        }
        let context = self.context()?;
        let mut given = 0;
        each_frame(body, |frame, _, _| {
            if given < wanted {
                given += decompress_stream(context, frame, &mut target[given..wanted], Stop::Full)?;
            }
            Ok(())
        })?;
        if given != wanted {
            return Err(format!("decoded to {given} bytes, expected {} and more", target.len()).into());
        }
        Ok(())
    }

    fn context(&mut self) -> Outcome<&mut DCtx<'static>> {
        Ok(match &mut self.0 {
            Some(context) => context,
            none => none.insert(DCtx::try_create().ok_or("no memory for a Zstandard context")?),
        })
    }

    /// All frames of `body`, which have to give exactly the bytes of `target`.
    pub fn decompress(&mut self, body: &[u8], target: &mut [u8]) -> Outcome {
        let context = self.context()?;
        let mut given = 0;
        each_frame(body, |frame, claimed, _| {
            let room = &mut target[given..];
            if claimed.is_some_and(|nbytes| nbytes > room.len() as u64) {
                return Err("more bytes than expected when decompressed".into());
            }
            given += match claimed {
                Some(1..) => context.decompress(room, frame).map_err(get_error_name)?,
                _ => decompress_stream(context, frame, room, Stop::End)?,
            };
            Ok(())
        })?;
        if given != target.len() {
            return Err(format!("decoded to {given} bytes, expected {}", target.len()).into());
        }
        Ok(())
    }
}

/// Where to stop.
#[derive(PartialEq)]
enum Stop {
    /// Where the frame ends; it is wrong if there is no room for it all.
    End,
    /// There, or where the room is full.
    Full,
}

/// Decompress a frame that does not say how many bytes it holds. The library is not as strict about the window, and so
/// the size of blocks, if it is given all at once: other decoders, given room for one window, refuse what it takes
/// then.
fn decompress_stream(context: &mut DCtx, frame: &[u8], room: &mut [u8], stop: Stop) -> Outcome<usize> {
    context.reset(ResetDirective::SessionOnly).map_err(get_error_name)?;
    let (mut input, mut output) = (InBuffer::around(frame), OutBuffer::around(room));
    loop {
        let before = (input.pos(), output.pos());
        let more = context.decompress_stream(&mut output, &mut input).map_err(get_error_name)?;
        let after = (input.pos(), output.pos());
        if more == 0 && after.0 == frame.len() {
            return Ok(after.1);
        }
        if stop == Stop::Full && after.1 == output.capacity() {
            return Ok(after.1);
        }
        if more == 0 || after == before {
            return Err("not the bytes expected when decompressed".into());
        }
    }
}

#[derive(Default)]
pub struct Encoder(Option<(i32, bool, CCtx<'static>)>);

impl Encoder {
    /// Let go of what takes more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.nbytes() > most {
            self.0 = None;
        }
    }

    pub fn nbytes(&self) -> usize {
        self.0.as_ref().map_or(0, |(_, _, context)| context.sizeof())
    }

    /// Append one frame to `target`, which has room for it.
    pub fn compress(&mut self, content: &[u8], level: i32, checksum: bool, target: &mut Vec<u8>) -> Outcome {
        let written = self.compress_into(content, level, checksum, target.spare_capacity_mut())?;
        let written = written.ok_or("no room for a Zstandard frame")?;
        // SAFETY: the first `written` bytes of the spare capacity are written, and there are as many.
        unsafe { target.set_len(target.len() + written) };
        Ok(())
    }

    /// Write one frame to the beginning of `room`: how many bytes it has, which were all written; `None` if there is no
    /// room for it.
    pub fn compress_into(
        &mut self,
        content: &[u8],
        level: i32,
        checksum: bool,
        room: &mut [MaybeUninit<u8>],
    ) -> Outcome<Option<usize>> {
        let context = match &mut self.0 {
            Some((of, with, context)) if (*of, *with) == (level, checksum) => context,
            other => {
                let mut context = CCtx::try_create().ok_or("no memory for a Zstandard context")?;
                for parameter in [
                    CParameter::CompressionLevel(level),
                    CParameter::ChecksumFlag(checksum),
                    CParameter::ContentSizeFlag(true),
                ] {
                    context.set_parameter(parameter).map_err(get_error_name)?;
                }
                &mut other.insert((level, checksum, context)).2
            }
        };
        let mut room = Room { memory: room, written: 0 };
        match context.compress2(&mut room, content) {
            Ok(_) => Ok(Some(room.written)),
            Err(code) if get_error_name(code) == NO_ROOM => Ok(None),
            Err(code) => Err(get_error_name(code).into()),
        }
    }
}

/// What the library says where it does not get along with the room.
const NO_ROOM: &str = "Destination buffer is too small";

/// Memory behind the end of a vector, not yet initialized.
struct Room<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    written: usize,
}

// SAFETY: pointer and capacity are those of one slice that is borrowed mutably; `as_slice` covers what was written
// only.
unsafe impl zstd_safe::WriteBuf for Room<'_> {
    fn as_slice(&self) -> &[u8] {
        let written: *const [MaybeUninit<u8>] = &self.memory[..self.written];
        // SAFETY: whoever called `filled_until` promised that these bytes are initialized.
        unsafe { &*(written as *const [u8]) }
    }

    fn capacity(&self) -> usize {
        self.memory.len()
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    unsafe fn filled_until(&mut self, n: usize) {
        self.written = n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::zstd_frames::check_size;

    fn frame(content: &[u8]) -> Vec<u8> {
        let mut target = Vec::with_capacity(bound(content.len()));
        Encoder::default().compress(content, 3, true, &mut target).unwrap();
        target
    }

    #[test]
    fn frames_are_joined() {
        let mut body = frame(b"hello ");
        body.extend(b"\x5a\x2a\x4d\x18\x03\0\0\0abc");
        body.extend(frame(b""));
        body.extend(frame(b"world"));
        let mut target = [0; 11];
        Decoder::default().decompress(&body, &mut target).unwrap();
        assert_eq!(&target, b"hello world");
        for wrong in [10, 12] {
            assert!(Decoder::default().decompress(&body, &mut vec![0; wrong]).is_err());
        }
        for end in 1..body.len() {
            let mut target = vec![0; 11];
            assert!(Decoder::default().decompress(&body[..end], &mut target).is_err());
        }
        assert!(Decoder::default().decompress(b"", &mut []).is_err());
        body.push(0);
        assert!(Decoder::default().decompress(&body, &mut target).is_err());
    }

    #[test]
    fn frames_may_keep_their_size_to_themselves() {
        for nbytes in [0, 1, 1000, 300_000] {
            let content: Vec<u8> = (0..nbytes).map(|i| (i / 7 % 251) as u8).collect();
            let mut context = CCtx::create();
            context.set_parameter(CParameter::ContentSizeFlag(false)).unwrap();
            context.set_parameter(CParameter::ChecksumFlag(true)).unwrap();
            let mut body = vec![0; bound(nbytes)];
            let written = context.compress2(&mut body[..], &content).unwrap();
            body.truncate(written);
            let mut decoder = Decoder::default();
            let mut target = vec![0; nbytes];
            for _ in 0..2 {
                decoder.decompress(&body, &mut target).unwrap();
                assert!(target == content);
                assert!(decoder.decompress(&body, &mut vec![0; nbytes + 1]).is_err());
                assert!(nbytes == 0 || decoder.decompress(&body, &mut vec![0; nbytes - 1]).is_err());
                assert!(decoder.decompress(&body[..body.len() - 1], &mut target).is_err());
            }
            *body.last_mut().unwrap() ^= 1;
            assert!(decoder.decompress(&body, &mut target).is_err());
        }
    }

    #[test]
    fn beginnings_are_right() {
        let content: Vec<u8> = (0..1_000_000usize).map(|i| (i * i / 77 % 251) as u8).collect();
        let mut several = frame(&content[..300_000]);
        several.extend(frame(&content[300_000..]));
        let mut decoder = Decoder::default();
        for body in [frame(&content), several] {
            for wanted in [0, 1, 131_072, 299_999, 300_000, 300_001, 700_000, 900_000, 1_000_000] {
                let mut target = vec![0; content.len()];
                decoder.decompress_beginning(&body, &mut target, wanted).unwrap();
                assert!(target[..wanted] == content[..wanted], "{wanted}");
                let all = wanted + WORTH > content.len();
                assert!(target[wanted..].iter().all(|&byte| byte == 0) || all, "{wanted}");
                decoder.decompress(&body, &mut target).unwrap();
                assert!(target == content);
                let mut longer = vec![0; 2 * content.len()];
                assert!(decoder.decompress_beginning(&body, &mut longer, content.len() + 1).is_err());
            }
        }
    }

    #[test]
    fn impossible_sizes_are_told_at_once() {
        let body = frame(&vec![0; 1 << 20]);
        assert!(check_size(&body, 1 << 20).is_ok());
        assert!(check_size(&body, (1 << 20) + 1).is_err());
    }
}
