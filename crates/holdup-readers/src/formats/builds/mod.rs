//! How long builds and what sets machines up took, by their parts: loaders and plugins of webpack, nodes of Broccoli, modules of Maven, resources
//! of Terraform, tasks of Ansible, sections of jobs, regions of git.

pub(crate) mod ansible;
pub(crate) mod broccoli;
pub(crate) mod ci_jobs;
pub(crate) mod reactor;
pub(crate) mod terraform;
pub(crate) mod trace2;
pub(crate) mod webpack;
