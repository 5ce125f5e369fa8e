//! Threads: a pool that waits from call to call, and the threads of one call.

pub mod crew;
pub mod pool;
pub mod process_identity;
pub mod workers;
