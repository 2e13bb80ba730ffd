//! What the kernel tells anybody about the sockets of his own network namespace.

pub(super) mod diag;
mod inet_diag;
pub mod last_words;
pub mod route;
pub mod tcp_state;
pub mod unix_peers;
pub mod unix_table;
