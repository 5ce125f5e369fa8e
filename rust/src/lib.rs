//! The native kernel of zardine: loops over many chunks, without the GIL, in threads of its own.
//!
//! It knows buffers, file descriptors, offsets, strides and codec parameters, and makes, reads and removes files in
//! directories that it is handed open, under names that it is told; nothing of JSON, keys or stores.
//! Stored bytes are never trusted: every failure is that of one job and is reported with its number.
//!
//! No safe function can be called so that memory is corrupted or bytes are seen that nobody wrote. Raw pointers are
//! private to the modules of `memory` and the contexts of C libraries; who makes a value of these promises what it
//! relies on, or it is checked; whatever is checked once is copied, or kept from changing, before it is relied on.

#![deny(unsafe_op_in_unsafe_fn)]
#![deny(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

pub mod cells;
pub mod decode;
pub mod encode;
pub mod files;
pub mod memory;
pub mod plan;
pub mod reason;
pub mod steps;
pub mod threads;

#[cfg(feature = "python")]
mod python;

pub use reason::Reason;

/// What one job gives.
pub type Outcome<T = ()> = Result<T, Reason>;
/// A job's number and why it failed.
pub type Failure = (usize, Reason);
