//! What SQL Server says of statements and of sessions.

mod chains;
pub(crate) mod processes;
pub(crate) mod sessions;
pub(crate) mod statistics;
