/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whether this CPU serves an interrupt now, and how much of a thread's time on the CPU interrupts have taken.
 *
 * A waking in an interrupt happens on top of whatever task was running, which has nothing to do with it: under
 * load nearly every timer's or disk's waking would name a bystander. The preemption count would say it without
 * hooks, but kernels without all symbols hide it; so the depth is kept here, at the entries and exits that the
 * kernel announces.
 *
 * Time is read only while a thread of the run has the CPU, and only at the outermost entry and exit. A soft
 * interrupt counts when a hard one (or another that counts) has raised it: what a thread raises itself, as when it
 * sends to its own machine, is done in its own call and is the kernel working for it.
 */
#ifndef HOLDUP_INTERRUPTS_H
#define HOLDUP_INTERRUPTS_H

#include "state.h"

struct depth {
	u32 hard, soft;
	u32 ours;                              /* a thread of the run has this CPU */
	u32 foreign;                           /* the soft interrupt that is served was not raised by the thread itself */
	u32 raised;                            /* soft interrupts, a bit each, that hard ones have raised */
	u32 kind;                              /* enum holdup_interrupt of the outermost */
	u32 adoptions;                         /* `adoptions` when the task here was last found to be nobody's of the run */
	u32 zero;
	u64 entered;                           /* when it began, ns; 0: nobody's time */
	u64 sum;                               /* of `taken` */
	u64 taken[HOLDUP_INTERRUPTS];          /* ns since the running thread got the CPU or was last charged */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct depth);
} interrupts SEC(".maps");

/* What this CPU serves, in bits. */
enum { SERVES_HARD = 1, SERVES_SOFT = 2, SERVES_UNKNOWN = 4 };

/* Global: verified once, and all that it can return has one way on. */
__noinline u32 served_here(void)
{
	u32 zero = 0;
	struct depth *depth = bpf_map_lookup_elem(&interrupts, &zero);
	if (!depth || !have_interrupts)
		return SERVES_UNKNOWN;
	return (depth->hard ? SERVES_HARD : 0) | (depth->soft ? SERVES_SOFT : 0);
}

/* A soft interrupt, and no hard one on top of it. */
static __always_inline bool serves_soft_alone(u32 here)
{
	return (here & (SERVES_HARD | SERVES_SOFT)) == SERVES_SOFT;
}

/* Goes up with each thread that is adopted while it runs: it has its CPU, and no switch was seen to give it. */
u32 adoptions = 0;

/* False: the task that runs here is no thread of the run. The first that is asked where most tasks are bystanders: to look for what is kept of a task takes some
 * 45 ns more. */
static __always_inline bool may_be_ours(void)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);

	return !d || d->ours || d->adoptions != *(volatile u32 *)&adoptions;
}

/* It is none, as of `adopted`. */
static __always_inline void is_not_ours(u32 adopted)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);

	if (d)
		d->adoptions = adopted;
}

static __always_inline void begin_interrupt(struct depth *d, u32 kind)
{
	if (!d->ours)
		return;
	d->kind = kind;
	d->entered = bpf_ktime_get_ns();
}

static __always_inline void end_interrupt(struct depth *d)
{
	u64 entered = d->entered, now;
	u32 kind = d->kind;

	if (!entered)
		return;
	/* At the end of a soft interrupt a hard one may come here in between, and count for itself. */
	d->entered = 0;
	barrier();
	now = bpf_ktime_get_ns();
	if (now > entered && kind < HOLDUP_INTERRUPTS) {
		d->taken[kind] += now - entered;
		d->sum += now - entered;
	}
}

static __always_inline void enter_hard(u32 kind)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (d && d->hard++ == 0 && !d->foreign)
		begin_interrupt(d, kind);
}

/* Attached in the middle of an interrupt, the first exit has no entry. */
static __always_inline void leave_hard(void)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (d && d->hard && --d->hard == 0 && !d->foreign)
		end_interrupt(d);
}

/* Numbers of soft interrupts, as the kernel's own interface (/proc/softirqs) orders them. */
enum { SOFT_TIMER = 1, SOFT_NET_TX = 2, SOFT_NET_RX = 3, SOFT_BLOCK = 4, SOFT_IRQ_POLL = 5, SOFT_HRTIMER = 8 };

static __always_inline u32 kind_of_soft(u32 vector)
{
	switch (vector) {
	case SOFT_TIMER:
	case SOFT_HRTIMER:
		return HOLDUP_BY_TIMER;
	case SOFT_NET_TX:
	case SOFT_NET_RX:
		return HOLDUP_BY_NETWORK;
	case SOFT_BLOCK:
	case SOFT_IRQ_POLL:
		return HOLDUP_BY_DISK;
	default:
		return HOLDUP_BY_KERNEL;
	}
}

static __always_inline void enter_soft(u32 vector)
{
	u32 zero = 0, bit = 1u << (vector & 31);
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (!d)
		return;
	d->soft++;
	if (d->raised & bit) {
		d->raised &= ~bit;
		d->foreign = 1;
		if (!d->hard)
			begin_interrupt(d, kind_of_soft(vector));
	}
}

static __always_inline void leave_soft(void)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (!d)
		return;
	if (d->soft)
		d->soft--;
	if (d->foreign) {
		d->foreign = 0;
		if (!d->hard)
			end_interrupt(d);
	}
}

static __always_inline void raise_soft(u32 vector)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (d && (d->hard || d->foreign))
		d->raised |= 1u << (vector & 31);
}

/* What interrupts have taken of the running thread's time is put down to it. */
static __always_inline void charge_interrupts(struct depth *d, struct thread *t)
{
	u64 sum = d->sum;

	if (!sum)
		return;
	/* Taken off and not set to nothing: an interrupt may add to them in between. */
	__sync_fetch_and_add(&d->sum, -sum);
	t->clock.interrupt += sum;
	for (u32 kind = 0; kind < HOLDUP_INTERRUPTS; kind++) {
		u64 taken = d->taken[kind];
		if (taken) {
			__sync_fetch_and_add(&d->taken[kind], -taken);
			t->interrupts[kind] += taken;
		}
	}
}

/* The CPU goes from one task to another, threads of the run or not. No interrupt is being served then; if the
 * books say otherwise, an exit was not shown, and would count for ever. */
static __always_inline void switch_interrupts(struct thread *out, struct thread *in)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (!d)
		return;
	if (d->hard | d->soft) {
		d->hard = 0;
		d->soft = 0;
		d->foreign = 0;
		d->entered = 0;
	}
	if (out)
		charge_interrupts(d, out);
	d->ours = in != 0;
}

/* The same where the thread runs on: another is to be given its clock. */
static __always_inline void charge_running(struct thread *t)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (d && d->ours)
		charge_interrupts(d, t);
}

SEC("tp_btf/irq_handler_entry") int BPF_PROG(on_irq_entry, int irq, struct irqaction *action) { enter_hard(kind_of_irq(action)); return 0; }
SEC("tp_btf/irq_handler_exit") int BPF_PROG(on_irq_exit) { leave_hard(); return 0; }
SEC("tp_btf/hrtimer_expire_entry") int BPF_PROG(on_hrtimer_entry) { enter_hard(HOLDUP_BY_TIMER); return 0; }
SEC("tp_btf/hrtimer_expire_exit") int BPF_PROG(on_hrtimer_exit) { leave_hard(); return 0; }
SEC("tp_btf/softirq_entry") int BPF_PROG(on_softirq_entry, unsigned int vector) { enter_soft(vector); return 0; }
SEC("tp_btf/softirq_exit") int BPF_PROG(on_softirq_exit) { leave_soft(); return 0; }
SEC("tp_btf/softirq_raise") int BPF_PROG(on_softirq_raise, unsigned int vector) { raise_soft(vector); return 0; }
/* Where the CPU announces them: what a timer costs beside its handler, and calls from other CPUs, which hand over
 * packets. */
SEC("tp_btf/local_timer_entry") int BPF_PROG(on_tick_entry) { enter_hard(HOLDUP_BY_TIMER); return 0; }
SEC("tp_btf/local_timer_exit") int BPF_PROG(on_tick_exit) { leave_hard(); return 0; }
SEC("tp_btf/call_function_single_entry") int BPF_PROG(on_called_entry) { enter_hard(HOLDUP_BY_CPU); return 0; }
SEC("tp_btf/call_function_single_exit") int BPF_PROG(on_called_exit) { leave_hard(); return 0; }

#endif
