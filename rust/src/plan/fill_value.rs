//! The fill value of an array, ready to be written in bulk and to be recognized.

use crate::memory::span::Span;
use crate::memory::strided_memory::SharedBytes;
use crate::memory::transfer::Transfer;

pub struct FillValue {
    item: Vec<u8>,
    /// The value again and again, `PATTERN` bytes or somewhat less (or once, if it is longer).
    pattern: Vec<u8>,
    /// If all its bytes are the same: that byte.
    uniform: Option<u8>,
}

const PATTERN: usize = 4096;
const FEW: usize = 64;

impl FillValue {
    /// Of the bytes `item`, at least one.
    pub fn new(item: Vec<u8>) -> Self {
        assert!(!item.is_empty());
        let uniform = item.iter().all(|&byte| byte == item[0]).then(|| item[0]);
        let pattern = item.repeat((PATTERN / item.len()).max(1));
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

    /// As `is_all_of`, of bytes that others may change.
    pub fn is_all_of_shared(&self, content: SharedBytes) -> bool {
        let same = |block: &[u8]| *block == self.pattern[..block.len()];
        let mut first = [0];
        if content.is_empty() {
            return true;
        }
        content.copy_to(0, &mut first);
        if first[0] != self.pattern[0] {
            return false; // mostly
        }
        if content.len() <= FEW && content.len() <= self.pattern.len() {
            return content.all_blocks(&mut [0; FEW], same); // in one block
        }
        if self.pattern.len() > PATTERN {
            return content.all_blocks(&mut vec![0; self.pattern.len()], same);
        }
        content.all_blocks(&mut [0; PATTERN][..self.pattern.len()], same)
    }

    /// Append the value to `span` until that has `nbytes` bytes more.
    pub fn append_to(&self, span: &mut Span, mut nbytes: usize) {
        while nbytes > 0 {
            let part = nbytes.min(self.pattern.len());
            span.append(&self.pattern[..part]);
            nbytes -= part;
        }
    }

    /// Fill the places of `transfer` (made for filling) in the array that starts at `base`.
    ///
    /// # Safety
    /// As for [`Transfer::copy`], with nothing read; and no other thread uses these elements meanwhile.
    pub unsafe fn write_region(&self, transfer: &Transfer, base: *mut u8) {
        let write = |_, start: *mut u8, nbytes| {
            // SAFETY: `each_run` names bytes that are the caller's alone to write, as is promised to this function.
            self.write(unsafe { std::slice::from_raw_parts_mut(start, nbytes) });
        };
        // SAFETY: the caller promises that the elements are there and may be written.
        unsafe { transfer.each_run(base, write) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_recognizes() {
        for item in [vec![0u8], vec![1, 2], vec![7, 7, 7], vec![0, 0, 0, 1], vec![1, 2, 3], [7; 5000].to_vec()] {
            let fill = FillValue::new(item.clone());
            let count = if item.len() > 9 { 3 } else { 5000 };
            let mut target = vec![9u8; item.len() * count];
            fill.write(&mut target);
            assert_eq!(target, item.repeat(count));
            let shared = |target: &[u8]| {
                // SAFETY: used while `target` is borrowed.
                fill.is_all_of_shared(unsafe { SharedBytes::new(target.as_ptr(), target.len()) })
            };
            assert!(fill.is_all_of(&target) && shared(&target));
            let mut copy = vec![9u8; target.len()];
            let mut span = Span::over(&mut copy);
            fill.append_to(&mut span, target.len());
            drop(span);
            assert!(copy == target);
            for at in [0, item.len(), target.len() - 1] {
                target[at] ^= 16;
                assert!(!fill.is_all_of(&target) && !shared(&target));
                target[at] ^= 16;
            }
        }
    }
}
