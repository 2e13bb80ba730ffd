//! Sampling from `/proc`: what threads wait for, told without tracing and without privileges.
//!
//! In: a process that was started, and the time. Out: the events that tracing would give, as far as looking now and then can give
//! them. CPU time, queueing and the number of blockings are the kernel's own counts; what a thread waited in is what it was seen
//! in (`account`). What may block is read beside the loop, by a reader that may be left behind (`aside`).

pub mod account;
mod adopting;
mod answers;
mod arch;
mod arguments;
pub mod aside;
mod awaited_ends;
pub mod clocks;
pub mod described;
mod examined;
mod following;
mod instead;
mod interrupted;
pub mod look;
mod measured;
pub mod on_cpu;
mod other_ends;
mod probe;
mod processes;
mod rate;
mod requests;
mod running;
mod sampler;
mod since;
pub mod site;
pub mod sockets;
mod spent;
pub mod task;
mod telling;
#[cfg(test)]
mod tests;
mod unmet;
mod waiters;
mod waiting;
mod woken;

pub use rate::Rate;
pub use running::NotWatched;
pub use sampler::{MOST_THREADS, Sampler, Shortfall, Stacks};
pub(crate) use task::file_in;
