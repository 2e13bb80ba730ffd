//! CMD as a child process: where and as whom it runs, and the signals on their way to it.
//!
//! In: a command, a user, and for an experiment a room and a filter on system calls. Out: a child that is ready to exec CMD
//! ([`subject`]), and the signals that are for holdup or for CMD ([`signals`]). CMD gets what holdup was started with
//! ([`inherited`]).

pub mod filter;
pub mod inherited;
pub mod mounts;
mod overlay;
pub mod room;
pub mod signals;
pub mod subject;
