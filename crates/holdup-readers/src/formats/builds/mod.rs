//! How long builds took, by their parts: loaders and plugins of webpack, nodes of Broccoli, modules of Maven.

pub(crate) mod broccoli;
pub(crate) mod reactor;
pub(crate) mod webpack;
