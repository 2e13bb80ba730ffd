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
#define CHUNK 1024

typedef int (*task_work_callback)(struct bpf_map *map, void *key, void *value);
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map,
					       task_work_callback callback, void *aux) __ksym __weak;

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

struct errand { u32 seq; u32 number; u64 weight; u64 args[3]; struct bpf_task_work work; };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32); /* thread number */
	__type(value, struct errand);
} errands SEC(".maps");

struct user_pollfd { s32 fd; s16 events; s16 revents; };

static __always_inline void copy_regs(struct holdup_regs *out, const struct pt_regs *regs)
{
	out->ip = BPF_CORE_READ(regs, ip);
	out->sp = BPF_CORE_READ(regs, sp);
	out->bp = BPF_CORE_READ(regs, bp);
	out->bx = BPF_CORE_READ(regs, bx);
	out->r12 = BPF_CORE_READ(regs, r12);
	out->r13 = BPF_CORE_READ(regs, r13);
	out->r14 = BPF_CORE_READ(regs, r14);
	out->r15 = BPF_CORE_READ(regs, r15);
}

/* From sp upward in pieces that end at multiples of CHUNK, so that the last piece ends with the mapping. */
static __always_inline void copy_stack(struct holdup_memory *m)
{
	u64 sp = m->regs.sp;
	u32 first = CHUNK - (sp & (CHUNK - 1));
	u32 len = 0;

	if (first > CHUNK || first == 0)
		return;
	if (bpf_probe_read_user(m->stack, first, (void *)sp))
		return;
	len = first;
	for (int i = 0; i < HOLDUP_STACK_BYTES / CHUNK - 1; i++) {
		if (len > HOLDUP_STACK_BYTES - CHUNK)
			break;
		if (bpf_probe_read_user(m->stack + len, CHUNK, (void *)(sp + len)))
			break;
		len += CHUNK;
	}
	m->stack_len = len;
}

static __always_inline void copy_polled(struct holdup_memory *m, u64 fds, u64 count)
{
	for (u32 i = 0; i < HOLDUP_POLLED; i++) {
		struct user_pollfd one = {};
		if (i >= count)
			break;
		if (bpf_probe_read_user(&one, sizeof(one), (void *)(fds + i * sizeof(one))))
			break;
		m->polled_fds[i].fd = one.fd;
		m->polled_fds[i].events = one.events;
		m->polled_fds[i].revents = one.revents;
		m->polled_fds[i].object = one.fd >= 0 ? object_of_current_fd(one.fd) : 0;
		m->polled = i + 1;
	}
	m->polled_truncated = count > HOLDUP_POLLED;
}

/* Number of the lowest bit that is set, without a branch: each would double the verifier's work. */
static __always_inline u32 lowest_bit(u64 bits)
{
	u64 below = (bits & -bits) - 1;
	below -= (below >> 1) & 0x5555555555555555ULL;
	below = (below & 0x3333333333333333ULL) + ((below >> 2) & 0x3333333333333333ULL);
	return (((below + (below >> 4)) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL) >> 56;
}

static __always_inline u64 copy_one_selected(struct holdup_memory *m, u32 i, u64 left, u64 read_set, u64 write_set)
{
	if (!left)
		return 0;
	u32 fd = lowest_bit(left) & 63;
	u16 bits = ((read_set >> fd) & 1) | (((write_set >> fd) & 1) << 2);
	m->polled_fds[i].fd = fd;
	m->polled_fds[i].events = bits;
	m->polled_fds[i].revents = m->has_returned ? bits : 0;
	m->polled_fds[i].object = object_of_current_fd(fd);
	m->polled = i + 1;
	return left & (left - 1);
}

/* select's sets hold, after the call, what is ready; nothing of what was asked for is left then. Before the
 * call (has_returned unset) they hold what is asked for. */
static __always_inline void copy_selected(struct holdup_memory *m, u64 count, u64 reads, u64 writes)
{
	u64 read_set = 0, write_set = 0;
	if (reads)
		bpf_probe_read_user(&read_set, sizeof(read_set), (void *)reads);
	if (writes)
		bpf_probe_read_user(&write_set, sizeof(write_set), (void *)writes);
	if (count < 64) {
		read_set &= (1ULL << count) - 1;
		write_set &= (1ULL << count) - 1;
	}
	u64 left = read_set | write_set;
	/* No loop: kernels up to 6.1 refuse one whose way back is a fall-through, as the compiler lays this out. */
#define SELECTED(i) left = copy_one_selected(m, i, left, read_set, write_set);
#define FOUR_SELECTED(i) SELECTED(i) SELECTED(i + 1) SELECTED(i + 2) SELECTED(i + 3)
	FOUR_SELECTED(0) FOUR_SELECTED(4) FOUR_SELECTED(8) FOUR_SELECTED(12)
	m->polled_truncated = count > 64;
}

/* Called as the thread itself. `returned` is null at a switch-out, where the call is still under way. */
static __always_inline void send_memory(struct thread *t, struct task_struct *task, const struct holdup_regs *regs,
					u32 seq, u64 weight, s32 number, const u64 *args, const s64 *returned, bool on_cpu)
{
	struct holdup_memory *m = bpf_ringbuf_reserve(&records, sizeof(*m), 0);
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
	m->on_cpu = on_cpu;
	m->pid = task->tgid;
	m->tid = task->pid;
	if (returned) {
		m->has_returned = 1;
		m->returned = *returned;
	}
	m->regs = *regs;
	if (!on_cpu && number >= 0 && number < 512) {
		u8 path = path_argument[number];
		if (number == __NR_poll || number == __NR_ppoll)
			copy_polled(m, args[0], args[1]);
		else if (number == __NR_select || number == __NR_pselect6)
			copy_selected(m, args[0], args[1], args[2]);
		else if (path == 1 || path == 2) {
			long n = bpf_probe_read_user_str(m->path, sizeof(m->path), (void *)(path == 1 ? args[0] : args[1]));
			if (n > 1)
				m->path_len = n;
		}
	}
	copy_stack(m);
	bpf_ringbuf_submit(m, BPF_RB_NO_WAKEUP);
}

static int run_errand(struct bpf_map *map, void *key, void *value)
{
	struct errand *e = value;
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t = thread_of(task);
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 args[3] = { e->args[0], e->args[1], e->args[2] };
	s64 returned = BPF_CORE_READ(regs, ax);
	struct holdup_regs copy;

	copy_regs(&copy, regs);
	if (!t || frozen)
		return 0;
	/* A thread that loses its CPU between reserving a record and handing it in holds up all records behind it. */
	if (bpf_ksym_exists(bpf_preempt_disable) && bpf_ksym_exists(bpf_preempt_enable)) {
		bpf_preempt_disable();
		send_memory(t, task, &copy, e->seq, e->weight, e->number, args, &returned, false);
		bpf_preempt_enable();
	}
	return 0;
}

/* Asks for the woken thread's memory; true when it will come. */
static __always_inline bool send_errand(struct thread *t, struct task_struct *task, u64 weight)
{
	u32 key = t->id;
	struct errand *e;

	if (!have_task_work || !bpf_ksym_exists(bpf_task_work_schedule_resume_impl))
		return false;
	e = bpf_map_lookup_elem(&errands, &key);
	if (!e) {
		struct errand fresh = {};
		bpf_map_update_elem(&errands, &key, &fresh, BPF_NOEXIST);
		e = bpf_map_lookup_elem(&errands, &key);
		if (!e) {
			count_loss(HOLDUP_LOST_STACKS);
			return false;
		}
	}
	e->seq = t->seq;
	e->number = t->call.number;
	e->weight = weight;
	e->args[0] = t->call.args[0];
	e->args[1] = t->call.args[1];
	e->args[2] = t->call.args[2];
	if (bpf_task_work_schedule_resume_impl(task, &e->work, &errands, run_errand, 0)) {
		count_loss(HOLDUP_LOST_STACKS);
		return false;
	}
	return true;
}

#endif
