/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a thread's own memory says: its stack, the descriptors it polled, the path it named. Copied while the
 * thread itself is on the CPU and without faulting pages in, so a hostile mapping can neither block it nor us.
 * Where the kernel can run a callback as the woken thread returns to user mode, the copy is made then and
 * stands for an exact length of waiting; elsewhere it is made at some switch-outs, chosen at random.
 */
#ifndef HOLDUP_MEMORY_H
#define HOLDUP_MEMORY_H

#include "objects.h"

#define __NR_select 23
#define __NR_poll 7
#define __NR_ppoll 271
#define __NR_pselect6 270
#define __NR_connect 42
#define CHUNK 1024
#define __NR_epoll_wait 232
#define __NR_epoll_pwait 281
#define __NR_epoll_pwait2 441
#define EVENTS_MOST 4096

typedef int (*task_work_callback)(struct bpf_map *map, void *key, void *value);
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map,
					       task_work_callback callback, void *aux) __ksym __weak;

struct errand { u32 seq; u32 number; u64 weight; u64 args[3]; struct bpf_task_work work; };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32); /* thread number */
	__type(value, struct errand);
} errands SEC(".maps");

struct user_pollfd { s32 fd; s16 events; s16 revents; };

/* Where on the stack an epoll has events written to: libuv has room for a thousand there, 12 KB that say nothing of who called. Whole
 * pieces of it are left out; `to` is 0 where there are none. */
struct left_out { u64 from, to; };

static __always_inline struct left_out events_on_stack(u64 sp, s32 number, const u64 *args)
{
	struct left_out events = {};
	bool epoll = number == __NR_epoll_wait || number == __NR_epoll_pwait || number == __NR_epoll_pwait2;

	if (!epoll || args[1] < sp || args[1] - sp > HOLDUP_STACK_BYTES || args[2] > EVENTS_MOST)
		return events;
	events.from = (args[1] + CHUNK - 1) & ~(u64)(CHUNK - 1);
	events.to = (args[1] + args[2] * EPOLL_EVENT_BYTES) & ~(u64)(CHUNK - 1);
	if (events.to <= events.from || events.from <= sp)
		events.to = 0;
	return events;
}

/* One piece; false: no further. */
static __always_inline bool copy_piece(struct holdup_memory *m, const struct left_out *events, u64 *at)
{
	/* Kept in the record, as the names of a path are. */
	u32 len = m->stack_len;

	if (len > HOLDUP_STACK_BYTES - CHUNK)
		return false;
	if (events->to && *at == events->from) {
		m->left_out_at = len;
		m->left_out = events->to - events->from;
		*at = events->to;
	}
	barrier_var(len);
	if (len > HOLDUP_STACK_BYTES - CHUNK || bpf_probe_read_user(m->stack + len, CHUNK, (void *)*at))
		return false;
	*at += CHUNK;
	m->stack_len = len + CHUNK;
	return true;
}

/* From sp upward in pieces that end at multiples of CHUNK, so that the last piece ends with the mapping. */
static __always_inline void copy_stack(struct holdup_memory *m, s32 number, const u64 *args)
{
	u64 sp = m->regs.sp, at;
	u32 first = CHUNK - (sp & (CHUNK - 1));
	struct left_out events = events_on_stack(sp, number, args);

	if (first > CHUNK || first == 0)
		return;
	if (bpf_probe_read_user(m->stack, first, (void *)sp))
		return;
	m->stack_len = first;
	at = sp + first;
	REPEAT(HOLDUP_STACK_BYTES / CHUNK - 1, copy_piece(m, &events, &at));
}

/* An object must be described before the record that refers to it. Its description can't be made while that
 * record is being filled in, for it would come behind it; so the descriptors are gone through once before. Global: verified once. */
__noinline int describe_polled(u64 fds, u64 count)
{
	for (u32 i = 0; i < HOLDUP_POLLED; i++) {
		struct user_pollfd one = {};
		if (i >= count)
			break;
		if (bpf_probe_read_user(&one, sizeof(one), (void *)(fds + i * sizeof(one))))
			break;
		object_of_current_fd(one.fd); /* below 0 it is larger than any table */
	}
	return 0;
}

/* One descriptor of a poll; false: no further. */
static __always_inline bool copy_one_polled(struct holdup_memory *m, u64 fds, u64 count)
{
	struct user_pollfd one = {};
	u32 i = m->polled;

	if (i >= count || i >= HOLDUP_POLLED || bpf_probe_read_user(&one, sizeof(one), (void *)(fds + i * sizeof(one))))
		return false;
	u32 object = object_of_current_fd(one.fd);
	barrier_var(i);
	if (i >= HOLDUP_POLLED)
		return false;
	m->polled_fds[i].fd = one.fd;
	m->polled_fds[i].events = one.events;
	m->polled_fds[i].revents = one.revents;
	m->polled_fds[i].object = object;
	m->polled = i + 1;
	return true;
}

static __always_inline void copy_polled(struct holdup_memory *m, u64 fds, u64 count)
{
	REPEAT(HOLDUP_POLLED, copy_one_polled(m, fds, count));
	m->polled_truncated = count > HOLDUP_POLLED;
}

/* Number of the lowest bit that is set, without a branch: each would double the verifier's work. Global: verified once. */
__noinline u32 lowest_bit(u64 bits)
{
	u64 below = (bits & -bits) - 1;
	below -= (below >> 1) & 0x5555555555555555ULL;
	below = (below & 0x3333333333333333ULL) + ((below >> 2) & 0x3333333333333333ULL);
	return (((below + (below >> 4)) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL) >> 56;
}

static __always_inline u64 describe_one_selected(u64 left)
{
	if (left)
		object_of_current_fd(lowest_bit(left) & 63);
	return left & (left - 1);
}

struct selected_walk { u64 left, reads, writes; };

/* One descriptor of a select, the `i`-th; false: no further. */
static __always_inline bool copy_one_selected(struct holdup_memory *m, u32 i, const struct thread *t, struct selected_walk *at)
{
	u64 left = at->left;

	if (!left)
		return false;
	u32 fd = lowest_bit(left) & 63;
	u32 object = object_of_current_fd(fd);
	barrier_var(i);
	if (i >= HOLDUP_POLLED)
		return false;
	m->polled_fds[i].fd = fd;
	m->polled_fds[i].events = ((t->select_reads >> fd) & 1) | (((t->select_writes >> fd) & 1) << 2);
	m->polled_fds[i].revents = ((at->reads >> fd) & 1) | (((at->writes >> fd) & 1) << 2);
	m->polled_fds[i].object = object;
	m->polled = i + 1;
	at->left = left & (left - 1);
	return true;
}

/* The first 64 bits of a set; what lies beyond `count` is not in it. */
static __always_inline u64 read_set_of(u64 count, u64 address)
{
	u64 set = 0;
	if (address)
		bpf_probe_read_user(&set, sizeof(set), (void *)address);
	return count < 64 ? set & ((1ULL << count) - 1) : set;
}

/* select's sets hold, after the call, what is ready; what was asked for was kept as the thread left the CPU.
 * No loops: kernels up to 6.1 refuse one whose way back is a fall-through, as the compiler lays these out. */
#define FOUR(step, i) step(i) step(i + 1) step(i + 2) step(i + 3)
#define SIXTEEN(step) FOUR(step, 0) FOUR(step, 4) FOUR(step, 8) FOUR(step, 12)

__noinline int describe_selected(u64 left)
{
#define DESCRIBE(i) left = describe_one_selected(left);
	SIXTEEN(DESCRIBE)
	return 0;
}

static __always_inline void copy_selected(struct holdup_memory *m, const struct thread *t, const u64 *args)
{
	struct selected_walk at = { .left = t->select_reads | t->select_writes };

	if (m->has_returned && m->returned > 0) {
		at.reads = read_set_of(args[0], args[1]);
		at.writes = read_set_of(args[0], args[2]);
	}
	if (HAVE_OPEN_LOOPS) {
		REPEAT(HOLDUP_POLLED, copy_one_selected(m, m->polled, t, &at));
	} else {
#define COPY(i) copy_one_selected(m, i, t, &at);
		SIXTEEN(COPY)
	}
	m->polled_truncated = args[0] > 64;
}

/* Where a Unix socket was to be connected to. */
static __always_inline void copy_unix_path(struct holdup_memory *m, u64 address)
{
	u16 family = 0;
	if (bpf_probe_read_user(&family, sizeof(family), (void *)address) || family != AF_UNIX)
		return;
	long n = bpf_probe_read_user_str(m->path, HOLDUP_UNIX_PATH, (void *)(address + sizeof(family)));
	if (n > 1)
		m->path_len = n;
}

/* Called as the thread itself. `returned` is null at a switch-out, where the call is still under way. */
static __always_inline void send_memory(struct thread *t, struct task_struct *task, const struct holdup_regs *regs,
					u32 first, u32 seq, u64 weight, s32 number, const u64 *args, const s64 *returned, bool on_cpu)
{
	struct holdup_memory *m;

	if (!on_cpu && (number == __NR_poll || number == __NR_ppoll))
		describe_polled(args[0], args[1]);
	else if (!on_cpu && (number == __NR_select || number == __NR_pselect6))
		describe_selected(t->select_reads | t->select_writes);
	m = bpf_ringbuf_reserve(&records, sizeof(*m), 0);
	if (!m) {
		count_loss(HOLDUP_LOST_STACKS);
		return;
	}
	__builtin_memset(m, 0, __builtin_offsetof(struct holdup_memory, stack));
	m->head.type = HOLDUP_MEMORY;
	m->head.thread = t->id;
	m->at = bpf_ktime_get_ns();
	m->weight = weight;
	m->seq = seq;
	m->first = first;
	m->on_cpu = on_cpu;
	m->pid = OF(task, tgid);
	m->tid = OF(task, pid);
	if (returned) {
		m->has_returned = 1;
		m->returned = *returned;
	}
	m->regs = *regs;
	m->completed = on_cpu ? 0 : t->completed;
	if (!on_cpu && number >= 0 && number < 512) {
		u8 path = path_argument[number];
		if (number == __NR_poll || number == __NR_ppoll)
			copy_polled(m, args[0], args[1]);
		else if (number == __NR_select || number == __NR_pselect6)
			copy_selected(m, t, args);
		else if (path == 1 || path == 2) {
			long n = bpf_probe_read_user_str(m->path, sizeof(m->path), (void *)(path == 1 ? args[0] : args[1]));
			if (n > 1)
				m->path_len = n;
		} else if (number == __NR_connect) {
			copy_unix_path(m, args[1]);
		}
	}
	copy_stack(m, on_cpu ? -1 : number, args);
	bpf_ringbuf_submit(m, BPF_RB_NO_WAKEUP);
}

static int run_errand(struct bpf_map *map, void *key, void *value)
{
	struct errand *e = value;
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 args[3] = { e->args[0], e->args[1], e->args[2] };
	s64 returned = returned_by(regs);
	struct holdup_regs copy;

	copy_regs(&copy, regs);
	if (!t)
		return 0;
	u32 first = t->errand_from ? t->errand_from : e->seq;
	t->errand_from = 0;
	if (frozen)
		return 0;
	/* A thread that loses its CPU between reserving a record and handing it in holds up all records behind it. */
	if (bpf_ksym_exists(bpf_preempt_disable) && bpf_ksym_exists(bpf_preempt_enable)) {
		bpf_preempt_disable();
		send_memory(t, task, &copy, first, t->seq, e->weight, e->number, args, &returned, false);
		bpf_preempt_enable();
	}
	return 0;
}

/* Asks for the memory of a woken thread that is about to run here. */
static __always_inline void send_errand(struct thread *t, struct task_struct *task, u64 weight)
{
	u32 key = t->id;
	struct errand *e;

	if (!have_task_work || !bpf_ksym_exists(bpf_task_work_schedule_resume_impl))
		return;
	e = bpf_map_lookup_elem(&errands, &key);
	if (!e) {
		struct errand fresh = {};
		bpf_map_update_elem(&errands, &key, &fresh, BPF_NOEXIST);
		e = bpf_map_lookup_elem(&errands, &key);
		if (!e) {
			count_loss(HOLDUP_LOST_STACKS);
			return;
		}
	}
	/* A call that waits several times before it returns: one copy at its end tells of all of them. */
	if (t->errand_from) {
		e->weight += weight;
		return;
	}
	e->seq = t->seq;
	e->number = t->call.number;
	e->weight = weight;
	e->args[0] = t->call.args[0];
	e->args[1] = t->call.args[1];
	e->args[2] = t->call.args[2];
	if (bpf_task_work_schedule_resume_impl(task, &e->work, &errands, run_errand, 0))
		count_loss(HOLDUP_LOST_STACKS);
	else
		t->errand_from = t->seq;
}

#endif
