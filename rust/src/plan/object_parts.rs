//! Objects as parts of a plan: the chunks of each are all combinations of its rows of each axis.

use crate::plan::job_table::JobTable;
use crate::plan::shard_table::ShardTable;

/// What objects are that hold several chunks.
pub struct ShardForm {
    /// Rows of an index.
    pub count: usize,
    pub index_at_start: bool,
    pub has_checksum: bool,
    /// Of each axis what each of its rows adds to the row of the index.
    pub places: Vec<Vec<i64>>,
    /// For each row of the index when its chunk comes, if not in C order.
    pub ranks: Option<Vec<i64>>,
}

/// The jobs of `objects`, one after the other for each, and the table of those that are shards. `parts` are for each
/// object its lowest row of each axis, and then the highest (exclusive).
pub fn plan_parts(
    parts: &[i64],
    axes: usize,
    objects: usize,
    form: Option<&ShardForm>,
) -> Result<(JobTable, Option<ShardTable>), String> {
    if parts.len() != axes.checked_mul(2 * objects).ok_or("too many objects")? {
        return Err(format!("parts are not {objects} rows of {} integers", 2 * axes));
    }
    if form.is_some_and(|form| form.places.len() != axes) {
        return Err(format!("places of other than {axes} axes"));
    }
    let part = |object: usize| parts[object * 2 * axes..(object + 1) * 2 * axes].split_at(axes);
    let mut count = 0usize;
    for object in 0..objects {
        let (low, high) = part(object);
        let lengths = low.iter().zip(high).map(|(&low, &high)| high.checked_sub(low).filter(|_| low >= 0));
        let lengths = lengths.map(|length| length.and_then(|length| usize::try_from(length).ok()));
        let number = lengths.clone().try_fold(1usize, |count, length| count.checked_mul(length?));
        count = number.and_then(|number| count.checked_add(number)).ok_or("rows that cannot be")?;
        let beyond = |form: &ShardForm| high.iter().zip(&form.places).any(|(&high, places)| high > places.len() as i64);
        if form.is_some_and(beyond) {
            return Err("rows without places".into());
        }
    }
    let (mut jobs, mut rows, mut bounds) = (Vec::new(), Vec::new(), Vec::with_capacity(objects + 1));
    count.checked_mul(axes).and_then(|size| jobs.try_reserve_exact(size).ok()).ok_or("too many chunks")?;
    rows.try_reserve_exact(count).map_err(|_| "too many chunks")?;
    for object in 0..objects {
        let (low, high) = part(object);
        let start = rows.len();
        bounds.push(start as i64);
        if low.iter().zip(high).any(|(low, high)| low == high) {
            continue;
        }
        let mut at = low.to_vec();
        loop {
            let place = |form: &ShardForm| {
                at.iter().zip(&form.places).try_fold(0i64, |row, (&at, places)| row.checked_add(places[at as usize]))
            };
            rows.push(form.map_or(Some(0), place).ok_or("an index with too many rows")?);
            jobs.extend(&at);
            let Some(axis) = (0..axes).rev().find(|&axis| at[axis] + 1 < high[axis]) else { break };
            at[axis] += 1;
            at[axis + 1..].copy_from_slice(&low[axis + 1..]);
        }
        if let Some(ranks) = form.and_then(|form| form.ranks.as_ref()) {
            sort(ranks, &mut rows[start..], &mut jobs[start * axes..], axes)?;
        }
    }
    bounds.push(rows.len() as i64);
    let table = |form: &ShardForm| {
        ShardTable::new(&bounds, &rows, form.count, (form.index_at_start, form.has_checksum), rows.len())
    };
    let shards = form.map(table).transpose()?;
    let jobs = if axes == 0 { JobTable::empty_rows(rows.len()) } else { JobTable::new(jobs, 0, axes)? };
    Ok((jobs, shards))
}

/// Put chunks in the order of `ranks`.
fn sort(ranks: &[i64], rows: &mut [i64], jobs: &mut [i64], axes: usize) -> Result<(), String> {
    let rank = |&row: &i64| usize::try_from(row).ok().and_then(|row| ranks.get(row)).ok_or("a row without a rank");
    let mut order: Vec<(i64, usize)> = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        order.push((*rank(row)?, number));
    }
    order.sort_unstable();
    let (old_rows, old_jobs) = (rows.to_vec(), jobs.to_vec());
    for (to, (_, from)) in order.into_iter().enumerate() {
        rows[to] = old_rows[from];
        jobs[to * axes..(to + 1) * axes].copy_from_slice(&old_jobs[from * axes..(from + 1) * axes]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(places: Vec<Vec<i64>>, ranks: Option<Vec<i64>>) -> ShardForm {
        ShardForm { count: 6, index_at_start: false, has_checksum: true, places, ranks }
    }

    fn rows(jobs: &JobTable) -> Vec<Vec<i64>> {
        (0..jobs.len()).map(|job| jobs.rows(job).to_vec()).collect()
    }

    #[test]
    fn every_combination_is_a_job() {
        let shards = form(vec![vec![0, 3, 0], vec![1, 2]], None);
        let (jobs, table) = plan_parts(&[0, 0, 2, 2, 2, 1, 3, 2, 1, 1, 1, 2], 2, 3, Some(&shards)).unwrap();
        let table = table.unwrap();
        assert_eq!(rows(&jobs), [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]);
        assert_eq!((0..3).map(|shard| table.jobs(shard)).collect::<Vec<_>>(), [0..4, 4..5, 5..5]);
        assert_eq!((0..5).map(|job| table.row(job)).collect::<Vec<_>>(), [1, 2, 4, 5, 2]);
        let shards = form(shards.places, Some(vec![0, 4, 3, 2, 1, 0]));
        let (jobs, table) = plan_parts(&[0, 0, 2, 2], 2, 1, Some(&shards)).unwrap();
        assert_eq!(rows(&jobs), [[1, 1], [1, 0], [0, 1], [0, 0]]);
        assert_eq!((0..4).map(|job| table.as_ref().unwrap().row(job)).collect::<Vec<_>>(), [5, 4, 2, 1]);
    }

    #[test]
    fn objects_that_are_chunks_need_no_places() {
        let (jobs, table) = plan_parts(&[3, 4, 4, 5, 3, 5, 4, 6], 2, 2, None).unwrap();
        assert_eq!(rows(&jobs), [[3, 4], [3, 5]]);
        assert!(table.is_none());
        assert_eq!(plan_parts(&[], 0, 2, None).unwrap().0.len(), 2);
        assert_eq!(plan_parts(&[], 0, 1, Some(&form(vec![], None))).unwrap().1.unwrap().row(0), 0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let one = |parts: &[i64], form: &ShardForm| plan_parts(parts, 1, 1, Some(form)).is_err();
        let good = form(vec![vec![0, 1, 5]], None);
        assert!(!one(&[0, 3], &good));
        for wrong in [&[0, 4][..], &[-1, 1], &[2, 1], &[0], &[0, 1, 2], &[i64::MIN, i64::MAX], &[0, i64::MAX]] {
            assert!(one(wrong, &good), "{wrong:?}");
        }
        assert!(one(&[0, 2], &form(vec![vec![0, 6]], None)));
        assert!(one(&[0, 2], &form(vec![vec![0, -1]], None)));
        assert!(one(&[0, 2], &form(vec![vec![0, 1]], Some(vec![0]))));
        assert!(one(&[0, 2], &form(vec![], None)));
        assert!(plan_parts(&[0, 0, i64::MAX, i64::MAX], 2, 1, None).is_err());
    }
}
