//! `gzip` by libdeflate; also the zlib streams within blosc.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use libdeflate_sys as sys;

use crate::Outcome;

/// Deflate saves no more than this: 258 bytes in two bits.
const LARGEST_RATIO: usize = 1032;
const HEADER_CRC: u8 = 2;

/// Whether `nbytes` can come out of `body` at all.
pub fn check_size(body: &[u8], nbytes: usize) -> Outcome {
    if nbytes > body.len().saturating_mul(LARGEST_RATIO) {
        return Err(format!("{nbytes} bytes cannot come out of {} of gzip", body.len()).into());
    }
    Ok(())
}

/// The most bytes that `nbytes` bytes take when compressed.
pub fn bound(nbytes: usize) -> usize {
    // SAFETY: libdeflate allows a null pointer here; it asks for the bound of all levels.
    unsafe { sys::libdeflate_gzip_compress_bound(std::ptr::null_mut(), nbytes) }
}

#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Zlib,
}

#[derive(Default)]
pub struct Inflater(Option<NonNull<sys::libdeflate_decompressor>>);

// SAFETY: the decompressor is owned by this value alone, and libdeflate keeps nothing of it elsewhere, so that any
// thread may use it; `decompress` takes `&mut self`, so that one thread at a time does.
unsafe impl Send for Inflater {}

/// The most bytes that libdeflate writes at once, or not at all where there is no room: a stored block, which comes
/// after a match.
const MOST_AT_ONCE: usize = 65535 + 258;

fn check_header(member: &[u8]) -> Outcome {
    if member.get(3).is_some_and(|flags| flags & HEADER_CRC != 0) {
        return Err("a gzip header with a checksum, which libdeflate does not verify".into());
    }
    Ok(())
}

impl Inflater {
    /// All members of `body`, which have to give exactly the bytes of `target`.
    pub fn decompress(&mut self, body: &[u8], target: &mut [u8]) -> Outcome {
        let (mut taken, mut given) = (0, 0);
        loop {
            let member = &body[taken..];
            check_header(member)?;
            let room = &mut target[given..];
            let (more, bytes) = self.stream(Format::Gzip, member, room)?.ok_or("more bytes than expected")?;
            taken += more;
            given += bytes;
            if taken == body.len() {
                break;
            }
        }
        if given != target.len() {
            return Err(format!("decoded to {given} bytes, expected {}", target.len()).into());
        }
        Ok(())
    }

    /// The first `wanted` bytes of what `body` gives, if that is less work than all of it, which would fill `target`.
    pub fn decompress_beginning(&mut self, body: &[u8], target: &mut [u8], wanted: usize) -> Outcome {
        let enough = wanted.saturating_add(MOST_AT_ONCE);
        if enough > target.len() / 4 * 3 {
            return self.decompress(body, target);
        }
        let (mut taken, mut given) = (0, 0);
        while given < wanted {
            let member = &body[taken..];
            check_header(member)?;
            let Some((more, bytes)) = self.stream(Format::Gzip, member, &mut target[given..enough])? else { break };
            taken += more;
            given += bytes;
        }
        Ok(())
    }

    /// One zlib stream that fills `body` and gives exactly the bytes of `target`.
    pub fn decompress_zlib(&mut self, body: &[u8], target: &mut [u8]) -> Outcome {
        if self.stream(Format::Zlib, body, target)? != Some((body.len(), target.len())) {
            return Err("a zlib stream of the wrong size".into());
        }
        Ok(())
    }

    /// One stream at the start of `body`: how many bytes it takes and gives. `None` if it gives more than `target` holds.
    fn stream(&mut self, format: Format, body: &[u8], target: &mut [u8]) -> Outcome<Option<(usize, usize)>> {
        let inflater = match self.0 {
            Some(inflater) => inflater,
            // SAFETY: the function has no conditions; null, which means no memory, is looked for.
            None => *self.0.insert(NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() }).ok_or("no memory")?),
        };
        let (mut taken, mut given) = (0, 0);
        let decompress = match format {
            Format::Gzip => sys::libdeflate_gzip_decompress_ex,
            Format::Zlib => sys::libdeflate_zlib_decompress_ex,
        };
        // SAFETY: pointers and lengths are those of two slices, of which `target` is borrowed mutably; nobody else
        // changes them (`body` is memory of ours, or immutable: see `sources`). The decompressor was made by
        // libdeflate and is ours alone.
        let result = unsafe {
            decompress(
                inflater.as_ptr(),
                body.as_ptr().cast(),
                body.len(),
                target.as_mut_ptr().cast(),
                target.len(),
                &mut taken,
                &mut given,
            )
        };
        match result {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS if taken <= body.len() && given <= target.len() => {
                Ok(Some((taken, given)))
            }
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Ok(None),
            _ => Err("not valid compressed data".into()),
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        if let Some(inflater) = self.0 {
            // SAFETY: made by `libdeflate_alloc_decompressor`, owned by this value alone, and not used after this.
            unsafe { sys::libdeflate_free_decompressor(inflater.as_ptr()) };
        }
    }
}

/// Compressors by their level; the second one is for runs.
#[derive(Default)]
pub struct Deflater([Option<(i32, NonNull<sys::libdeflate_compressor>)>; 2]);

// SAFETY: as for `Inflater`.
unsafe impl Send for Deflater {}

/// From this level on libdeflate takes megabytes ...
const LARGE_LEVEL: i32 = 10;
const LARGE: usize = 9 << 20;
/// ... and below a part of one.
const SMALL: usize = 1 << 19;

/// The fastest level, which is slow at long runs of one byte ...
const FASTEST: i32 = 1;
/// ... and the one that takes half of its time there.
const OF_RUNS: i32 = 2;
/// So many bytes are looked at, at so many places ...
const LOOK: usize = 16;
const PLACES: usize = 256;
/// ... of which so many of a hundred have to be of one byte.
const MANY: usize = 65;

/// Whether most of `content` is runs of one byte.
fn is_runs(content: &[u8]) -> bool {
    let apart = (content.len() / PLACES).max(LOOK);
    let is_run = |place: &[u8]| place.iter().take(LOOK).all(|byte| *byte == place[0]);
    let (runs, places) = content
        .chunks(apart)
        .filter(|place| place.len() >= LOOK)
        .fold((0, 0), |(runs, places), place| (runs + usize::from(is_run(place)), places + 1));
    runs * 100 > places * MANY
}

impl Deflater {
    /// Let go of what takes more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.nbytes() > most {
            self.0.iter_mut().for_each(free);
        }
    }

    /// Bytes of memory that this has, about.
    pub fn nbytes(&self) -> usize {
        self.0.iter().flatten().map(|&(level, _)| if level >= LARGE_LEVEL { LARGE } else { SMALL }).sum()
    }

    /// Append one gzip member to `target`, which has room for it.
    pub fn compress(&mut self, content: &[u8], level: i32, target: &mut Vec<u8>) -> Outcome {
        let of_runs = level == FASTEST && is_runs(content);
        let how = (Format::Gzip, if of_runs { OF_RUNS } else { level });
        let written = stream(&mut self.0[usize::from(of_runs)], how, content, target.spare_capacity_mut())?
            .ok_or("libdeflate failed")?;
        // SAFETY: the first `written` bytes of the spare capacity are written, and there are as many.
        unsafe { target.set_len(target.len() + written) };
        Ok(())
    }

    /// Write one zlib stream to the beginning of `room`: how many bytes it has, which were all written; `None` if there is no
    /// room for it.
    pub fn compress_zlib(
        &mut self,
        content: &[u8],
        level: i32,
        room: &mut [MaybeUninit<u8>],
    ) -> Outcome<Option<usize>> {
        stream(&mut self.0[0], (Format::Zlib, level), content, room)
    }
}

fn stream(
    known: &mut Option<(i32, NonNull<sys::libdeflate_compressor>)>,
    (format, level): (Format, i32),
    content: &[u8],
    room: &mut [MaybeUninit<u8>],
) -> Outcome<Option<usize>> {
    let deflater = match *known {
        Some((of, deflater)) if of == level => deflater,
        _ => {
            free(known);
            // SAFETY: the function has no conditions; null, for a level that does not exist, is looked for.
            let made = NonNull::new(unsafe { sys::libdeflate_alloc_compressor(level) }).ok_or("no memory")?;
            known.insert((level, made)).1
        }
    };
    let compress = match format {
        Format::Gzip => sys::libdeflate_gzip_compress,
        Format::Zlib => sys::libdeflate_zlib_compress,
    };
    // SAFETY: pointers and lengths are those of two slices, of which `room` is borrowed mutably, and only written
    // to; nobody else changes `content` (it is a copy: see `encode`). The compressor was made by libdeflate and is
    // the caller's alone.
    let written = unsafe {
        compress(deflater.as_ptr(), content.as_ptr().cast(), content.len(), room.as_mut_ptr().cast(), room.len())
    };
    Ok(Some(written).filter(|&written| 0 < written && written <= room.len()))
}

/// Let go of a compressor of a `Deflater`.
fn free(known: &mut Option<(i32, NonNull<sys::libdeflate_compressor>)>) {
    if let Some((_, deflater)) = known.take() {
        // SAFETY: made by `libdeflate_alloc_compressor`, owned by one value alone, which has let go of it.
        unsafe { sys::libdeflate_free_compressor(deflater.as_ptr()) };
    }
}

impl Drop for Deflater {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(content: &[u8]) -> Vec<u8> {
        let mut target = Vec::with_capacity(bound(content.len()));
        Deflater::default().compress(content, 6, &mut target).unwrap();
        target
    }

    #[test]
    fn members_are_joined() {
        let mut body = member(b"hello ");
        body.extend(member(b""));
        body.extend(member(b"world"));
        let mut target = [0; 11];
        Inflater::default().decompress(&body, &mut target).unwrap();
        assert_eq!(&target, b"hello world");
        for wrong in [10, 12] {
            assert!(Inflater::default().decompress(&body, &mut vec![0; wrong]).is_err());
        }
        body.push(0);
        assert!(Inflater::default().decompress(&body, &mut target).is_err());
        assert!(Inflater::default().decompress(b"", &mut []).is_err());
    }

    #[test]
    fn headers_with_checksums_are_left_to_others() {
        let mut body = member(b"hello");
        body[3] |= HEADER_CRC;
        assert!(Inflater::default().decompress(&body, &mut [0; 5]).is_err());
    }

    #[test]
    fn beginnings_are_right() {
        let mut state = 1u32;
        let mut noise = |i: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if (i / 50_000).is_multiple_of(2) { (state >> 24) as u8 } else { (i / 1000) as u8 }
        };
        let content: Vec<u8> = (0..500_000).map(&mut noise).collect();
        let mut several = member(&content[..100_000]);
        several.extend(member(&content[100_000..]));
        for body in [member(&content), several] {
            for wanted in [0, 1, 4096, 50_000, 99_999, 100_001, 250_000, 300_000, 400_000, 500_000] {
                let mut target = vec![0; content.len()];
                Inflater::default().decompress_beginning(&body, &mut target, wanted).unwrap();
                assert!(target[..wanted] == content[..wanted], "{wanted}");
                assert!(target[wanted..].ends_with(&[0; 4]) || wanted >= 300_000, "{wanted}");
            }
            let cut = &body[..body.len() / 4];
            assert!(Inflater::default().decompress_beginning(cut, &mut vec![0; content.len()], 300_000).is_err());
        }
    }

    #[test]
    fn runs_are_told_and_come_back() {
        let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8;
        let mut deflater = Deflater::default();
        for (runs, is) in [(0, false), (6, false), (7, true), (10, true)] {
            let content: Vec<u8> = (0..70_001).map(|i| if i % 1000 < 100 * runs { 7 } else { noise(i) }).collect();
            assert_eq!(is_runs(&content), is, "{runs}");
            let mut body = Vec::with_capacity(bound(content.len()));
            deflater.compress(&content, FASTEST, &mut body).unwrap();
            let mut target = vec![0; content.len()];
            Inflater::default().decompress(&body, &mut target).unwrap();
            assert!(target == content);
        }
        assert_eq!(deflater.nbytes(), 2 * SMALL);
        deflater.shrink(SMALL);
        assert_eq!(deflater.nbytes(), 0);
        assert!(!is_runs(b"") && !is_runs(&[1; LOOK - 1]) && is_runs(&[1; LOOK]));
    }

    #[test]
    fn bombs_stop() {
        let body = member(&vec![0; 1 << 20]);
        assert!(Inflater::default().decompress(&body, &mut vec![0; 1000]).is_err());
        assert!(check_size(&body, 1 << 20).is_ok() && check_size(&body, 1 << 40).is_err());
    }
}
