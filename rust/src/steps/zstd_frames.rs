//! Where the frames of Zstandard data lie and how much each may give, before anything is decompressed (RFC 8878, 3).

use crate::Outcome;

const MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// No block holds more than this when decompressed.
const BLOCK: u64 = 128 * 1024;
/// The largest window of a frame that does not say its size: so much memory may be taken for it.
const LARGEST_WINDOW: u64 = 1 << 23;

/// One frame: where it ends, how many bytes its header says it gives, and how many its blocks can give.
struct Frame {
    stop: usize,
    nbytes: Option<u64>,
    most: u64,
}

/// Whether the content of some frame has a checksum.
pub fn has_checksum(data: &[u8]) -> Outcome<bool> {
    let mut found = false;
    each_frame(data, |frame, _, _| {
        found |= frame.get(4).is_some_and(|descriptor| descriptor & 4 != 0);
        Ok(())
    })?;
    Ok(found)
}

/// Call `with` for each frame in order, without the skippable ones.
pub fn each_frame<'a>(data: &'a [u8], mut with: impl FnMut(&'a [u8], Option<u64>, u64) -> Outcome) -> Outcome {
    if data.is_empty() {
        return Err("no data".into());
    }
    let mut position = 0;
    while position < data.len() {
        let rest = &data[position..];
        if rest.starts_with(MAGIC) {
            let frame = read_frame(rest).ok_or("not a complete Zstandard frame")?;
            with(&rest[..frame.stop], frame.nbytes, frame.most)?;
            position += frame.stop;
        } else if rest.len() >= 8 && rest[1..4] == *b"\x2a\x4d\x18" && rest[0] >> 4 == 5 {
            let size = integer(rest, 4, 4).and_then(|size| usize::try_from(size).ok());
            let stop = size.and_then(|size| size.checked_add(8)).filter(|&stop| stop <= rest.len());
            position += stop.ok_or("a skippable frame ends too early")?;
        } else {
            return Err(format!("no Zstandard frame at byte {position}").into());
        }
    }
    Ok(())
}

/// Whether `nbytes` can come out of `data` at all.
pub fn check_size(data: &[u8], nbytes: usize) -> Outcome {
    let mut most = 0u64;
    each_frame(data, |_, claimed, blocks| {
        most = most.saturating_add(claimed.unwrap_or(blocks));
        Ok(())
    })?;
    if (nbytes as u64) > most {
        return Err(format!("decoded to at most {most} bytes, expected {nbytes}").into());
    }
    Ok(())
}

fn read_frame(data: &[u8]) -> Option<Frame> {
    let descriptor = *data.get(4)?;
    if descriptor & 8 != 0 {
        return None;
    }
    let single_segment = descriptor & 0x20 != 0;
    let mut position = 5;
    let mut window = 0;
    if !single_segment {
        let byte = u64::from(*data.get(5)?);
        let base = 1u64 << (10 + (byte >> 3));
        window = base + base / 8 * (byte & 7);
        position += 1;
    }
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    if integer(data, position, dictionary_bytes)? != 0 {
        return None;
    }
    position += dictionary_bytes;
    let size_bytes = [usize::from(single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    let mut nbytes = None;
    if size_bytes > 0 {
        nbytes = Some(integer(data, position, size_bytes)?.checked_add(if size_bytes == 2 { 256 } else { 0 })?);
    }
    if window > LARGEST_WINDOW && nbytes.is_none_or(|nbytes| nbytes == 0) {
        return None;
    }
    position += size_bytes;
    let mut most = 0u64;
    loop {
        let header = integer(data, position, 3)?;
        let (last, kind, size) = (header & 1 != 0, header >> 1 & 3, header >> 3);
        let stored = match kind {
            0 | 2 => size as usize,
            1 => 1,
            _ => return None,
        };
        position += 3 + stored;
        most = most.checked_add(if kind == 2 { BLOCK } else { size })?;
        if last {
            break;
        }
    }
    if descriptor & 4 != 0 {
        position += 4;
    }
    if position > data.len() || nbytes.is_some_and(|nbytes| nbytes > most) {
        return None;
    }
    Some(Frame { stop: position, nbytes, most })
}

fn integer(data: &[u8], position: usize, nbytes: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes[..nbytes].copy_from_slice(data.get(position..position.checked_add(nbytes)?)?);
    Some(u64::from_le_bytes(bytes))
}
