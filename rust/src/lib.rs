//! The native kernel of zardine: loops over many chunks, without the GIL, in threads of its own.
//!
//! It knows buffers, file descriptors, offsets, strides and codec parameters, and makes, reads and removes files in
//! directories that it is handed open, under names that it is told; nothing of JSON, keys or stores.
//! Stored bytes are never trusted: every failure is that of one job and is reported with its number.
//!
//! No safe function can be called so that memory is corrupted or bytes are seen that nobody wrote. Raw pointers are
//! private to `strided_memory`, `scratch` and the contexts of C libraries; who makes a value of these promises what it
//! relies on, or it is checked; whatever is checked once is copied, or kept from changing, before it is relied on.

#![deny(unsafe_op_in_unsafe_fn)]
#![deny(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

pub mod agreed_change;
pub mod axis_rows;
pub mod byte_strings;
pub mod cell_changes;
pub mod cell_files;
pub mod cell_numbers;
pub mod cell_texts;
pub mod chunk_box;
pub mod chunk_geometry;
pub mod counting;
pub mod crew;
pub mod decode;
pub mod directory_writer;
pub mod distinct;
pub mod element_files;
pub mod element_parts;
pub mod elements;
pub mod encode;
pub mod extended_shards;
pub mod extents;
pub mod file_flush;
pub mod fill_value;
pub mod fragment_ranges;
pub mod growing_cells;
pub mod held_locks;
pub mod job_table;
pub mod known_file;
pub mod line_parts;
pub mod link_placement;
pub mod manifests;
pub mod many_files;
pub mod merged_shard;
pub mod new_file;
pub mod new_files;
pub mod object_parts;
pub mod own_files;
pub mod parts;
pub mod path_form;
pub mod pipeline;
pub mod points;
pub mod pool;
pub mod process_identity;
pub mod read_space;
pub mod readable;
pub mod reason;
pub mod rows;
pub mod runs;
pub mod scratch;
pub mod shard_table;
pub mod shared_integers;
pub mod sources;
pub mod span;
pub mod steps;
pub mod stored_files;
pub mod stored_shards;
pub mod strided_memory;
pub mod swap;
pub mod taken_rows;
pub mod transfer;
pub mod workers;

#[cfg(feature = "python")]
mod python;

pub use reason::Reason;

/// What one job gives.
pub type Outcome<T = ()> = Result<T, Reason>;
/// A job's number and why it failed.
pub type Failure = (usize, Reason);
