//! Where links between rows of cells go: into one family for each set of offsets from the cell of the first endpoint to
//! those of the others; there, cell by cell. See `zardine.vectors.content.link_placement`.

use std::iter::repeat_n;

use crate::cells::rows;

/// Endpoints that a link may have.
const MOST_WIDTH: usize = 12;

/// The cell that each row lies in, and its number there: `starts` says where the rows of each cell start, and in all.
/// Nothing where a row is in none.
pub fn find_cells(starts: &[i64], rows: &[i64]) -> Option<(Vec<i64>, Vec<i64>)> {
    if starts.first() != Some(&0) || !starts.is_sorted() {
        return None;
    }
    let end = *starts.last()?;
    if !rows.iter().all(|row| (0..end).contains(row)) {
        return None;
    }
    let cells: Vec<i64> = if rows.len() as i64 >= end / MANY && u32::try_from(starts.len()).is_ok() {
        let lengths = starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let of_rows: Vec<u32> = lengths.enumerate().flat_map(|(cell, length)| repeat_n(cell as u32, length)).collect();
        rows.iter().map(|&row| of_rows[row as usize].into()).collect()
    } else {
        let steps = Steps::new(starts, end);
        rows.iter().map(|&row| steps.cell(starts, row) as i64).collect()
    };
    let local = rows.iter().zip(&cells).map(|(row, &cell)| row - starts[cell as usize]).collect();
    Some((cells, local))
}

/// A share of all rows that is so large that the cells of all are listed.
const MANY: i64 = 2;

/// The cells in which every so many rows lie, from where the one of a row is near.
struct Steps {
    cells: Vec<usize>,
    shift: u32,
}

impl Steps {
    /// Of rows up to `end`, as many steps as there are cells or somewhat more.
    fn new(starts: &[i64], end: i64) -> Steps {
        let most = 2 * starts.len() as i64;
        let shift = (0..63).find(|shift| end >> shift <= most).unwrap_or(63);
        let mut cell = 0;
        let near = |step: i64| {
            while cell + 2 < starts.len() && starts[cell + 1] <= step << shift {
                cell += 1;
            }
            cell
        };
        Steps { cells: (0..=end >> shift).map(near).collect(), shift }
    }

    fn cell(&self, starts: &[i64], row: i64) -> usize {
        let first = self.cells[(row >> self.shift) as usize];
        let near = starts[first + 1..].iter().take(8).position(|&start| row < start);
        near.map_or_else(|| starts.partition_point(|&start| start <= row) - 1, |steps| first + steps)
    }
}

/// Links in the order in which they are stored: family by family, there by the cell of the first endpoint.
#[derive(Debug, Default, PartialEq)]
pub struct Placed {
    /// Of each family the offsets of all endpoints but the first, ascending.
    pub offsets: Vec<i64>,
    /// Where the cells of each family start, and in all.
    pub families: Vec<i64>,
    /// The number of each cell that is there, ...
    pub cells: Vec<i64>,
    /// ... and where its links start, and in all.
    pub starts: Vec<i64>,
    /// The number that each link had among those given.
    pub given: Vec<i64>,
    /// What is stored of the links: the order of the endpoints, in families that have one, and their rows. Links across
    /// cells have 1 and 0 in front of those of each cell: one group, which begins at once.
    pub words: Vec<i64>,
    /// Where the words of each cell start, and in all.
    pub edges: Vec<i64>,
}

/// Place links of `width` endpoints, which are in `cells` at `rows` of these; `keys` has `rank` coordinates of each cell.
/// `canonical`: endpoints may be reordered. Nothing where these do not fit together, or are too far apart.
pub fn place(
    (keys, rank): (&[i64], usize),
    (mut cells, mut rows, width): (Vec<i64>, Vec<i64>, usize),
    canonical: bool,
) -> Option<Placed> {
    if rank == 0 || !(2..=MOST_WIDTH).contains(&width) || cells.len() != rows.len() || cells.len() % width != 0 {
        return None;
    }
    let (count, many) = (cells.len() / width, keys.len() / rank);
    if keys.len() % rank != 0 || cells.iter().any(|&cell| usize::try_from(cell).map_or(true, |cell| cell >= many)) {
        return None;
    }
    if count == 0 {
        return Some(Placed { families: vec![0], starts: vec![0], edges: vec![0], ..Placed::default() });
    }
    let mut orders = vec![0; count];
    if canonical {
        let each = cells.chunks_exact_mut(width).zip(rows.chunks_exact_mut(width)).zip(&mut orders);
        each.for_each(|((cells, rows), order)| *order = reorder(cells, rows));
    }
    let across = (width - 1) * rank;
    let (distinct, family) = families((keys, rank), &cells, width)?;
    let code = |link: usize| (family[link], cells[link * width]);
    let given = in_order(count, (distinct.len() / across, many), code);
    let is_across: Vec<bool> = distinct.chunks_exact(across).map(|row| row.iter().any(|&each| each != 0)).collect();
    let mut placed = Placed { offsets: distinct, ..Placed::default() };
    placed.words.reserve(count * (width + 1) + 2 * count.min(many * is_across.len()));
    let mut before = None;
    for (at, &link) in given.iter().enumerate() {
        let link = link as usize;
        let now = code(link);
        let (number, cell) = now;
        if before != Some(now) {
            while placed.families.len() <= number as usize {
                placed.families.push(placed.cells.len() as i64);
            }
            placed.cells.push(cell);
            placed.starts.push(at as i64);
            placed.edges.push(placed.words.len() as i64);
            if is_across[number as usize] {
                placed.words.extend([1, 0]);
            }
            before = Some(now);
        }
        if canonical && is_across[number as usize] {
            placed.words.push(orders[link]);
        }
        placed.words.extend(&rows[link * width..][..width]);
    }
    placed.families.push(placed.cells.len() as i64);
    placed.starts.push(count as i64);
    placed.edges.push(placed.words.len() as i64);
    placed.given = given;
    Some(placed)
}

/// The distinct offsets from the first cell of each link to the others, ascending; and of each link their number. Nothing
/// where they cannot be numbered.
fn families((keys, rank): (&[i64], usize), cells: &[i64], width: usize) -> Option<(Vec<i64>, Vec<i64>)> {
    if let Some(counted) = counted_families((keys, rank), cells, width) {
        return Some(counted);
    }
    let mut offsets = Vec::with_capacity(cells.len() / width * (width - 1) * rank);
    for link in cells.chunks_exact(width) {
        for &cell in &link[1..] {
            let (to, from) = (&keys[cell as usize * rank..][..rank], &keys[link[0] as usize * rank..][..rank]);
            offsets.extend(to.iter().zip(from).map(|(to, from)| to.wrapping_sub(*from)));
        }
    }
    rows::unique(&offsets, (width - 1) * rank)
}

/// The same of links of two endpoints, by counting: nothing where others, or cells so far apart that it is no way.
fn counted_families((keys, rank): (&[i64], usize), cells: &[i64], width: usize) -> Option<(Vec<i64>, Vec<i64>)> {
    if width != 2 {
        return None;
    }
    let axis = |axis: usize| keys.iter().skip(axis).step_by(rank).copied();
    let low: Vec<i64> = (0..rank).map(|each| axis(each).min()).collect::<Option<_>>()?;
    let reach: Vec<i64> = (0..rank).map(|each| axis(each).max()?.checked_sub(low[each])).collect::<Option<_>>()?;
    let widths: Vec<i64> = reach.iter().map(|reach| reach.checked_mul(2)?.checked_add(1)).collect::<Option<_>>()?;
    let total = widths.iter().try_fold(1i64, |total, &width| total.checked_mul(width))?;
    let total = usize::try_from(total).ok().filter(|&total| total <= 2 * cells.len() + 1024)?;
    // numbers of offsets from one cell to another are differences of these, beside that of no offset
    let joined =
        |place: &mut dyn Iterator<Item = i64>| place.zip(&widths).fold(0, |line, (at, width)| line * width + at);
    let lines: Vec<i64> =
        keys.chunks_exact(rank).map(|key| joined(&mut key.iter().zip(&low).map(|(at, low)| at - low))).collect();
    let middle = joined(&mut reach.iter().copied());
    let codes: Vec<usize> = cells
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&[from, to]| (lines[to as usize] - lines[from as usize] + middle) as usize)
        .collect();
    let mut numbers = vec![-1i64; total];
    codes.iter().for_each(|&code| numbers[code] = 0);
    let (mut distinct, mut count) = (Vec::new(), 0);
    for (code, number) in numbers.iter_mut().enumerate().filter(|(_, number)| **number == 0) {
        *number = count;
        count += 1;
        let (start, mut rest) = (distinct.len(), code as i64);
        distinct.resize(start + rank, 0);
        for axis in (0..rank).rev() {
            distinct[start + axis] = rest % widths[axis] - reach[axis];
            rest /= widths[axis];
        }
    }
    Some((distinct, codes.into_iter().map(|code| numbers[code]).collect()))
}

/// The numbers of `count` links in the stable order of their families and cells, of which there are so many.
fn in_order(count: usize, (families, cells): (usize, usize), code: impl Fn(usize) -> (i64, i64)) -> Vec<i64> {
    let codes = families.checked_mul(cells).filter(|&codes| codes <= 4 * count + 1024);
    let Some(codes) = codes else {
        let mut order: Vec<i64> = (0..count as i64).collect();
        order.sort_by_key(|&link| code(link as usize));
        return order;
    };
    let number = |link| {
        let (family, cell) = code(link);
        family as usize * cells + cell as usize
    };
    let mut places = vec![0usize; codes];
    (0..count).for_each(|link| places[number(link)] += 1);
    let mut before = 0;
    for place in &mut places {
        before += std::mem::replace(place, before);
    }
    let mut order = vec![0; count];
    for link in 0..count {
        let place = &mut places[number(link)];
        order[*place] = link as i64;
        *place += 1;
    }
    order
}

/// Put the endpoints of a link across cells in ascending order of cells, then rows; the rank of the order (Lehmer's) in
/// which they were given. Those of a link within a cell stay.
fn reorder(cells: &mut [i64], rows: &mut [i64]) -> i64 {
    if cells.iter().all(|cell| *cell == cells[0]) {
        return 0;
    }
    let width = cells.len();
    if width == 2 {
        let turned = cells[0] > cells[1];
        if turned {
            cells.swap(0, 1);
            rows.swap(0, 1);
        }
        return turned.into();
    }
    let mut order = [0usize; MOST_WIDTH];
    let order = &mut order[..width];
    order.iter_mut().enumerate().for_each(|(at, place)| *place = at);
    order.sort_by_key(|&at| (cells[at], rows[at]));
    let mut old = [(0, 0); MOST_WIDTH];
    for (at, place) in old[..width].iter_mut().enumerate() {
        *place = (cells[at], rows[at]);
    }
    for (at, &from) in order.iter().enumerate() {
        (cells[at], rows[at]) = old[from];
    }
    let mut rank = 0;
    for (at, place) in order.iter().enumerate() {
        let smaller = order[at + 1..].iter().filter(|&other| other < place).count() as i64;
        rank = rank * (width - at) as i64 + smaller;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_their_cells() {
        let starts = [0, 3, 3, 5];
        assert_eq!(find_cells(&starts, &[4, 0, 2, 3]), Some((vec![2, 0, 0, 2], vec![1, 0, 2, 0])));
        assert_eq!(find_cells(&starts, &[]), Some((vec![], vec![])));
        for (starts, row) in [(&starts[..], 5), (&starts, -1), (&[0, 3, 2], 1), (&[1, 3], 2), (&[], 0), (&[0], 0)] {
            assert_eq!(find_cells(starts, &[row]), None);
        }
    }

    #[test]
    fn rows_of_many_cells_are_found() {
        let sizes = (0..5000i64).map(|cell| if cell % 7 < 3 { 0 } else { cell * cell % 97 * (cell % 5) });
        let mut starts = vec![0];
        sizes.for_each(|size| starts.push(starts.last().unwrap() + size));
        let rows: Vec<i64> = (0..*starts.last().unwrap()).collect();
        for some in rows.chunks(rows.len() / 10).chain([&rows[..]]) {
            let (cells, local) = find_cells(&starts, some).unwrap();
            for ((&row, &cell), &local) in some.iter().zip(&cells).zip(&local) {
                let cell = cell as usize;
                assert!(starts[cell] <= row && row < starts[cell + 1] && local == row - starts[cell]);
            }
        }
    }

    #[test]
    fn links_are_placed_family_by_family() {
        let keys = [0, 0, 0, 1, 1, 0];
        let (cells, rows) = ([2, 0, 0, 0, 1, 0, 0, 2, 0, 0], [5, 6, 1, 2, 3, 4, 7, 8, 9, 9]);
        let placed = place((&keys, 2), (cells.to_vec(), rows.to_vec(), 2), true).unwrap();
        assert_eq!(placed.offsets, [0, 0, 0, 1, 1, 0]);
        assert_eq!((placed.families, placed.cells), (vec![0, 1, 2, 3], vec![0, 0, 0]));
        assert_eq!((placed.starts, placed.given), (vec![0, 2, 3, 5], vec![1, 4, 2, 0, 3]));
        assert_eq!(placed.words, [1, 2, 9, 9, 1, 0, 1, 4, 3, 1, 0, 1, 6, 5, 0, 7, 8]);
        assert_eq!(placed.edges, [0, 4, 9, 17]);
        let placed = place((&keys, 2), (cells.to_vec(), rows.to_vec(), 2), false).unwrap();
        assert_eq!(placed.offsets, [-1, 0, 0, -1, 0, 0, 1, 0]);
        assert_eq!((placed.families, placed.cells), (vec![0, 1, 2, 3, 4], vec![2, 1, 0, 0]));
        assert_eq!(placed.words, [1, 0, 5, 6, 1, 0, 3, 4, 1, 2, 9, 9, 1, 0, 7, 8]);
        let nothing = place((&keys, 2), (vec![], vec![], 2), true).unwrap();
        assert_eq!((nothing.families, nothing.words), (vec![0], vec![]));
    }

    #[test]
    fn families_are_counted_as_they_are_found() {
        for rank in 1..4 {
            let keys: Vec<i64> = (0..60 * rank as i64).map(|at| at * at * 31 % 7 - 3).collect();
            let cells: Vec<i64> = (0..4000).map(|at| at * 7919 % 60).collect();
            let offsets: Vec<i64> = cells
                .chunks_exact(2)
                .flat_map(|link| {
                    let key = |cell: i64| keys[cell as usize * rank..][..rank].iter();
                    key(link[1]).zip(key(link[0])).map(|(to, from)| to - from).collect::<Vec<_>>()
                })
                .collect();
            assert_eq!(counted_families((&keys, rank), &cells, 2), rows::unique(&offsets, rank));
        }
        assert_eq!(counted_families((&[0, 1, 2], 1), &[0, 1, 2], 3), None);
        for far in [5_000, i64::MAX] {
            assert_eq!(counted_families((&[-1, far], 1), &[0, 1], 2), None);
        }
    }

    #[test]
    fn orders_have_the_rank_of_lehmer() {
        let reordered = |mut cells: Vec<i64>, mut rows: Vec<i64>| {
            let rank = reorder(&mut cells, &mut rows);
            (cells, rows, rank)
        };
        assert_eq!(reordered(vec![2, 0, 1], vec![5, 6, 7]), (vec![0, 1, 2], vec![6, 7, 5], 3));
        assert_eq!(reordered(vec![1, 1, 0], vec![9, 8, 7]), (vec![0, 1, 1], vec![7, 8, 9], 5));
        assert_eq!(reordered(vec![1, 1, 1], vec![9, 8, 7]), (vec![1, 1, 1], vec![9, 8, 7], 0));
        assert_eq!(reordered(vec![0, 1], vec![9, 8]), (vec![0, 1], vec![9, 8], 0));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (cells, rows, width) in [
            (&[0, 3][..], &[0, 0][..], 2),
            (&[0, -1], &[0, 0], 2),
            (&[0], &[0], 2),
            (&[0, 1], &[0], 2),
            (&[0], &[0], 1),
        ] {
            assert_eq!(place((&[1, 2, 3], 1), (cells.to_vec(), rows.to_vec(), width), true), None);
        }
        assert_eq!(place((&[1, 2, 3], 2), (vec![0, 0], vec![0, 0], 2), true), None);
        assert_eq!(place((&[], 0), (vec![], vec![], 2), true), None);
        assert_eq!(place((&[0; 13], 1), (vec![0; 13], vec![0; 13], 13), true), None);
    }
}
