/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whether a thread that is ready may not run because the CPU quota of its control group is spent.
 *
 * Since Linux 6.18 each task is taken off its queue by itself, as it returns to user mode, and marked; before, the
 * group's queue on that CPU was taken away with all tasks in it. Read only as a thread leaves a CPU that it would
 * have kept, and as it gets one again: a thread that blocks costs nothing more. Not seen on kernels before 6.18: a
 * thread that is woken when its group's quota is spent already; that time is counted as queueing.
 */
#ifndef HOLDUP_THROTTLE_H
#define HOLDUP_THROTTLE_H

#include "state.h"

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

#endif
