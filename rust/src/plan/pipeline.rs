//! What is the same for all chunks of an array: elements, order of axes, codecs, fill value.

use crate::Outcome;
use crate::memory::swap;
use crate::plan::chunk_geometry::ChunkGeometry;
use crate::plan::fill_value::FillValue;
use crate::steps::Steps;

pub struct Pipeline {
    item: usize,
    /// Bytes of each word of an element whose order is reversed, if it is.
    swapped_word: Option<usize>,
    is_bool: bool,
    order: Vec<usize>,
    steps: Steps,
    fill: FillValue,
}

impl Pipeline {
    /// Elements as long as `fill`, which is one. Encoded axis `j` is decoded axis `order[j]`. `swapped_word`: bytes of
    /// each word of an element whose order is reversed, if it is.
    pub fn new(
        fill: Vec<u8>,
        swapped_word: Option<usize>,
        is_bool: bool,
        order: Vec<usize>,
        steps: Steps,
    ) -> Result<Self, String> {
        let item = fill.len();
        if item == 0 {
            return Err("elements of 0 bytes".into());
        }
        if let Some(word) = swapped_word
            && !([2, 4, 8].contains(&word) && item.is_multiple_of(word))
        {
            return Err(format!("words of {word} bytes in elements of {item}"));
        }
        if is_bool && item != 1 {
            return Err("booleans are bytes".into());
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..order.len()) {
            return Err("order is no permutation".into());
        }
        Ok(Pipeline { item, swapped_word, is_bool, order, steps, fill: FillValue::new(fill) })
    }

    /// Bytes of an element.
    pub fn item(&self) -> usize {
        self.item
    }

    /// Axes of a chunk.
    pub fn ndim(&self) -> usize {
        self.order.len()
    }

    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    pub fn fill(&self) -> &FillValue {
        &self.fill
    }

    /// Have `geometry` be that of a chunk of `extents`.
    pub fn shape(&self, geometry: &mut ChunkGeometry, extents: impl Iterator<Item = usize> + Clone) -> Outcome {
        geometry.set(extents, &self.order, self.item).ok_or("the chunk is too large".into())
    }

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
