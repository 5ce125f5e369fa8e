//! What a call is to do: jobs, boxes, rows of axes, parts of objects; what is the same for all chunks of an array.

pub mod axis_rows;
pub mod chunk_box;
pub mod chunk_geometry;
pub mod fill_value;
pub mod job_table;
pub mod object_parts;
pub mod parts;
pub mod pipeline;
pub mod shard_table;
