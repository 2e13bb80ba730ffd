//! Lists of containers and pods: what they use, beside their limits, and in which state they are.

pub(crate) mod list;
pub(crate) mod pods;
pub(crate) mod usage;
