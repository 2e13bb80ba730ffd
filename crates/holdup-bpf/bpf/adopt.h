/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Threads that lived before they were watched: what they are in the middle of, and since when.
 *
 * User space puts processes into `wanted` and runs adopt_task over all tasks. A thread that changes its state while it is
 * looked at is left for the next round, and so is one that nothing can be kept of just then. Its own memory can't be read
 * from here, and from a program that may sleep it could block, so user space looks at that before (`looked_at`), with a
 * limit of time.
 */
#ifndef HOLDUP_ADOPT_H
#define HOLDUP_ADOPT_H

#include "waits.h"

/* Processes whose threads are to be watched: enum holdup_role. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* process id */
	__type(value, u32);
} wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32); /* thread id */
	__type(value, struct holdup_looked);
} looked_at SEC(".maps");

u64 left_for_later = 0; /* threads that could not be adopted in this round */
u8 last_round = 0;      /* there is no later: they are lost */

/* It counts as watched once its phase is set, by whoever knows it. */
static __always_inline struct thread *new_thread(struct task_struct *task, u64 now)
{
	struct thread *t = remember_thread(task);
	if (!t)
		return 0;
	if (t->given_up)
		__builtin_memset(t, 0, sizeof(*t));
	t->born = now;
	t->since = now;
	/* A random start makes the first sample of a short-lived thread as likely as any other. */
	t->user_due = user_budget ? bpf_get_prandom_u32() % user_budget : 0;
	t->kernel_due = kernel_budget ? bpf_get_prandom_u32() % kernel_budget : 0;
	t->queued_due = 0;
	return t;
}

/* What turns an instant of the scheduler's clock into one of ours: at most a tick too much, since a CPU's reading is as old as its
 * last update. Only the monotonic clock is disciplined, so after hours either of the two may be ahead by any amount. */
static __always_inline bool scheduler_offset(s64 *offset, u64 now)
{
	struct rq *here = BPF_CORE_READ(current_task(), se.cfs_rq, rq);
	u64 clock = here ? BPF_CORE_READ(here, clock) : 0;

	*offset = now - clock;
	return clock;
}

/* Since when it sleeps, or a little later; `now` where the kernel does not tell. The scheduler notes when it last charged the
 * task, which it did as the task left its CPU, on a clock that leaves out time of interrupts and of a hypervisor's others. How
 * much that is of now on that CPU is at least as much as it was then. */
static __always_inline u64 asleep_since(struct task_struct *task, u64 now)
{
	struct rq *queue;
	u64 at, clock, clock_task;
	s64 offset;

	if (!bpf_core_field_exists(struct cfs_rq, rq) || !bpf_core_field_exists(task->se.cfs_rq))
		return now;
	queue = BPF_CORE_READ(task, se.cfs_rq, rq);
	at = task->se.exec_start;
	if (!queue || !at || !scheduler_offset(&offset, now))
		return now;
	clock = BPF_CORE_READ(queue, clock);
	clock_task = BPF_CORE_READ(queue, clock_task);
	at += offset + (clock > clock_task ? clock - clock_task : 0);
	return (s64)(now - at) > 0 ? at : now;
}

static __always_inline void give_up(struct thread *t, struct task_struct *task)
{
	t->phase = HOLDUP_NEW;
	t->given_up = 1;
	forget_thread(task);
}

static __always_inline u64 switches_of(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* What a thread is at, as far as that can be seen from outside. */
static __always_inline u32 phase_of(struct task_struct *task, u32 state)
{
	if (bpf_core_field_exists(task->on_cpu) && task->on_cpu)
		return HOLDUP_RUNNING;
	return !state || (state & TASK_WAKING) ? HOLDUP_QUEUED : HOLDUP_BLOCKED;
}

/* What user space looked up of the call that a sleeping thread is in; false: nothing, or it is in another by now. */
static __always_inline bool take_looked(struct thread *t, struct task_struct *task)
{
	u32 tid = task->pid;
	struct holdup_looked *looked = bpf_map_lookup_elem(&looked_at, &tid);
	struct holdup_call call;

	t->asked[0].fd = t->asked[1].fd = t->asked[2].fd = t->asked[3].fd = -1;
	if (!looked || (task->flags & PF_KTHREAD))
		return false;
	read_call(&call, task);
	if (looked->number != call.number || looked->address != call.args[0])
		return false;
	__builtin_memcpy(t->holder, looked->words, sizeof(t->holder));
	__builtin_memcpy(t->asked, looked->fds, sizeof(t->asked));
	t->select_reads = looked->select_reads;
	t->select_writes = looked->select_writes;
	return true;
}

static __always_inline bool send_adopted(struct thread *t, struct task_struct *task)
{
	struct holdup_start *s = bpf_ringbuf_reserve(&records, sizeof(*s), 0);

	if (!s) {
		count_loss(HOLDUP_LOST_THREAD_RECORDS);
		return false;
	}
	__builtin_memset(s, 0, sizeof(*s));
	s->head.type = HOLDUP_START;
	s->head.thread = t->id;
	s->at = t->born;
	s->role = t->role;
	s->adopted = 1;
	s->creator = BPF_CORE_READ(task, real_parent, tgid);
	name_task(&s->task, task);
	BPF_CORE_READ_INTO(&s->process, task, group_leader, comm);
	name_inside(s, task);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline void leave_for_later(void)
{
	__sync_fetch_and_add(&left_for_later, 1);
	if (last_round)
		count_loss(HOLDUP_LOST_THREADS);
}

SEC("iter/task")
int adopt_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	u32 pid, state, phase, *role;
	u64 now, switches;

	if (!task || frozen)
		return 0;
	pid = task->tgid;
	role = bpf_map_lookup_elem(&wanted, &pid);
	if (!role || task->exit_state)
		return 0;
	t = entry_of_task(task);
	if (t && !t->given_up)
		return 0;
	switches = switches_of(task);
	state = state_of(task);
	phase = phase_of(task, state);
	now = bpf_ktime_get_ns();
	t = new_thread(task, now);
	if (!t) {
		leave_for_later();
		return 0;
	}
	t->role = *role;
	t->id = next_number();
	if (!t->id) {
		give_up(t, task);
		leave_for_later();
		return 0;
	}
	if (phase == HOLDUP_BLOCKED) {
		t->run_delay = task->sched_info.run_delay;
		t->state = state;
		t->blockings = 1;
		t->iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
		t->before = now - asleep_since(task, now);
		describe_wait(t, task, true, take_looked(t, task));
	}
	if (switches_of(task) != switches || state_of(task) != state || !send_adopted(t, task)) {
		give_up(t, task);
		leave_for_later();
		return 0;
	}
	barrier();
	t->phase = phase;
	if (phase == HOLDUP_RUNNING)
		__sync_fetch_and_add(&adoptions, 1);
	return 0;
}

/* Waits that go on, as they stand: so that user space learns who is in their way while there is time to look there. */
SEC("iter/task")
int peek_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t;
	struct holdup_wait *w;
	u64 now;

	if (!task || frozen)
		return 0;
	t = thread_of(task);
	if (!t || t->phase != HOLDUP_BLOCKED)
		return 0;
	if (is_poll(t->call.number))
		send_asked(t, task, t->seq + 1);
	else if (is_epoll(t->call.number))
		send_interest((u64)file_of(task, (u32)t->call.args[0]), t->id, t->seq + 1);
	send_kernel_stack(t, task, t->seq + 1);
	now = bpf_ktime_get_ns();
	w = bpf_ringbuf_reserve(&records, sizeof(*w), 0);
	if (!w)
		return 0;
	fill_wait(w, t, now);
	w->head.type = HOLDUP_PEEK;
	w->seq = t->seq + 1;
	w->start = t->since - t->before;
	w->waker_kind = HOLDUP_WAKER_NOT_YET;
	clock_at(&w->clock, t, now);
	bpf_ringbuf_submit(w, BPF_RB_NO_WAKEUP);
	return 0;
}

/* What an observation that is over has kept. */
SEC("iter/task")
int forget_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread *t = task ? entry_of_task(task) : 0;

	if (t)
		give_up(t, task);
	return 0;
}

#endif
