//! An experiment: CMD as it is and CMD with a wait taken away, in turn, each in a room of its own.
//!
//! In: what the command line says. Out: what was measured, for the sums in `holdup_comparison::experiment`. Before anything runs
//! [`checks`] decides whether it can be done, and says what CMD will reach all the same.

pub(crate) mod arms;
pub(crate) mod checks;
pub(crate) mod complaint;
pub(crate) mod directory;
mod resolve;
pub(crate) mod table;
pub(crate) mod without;

#[cfg(test)]
mod tests;
