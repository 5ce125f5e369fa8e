//! What is the same for all chunks of an array: elements, order of axes, codecs, fill value.

use crate::fill_value::FillValue;
use crate::steps::Steps;
use crate::swap;

pub struct Pipeline {
    /// Bytes of an element.
    pub item: usize,
    /// Bytes of each word of an element whose order is reversed, if it is.
    pub swapped_word: Option<usize>,
    pub is_bool: bool,
    /// Encoded axis `j` is decoded axis `order[j]`.
    pub order: Vec<usize>,
    pub steps: Steps,
    pub fill: FillValue,
}

impl Pipeline {
    /// Whether elements in memory differ from those that `bytes` holds.
    pub fn changes_elements(&self) -> bool {
        self.swapped_word.is_some() || self.is_bool
    }

    /// From the elements as stored to those in memory.
    pub fn decode_elements(&self, content: &mut [u8]) {
        if let Some(word) = self.swapped_word {
            swap::swap_words(content, word);
        }
        if self.is_bool {
            swap::repair_booleans(content);
        }
    }

    /// From the elements in memory to those as stored.
    pub fn encode_elements(&self, content: &mut [u8]) {
        if let Some(word) = self.swapped_word {
            swap::swap_words(content, word);
        }
    }
}
