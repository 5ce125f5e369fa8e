//! Rows of a few integers, as the places of cells: the distinct ones, and where some are among others.

/// Numbers that a table has, for each row that is looked at, before rows are sorted instead.
const ROOM: u64 = 4;
/// Numbers that a table may have in any case.
const SMALL: u64 = 1024;
const NOWHERE: i64 = -1;

/// A number for each row of a box, in lexicographic order.
struct Around {
    low: Vec<i64>,
    widths: Vec<u64>,
    count: u64,
}

impl Around {
    /// The smallest that holds some rows; `None` where it has too many to be numbered.
    fn of(rows: &[i64], width: usize) -> Option<Around> {
        let (mut low, mut high) = (rows[..width].to_vec(), rows[..width].to_vec());
        for row in rows.chunks_exact(width) {
            for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(row) {
                *low = value.min(*low);
                *high = value.max(*high);
            }
        }
        let widths = low.iter().zip(&high).map(|(&low, &high)| high.abs_diff(low).checked_add(1));
        let widths = widths.collect::<Option<Vec<u64>>>()?;
        let count = widths.iter().try_fold(1u64, |count, &width| count.checked_mul(width))?;
        (count < 1 << 62).then_some(Around { low, widths, count })
    }

    /// The number of a row, if it lies in the box.
    fn number(&self, row: &[i64]) -> Option<u64> {
        let mut number = 0;
        for ((&low, &width), &value) in self.low.iter().zip(&self.widths).zip(row) {
            if value < low || value.abs_diff(low) >= width {
                return None;
            }
            number = number * width + value.abs_diff(low);
        }
        Some(number)
    }

    fn row(&self, mut number: u64, row: &mut [i64]) {
        for ((&low, &width), value) in self.low.iter().zip(&self.widths).zip(row).rev() {
            *value = low.wrapping_add((number % width) as i64);
            number /= width;
        }
    }

    /// Whether a table with an entry for each number is worth its room, for so many rows.
    fn is_small(&self, rows: usize) -> bool {
        self.count <= SMALL.saturating_add(ROOM.saturating_mul(rows as u64))
    }
}

/// The distinct ones of rows of `width` integers, ascending, and for each row its number among these. `None` where they
/// lie too far from each other.
pub fn unique(rows: &[i64], width: usize) -> Option<(Vec<i64>, Vec<i64>)> {
    if width == 0 || rows.is_empty() {
        return None;
    }
    let around = Around::of(rows, width)?;
    let codes = rows.chunks_exact(width).map(|row| around.number(row)).collect::<Option<Vec<u64>>>()?;
    let mut numbers = vec![0; codes.len()];
    let mut distinct = Vec::new();
    if around.is_small(codes.len()) {
        let mut table = vec![NOWHERE; around.count as usize];
        for &code in &codes {
            table[code as usize] = 0;
        }
        for (code, place) in table.iter_mut().enumerate().filter(|(_, place)| **place != NOWHERE) {
            *place = distinct.len() as i64;
            distinct.push(code as u64);
        }
        for (number, &code) in numbers.iter_mut().zip(&codes) {
            *number = table[code as usize];
        }
    } else {
        let mut order: Vec<usize> = (0..codes.len()).collect();
        order.sort_unstable_by_key(|&row| codes[row]);
        for row in order {
            if distinct.last() != Some(&codes[row]) {
                distinct.push(codes[row]);
            }
            numbers[row] = distinct.len() as i64 - 1;
        }
    }
    let mut found = vec![0; distinct.len() * width];
    for (code, row) in distinct.into_iter().zip(found.chunks_exact_mut(width)) {
        around.row(code, row);
    }
    Some((found, numbers))
}

/// The number of each of `rows` among those of `table`, which are distinct; -1 where it is not there. `None` as for
/// `unique`.
pub fn find(table: &[i64], rows: &[i64], width: usize) -> Option<Vec<i64>> {
    if width == 0 || table.is_empty() {
        return None;
    }
    let around = Around::of(table, width)?;
    let entries = table.chunks_exact(width).map(|row| around.number(row)).collect::<Option<Vec<u64>>>()?;
    let wanted = rows.chunks_exact(width).map(|row| around.number(row));
    if around.is_small(entries.len() + rows.len() / width) {
        let mut places = vec![NOWHERE; around.count as usize];
        for (place, &code) in entries.iter().enumerate() {
            places[code as usize] = place as i64;
        }
        return Some(wanted.map(|code| code.map_or(NOWHERE, |code| places[code as usize])).collect());
    }
    let mut order: Vec<(u64, i64)> = entries.into_iter().zip(0..).collect();
    order.sort_unstable();
    let place = |code: u64| order.binary_search_by_key(&code, |entry| entry.0).map_or(NOWHERE, |at| order[at].1);
    Some(wanted.map(|code| code.map_or(NOWHERE, place)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_near_and_far() {
        for far in [1, 1 << 20] {
            let rows = [3 * far, -1, 2, 0, 3 * far, -1, 2, 0, 3 * far, -2];
            let (distinct, numbers) = unique(&rows, 2).unwrap();
            assert_eq!(distinct, [2, 0, 3 * far, -2, 3 * far, -1]);
            assert_eq!(numbers, [2, 0, 2, 0, 1]);
            let wanted = [3 * far, -1, 3 * far, 0, 2, 0, 1, 1, i64::MAX, i64::MIN, 3 * far, -2];
            assert_eq!(find(&distinct, &wanted, 2).unwrap(), [2, -1, 0, -1, -1, 1]);
            let turned = [3 * far, -1, 2, 0];
            assert_eq!(find(&turned, &wanted, 2).unwrap(), [0, -1, 1, -1, -1, -1]);
        }
        assert_eq!(unique(&[5, 5, 5], 3).unwrap(), (vec![5, 5, 5], vec![0]));
        assert!(find(&[1, 2], &[], 2).unwrap().is_empty());
    }

    #[test]
    fn what_has_no_number_is_left() {
        assert!(unique(&[i64::MIN, i64::MAX], 1).is_none() && unique(&[], 1).is_none() && unique(&[1], 0).is_none());
        assert!(unique(&[0, 0, 1 << 31, 1 << 31], 2).is_none());
        assert!(find(&[0, 0, 1 << 31, 1 << 31], &[0, 0], 2).is_none() && find(&[], &[1], 1).is_none());
    }
}
