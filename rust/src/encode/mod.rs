//! Writing: from elements to encoded chunks and shards.

pub mod boxes;
pub mod merged_shard;
