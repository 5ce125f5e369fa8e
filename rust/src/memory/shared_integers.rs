//! Integers that belong to the caller and are not copied. Others may change them at any time, so each is read once,
//! and what was read is checked before it is relied on.

use std::sync::atomic::{AtomicI64, Ordering};

pub type SharedIntegers<'a> = &'a [AtomicI64];

/// What an integer is now.
#[inline(always)]
pub fn read(integer: &AtomicI64) -> i64 {
    integer.load(Ordering::Relaxed)
}

/// Integers for tests.
#[cfg(test)]
pub fn integers<const N: usize>(values: [i64; N]) -> [AtomicI64; N] {
    values.map(AtomicI64::new)
}
