/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What an epoll instance says: which descriptor became ready first, and which are awaited. */
#ifndef HOLDUP_EPOLL_H
#define HOLDUP_EPOLL_H

#include "objects.h"

/* The first file on the ready list of the epoll instance behind a descriptor; 0 when nothing is ready. */
static __always_inline struct file *ready_of_epoll(struct task_struct *task, u32 fd)
{
	struct file *file = file_of(task, fd);
	struct eventpoll *ep;
	struct list_head *head, *first;
	struct epitem *item;

	if (!file)
		return 0;
	ep = BPF_CORE_READ(file, private_data);
	head = (void *)ep + bpf_core_field_offset(struct eventpoll, rdllist);
	first = BPF_CORE_READ(head, next);
	if (first && first != head) {
		item = (void *)first - bpf_core_field_offset(struct epitem, rdllink);
	} else {
		/* While another thread scans the list, arrivals go to a second one. */
		item = BPF_CORE_READ(ep, ovflist);
		if (!item || (long)item == -1)
			return 0;
	}
	return BPF_CORE_READ(item, ffd.file);
}

/* The awaited descriptors stand in a tree. Of its top three levels all are visited, which is all there are for most
 * programs that await few. */
#define INTEREST 7
#define SEVEN(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6)
struct interest { void *nodes[INTEREST]; };

static __always_inline void walk_interest(struct interest *i, struct file *file)
{
	struct eventpoll *ep = BPF_CORE_READ(file, private_data);

	struct rb_node *top = BPF_CORE_READ(ep, rbr.rb_root.rb_node);
	struct rb_node *left = BPF_CORE_READ(top, rb_left), *right = BPF_CORE_READ(top, rb_right);

	i->nodes[0] = top;
	i->nodes[1] = left;
	i->nodes[2] = right;
	i->nodes[3] = BPF_CORE_READ(left, rb_left);
	i->nodes[4] = BPF_CORE_READ(left, rb_right);
	i->nodes[5] = BPF_CORE_READ(right, rb_left);
	i->nodes[6] = BPF_CORE_READ(right, rb_right);
}

/* Not 0 where the tree goes on below this node. */
static __always_inline u64 below(struct rb_node *node)
{
	return (u64)BPF_CORE_READ(node, rb_left) | (u64)BPF_CORE_READ(node, rb_right);
}

#endif
