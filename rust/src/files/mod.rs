//! Files: opened, read, locked, made, replaced and flushed, in directories that the caller has open.

pub mod file_flush;
pub mod held_locks;
pub mod known_file;
pub mod many_files;
pub mod new_file;
pub mod new_files;
pub mod own_files;
pub mod path_form;
pub mod readable;
pub mod stored_files;
pub mod stored_shards;
