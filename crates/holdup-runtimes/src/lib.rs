//! Language runtimes, read from a process's memory.
//!
//! Beside them the locks of database servers ([`databases`]), read in the same way.
//!
//! One folder per runtime: how it is recognised, its versions, its structures, its frames, its tests. In: memory behind
//! [`memory::Source`], and addresses of exported symbols. Out: frames. Nothing here does I/O, so a made-up image of memory
//! tests all of it.
//!
//! Memory is hostile: each walk has a limit, each text has a length, and memory that changed during the read gives an
//! error.

mod arch;
pub mod bash;
#[cfg(test)]
mod damage;
pub mod databases;
pub mod go;
pub mod interpreted;
pub mod memory;
pub mod node;
pub mod perl;
pub mod php;
mod pthread;
pub mod python;
pub mod ruby;
pub mod tokio;
mod version;
