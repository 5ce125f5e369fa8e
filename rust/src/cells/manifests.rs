//! Lists of what objects are made of, as Zarr Vectors stores them: a block for each fragment, which are counted in front.

use std::sync::atomic::AtomicI64;

use crate::memory::shared_integers::read;

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
    out: &mut [u8],
) -> bool {
    if rank == 0 || fragments.len().checked_mul(rank) != Some(chunks.len()) {
        return false;
    }
    let mut at = 0;
    let counts = starts.windows(2).map(|start| {
        let (first, last) = (read(&start[0]), read(&start[1]));
        let count = last.checked_sub(first).filter(|_| first == at)?;
        at = last;
        u32::try_from(count).ok()
    });
    let mut blocks = chunks.chunks_exact(rank).zip(fragments);
    let next = || blocks.next().map(|(chunk, fragment)| (chunk.iter().map(read), read(fragment)));
    encode_by(counts, rank, next, out)
}

/// The same of objects that have so many blocks each, of which `next` gives chunk and fragment: of all, and no more.
pub fn encode_by<C: Iterator<Item = i64>>(
    counts: impl Iterator<Item = Option<u32>>,
    rank: usize,
    mut next: impl FnMut() -> Option<(C, i64)>,
    mut out: &mut [u8],
) -> bool {
    let size = block_size(rank);
    for count in counts {
        let bytes = count.and_then(|count| size.checked_mul(count as usize));
        let length = bytes.and_then(|bytes| u32::try_from(bytes.checked_add(COUNT)?).ok());
        let (Some(count), Some(bytes), Some(length)) = (count, bytes, length) else { return false };
        let Some(list) = out.split_off_mut(..LENGTH + COUNT + bytes) else { return false };
        let (head, blocks) = list.split_at_mut(LENGTH + COUNT);
        head[..LENGTH].copy_from_slice(&length.to_le_bytes());
        head[LENGTH..].copy_from_slice(&count.to_le_bytes());
        for block in blocks.chunks_exact_mut(size) {
            let Some((chunk, fragment)) = next() else { return false };
            let (place, rest) = block.split_at_mut(rank * NUMBER);
            for (target, each) in place.as_chunks_mut::<NUMBER>().0.iter_mut().zip(chunk) {
                *target = each.to_le_bytes();
            }
            rest[0] = ONE;
            rest[KIND..].copy_from_slice(&fragment.to_le_bytes());
        }
    }
    out.is_empty() && next().is_none()
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
        assert_eq!(encoded(&[0, 3], &[], &[5, 6, 7], 0), None);
    }
}
