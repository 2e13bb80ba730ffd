//! Counters of NFS: of the client's mounts, and of requests on clients and servers.

pub(crate) mod mountstats;
pub(crate) mod nfsstat;
