//! Reading: from stored bytes to elements.

pub mod boxes;
pub mod points;
pub mod read_space;
pub mod sources;
