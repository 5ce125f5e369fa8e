//! The fill value of an array, ready to be written in bulk and to be recognized.

use crate::transfer::Transfer;

pub struct FillValue {
    item: Vec<u8>,
    /// The value again and again, some thousand bytes.
    pattern: Vec<u8>,
    /// If all its bytes are the same: that byte.
    uniform: Option<u8>,
}

const PATTERN: usize = 4096;

impl FillValue {
    pub fn new(item: Vec<u8>) -> Self {
        let uniform = item.iter().all(|&byte| byte == item[0]).then(|| item[0]);
        let pattern = item.repeat(PATTERN.div_ceil(item.len()));
        FillValue { item, pattern, uniform }
    }

    /// Fill `target`, a whole number of elements.
    pub fn write(&self, target: &mut [u8]) {
        match self.uniform {
            Some(byte) => target.fill(byte),
            None => {
                for piece in target.chunks_mut(self.pattern.len()) {
                    piece.copy_from_slice(&self.pattern[..piece.len()]);
                }
            }
        }
    }

    /// Whether `content`, a whole number of elements, holds nothing else, bit by bit.
    pub fn is_all_of(&self, content: &[u8]) -> bool {
        let item = self.item.len();
        // equal to the value at the start, and everywhere to what is one element before
        content.len() < item || (content[..item] == self.item[..] && content[item..] == content[..content.len() - item])
    }

    /// Whether the bytes at `element` are the fill value.
    pub fn is_item(&self, element: &[u8]) -> bool {
        element == &self.item[..]
    }

    /// Fill the places of `transfer` (made for filling) in the array that starts at `base`.
    ///
    /// # Safety
    /// As for [`Transfer::copy`], with nothing read.
    pub unsafe fn write_region(&self, transfer: &Transfer, base: *mut u8) {
        // SAFETY: passed on.
        unsafe {
            transfer.each_run(base, |start, nbytes| self.write(std::slice::from_raw_parts_mut(start, nbytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_recognizes() {
        for item in [vec![0u8], vec![1, 2], vec![7, 7, 7], vec![0, 0, 0, 1]] {
            let fill = FillValue::new(item.clone());
            let mut target = vec![9u8; item.len() * 5000];
            fill.write(&mut target);
            assert_eq!(target, item.repeat(5000));
            assert!(fill.is_all_of(&target));
            for at in [0, item.len(), target.len() - 1] {
                target[at] ^= 16;
                assert!(!fill.is_all_of(&target));
                target[at] ^= 16;
            }
        }
    }
}
