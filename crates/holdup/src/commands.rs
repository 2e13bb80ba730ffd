//! The commands, one file each.

pub(crate) mod attach;
pub(crate) mod boot;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod generate;
pub(crate) mod host;
pub(crate) mod mcp;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod show;
pub(crate) mod r#try;
