//! Arrays whose chunks hold one byte string each (cells), and the tables and links that Zarr Vectors keeps in them.

pub mod cell_files;
pub mod cell_numbers;
pub mod cell_texts;
pub mod counting;
pub mod element_files;
pub mod element_parts;
pub mod elements;
pub mod extended_shards;
pub mod extents;
pub mod fragment_ranges;
pub mod line_parts;
pub mod link_placement;
pub mod manifests;
pub mod rows;
pub mod taken_rows;
