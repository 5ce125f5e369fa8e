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

/// Bytes of the index of a cell of so many fragments.
fn size_of(number: usize) -> Option<usize> {
    let around = HEADER + number.div_ceil(BITS) * (BITS / 8) + if number > 0 { WORD } else { 0 };
    u32::try_from(number).ok()?;
    number.checked_mul(RANGE)?.checked_add(around)
}

/// How many fragments there are in each cell, where there are `before` it and in all; nothing where these do not ascend.
fn numbers(before: &[i64]) -> impl Iterator<Item = Option<usize>> {
    before.windows(2).map(|pair| usize::try_from(pair[1].checked_sub(pair[0])?).ok())
}

/// Bytes of the indexes of cells, `before` each of which there are so many fragments, and in all.
pub fn size(before: &[i64]) -> Option<usize> {
    numbers(before).try_fold(0usize, |size, number| size.checked_add(size_of(number?)?))
}

/// Fill `out`, as long as [`size`] says, with one index after the other: fragments are the rows of their cell from the
/// first on, so many as `counts` says. False where these do not fit together; then `out` holds anything.
pub fn encode(before: &[i64], counts: &[i64], mut out: &mut [u8]) -> bool {
    let mut counts = counts.iter();
    for number in numbers(before) {
        let Some((number, size)) = number.and_then(|number| Some((number, size_of(number)?))) else { return false };
        let Some(index) = out.split_off_mut(..size) else { return false };
        let (header, body) = index.split_at_mut(HEADER);
        let words = [HEADS[0], HEADS[1], number as u32, number as u32];
        header.as_chunks_mut().0.iter_mut().zip(words).for_each(|(target, word)| *target = word.to_le_bytes());
        let (bitmap, body) = body.split_at_mut(number.div_ceil(BITS) * (BITS / 8));
        for (place, bits) in bitmap.as_chunks_mut().0.iter_mut().enumerate() {
            *bits = (u64::MAX >> (BITS - (number - place * BITS).min(BITS))).to_le_bytes();
        }
        let (table, offset) = body.split_at_mut(number * RANGE);
        offset.fill(0);
        let mut first = 0i64;
        for range in table.as_chunks_mut::<RANGE>().0 {
            let Some(&count) = counts.next() else { return false };
            let Some(next) = first.checked_add(count).filter(|_| count >= 0) else { return false };
            range[..8].copy_from_slice(&first.to_le_bytes());
            range[8..].copy_from_slice(&count.to_le_bytes());
            first = next;
        }
    }
    out.is_empty() && counts.next().is_none()
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
    fn what_is_encoded_is_decoded() {
        let numbers = [0i64, 1, 64, 65, 3, 0, 130];
        let mut before = vec![0];
        numbers.iter().for_each(|number| before.push(before.last().unwrap() + number));
        let counts: Vec<i64> = (0..*before.last().unwrap()).map(|number| number * 7 % 5).collect();
        let mut out = vec![9; size(&before).unwrap()];
        assert!(encode(&before, &counts, &mut out));
        let lengths: Vec<i64> = numbers.iter().map(|&number| size_of(number as usize).unwrap() as i64).collect();
        let rows: Vec<i64> = before.windows(2).map(|at| counts[at[0] as usize..at[1] as usize].iter().sum()).collect();
        let found = decode(&out, &lengths, &rows).unwrap();
        assert_eq!((found.numbers, found.counts, found.tile), (numbers.to_vec(), counts.clone(), true));
        assert!(!encode(&before, &counts[1..], &mut out) && !encode(&before, &[&counts[..], &[1]].concat(), &mut out));
        assert!(!encode(&[0, 1], &[-1], &mut vec![0; size(&[0, 1]).unwrap()]) && !encode(&[0, 1], &[1], &mut [0; 43]));
        assert_eq!((size(&[1, 0]), size(&[]), size(&[7])), (None, Some(0), Some(0)));
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
