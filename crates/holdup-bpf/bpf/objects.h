/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a descriptor to a numbered object, described once to user space. It is resolved when the thread leaves
 * the CPU, because descriptor numbers are reused. Everything read is the kernel's own memory; names in it are
 * the users'.
 */
#ifndef HOLDUP_OBJECTS_H
#define HOLDUP_OBJECTS_H

#include "state.h"

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define SOCKFS_MAGIC 0x534F434B
#define PIPEFS_MAGIC 0x50495045
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define PATH_DEPTH 40  /* components and mounts walked at most */

struct object_key { u64 file; u64 inode; u64 number; u64 extra; };

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct object_key);
	__type(value, u32);
} objects SEC(".maps");

/* What else identifies a socket, whose file stays while its peer changes. */
static __always_inline u64 socket_extra(struct sock *sk)
{
	u64 port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	u64 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	u64 address = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	return (state << 56) ^ (port << 32) ^ address;
}

static __always_inline void read_unix_name(struct unix_address *address, char *out, u32 *out_len)
{
	if (!address)
		return;
	int len = BPF_CORE_READ(address, len) - 2; /* without the family */
	if (len <= 0)
		return;
	u32 n = len > HOLDUP_UNIX_PATH ? HOLDUP_UNIX_PATH : len;
	u8 *name = (u8 *)address + bpf_core_field_offset(struct unix_address, name) + 2;
	if (bpf_probe_read_kernel(out, HOLDUP_UNIX_PATH, name) == 0)
		*out_len = n;
}

static __always_inline void describe_socket(struct holdup_object *o, struct sock *sk)
{
	o->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	o->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	o->kind = BPF_CORE_READ(sk, sk_type);
	o->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (o->family == AF_INET) {
		u32 local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr), peer = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		__builtin_memcpy(o->local, &local, 4);
		__builtin_memcpy(o->peer, &peer, 4);
	} else if (o->family == AF_INET6) {
		BPF_CORE_READ_INTO(&o->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&o->peer, sk, __sk_common.skc_v6_daddr);
	}
	if (o->family == AF_INET || o->family == AF_INET6) {
		o->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
		o->peer_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	}
	if (o->family == AF_UNIX) {
		struct unix_sock *u = (void *)sk;
		struct sock *peer = BPF_CORE_READ(u, peer);
		read_unix_name(BPF_CORE_READ(u, addr), o->local_unix, &o->local_unix_len);
		if (peer) {
			o->peer_inode = BPF_CORE_READ(peer, sk_socket, file, f_inode, i_ino);
			read_unix_name(BPF_CORE_READ((struct unix_sock *)peer, addr), o->peer_unix, &o->peer_unix_len);
		}
		struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);
		if (pid)
			o->peer_pid = BPF_CORE_READ(pid, numbers[0].nr);
	}
}

/* Where the walk from a name to the root stands. */
struct path_walk { struct dentry *dentry, *root; struct mount *mount; };

/* One name, or one mount; false: no further. */
static __always_inline bool describe_name(struct holdup_object *o, struct path_walk *at)
{
	struct dentry *dentry = at->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	/* Kept in the record, not in a variable: what comes from memory has no range for the verifier to
	 * follow through every combination of steps. */
	u32 len = o->names_len;

	if (dentry == at->root) {
		struct mount *mount = at->mount, *up = BPF_CORE_READ(mount, mnt_parent);
		if (up == mount) {
			o->names_truncated = 0;
			return false;
		}
		at->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		at->root = BPF_CORE_READ(up, mnt.mnt_root);
		at->mount = up;
		return true;
	}
	if (len >= HOLDUP_NAMES)
		return false;
	if (parent == dentry && len) {
		/* The top of a file system: reached without its mount, or it is mounted nowhere (an anonymous
		 * inode, a lazy umount). */
		o->names_truncated = 0;
		return false;
	}
	long n = bpf_probe_read_kernel_str(o->names + (len & (HOLDUP_NAMES - 1)), HOLDUP_NAME_MAX, BPF_CORE_READ(dentry, d_name.name));
	if (n <= 0)
		return false;
	o->names_len = len + n;
	at->dentry = parent;
	return true;
}

/* Names from the leaf to the root of the mount namespace, crossing mounts on the way; without a mount (`mount`
 * and `root` null) to the root of the file system. */
static __always_inline void describe_path(struct holdup_object *o, struct dentry *dentry, struct dentry *root, struct mount *mount)
{
	struct path_walk at = { .dentry = dentry, .root = root, .mount = mount };

	o->names_truncated = 1;
	o->names_len = 0;
	REPEAT(PATH_DEPTH, describe_name(o, &at));
}

/* Global functions: verified once by themselves, not again at each call. Kernel pointers come as numbers and
 * are only ever read through probes. */
__noinline u32 new_object(u64 file_address, u64 inode_address, u64 sk_address)
{
	struct file *file = (void *)file_address;
	struct inode *inode = (void *)inode_address;
	struct sock *sk = (void *)sk_address;
	struct holdup_object *o;
	u32 id = next_number();

	o = id ? bpf_ringbuf_reserve(&records, sizeof(*o), 0) : 0;
	if (!o) {
		count_loss(HOLDUP_LOST_OBJECTS);
		return 0;
	}
	__builtin_memset(o, 0, sizeof(*o) - sizeof(o->names));
	o->head.type = HOLDUP_OBJECT;
	o->id = id;
	o->inode = BPF_CORE_READ(inode, i_ino);
	o->mode = BPF_CORE_READ(inode, i_mode);
	o->rdev = BPF_CORE_READ(inode, i_rdev);
	o->device = BPF_CORE_READ(inode, i_sb, s_dev);
	o->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	bpf_probe_read_kernel_str(o->file_system, sizeof(o->file_system), BPF_CORE_READ(inode, i_sb, s_type, name));
	if (sk) {
		describe_socket(o, sk);
	} else if (o->magic == PIPEFS_MAGIC) {
	} else {
		struct vfsmount *mnt = 0;
		struct dentry *dentry = 0, *root = 0;
		if (file) {
			mnt = BPF_CORE_READ(file, f_path.mnt);
			dentry = BPF_CORE_READ(file, f_path.dentry);
			root = BPF_CORE_READ(mnt, mnt_root);
		} else {
			/* Only the inode is known, as of a page that is being read: any of its names will do. */
			struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
			if (alias)
				dentry = (void *)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
			o->names_in_file_system = 1;
		}
		if (dentry)
			describe_path(o, dentry, root, (void *)mnt - bpf_core_field_offset(struct mount, mnt));
	}
	bpf_ringbuf_submit(o, BPF_RB_NO_WAKEUP);
	return id;
}

/* The number of the object behind a file; 0 when there is none. */
__noinline u32 object_of_file(u64 file_address)
{
	struct file *file = (void *)file_address;
	struct object_key key = {};
	struct inode *inode;
	struct sock *sk = 0;
	u32 *known, id;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode)
		return 0;
	key.file = file_address;
	key.inode = (u64)inode;
	key.number = BPF_CORE_READ(inode, i_ino);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK && BPF_CORE_READ(inode, i_sb, s_magic) == SOCKFS_MAGIC) {
		struct socket *socket = BPF_CORE_READ(file, private_data);
		sk = BPF_CORE_READ(socket, sk);
		if (sk)
			key.extra = socket_extra(sk);
	}
	known = bpf_map_lookup_elem(&objects, &key);
	if (known)
		return *known;
	id = new_object(file_address, key.inode, (u64)sk);
	if (id)
		bpf_map_update_elem(&objects, &key, &id, BPF_ANY);
	return id;
}

/* The number of the object that an inode is, when no file of it is at hand. */
__noinline u32 object_of_inode(u64 inode_address)
{
	struct inode *inode = (void *)inode_address;
	struct object_key key = {};
	u32 *known, id;

	if (!inode)
		return 0;
	key.inode = inode_address;
	key.number = BPF_CORE_READ(inode, i_ino);
	key.extra = BPF_CORE_READ(inode, i_sb, s_dev);
	known = bpf_map_lookup_elem(&objects, &key);
	if (known)
		return *known;
	id = new_object(0, inode_address, 0);
	if (id)
		bpf_map_update_elem(&objects, &key, &id, BPF_ANY);
	return id;
}

/* The file behind a descriptor; 0: none. Global as well: what it returns has one way on, and not one for each way through it. */
__noinline u64 file_behind(u64 files_address, u64 fd)
{
	struct files_struct *files = (void *)files_address;
	struct fdtable *table = BPF_CORE_READ(files, fdt);
	struct file **slots, *file = 0;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	slots = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), slots + fd))
		return 0;
	return (u64)file;
}

static __always_inline struct file *file_of(struct task_struct *task, u64 fd)
{
	return (struct file *)file_behind((u64)BPF_CORE_READ(task, files), fd);
}

/* The object behind a descriptor of the task that runs here; at a switch that is the one that leaves. */
__noinline u32 object_of_current_fd(u32 fd)
{
	return object_of_file((u64)file_of((struct task_struct *)bpf_get_current_task(), fd));
}

#endif
