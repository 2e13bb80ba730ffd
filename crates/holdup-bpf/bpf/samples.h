/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where running threads are when the CPU clock ticks: user or kernel, in which call and on what, and by which stacks. */
#ifndef HOLDUP_SAMPLES_H
#define HOLDUP_SAMPLES_H

#include "waits.h"

#define CPU_STACKS_ALL 64  /* this many CPU samples of a thread each carry a user stack, */
#define CPU_STACKS_ONE_IN 4 /* then one in so many does */

SEC("perf_event")
int on_cpu_clock(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = current_task();
	struct thread *t;
	struct holdup_cpu *c;
	bool user;
	u64 every;

	if (frozen)
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	arrive_unseen(t, BPF_CORE_READ(task, sched_info.last_arrival), bpf_ktime_get_ns());
	if (t->phase != HOLDUP_RUNNING)
		return 0;
	/* In a soft interrupt that is none of its own, and whose time is counted as such. */
	u32 zero = 0;
	struct depth *depth = bpf_map_lookup_elem(&interrupts, &zero);
	/* After a switch that no program was run at nothing else tells this CPU whose it is. */
	if (depth)
		depth->ours = 1;
	if (depth && depth->foreign)
		return 0;
	u64 now = bpf_ktime_get_ns();
	user = sampled_in_user(ctx);
	t->cpu_seq++;
	struct holdup_call call = {};
	u32 object = 0;
	call.number = -1;
	if (!user && (OF(task, flags) & PF_IO_WORKER)) {
		object = read_worker(&call, task);
	} else if (!user) {
		read_call(&call, task);
		s32 number = call.number;
		if (first_is_descriptor(number))
			object = object_of_file((u64)file_of(task, (u32)call.args[0]));
	}
	c = bpf_ringbuf_reserve(&records, sizeof(*c), 0);
	if (!c) {
		count_loss(HOLDUP_LOST_CPU_SAMPLES);
		return 0;
	}
	c->head.type = HOLDUP_CPU;
	c->head.thread = t->id;
	c->at = now;
	c->seq = t->cpu_seq;
	c->user = user;
	c->object = object;
	c->call = call;
	c->frames = 0;
	if (!user) {
		long n = bpf_get_stack(ctx, c->ips, sizeof(c->ips), 0);
		c->frames = n > 0 ? n / sizeof(u64) : 0;
	}
	bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);
	every = t->cpu_seq <= CPU_STACKS_ALL ? 1 : CPU_STACKS_ONE_IN;
	if (OF(task, mm) && t->cpu_seq % every == 0) {
		struct holdup_regs regs;
		u64 args[3] = {};
		if (user) {
			copy_sampled_regs(&regs, ctx);
		} else {
			copy_regs(&regs, regs_of(task));
		}
		send_memory(t, task, &regs, t->cpu_seq, t->cpu_seq, every * cpu_period, -1, args, 0, true);
	}
	count_cost(now);
	return 0;
}

#endif
