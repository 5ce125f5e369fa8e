//! The stable ascending order of small numbers, by counting.

use std::sync::atomic::AtomicI64;

use crate::memory::shared_integers::read;

/// Write to `order`, eight bytes for each of `numbers`, where the lowest of them are, then the next, and so on; those
/// that are equal as they come. False where a number is not from 0 to below `count`.
pub fn stable_order(numbers: &[AtomicI64], count: usize, order: &mut [[u8; 8]]) -> bool {
    let mut places = vec![0usize; count];
    for number in numbers {
        match usize::try_from(read(number)).ok().and_then(|number| places.get_mut(number)) {
            Some(place) => *place += 1,
            None => return false,
        }
    }
    let mut before = 0;
    for place in &mut places {
        before += std::mem::replace(place, before);
    }
    for (at, number) in numbers.iter().enumerate() {
        let place = usize::try_from(read(number)).ok().and_then(|number| places.get_mut(number));
        let Some(place) = place else { return false }; // it was changed meanwhile
        let Some(target) = order.get_mut(*place) else { return false };
        *target = (at as i64).to_ne_bytes();
        *place += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(numbers: &[i64], count: usize) -> Option<Vec<i64>> {
        let numbers: Vec<AtomicI64> = numbers.iter().map(|&number| AtomicI64::new(number)).collect();
        let mut found = vec![[7; 8]; numbers.len()];
        stable_order(&numbers, count, &mut found).then(|| found.into_iter().map(i64::from_ne_bytes).collect())
    }

    #[test]
    fn equal_numbers_stay_in_order() {
        assert_eq!(order(&[], 0), Some(vec![]));
        assert_eq!(order(&[2, 0, 2, 1, 0], 3), Some(vec![1, 4, 3, 0, 2]));
        assert_eq!(order(&[2, 0], 2), None);
        assert_eq!(order(&[0, -1], 2), None);
        assert_eq!(order(&[0], 0), None);
    }
}
