//! Sets of rows of many cells at a time, where all of them are ranges: `zardine.vectors.format.fragment_index` has the
//! form of the bytes, and does what is not done here.

/// What an index begins with, and its version.
const HEADS: [u32; 2] = [0x5a56_4647, 1];
const HEADER: usize = 16;
const WORD: usize = 4;
const RANGE: usize = 16;
/// Bits of a word of the bitmap.
const BITS: usize = 64;
const MOST_ROWS: i64 = 1 << 31;

/// The ranges of some cells, cell by cell.
#[derive(Debug, Default, PartialEq)]
pub struct FragmentRanges {
    /// How many there are of each cell.
    pub numbers: Vec<i64>,
    /// The first row of each, and how many it has.
    pub first: Vec<i64>,
    pub counts: Vec<i64>,
    /// Whether they cut the rows of every cell in pieces, in order.
    pub tile: bool,
}

/// The ranges that the indexes in `data` hold, one after the other, of so many bytes each and for cells of so many rows.
/// `None` where anything else is there.
pub fn decode(mut data: &[u8], lengths: &[i64], row_counts: &[i64]) -> Option<FragmentRanges> {
    if lengths.is_empty() || lengths.len() != row_counts.len() {
        return None;
    }
    let mut found = FragmentRanges { tile: true, ..FragmentRanges::default() };
    for (&length, &rows) in lengths.iter().zip(row_counts) {
        let (index, rest) = data.split_at_checked(usize::try_from(length).ok()?)?;
        decode_cell(index, rows, &mut found)?;
        data = rest;
    }
    data.is_empty().then_some(found)
}

fn decode_cell(index: &[u8], rows: i64, found: &mut FragmentRanges) -> Option<()> {
    let (header, body) = index.split_at_checked(HEADER)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if [word(0), word(4)] != HEADS || word(8) != word(12) {
        return None;
    }
    let number = word(8) as usize;
    found.numbers.push(number as i64);
    if number == 0 {
        found.tile &= rows == 0;
        return body.is_empty().then_some(());
    }
    let (bitmap, body) = body.split_at_checked(number.div_ceil(BITS) * (BITS / 8))?;
    let (table, offset) = body.split_at_checked(number.checked_mul(RANGE)?)?;
    if offset != [0; WORD] {
        return None;
    }
    for (place, bits) in bitmap.as_chunks::<8>().0.iter().enumerate() {
        let set = (number - place * BITS).min(BITS);
        if u64::from_le_bytes(*bits) != u64::MAX >> (BITS - set) {
            return None;
        }
    }
    let mut before = 0i64;
    for range in table.as_chunks::<RANGE>().0 {
        let [first, count] = [0, 8].map(|at| i64::from_le_bytes(range[at..at + 8].try_into().expect("eight bytes")));
        if first < 0 || count < 0 || first > rows || count > rows - first {
            return None;
        }
        found.tile &= first == before || count == 0;
        before = before.checked_add(count).filter(|&before| before <= MOST_ROWS)?;
        found.first.push(first);
        found.counts.push(count);
    }
    found.tile &= before == rows;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(ranges: &[[i64; 2]]) -> Vec<u8> {
        let number = ranges.len() as u32;
        let mut bytes: Vec<u8> =
            [HEADS[0], HEADS[1], number, number].iter().flat_map(|word| word.to_le_bytes()).collect();
        for place in 0..ranges.len().div_ceil(BITS) {
            let set = (ranges.len() - place * BITS).min(BITS);
            bytes.extend((u64::MAX >> (BITS - set)).to_le_bytes());
        }
        bytes.extend(ranges.iter().flatten().flat_map(|number| number.to_le_bytes()));
        if number > 0 {
            bytes.extend([0; WORD]);
        }
        bytes
    }

    fn read(cells: &[(Vec<u8>, i64)]) -> Option<FragmentRanges> {
        let data: Vec<u8> = cells.iter().flat_map(|cell| cell.0.clone()).collect();
        let lengths: Vec<i64> = cells.iter().map(|cell| cell.0.len() as i64).collect();
        decode(&data, &lengths, &cells.iter().map(|cell| cell.1).collect::<Vec<_>>())
    }

    #[test]
    fn ranges_of_cells_follow_each_other() {
        let many: Vec<[i64; 2]> = (0..130).map(|number| [2 * number, 2]).collect();
        let found = read(&[(index(&[[0, 3], [3, 0], [3, 4]]), 7), (index(&many), 260), (index(&[]), 0)]).unwrap();
        assert_eq!((found.numbers, found.tile), (vec![3, 130, 0], true));
        assert_eq!((&found.first[..4], &found.counts[..4]), (&[0, 3, 3, 0][..], &[3, 0, 4, 2][..]));
        for other in [index(&[[0, 3]]), index(&[[4, 3], [0, 4]]), index(&[])] {
            assert!(!read(&[(other, 7)]).unwrap().tile);
        }
    }

    #[test]
    fn whatever_is_wrong_is_left() {
        let good = index(&[[0, 3], [3, 4]]);
        assert!(read(&[(good.clone(), 7)]).is_some());
        for ranges in [[[0, 8], [0, 0]], [[-1, 1], [0, 0]], [[8, 0], [0, 0]], [[0, -1], [0, 0]], [[1, 7], [0, 0]]] {
            assert!(read(&[(index(&ranges), 7)]).is_none());
        }
        for at in (0..24).chain(good.len() - 4..good.len()) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(read(&[(bad, 7)]).is_none(), "{at}");
        }
        for length in 0..good.len() {
            assert!(read(&[(good[..length].to_vec(), 7)]).is_none());
        }
        assert!(read(&[]).is_none());
        assert!(decode(&good, &[good.len() as i64], &[]).is_none());
        assert!(decode(&good, &[-1], &[7]).is_none());
        assert!(decode(&[good.clone(), vec![0]].concat(), &[good.len() as i64], &[7]).is_none());
        let most = 1 << 40;
        assert!(read(&[(index(&[[0, most]]), most)]).is_none());
    }
}
