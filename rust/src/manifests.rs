//! Lists of what objects are made of, as Zarr Vectors stores them: a block for each fragment, which are counted in front.

use std::sync::atomic::AtomicI64;

use crate::shared_integers::read;

/// Bytes of the length of a list, of the number of its blocks, of a coordinate or a fragment, and of the kind of a block.
const LENGTH: usize = 4;
const COUNT: usize = 4;
const NUMBER: usize = 8;
const KIND: usize = 1;
/// Blocks that name one fragment.
const ONE: u8 = 0;

/// Bytes of a block about a chunk of `rank` coordinates.
pub fn block_size(rank: usize) -> usize {
    rank * NUMBER + KIND + NUMBER
}

/// Bytes of the lists of `objects`, which have so many blocks together, and of their lengths.
pub fn size(objects: usize, blocks: usize, rank: usize) -> Option<usize> {
    blocks.checked_mul(block_size(rank))?.checked_add(objects.checked_mul(LENGTH + COUNT)?)
}

/// Fill `out`, which is as long as [`size`] says, with one list after the other, each behind its length: object `o` is of the fragments `starts[o]`
/// to `starts[o + 1]` (exclusive), whose chunks are rows of `chunks`. False where these do not fit together; then it holds
/// anything.
pub fn encode(
    starts: &[AtomicI64],
    chunks: &[AtomicI64],
    fragments: &[AtomicI64],
    rank: usize,
    mut out: &mut [u8],
) -> bool {
    let mut put = |bytes: &[u8]| match out.split_off_mut(..bytes.len()) {
        Some(target) => {
            target.copy_from_slice(bytes);
            true
        }
        None => false,
    };
    let mut at = 0;
    for start in starts.windows(2) {
        let (first, last) = (read(&start[0]), read(&start[1]));
        let (Ok(first), Ok(last)) = (usize::try_from(first), usize::try_from(last)) else { return false };
        let Some(count) = last.checked_sub(first).and_then(|count| u32::try_from(count).ok()) else { return false };
        if first != at || last > fragments.len() || last * rank > chunks.len() {
            return false;
        }
        let length = (last - first).checked_mul(block_size(rank)).and_then(|size| u32::try_from(COUNT + size).ok());
        if !length.is_some_and(|length| put(&length.to_le_bytes()) && put(&count.to_le_bytes())) {
            return false;
        }
        for block in first..last {
            let chunk = &chunks[block * rank..(block + 1) * rank];
            let done = chunk.iter().all(|each| put(&read(each).to_le_bytes()));
            if !done || !put(&[ONE]) || !put(&read(&fragments[block]).to_le_bytes()) {
                return false;
            }
        }
        at = last;
    }
    at == fragments.len() && out.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(starts: &[i64], chunks: &[i64], fragments: &[i64], rank: usize) -> Option<Vec<u8>> {
        let [starts, chunks, fragments] = [starts, chunks, fragments]
            .map(|numbers| numbers.iter().map(|&number| AtomicI64::new(number)).collect::<Vec<_>>());
        let mut out = vec![7; size(starts.len().max(1) - 1, fragments.len(), rank).unwrap()];
        encode(&starts, &chunks, &fragments, rank, &mut out).then_some(out)
    }

    #[test]
    fn lists_are_blocks_behind_their_number() {
        let block = |chunk: [i64; 2], fragment: i64| {
            [&chunk[0].to_le_bytes()[..], &chunk[1].to_le_bytes(), &[0], &fragment.to_le_bytes()].concat()
        };
        let wanted = [
            54u32.to_le_bytes().to_vec(),
            2u32.to_le_bytes().to_vec(),
            block([1, -2], 5),
            block([3, 4], 6),
            4u32.to_le_bytes().to_vec(),
            0u32.to_le_bytes().to_vec(),
            29u32.to_le_bytes().to_vec(),
            1u32.to_le_bytes().to_vec(),
            block([0, 0], -7),
        ];
        assert_eq!(encoded(&[0, 2, 2, 3], &[1, -2, 3, 4, 0, 0], &[5, 6, -7], 2), Some(wanted.concat()));
        assert_eq!(encoded(&[0], &[], &[], 2), Some(vec![]));
        for (starts, chunks) in [
            (&[0, 2, 1, 3][..], &[0; 6][..]),
            (&[0, 2, 4], &[0; 6]),
            (&[0, 2], &[0; 6]),
            (&[1, 3], &[0; 6]),
            (&[-1, 3], &[0; 6]),
            (&[0, 3], &[0; 5]),
        ] {
            assert_eq!(encoded(starts, chunks, &[5, 6, 7], 2), None);
        }
    }
}
