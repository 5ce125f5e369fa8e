//! Whether numbers are all different, told at little cost: they mostly lie close together, or ascend.

/// Whether no two of `values` are equal, all of which are less than `limit`.
pub fn distinct(limit: u64, values: impl ExactSizeIterator<Item = u64> + Clone) -> bool {
    if limit <= 64 * values.len() as u64 {
        let mut seen = vec![0u64; limit.div_ceil(64) as usize];
        return { values }.all(|value| {
            let (word, bit) = (&mut seen[(value / 64) as usize], 1 << (value % 64));
            let new = *word & bit == 0;
            *word |= bit;
            new
        });
    }
    if values.clone().is_sorted_by(|before, after| before < after) {
        return true;
    }
    let mut sorted: Vec<u64> = values.collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn finds_what_is_twice() {
        for values in
            [&[][..], &[7], &[1, 2, 9], &[3, 1, 2], &[u64::MAX - 1, 0, 5], &[64, 0, 63, 127], &[0, 1, 1 << 40]]
        {
            for limit in [values.iter().max().map_or(0, |most| most + 1), u64::MAX] {
                assert!(distinct(limit, values.iter().copied()), "{values:?}");
                for &twice in values {
                    let more: Vec<u64> = values.iter().copied().chain([twice]).collect();
                    assert!(!distinct(limit, more.iter().copied()), "{more:?}");
                    assert!(!distinct(limit, more.iter().rev().copied()), "{more:?}");
                }
            }
        }
    }
}
