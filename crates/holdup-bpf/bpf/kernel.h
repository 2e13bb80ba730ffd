/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel structures that the programs read, cut down to the fields they use. Offsets are relocated at
 * load time against the running kernel's BTF, so neither a full vmlinux.h nor one build a kernel is needed.
 * A field that is named differently in some kernels has a second flavour of its struct, ending in ___something.
 */
#ifndef HOLDUP_KERNEL_H
#define HOLDUP_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __s16 s16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* Map types and flags, as in the kernel's uapi. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1 };
enum { MSG_PEEK = 2 };

/* A whole struct, if an empty one: a forward declaration would not match the kernel function that takes it. */
struct bpf_map { int id; };

#if defined(__TARGET_ARCH_x86)
#include "arch/x86_64_types.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch/aarch64_types.h"
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head { struct list_head *next; };
struct hlist_node { struct hlist_node *next; };
struct hlist_head { struct hlist_node *first; };
struct qstr { const unsigned char *name; };
struct ns_common { unsigned int inum; };
struct pid_namespace { struct ns_common ns; };
struct upid { int nr; struct pid_namespace *ns; };
struct pid { unsigned int level; struct upid numbers[1]; };

struct file_system_type { const char *name; };
struct super_block { unsigned int s_dev; unsigned long s_magic; struct file_system_type *s_type; };
struct dentry { struct dentry *d_parent; struct qstr d_name; union { struct hlist_node d_alias; } d_u; };
struct vfsmount { struct dentry *mnt_root; };
struct mount { struct mount *mnt_parent; struct dentry *mnt_mountpoint; struct vfsmount mnt; };
struct path { struct vfsmount *mnt; struct dentry *dentry; };

struct file_lock_context { struct list_head flc_flock; struct list_head flc_posix; };
struct file;
struct file_lock_core { struct list_head flc_list; void *flc_owner; int flc_pid; struct file *flc_file; };
struct file_lock___before_core {
	struct list_head fl_list; void *fl_owner; unsigned int fl_pid; struct file *fl_file;
};

typedef struct { long counter; } atomic_long_t;
struct mutex { atomic_long_t owner; };
struct rw_semaphore { atomic_long_t owner; };
struct rt_mutex_base { void *owner; };
struct rt_mutex___before_base { void *owner; };
struct rt_mutex_waiter { void *lock; };

struct inode;
struct address_space { struct inode *host; };
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	unsigned int i_rdev;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
	struct file_lock_context *i_flctx;
	struct rw_semaphore i_rwsem;
	struct address_space i_data;
};
struct folio { struct address_space *mapping; };
struct page { struct address_space *mapping; }; /* what a folio was before there were any */
struct file { struct path f_path; struct inode *f_inode; void *private_data; };
struct fdtable { unsigned int max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };

struct in6_addr { u8 bytes[16]; };
struct sock_common {
	u32 skc_daddr; u32 skc_rcv_saddr; u16 skc_dport; u16 skc_num;
	u16 skc_family; volatile u8 skc_state;
	struct in6_addr skc_v6_daddr; struct in6_addr skc_v6_rcv_saddr;
};
struct socket;
struct net_device { char name[16]; };
struct dst_entry { struct net_device *dev; };
struct sk_buff;
struct sk_buff_head { struct sk_buff *prev; };
struct sock { struct sock_common __sk_common; struct sk_buff_head sk_receive_queue; struct socket *sk_socket; struct pid *sk_peer_pid;
	u16 sk_type; u16 sk_protocol; u8 sk_shutdown; int sk_err; u32 sk_pacing_status; unsigned long sk_tsq_flags; struct dst_entry *sk_dst_cache; };
struct inet_connection_sock { u8 icsk_retransmits; u8 icsk_probes_out; struct { u32 lrcvtime; } icsk_ack; };
struct inet_sock { __be16 inet_sport; };
struct tcp_sock { u32 write_seq, snd_nxt, snd_una, snd_wnd, mss_cache, total_retrans, srtt_us; u8 nonagle : 4;
	u32 data_segs_in, data_segs_out, lsndtime, rcv_nxt, copied_seq;
	u32 chrono_start, chrono_stat[3]; u8 chrono_type : 2; };
struct sk_buff {
	struct sock *sk; unsigned int len, data_len; u16 protocol, transport_header, network_header;
	unsigned char *head, *data;
};
struct socket { struct file *file; struct sock *sk; };
struct sockaddr_un { u16 sun_family; char sun_path[108]; };
struct unix_address { int len; struct sockaddr_un name[1]; };
struct unix_sock { struct sock sk; struct unix_address *addr; struct sock *peer; };

struct rb_node { struct rb_node *rb_right; struct rb_node *rb_left; };
struct rb_root { struct rb_node *rb_node; };
struct rb_root_cached { struct rb_root rb_root; };
struct epoll_event { u32 events; };
struct epoll_filefd { struct file *file; int fd; } __attribute__((packed));
struct epitem { struct rb_node rbn; struct list_head rdllink; struct epoll_filefd ffd; struct epoll_event event; };
struct eventpoll { struct list_head rdllist; struct epitem *ovflist; struct rb_root_cached rbr; };

/* Before throttling was by task: how many groups above, itself included, are throttled. */
struct rq { u64 clock, clock_task; };
struct cfs_rq { int throttle_count; u64 throttled_clock_self_time; struct rq *rq; };
struct sched_entity { u64 exec_start, sum_exec_runtime; struct cfs_rq *cfs_rq; };
struct cpumask { unsigned long bits[1]; };
struct sched_info { unsigned long long run_delay, last_arrival, last_queued; };
struct task_struct;
struct mm_struct { struct rw_semaphore mmap_lock; struct task_struct *owner; };

struct io_uring_task { struct file *registered_rings[16]; };
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	int tgid;
	int exit_code;
	char comm[16];
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_struct *group_leader;
	struct task_struct *parent;
	struct task_struct *real_parent;
	int on_cpu;
	int exit_state;
	struct pid *thread_pid;
	struct rt_mutex_waiter *pi_blocked_on;
	void *worker_private;
	struct io_uring_task *io_uring;
	struct files_struct *files;
	struct mm_struct *mm;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned in_iowait : 1;
	void *stack;
	bool throttled;
	int prio;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
};
struct io_wq_work;
struct io_worker { struct io_wq_work *cur_work; };
struct io_wq_work { unsigned int flags; };
struct io_kiocb { struct file *file; u8 opcode; struct io_wq_work work; };
struct io_hash_bucket { struct hlist_head list; };
struct io_hash_table { struct io_hash_bucket *hbs; unsigned int hash_bits; };
struct io_ring_ctx {
	unsigned int flags;
	unsigned int cached_sq_head;
	unsigned int cached_cq_tail;
	struct io_hash_table cancel_table;
	struct io_hash_table cancel_table_locked;
};
struct task_struct___state { long state; };
struct task_struct___state_renamed { unsigned int __state; };
struct task_struct___storage { void *bpf_storage; };
/* Helpers that not every kernel has; looked for in its type information, never called by these numbers. */
enum bpf_func_id { BPF_FUNC_get_current_task_btf = 158, BPF_FUNC_task_pt_regs = 175 };
struct irqaction { const char *name; };
struct linux_binprm { const char *filename; };
struct seq_file;
struct bpf_iter_meta { struct seq_file *seq; };
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; };
struct bpf_iter__bpf_map_elem { struct bpf_iter_meta *meta; struct bpf_map *map; void *key; void *value; };
struct bpf_iter__task_file { struct bpf_iter_meta *meta; struct task_struct *task; u32 fd; struct file *file; };

#pragma clang attribute pop

struct bpf_perf_event_data { struct sample_regs regs; };

/* Special type of map values: its name is what the kernel recognises. */
struct bpf_task_work { __u64 __opaque; } __attribute__((aligned(8)));

#endif
