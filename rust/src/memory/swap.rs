//! Changes to elements in place: byte order, and bytes of booleans.

/// Reverse the bytes of every word of `word` bytes.
pub fn swap_words(content: &mut [u8], word: usize) {
    match word {
        2 => swap_each(content, |bytes| u16::from_ne_bytes(bytes).swap_bytes().to_ne_bytes()),
        4 => swap_each(content, |bytes| u32::from_ne_bytes(bytes).swap_bytes().to_ne_bytes()),
        8 => swap_each(content, |bytes| u64::from_ne_bytes(bytes).swap_bytes().to_ne_bytes()),
        _ => content.chunks_exact_mut(word.max(1)).for_each(<[u8]>::reverse),
    }
}

fn swap_each<const N: usize>(content: &mut [u8], swap: impl Fn([u8; N]) -> [u8; N]) {
    for bytes in content.as_chunks_mut::<N>().0 {
        *bytes = swap(*bytes);
    }
}

/// Make every byte that is not zero a one.
pub fn repair_booleans(content: &mut [u8]) {
    for byte in content {
        *byte = u8::from(*byte != 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps() {
        for word in [2, 4, 8, 16] {
            let mut content: Vec<u8> = (0..64).collect();
            swap_words(&mut content, word);
            let expected: Vec<u8> = (0..64u8).map(|i| i ^ (word as u8 - 1)).collect();
            assert_eq!(content, expected);
        }
    }

    #[test]
    fn repairs() {
        let mut content = [0, 1, 2, 255];
        repair_booleans(&mut content);
        assert_eq!(content, [0, 1, 1, 1]);
    }
}
