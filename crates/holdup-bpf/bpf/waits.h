/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread waits for, read as it leaves the CPU, and who ends it, read at the waking. */
#ifndef HOLDUP_WAITS_H
#define HOLDUP_WAITS_H

#include "memory.h"
#include "locks.h"
#include "network.h"
#include "epoll.h"
#include "peers.h"
#include "uring.h"

#define __NR_sendfile 40
#define __NR_splice 275
#define __NR_copy_file_range 326
#define __NR_execve 59
#define __NR_fcntl 72
#define __NR_flock 73
#define __NR_futex 202
#define __NR_execveat 322
#define __NR_sync 162
#define __NR_io_submit 209
#define F_SETLKW 7
#define F_OFD_SETLKW 38
#define FUTEX_CMD_MASK 127
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define LOCKS_WALKED 8
#define TASK_TRACED 8
#define IOCB_DESCRIPTOR 20 /* where in a request of Linux's AIO (struct iocb, an ABI) its descriptor stands */
#define SUBMITTED 8 /* requests of one call that are looked at */

/* Per CPU: the socket that became ready last, until a waking uses it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} ready_socket SEC(".maps");

/* The object behind the file that the thread is about to wait on. */
static __always_inline u32 object_of_wait(struct thread *t, struct file *file)
{
	struct inode *inode = VIA(file, struct file, f_inode);
	u64 number;

	if (!inode)
		return 0;
	number = VIA(inode, struct inode, i_ino);
	if (t->last_object && t->last_file == (u64)file && t->last_inode == (u64)inode && t->last_number == number)
		return t->last_object;
	t->last_object = 0;
	/* Written and read again it is a number: the verifier lets a function of its own have no pointer. */
	t->last_file = (u64)file;
	u32 id = object_of_file(*(volatile u64 *)&t->last_file);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK) {
		u64 tcp = tcp_behind(*(volatile u64 *)&t->last_file);
		if (tcp)
			t->tcp = tcp;
	} else {
		t->last_inode = (u64)inode;
		t->last_number = number;
		t->last_object = id;
	}
	return id;
}

/* As file_of, of the task that leaves: its structures are followed directly, without a helper a step. And not as the task's own pointers:
 * of each of those that it meets the verifier searches all types of the kernel for a promise about it, a fifth of the CPU time that a start took. */
static __always_inline struct file *file_of_leaving(struct task_struct *task, u32 fd)
{
	struct files_struct *files = VIA(task, struct task_struct, files);
	struct fdtable *table;
	struct file **slots;

	if (!files)
		return 0;
	table = VIA(files, struct files_struct, fdt);
	if (!table || fd >= VIA(table, struct fdtable, max_fds))
		return 0;
	/* A pointer alone has no type of its own; a list's head is one. */
	slots = VIA(table, struct fdtable, fd);
	return (struct file *)VIA(slots + fd, struct hlist_head, first);
}

struct lock_walk { struct list_head *head, *at; struct file *file; void *own; bool posix; };

/* One lock of the list; false: no further. */
static __always_inline bool look_at_lock(struct thread *t, struct lock_walk *walk)
{
	struct list_head *at = walk->at;
	struct file *locked;
	void *owner;
	int pid;

	if (!at || at == walk->head)
		return false;
	if (bpf_core_type_exists(struct file_lock_core)) {
		struct file_lock_core *lock = (void *)at - bpf_core_field_offset(struct file_lock_core, flc_list);
		locked = BPF_CORE_READ(lock, flc_file);
		owner = BPF_CORE_READ(lock, flc_owner);
		pid = BPF_CORE_READ(lock, flc_pid);
	} else {
		struct file_lock___before_core *lock = (void *)at - bpf_core_field_offset(struct file_lock___before_core, fl_list);
		locked = BPF_CORE_READ(lock, fl_file);
		owner = BPF_CORE_READ(lock, fl_owner);
		pid = BPF_CORE_READ(lock, fl_pid);
	}
	if (walk->posix ? owner != walk->own : locked != walk->file) {
		t->holder_kind = HOLDUP_HOLDER_FILE_LOCK;
		t->holder[0] = pid > 0 ? pid : 0;
		return false;
	}
	walk->at = BPF_CORE_READ(at, next);
	return true;
}

/* The process that holds a lock on the file, as the kernel's list has it; the waiter's own are passed over. */
static __always_inline void find_lock_holder(struct thread *t, struct task_struct *task, struct file *file, bool posix)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct file_lock_context *context = BPF_CORE_READ(inode, i_flctx);
	struct lock_walk walk = { .file = file, .posix = posix };

	if (!context)
		return;
	walk.own = BPF_CORE_READ(task, files);
	walk.head = (void *)context + (posix ? bpf_core_field_offset(struct file_lock_context, flc_posix)
					     : bpf_core_field_offset(struct file_lock_context, flc_flock));
	struct list_head *head = walk.head;
	walk.at = BPF_CORE_READ(head, next);
	REPEAT(LOCKS_WALKED, look_at_lock(t, &walk));
}

/* The owner of a priority-inheritance futex, or the memory around another. */
static __always_inline void find_futex_owner(struct thread *t, struct task_struct *task, bool adopted)
{
	u32 op = t->call.args[1] & FUTEX_CMD_MASK;
	u32 *word = (u32 *)t->call.args[0];

	if ((op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2) && find_pi_owner(t, task))
		return;
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return;
	if (adopted) {
		t->holder_kind = HOLDUP_HOLDER_FUTEX;
		return;
	}
	if (bpf_probe_read_user(t->holder, sizeof(t->holder), word - HOLDUP_FUTEX_AT)) {
		/* A lock at the beginning of a mapping: some of what is before it does not exist. */
		__builtin_memset(t->holder, 0, sizeof(t->holder));
#define BEFORE(i) bpf_probe_read_user(t->holder + (i), sizeof(u32), word - HOLDUP_FUTEX_AT + (i));
		BEFORE(0) BEFORE(1) BEFORE(2)
		if (bpf_probe_read_user(t->holder + HOLDUP_FUTEX_AT,
					sizeof(t->holder) - HOLDUP_FUTEX_AT * sizeof(u32), word))
			return;
	}
	t->holder_kind = HOLDUP_HOLDER_FUTEX;
}

/* The file that all requests of an io_submit are for; nothing where they are for several, of which it is not known
 * which one it waits for, or where there are more than can be looked at. */
static __always_inline struct file *submitted_file(struct thread *t, struct task_struct *task)
{
	u64 count = t->call.args[1];
	u32 fd = 0;

	if (!count || count > SUBMITTED)
		return 0;
	for (u32 i = 0; i < SUBMITTED; i++) {
		struct iocb *request = 0;
		u32 its = 0;
		if (i >= count)
			break;
		if (bpf_probe_read_user(&request, sizeof(request), (void *)(t->call.args[2] + i * sizeof(request))) ||
		    bpf_probe_read_user(&its, sizeof(its), (void *)request + IOCB_DESCRIPTOR) || (i && its != fd))
			return 0;
		fd = its;
	}
	return file_of(task, fd);
}

/* The TCP socket among the first two that a poll asks for: the second because some libraries add a descriptor to wake
 * themselves by. */
static __always_inline void find_polled_tcp(struct thread *t, struct task_struct *task)
{
	u64 files = (u64)BPF_CORE_READ(task, files), tcp = 0;

	if (t->call.args[1] >= 1 && t->asked[0].fd >= 0)
		tcp = tcp_behind(file_behind(files, t->asked[0].fd));
	if (!tcp && t->call.args[1] >= 2 && t->asked[1].fd >= 0)
		tcp = tcp_behind(file_behind(files, t->asked[1].fd));
	t->tcp = tcp;
}

/* What the thread's memory says of its call, unless it is known already. */
static __always_inline void read_asked(struct thread *t, struct task_struct *task, bool adopted)
{
	s32 number = t->call.number;

	if (number == __NR_poll || number == __NR_ppoll) {
		if (!adopted && bpf_probe_read_user(t->asked, sizeof(t->asked), (void *)t->call.args[0]))
			bpf_probe_read_user(t->asked, sizeof(t->asked[0]), (void *)t->call.args[0]);
		find_polled_tcp(t, task);
	}
	if (!adopted && (number == __NR_select || number == __NR_pselect6)) {
		t->select_reads = read_set_of(t->call.args[0], t->call.args[1]);
		t->select_writes = read_set_of(t->call.args[0], t->call.args[2]);
	}
}

/* A call that moves data between two descriptors waits for a disk: its source, or whichever file's page it waits for, as the page cache
 * tells. Null: the object is known. */
static __always_inline struct file *file_of_mover(struct thread *t, struct task_struct *task)
{
	struct file *source;

	source = file_of(task, (u32)(t->call.number == __NR_sendfile ? t->call.args[1] : t->call.args[0]));
	if (!t->reading || (source && (u64)BPF_CORE_READ(source, f_inode) == t->reading))
		return source;
	t->object = object_of_inode(t->reading);
	return t->object ? 0 : source;
}

static __always_inline void describe_call(struct thread *t, struct task_struct *task, bool adopted, bool is_known)
{
	struct file *file = 0;
	bool moves_pages;
	s32 number;

	t->tcp = 0;
	t->completed = 0;
	t->completes = 0;
	t->holder_kind = HOLDUP_HOLDER_NONE;
	if (task->flags & PF_IO_WORKER) {
		t->object = read_worker(&t->call, task);
		return;
	}
	/* What lies where its registers would is no call. */
	if (task->flags & PF_KTHREAD) {
		__builtin_memset(&t->call, 0, sizeof(t->call));
		t->call.number = -1;
	} else {
		read_call(&t->call, task);
	}
	t->object = 0;
	if (t->contended)
		find_lock_owner(t, task);
	else if (t->state & TASK_TRACED)
		find_tracer(t, task);
	number = t->call.number;
	moves_pages = (number == __NR_sendfile || number == __NR_splice || number == __NR_copy_file_range) &&
		      BPF_CORE_READ_BITFIELD(task, in_iowait);
	/* A fault, an exec and sync(2) name no descriptor: the page cache tells which file they wait for. */
	if (t->reading && (number < 0 || number == __NR_execve || number == __NR_execveat || number == __NR_sync))
		t->object = object_of_inode(t->reading);
	else if (!moves_pages)
		t->reading = 0;
	if (number < 0 || number >= 512)
		return;
	read_asked(t, task, adopted);
	if (number == __NR_io_uring_enter)
		file = file_of_ring(task, &t->call);
	else if (moves_pages)
		file = file_of_mover(t, task);
	else if (first_is_descriptor(number))
		file = file_of_leaving(task, (u32)t->call.args[0]);
	else if (number == __NR_io_submit && !adopted)
		file = submitted_file(t, task);
	if (file)
		t->object = object_of_wait(t, file);
	if (t->holder_kind)
		return;
	if (number == __NR_futex && (!adopted || is_known)) {
		find_futex_owner(t, task, adopted);
	} else if (file && (number == __NR_flock || (number == __NR_fcntl && (t->call.args[1] == F_SETLKW ||
										 t->call.args[1] == F_OFD_SETLKW)))) {
		find_lock_holder(t, task, file, number == __NR_fcntl);
	} else if (file && number == __NR_io_uring_enter && is_ring_at_rest(file)) {
		t->holder_kind = HOLDUP_HOLDER_NOBODY_ASKED;
	}
}

/* `adopted`: it sleeps already, and what user space looked up of its memory stands in `t`, if that `is_known`. */
static __always_inline void describe_wait(struct thread *t, struct task_struct *task, bool adopted, bool is_known)
{
	describe_call(t, task, adopted, is_known);
	/* In one place, whichever way it was found: each would be verified with all that comes after it. */
	if (t->tcp)
		note_tcp(t, (struct sock *)t->tcp);
}

static __always_inline bool is_epoll(s32 number)
{
	return number == __NR_epoll_wait || number == __NR_epoll_pwait || number == __NR_epoll_pwait2;
}

static __always_inline bool is_poll(s32 number)
{
	return number == __NR_poll || number == __NR_ppoll || number == __NR_select || number == __NR_pselect6;
}

struct asked_fd { s32 fd; u32 events; u32 object; };

static __always_inline struct asked_fd asked_of(const struct thread *t, u64 files, u32 i, u64 *left)
{
	struct asked_fd a = { .fd = -1 };
	if (t->call.number == __NR_poll || t->call.number == __NR_ppoll) {
		if (i < t->call.args[1]) {
			a.fd = t->asked[i].fd;
			a.events = (u16)t->asked[i].events;
		}
	} else if (*left) {
		a.fd = lowest_bit(*left) & 63;
		a.events = ((t->select_reads >> a.fd) & 1) | (((t->select_writes >> a.fd) & 1) << 2);
		*left &= *left - 1;
	}
	/* Where there is none, it is larger than any table. */
	a.object = object_of_file(file_behind(files, (u32)a.fd));
	return a;
}

/* Without a branch: each would double the verifier's work for all nodes that follow. */
static __always_inline struct asked_fd asked_of_node(void *node)
{
	struct epitem *item = node - bpf_core_field_offset(struct epitem, rbn);
	u64 address = (u64)node, there = (address | -address) >> 63;
	struct asked_fd a = {};

	barrier_var(there); /* or the compiler makes a branch of it */
	a.fd = (s32)((BPF_CORE_READ(item, ffd.fd) + 1) * there) - 1;
	u32 events = BPF_CORE_READ(item, event.events);

	/* Who polls for changes alone asks for room all the time; the others only while they have something to send. */
	a.events = (u16)events | ((~events & HOLDUP_EDGES) >> 17);
	a.object = object_of_file((u64)BPF_CORE_READ(item, ffd.file) * there);
	return a;
}

/* An object must be described before the record that refers to it is begun: the descriptors come complete. */
static __always_inline struct holdup_asked *new_asked(u32 thread, u32 seq)
{
	struct holdup_asked *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		count_loss(HOLDUP_LOST_STACKS);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->head.type = HOLDUP_ASKED_FOR;
	r->head.thread = thread;
	r->seq = seq;
	return r;
}

#define ASKED(i, x) r->polled_fds[i].fd = x.fd; r->polled_fds[i].events = x.events; r->polled_fds[i].object = x.object;

/* What a poll or select waited for, as it began: the thread's memory may never be seen, and then this is all there is. */
static __always_inline void send_asked(struct thread *t, struct task_struct *task, u32 seq)
{
	bool poll = t->call.number == __NR_poll || t->call.number == __NR_ppoll;
	u64 left = t->select_reads | t->select_writes;
	u64 files = (u64)BPF_CORE_READ(task, files);
	struct asked_fd a = asked_of(t, files, 0, &left), b = asked_of(t, files, 1, &left);
	struct asked_fd c = asked_of(t, files, 2, &left), d = asked_of(t, files, 3, &left);
	struct holdup_asked *r = new_asked(t->id, seq);

	if (!r)
		return;
	r->truncated = poll ? t->call.args[1] > HOLDUP_ASKED : left != 0 || t->call.args[0] > 64;
	r->polled = HOLDUP_ASKED;
	ASKED(0, a) ASKED(1, b) ASKED(2, c) ASKED(3, d)
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* What an epoll waited for when nothing of it became ready, from the file of the instance. A global function, so that its many ways are verified by
 * themselves and not times those of its callers. */
__noinline int send_interest(u64 epoll_file, u32 thread, u32 seq)
{
	struct interest i;
	walk_interest(&i, (struct file *)epoll_file);
	/* No loops, as in memory.h. Twice over the same nodes: the first time describes what is new, before the record is begun. */
#define DESCRIBE_NODE(n) asked_of_node(i.nodes[n]);
	SEVEN(DESCRIBE_NODE)
	struct holdup_asked *r = new_asked(thread, seq);

	if (!r)
		return 0;
	r->polled = INTEREST;
#define ASK_NODE(n) { struct asked_fd a = asked_of_node(i.nodes[n]); ASKED(n, a) }
	SEVEN(ASK_NODE)
	r->truncated = (below(i.nodes[3]) | below(i.nodes[4]) | below(i.nodes[5]) | below(i.nodes[6])) != 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The socket that had just become ready on this CPU, when a soft interrupt wakes a poller. */
static __always_inline u32 ready_socket_of(const struct thread *t, u32 here)
{
	u32 zero = 0;

	/* An epoll instance lists itself what is ready; of one inside another this says more, where it is noted. */
	if (!is_epoll(t->call.number) && !is_poll(t->call.number))
		return 0;
	if (!serves_soft_alone(here))
		return 0;
	u64 *sk = bpf_map_lookup_elem(&ready_socket, &zero);
	if (!sk || !*sk)
		return 0;
	struct sock *ready = (void *)*sk;
	*sk = 0;
	return object_of_file((u64)BPF_CORE_READ(ready, sk_socket, file));
}

/* Whether the task under this soft interrupt is at the other end of what the woken thread waits on. */
static __always_inline bool woken_by_peer(const struct thread *t, struct task_struct *woken, struct file *ready, u32 here)
{
	s32 number = t->call.number;

	if (!serves_soft_alone(here))
		return false;
	if (is_epoll(number))
		return current_moves((u64)ready);
	if (number == __NR_poll || number == __NR_ppoll)
		return current_moves((u64)file_of(woken, t->asked[0].fd)) ||
		       (t->call.args[1] > 1 && current_moves((u64)file_of(woken, t->asked[1].fd)));
	return first_is_descriptor(number) && current_moves((u64)file_of(woken, (u32)t->call.args[0]));
}

/* Who wakes: in an interrupt the current task is a bystander, unless it is the `peer`. */
static __always_inline void describe_waker(struct holdup_wait *w, struct task_struct *woken, u32 here, bool peer, u64 now)
{
	struct task_struct *current = current_task();
	struct thread *waker;

	if (here & SERVES_UNKNOWN) {
		w->waker_kind = HOLDUP_WAKER_UNKNOWN;
		return;
	}
	/* The idle task wakes nobody itself. */
	if ((here & SERVES_HARD) || (!here && OF(current, pid) == 0)) {
		w->waker_kind = HOLDUP_WAKER_HARDIRQ;
		return;
	}
	if (here && !peer) {
		w->waker_kind = HOLDUP_WAKER_SOFTIRQ;
		return;
	}
	struct holdup_call call = {};
	if (!(OF(current, flags) & PF_KTHREAD))
		read_call(&call, current);
	else
		call.number = -1;
	w->waker_call = call.number;
	w->waker_arg = call.args[0];
	waker = current == woken ? 0 : thread_of(current);
	if (waker && waker->phase == HOLDUP_RUNNING) {
		w->waker_kind = HOLDUP_WAKER_THREAD;
		w->waker_thread = waker->id;
		charge_running(waker);
		clock_at(&w->waker_clock, waker, now);
	} else {
		w->waker_kind = HOLDUP_WAKER_OUTSIDE;
		name_task(&w->waker, current);
	}
}

/* A kernel stack each `kernel_budget` of waiting; a wait at least that long always gets its own. */
static __always_inline void send_kernel_stack(struct thread *t, struct task_struct *task, u32 seq)
{
	struct holdup_kernel_stack *k = bpf_ringbuf_reserve(&records, sizeof(*k), 0);
	if (!k) {
		count_loss(HOLDUP_LOST_STACKS);
		return;
	}
	k->head.type = HOLDUP_KERNEL_STACK;
	k->head.thread = t->id;
	k->seq = seq;
	long n = bpf_get_task_stack(task, k->ips, sizeof(k->ips), 0);
	k->frames = n > 0 ? n / sizeof(u64) : 0;
	bpf_ringbuf_submit(k, BPF_RB_NO_WAKEUP);
}

static __always_inline void fill_wait(struct holdup_wait *w, struct thread *t, u64 end)
{
	__builtin_memset(w, 0, sizeof(*w));
	w->head.type = HOLDUP_WAIT;
	w->head.thread = t->id;
	w->seq = t->seq;
	w->state = t->state;
	w->end = end;
	w->call = t->call;
	w->object = t->object;
	w->iowait = t->iowait;
	w->serves = t->serves;
	w->unanswered = t->unanswered;
	w->holder_kind = t->holder_kind;
	if (t->holder_kind)
		__builtin_memcpy(w->holder, t->holder, sizeof(w->holder));
}

#endif
