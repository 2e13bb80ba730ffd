//! What SQL Server says of statements and of sessions.

mod chains;
pub(crate) mod sessions;
pub(crate) mod statistics;
