//! Where someone else decides: FUSE daemons, file servers, permission daemons, and the random generator.

use super::{
    Line,
    Meaning::Is,
    Rank::{Generic, Object, Remote, RemoteFamily},
};
use holdup_evidence::Cause::{
    DeviceWait, FsFuse, FsNetwork, IpcQueue, KernelWork, RandomDevice, RandomUnseeded, SecurityDecision,
};

pub(super) const TABLE: &[Line] = &[
    // FUSE. The daemon's own reads of /dev/fuse are not waits for a daemon.
    ("__fuse_request_send", Is(Remote, FsFuse)),
    ("__fuse_simple_request", Is(Remote, FsFuse)),
    ("fuse_request_send", Is(Remote, FsFuse)),
    ("fuse_simple_request", Is(Remote, FsFuse)),
    ("request_wait_answer", Is(Remote, FsFuse)),
    ("fuse_*", Is(RemoteFamily, FsFuse)),
    ("fuse_dev_*", Is(Object, DeviceWait)),
    ("virtio_fs_*", Is(RemoteFamily, FsFuse)),
    // NFS and its remote procedure calls.
    ("rpc_wait_bit_killable", Is(Remote, FsNetwork)),
    ("__rpc_execute", Is(Remote, FsNetwork)),
    ("__rpc_wait_for_completion_task", Is(Remote, FsNetwork)),
    ("rpc_*", Is(RemoteFamily, FsNetwork)),
    ("nfs_*", Is(RemoteFamily, FsNetwork)),
    ("nfs3_*", Is(RemoteFamily, FsNetwork)),
    ("nfs4_*", Is(RemoteFamily, FsNetwork)),
    ("nfs_wait_bit_killable", Is(Remote, FsNetwork)),
    ("_nfs4_*", Is(RemoteFamily, FsNetwork)),
    ("nlmclnt_*", Is(Remote, FsNetwork)),
    // SMB.
    ("cifs_*", Is(RemoteFamily, FsNetwork)),
    ("compound_send_recv", Is(Remote, FsNetwork)),
    ("smb2_*", Is(RemoteFamily, FsNetwork)),
    ("SMB2_*", Is(RemoteFamily, FsNetwork)),
    ("wait_for_response", Is(Remote, FsNetwork)),
    // 9p, Ceph, AFS, their shared library, Lustre, cluster locks.
    ("p9_*", Is(Remote, FsNetwork)),
    ("v9fs_*", Is(RemoteFamily, FsNetwork)),
    ("ceph_*", Is(RemoteFamily, FsNetwork)),
    ("afs_*", Is(RemoteFamily, FsNetwork)),
    ("netfs_*", Is(RemoteFamily, FsNetwork)),
    ("ptlrpc_*", Is(Remote, FsNetwork)),
    ("dlm_*", Is(RemoteFamily, FsNetwork)),
    // A mount on demand: the daemon may do anything, so it is the kernel's work to us.
    ("autofs_wait", Is(Generic, KernelWork)),
    // Permissions.
    ("__seccomp_filter", Is(Remote, SecurityDecision)),
    ("seccomp_do_user_notification", Is(Remote, SecurityDecision)),
    ("audit_log_start", Is(Remote, SecurityDecision)),
    ("fanotify_get_response", Is(Remote, SecurityDecision)),
    ("fanotify_handle_event", Is(Remote, SecurityDecision)),
    ("fanotify_read", Is(Object, IpcQueue)),
    ("call_sbin_request_key", Is(Remote, SecurityDecision)),
    ("request_key_and_link", Is(Remote, SecurityDecision)),
    ("wait_for_key_construction", Is(Remote, SecurityDecision)),
    // Randomness.
    ("try_to_generate_entropy", Is(Remote, RandomUnseeded)),
    ("wait_for_random_bytes", Is(Remote, RandomUnseeded)),
    ("_random_read", Is(Object, RandomDevice)),
    ("random_read", Is(Object, RandomDevice)),
    ("random_read_wait", Is(Object, RandomDevice)),
    ("rng_dev_read", Is(Object, RandomDevice)),
];
