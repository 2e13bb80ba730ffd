/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whether this CPU serves an interrupt now. A waking in an interrupt happens on top of whatever task was
 * running, which has nothing to do with it: under load nearly every timer's or disk's waking would name a
 * bystander. The preemption count would say it without hooks, but kernels without all symbols hide it; so the
 * depth is kept here, at the entries and exits that the kernel announces.
 */
#ifndef HOLDUP_INTERRUPTS_H
#define HOLDUP_INTERRUPTS_H

#include "state.h"

struct depth { u32 hard; u32 soft; };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct depth);
} interrupts SEC(".maps");

static __always_inline void enter_interrupt(bool soft)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (d && soft)
		d->soft++;
	else if (d)
		d->hard++;
}

/* Attached in the middle of an interrupt, the first exit has no entry. */
static __always_inline void leave_interrupt(bool soft)
{
	u32 zero = 0;
	struct depth *d = bpf_map_lookup_elem(&interrupts, &zero);
	if (d && soft && d->soft)
		d->soft--;
	else if (d && !soft && d->hard)
		d->hard--;
}

SEC("tp_btf/irq_handler_entry") int BPF_PROG(on_irq_entry) { enter_interrupt(false); return 0; }
SEC("tp_btf/irq_handler_exit") int BPF_PROG(on_irq_exit) { leave_interrupt(false); return 0; }
SEC("tp_btf/hrtimer_expire_entry") int BPF_PROG(on_hrtimer_entry) { enter_interrupt(false); return 0; }
SEC("tp_btf/hrtimer_expire_exit") int BPF_PROG(on_hrtimer_exit) { leave_interrupt(false); return 0; }
SEC("tp_btf/softirq_entry") int BPF_PROG(on_softirq_entry) { enter_interrupt(true); return 0; }
SEC("tp_btf/softirq_exit") int BPF_PROG(on_softirq_exit) { leave_interrupt(true); return 0; }

#endif
