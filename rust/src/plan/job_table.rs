//! The jobs of a call: rows of a table of integers, copied so that nothing can change under way.

use std::ops::Range;

use crate::memory::distinct::distinct;

/// Source, offset and length, or none of these (`fixed` is 3 or 0), then the row of each axis.
pub struct JobTable {
    values: Vec<i64>,
    fixed: usize,
    width: usize,
    count: usize,
    /// From the lowest to the highest row that jobs name on each axis.
    used: Vec<Range<usize>>,
}

/// Where the bytes of a job are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored {
    /// Nowhere: the chunk is full of the fill value.
    Missing,
    At {
        source: usize,
        offset: u64,
        length: usize,
    },
    /// Offset or length cannot be.
    Impossible,
}

impl JobTable {
    pub fn new(values: Vec<i64>, fixed: usize, axes: usize) -> Result<Self, String> {
        let width = fixed + axes;
        let count = values.len().checked_div(width).unwrap_or(0);
        if values.len() != count * width {
            return Err(format!("jobs are not rows of {width} integers"));
        }
        let mut table = JobTable { values, fixed, width, count, used: vec![0..0; axes] };
        if count > 0 {
            table.used = table.find_used()?;
        }
        Ok(table)
    }

    /// Jobs without any column (chunks of a scalar that are written).
    pub fn empty_rows(count: usize) -> Self {
        JobTable { values: Vec::new(), fixed: 0, width: 0, count, used: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The row of each axis.
    pub fn rows(&self, job: usize) -> &[i64] {
        &self.values[job * self.width + self.fixed..(job + 1) * self.width]
    }

    pub fn stored(&self, job: usize) -> Stored {
        if self.fixed == 0 {
            return Stored::Missing;
        }
        let [source, offset, length] = self.values[job * self.width..][..3] else { return Stored::Impossible };
        if length == -1 {
            return Stored::Missing;
        }
        match (usize::try_from(source), u64::try_from(offset), usize::try_from(length)) {
            (Ok(source), Ok(offset), Ok(length)) => Stored::At { source, offset, length },
            _ => Stored::Impossible,
        }
    }

    /// From the lowest to the highest row (exclusive) that jobs name on each axis.
    pub fn used_rows(&self) -> &[Range<usize>] {
        &self.used
    }

    fn find_used(&self) -> Result<Vec<Range<usize>>, String> {
        let mut used = vec![(i64::MAX, i64::MIN); self.width - self.fixed];
        for job in 0..self.count {
            for (range, &row) in used.iter_mut().zip(self.rows(job)) {
                *range = (range.0.min(row), range.1.max(row));
            }
        }
        let range = |(low, high): (i64, i64)| {
            if low < 0 || high == i64::MAX {
                return Err(format!("jobs name row {low}"));
            }
            Ok(low as usize..high as usize + 1)
        };
        used.into_iter().map(range).collect()
    }

    /// Whether no two jobs name the same row of every axis.
    pub fn is_distinct(&self) -> bool {
        if self.count < 2 {
            return true;
        }
        let product = self.used.iter().try_fold(1u64, |product, range| product.checked_mul(range.len() as u64));
        let Some(product) = product else {
            let mut jobs: Vec<&[i64]> = (0..self.count).map(|job| self.rows(job)).collect();
            jobs.sort_unstable();
            return jobs.windows(2).all(|pair| pair[0] != pair[1]);
        };
        distinct(
            product,
            (0..self.count).map(|job| {
                let digits = self.rows(job).iter().zip(&self.used);
                digits.fold(0, |number, (&row, range)| number * range.len() as u64 + (row as u64 - range.start as u64))
            }),
        )
    }

    /// Whether all jobs with stored bytes name one of `count` sources.
    pub fn check_sources(&self, count: usize) -> Result<(), String> {
        if self.fixed == 0 {
            return Ok(());
        }
        for job in 0..self.count {
            let source = self.values[job * self.width];
            if self.stored(job) != Stored::Missing && !(0..count as i64).contains(&source) {
                return Err(format!("job {job} names source {source} of {count}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rows() {
        let table = JobTable::new(vec![0, 5, 7, 3, 1, 0, -1, -1, 2, 9, 0, -1, 7, 2, 9], 3, 2).unwrap();
        assert_eq!(table.len(), 3);
        assert_eq!(table.stored(0), Stored::At { source: 0, offset: 5, length: 7 });
        assert_eq!(table.stored(1), Stored::Missing);
        assert_eq!(table.stored(2), Stored::Impossible);
        assert_eq!(table.used_rows(), [2..4, 1..10]);
        assert!(table.check_sources(1).is_ok() && table.check_sources(0).is_err());
        assert!(JobTable::new(vec![0; 7], 3, 2).is_err() && JobTable::new(vec![-1], 0, 1).is_err());
        assert_eq!(JobTable::new(vec![], 3, 2).unwrap().used_rows(), [0..0, 0..0]);
        let mut twice = vec![0; 6];
        let same = |values: &Vec<i64>| {
            let table = JobTable::new(values.clone(), 0, 3).unwrap();
            !table.is_distinct()
        };
        assert!(same(&twice));
        twice[4] = 1;
        assert!(!same(&twice));
        assert!(!same(&vec![0, 0, 0, i64::MAX - 1, i64::MAX - 1, i64::MAX - 1]));
        assert!(same(&vec![0, 0, 0, i64::MAX - 1, i64::MAX - 1, i64::MAX - 1, 0, 0, 0]));
        assert!(!JobTable::empty_rows(2).is_distinct() && JobTable::empty_rows(1).is_distinct());
        assert_eq!(JobTable::new(vec![0; 4], 0, 2).unwrap().stored(1), Stored::Missing);
    }
}
