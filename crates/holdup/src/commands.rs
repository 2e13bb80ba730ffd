//! The commands, one file each.

pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod read;
pub(crate) mod run;
