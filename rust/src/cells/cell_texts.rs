//! The coordinates of cells as text: numbers with dots between them.

use std::io::Write;
use std::ops::Range;

/// Texts of cells, one after the other.
pub struct CellTexts {
    text: Vec<u8>,
    spans: Vec<Range<usize>>,
}

impl CellTexts {
    /// Of `rank` coordinates of each cell, ascending as text.
    pub fn new(coordinates: &[i64], rank: usize) -> Self {
        let (mut text, mut spans) = (Vec::with_capacity(4 * coordinates.len()), Vec::new());
        for cell in coordinates.chunks_exact(rank) {
            let start = text.len();
            for (axis, coordinate) in cell.iter().enumerate() {
                if axis > 0 {
                    text.push(b'.');
                }
                match u8::try_from(*coordinate) {
                    Ok(digit @ 0..10) => text.push(b'0' + digit),
                    _ => write!(text, "{coordinate}").expect("memory takes all"),
                }
            }
            spans.push(start..text.len());
        }
        spans.sort_unstable_by(|one, other| text[one.clone()].cmp(&text[other.clone()]));
        CellTexts { text, spans }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.spans.iter().map(|span| str::from_utf8(&self.text[span.clone()]).expect("digits, dots and signs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_ascend() {
        let found =
            |coordinates: &[i64], rank| CellTexts::new(coordinates, rank).iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(found(&[2, 5, 10, -3, 1, 0, i64::MIN, 9], 2), ["-9223372036854775808.9", "1.0", "10.-3", "2.5"]);
        assert_eq!(found(&[11, 9, 10], 1), ["10", "11", "9"]);
        assert!(found(&[], 3).is_empty());
    }
}
