//! Facts from `/proc`, `/sys`, `/etc`, `/dev` and `/var`: one file per kernel file or area, root injectable.
//!
//! In: a [`Root`] (the running system, or a tree that a test has laid out). Out: the structs of
//! `holdup_evidence::facts`, and [`capability::Machine`] for `holdup doctor`. Readers never fail whole: what
//! is absent becomes `None`, what could not be understood becomes a [`Problem`] with file and line, and the
//! rest is returned.
//!
//! Nothing here may block, because holdup runs beside the program it observes: `cmdline` and `environ` of other
//! processes are never read, and no path that a program or a mount table names is ever opened or stat'ed. What can block
//! after all says so ([`maps`], [`tasks::call`], [`memory::read`]) and is for a child process that can be abandoned: [`blocking`] has the table
//! of what can block.
//!
//! The `procfs` crate isn't used: most of its readers start from a fixed `/proc` and give up on a whole file
//! when one line is new to them, and what is needed here is a few lines each.

pub mod block;
pub mod blocking;
pub mod capability;
pub mod cgroup;
pub mod cgroup_limits;
mod cgroup_users;
pub mod clocks;
pub mod conversations;
pub mod cpu_times;
pub mod cpuinfo;
pub mod deleted;
pub mod descriptor_limits;
pub mod descriptors;
pub mod device_queues;
pub mod event_loops;
pub mod facts;
pub mod file_locks;
pub mod filters;
pub mod frozen;
pub mod host_counters;
pub mod interrupts;
pub mod kernel_log;
pub mod led_back;
pub mod links;
pub mod listen_queues;
pub mod listeners;
pub mod lock_files;
pub mod lock_table;
pub mod maps;
pub mod memory;
pub mod message_queues;
pub mod mountinfo;
pub mod names;
pub mod namespaces;
pub mod of_process;
mod page;
pub mod pressure;
pub mod python_packages;
pub mod random;
pub mod randomness;
pub mod resolver;
pub mod room;
pub mod root;
pub mod sampling;
pub mod schedulers;
pub mod semaphores;
pub mod sockets;
pub mod status;
pub mod swap_areas;
pub mod swaps;
pub mod sysctl;
pub mod task_limits;
pub mod task_list;
pub mod tasks;
pub mod titles;
pub mod transfers;

pub use root::{Problem, Root};
