//! Tables of what is known of kernels, runtimes and libraries: which system call does what, which function means which wait.
//!
//! In: names, as stacks and calls have them. Out: what they mean. Attribution and rules ask here, so that a name is written
//! down once. Nothing here does I/O or reads a clock.

pub mod asyncio;
pub mod bash;
pub mod calls;
pub mod cpp;
pub mod datagrams;
pub mod embedded;
pub mod executors;
pub mod file_systems;
pub mod functions;
pub mod go;
pub mod handlers;
pub mod interpreters;
pub mod java;
pub mod javascript;
pub mod kernel_waits;
pub mod lock_names;
pub mod name_servers;
pub mod perl;
pub mod php;
pub mod pools;
pub mod postgres_locks;
pub mod postgres_titles;
pub mod programs;
pub mod python;
pub mod redis;
pub mod ruby;
pub mod rust;
pub mod signal_handlers;
pub mod sql;
pub mod sqlite;
pub mod supervisors;
pub mod system_calls;
pub mod tokio;
pub mod user_code;
