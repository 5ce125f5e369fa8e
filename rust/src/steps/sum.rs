//! `crc32c`: the bytes, then their checksum in four bytes, little endian.

use crate::Outcome;

pub const SIZE: usize = 4;

/// The checksum of what gave `value` so far, followed by `bytes`.
pub fn crc32c(value: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(value, bytes)
}

/// The bytes before the checksum at the end, which has to be theirs.
pub fn verified(stored: &[u8]) -> Outcome<&[u8]> {
    let Some((body, sum)) = stored.split_last_chunk::<SIZE>() else {
        return Err(format!("{} bytes are too few for a checksum", stored.len()).into());
    };
    let (sum, computed) = (u32::from_le_bytes(*sum), crc32c(0, body));
    if sum != computed {
        return Err(format!("stored checksum {sum:08x}, computed {computed:08x}").into());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xe306_9283);
        assert_eq!(crc32c(0, &[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
        assert_eq!(verified(&[0; 4]).unwrap(), b"");
        assert!(verified(&[0; 3]).is_err());
        assert!(verified(&[0, 0, 0, 0, 1]).is_err());
    }
}
