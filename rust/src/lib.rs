//! The native kernel of zardine: loops over many chunks, without the GIL, in threads of its own.
//!
//! It knows buffers, file descriptors, offsets, strides and codec parameters; nothing of JSON, keys or stores.
//! Stored bytes are never trusted: every failure is that of one job and is reported with its number.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod axis_rows;
pub mod chunk_geometry;
pub mod decode;
pub mod encode;
pub mod fill_value;
pub mod job_table;
pub mod pipeline;
pub mod points;
pub mod read_space;
pub mod runs;
pub mod scratch;
pub mod sources;
pub mod steps;
pub mod strided_memory;
pub mod swap;
pub mod transfer;
pub mod workers;

#[cfg(feature = "python")]
mod python;

/// Why one job failed.
pub type Reason = std::borrow::Cow<'static, str>;
/// What one job gives.
pub type Outcome<T = ()> = Result<T, Reason>;
/// A job's number and why it failed.
pub type Failure = (usize, String);
