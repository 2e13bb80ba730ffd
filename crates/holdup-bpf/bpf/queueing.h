/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a thread that is ready and does not run waits for: who has the CPU, or that the CPU quota of its control group
 * is there again.
 *
 * Throttling: since Linux 6.18 each task is taken off its queue by itself, as it returns to user mode, and marked; before, the
 * group's queue on that CPU was taken away with all tasks in it. Read only as a thread leaves a CPU that it would
 * have kept, and as it gets one again: a thread that blocks costs nothing more. Not seen on kernels before 6.18: a
 * thread that is woken when its group's quota is spent already; that time is counted as queueing.
 */
#ifndef HOLDUP_QUEUEING_H
#define HOLDUP_QUEUEING_H

#include "state.h"

#define SCHED_IDLE 5
#define QUEUED_BUDGET 1000000 /* queued ns between two records of who ran instead */
#define QUEUED_BUDGET_THIN 20000000 /* the same of a recorder */
#define QUEUED_MOST 32000000  /* with so many due, whoever is there is named */
#define TURN_LEAST 200000     /* ns: shorter turns are kernel threads' and the like, and not what was queued for */

static __always_inline void note_throttled(struct thread *t, struct task_struct *task)
{
	struct cfs_rq *queue;

	t->throttled_queue = 0;
	if (bpf_core_field_exists(task->throttled)) {
		if (!task->throttled)
			return;
		queue = BPF_CORE_READ(task, se.cfs_rq);
	} else if (bpf_core_field_exists(struct cfs_rq, throttle_count)) {
		queue = BPF_CORE_READ(task, se.cfs_rq);
		if (!queue || BPF_CORE_READ(queue, throttle_count) <= 0)
			return;
	} else {
		return;
	}
	t->throttled_queue = (u64)queue;
	if (bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time))
		t->throttled_before = BPF_CORE_READ(queue, throttled_clock_self_time);
}

/* Of a stretch in which it was ready, the part for which the quota was spent: all of it, or what the kernel counted
 * for that queue meanwhile; when there is quota again it may still have to queue. */
static __always_inline void end_throttled(struct thread *t, struct task_struct *task, u64 queued)
{
	struct cfs_rq *queue;

	if (!t->throttled_queue)
		return;
	if (bpf_core_field_exists(struct cfs_rq, throttled_clock_self_time)) {
		queue = BPF_CORE_READ(task, se.cfs_rq);
		if ((u64)queue == t->throttled_queue) {
			u64 counted = BPF_CORE_READ(queue, throttled_clock_self_time) - t->throttled_before;
			if (counted < queued)
				queued = counted;
		}
	}
	t->clock.throttled += queued;
	t->throttled_queue = 0;
}

/* How long a task that leaves a CPU was on it, as far as the scheduler's clock tells. */
static __always_inline u64 turn_of(struct task_struct *task, const struct thread *t, u64 now)
{
	u64 arrived = task->sched_info.last_arrival + t->scheduler_lag;
	return !t->scheduler_lag ? TURN_LEAST : now > arrived ? now - arrived : 0;
}

static __always_inline struct cfs_rq *queue_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? BPF_CORE_READ(task, se.cfs_rq) : 0;
}

/* Who had the CPU until now that `task` gets it, once so much of queueing is due. */
static __always_inline void send_ran_instead(struct thread *t, struct task_struct *task, struct task_struct *before, u64 now)
{
	if (t->queued_due < (thin ? QUEUED_BUDGET_THIN : QUEUED_BUDGET))
		return;
	/* Not one that ran for a moment in between: what comes due then stays due. */
	if (turn_of(before, t, now) < TURN_LEAST && t->queued_due < QUEUED_MOST)
		return;
	struct holdup_ran_instead *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (r) {
		r->head.type = HOLDUP_RAN_INSTEAD;
		r->head.thread = t->id;
		r->at = now;
		r->ns = t->queued_due;
		r->cpu = bpf_get_smp_processor_id();
		r->idle = before->pid == 0;
		r->by_priority = before->prio;
		r->priority = task->prio;
		r->by_idle_class = before->policy == SCHED_IDLE;
		r->idle_class = task->policy == SCHED_IDLE;
		r->allowed = BPF_CORE_READ(task, cpus_ptr, bits[0]);
		r->allowed_count = task->nr_cpus_allowed;
		r->same_group = queue_of(before) == queue_of(task);
		name_task(&r->by, before);
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	}
	t->queued_due = 0;
}

#endif
