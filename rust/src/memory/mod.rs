//! Memory: that of other owners, seen safely; memory that is reused; loops over runs of bytes.

pub mod byte_strings;
pub mod distinct;
pub mod runs;
pub mod scratch;
pub mod shared_integers;
pub mod span;
pub mod strided_memory;
pub mod swap;
pub mod transfer;
