/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Names of the kernel's own functions, for user space: of the addresses that it asks for, and no others. The kernel's whole table as text
 * (/proc/kallsyms) takes 30 ms to print and as long to take apart, and a report needs some hundred of 160,000 lines.
 */
#ifndef HOLDUP_FUNCTIONS_H
#define HOLDUP_FUNCTIONS_H

#include "kernels.h"

#define MOST_ASKED 64 /* addresses asked for at once: the frames of most stacks; user space knows it from the map */

/* Addresses; 0 nothing is asked. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_ASKED);
	__type(key, u32);
	__type(value, u64);
} asked_functions SEC(".maps");

/* A line for each that is asked, in their order. The kernel takes the address for one to return to, and looks one byte before it. */
SEC("iter/bpf_map_elem")
int name_function(struct bpf_iter__bpf_map_elem *ctx)
{
	u64 *asked = ctx->value, after;
	char line[] = "%pB\n";

	if (!asked || !*asked)
		return 0;
	after = *asked + 1;
	bpf_seq_printf(ctx->meta->seq, line, sizeof(line), &after, sizeof(after));
	return 0;
}

#endif
