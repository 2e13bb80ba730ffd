//! Tables of what is known of the kernel: which system call does what, and which file system can block.
//!
//! In: names and numbers, as calls and mounts have them. Out: what they mean. All other crates ask here, so that a name is
//! written down once. Nothing here does I/O or reads a clock.

pub mod file_systems;
pub mod system_calls;
