/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * io_uring: the kernel's worker threads that serve a process belong to that process, and what they are at stands in
 * the request that they work on; they make no system calls. They are not announced as forks are.
 */
#ifndef HOLDUP_URING_H
#define HOLDUP_URING_H

#include "memory.h"

#define PF_IO_WORKER 0x00000010
#define OPCODES 64
#define __NR_io_uring_enter 426
#define IORING_ENTER_REGISTERED_RING 16
#define IORING_SETUP_SQPOLL 2
#define REGISTERED_RINGS 16
#define MOST_HASH_BITS 8 /* of a ring's table, by the kernel's own limit */

/* For each io_uring operation the number of the system call that does the same, or -1. */
const volatile s16 call_of_operation[OPCODES] = {};

/* What a worker is at: as if it had made the call itself. The arguments of the call are not known. */
static __always_inline u32 read_worker(struct holdup_call *call, struct task_struct *task)
{
	struct io_worker *worker;
	struct io_wq_work *work;
	struct io_kiocb *request;
	u8 operation;

	__builtin_memset(call, 0, sizeof(*call));
	call->number = -1;
	/* In older kernels workers are the kernel's own threads, and never get here. */
	if (!bpf_core_field_exists(task->worker_private))
		return 0;
	worker = BPF_CORE_READ(task, worker_private);
	work = BPF_CORE_READ(worker, cur_work);
	if (!worker || !work)
		return 0;
	request = (void *)work - bpf_core_field_offset(struct io_kiocb, work);
	operation = BPF_CORE_READ(request, opcode);
	if (operation < OPCODES)
		call->number = call_of_operation[operation];
	return object_of_file((u64)BPF_CORE_READ(request, file));
}

/* The ring that a thread waits at, which it may name by its place among those that it has registered. */
static __always_inline struct file *file_of_ring(struct task_struct *task, const struct holdup_call *call)
{
	struct io_uring_task *rings;
	struct file *file = 0;
	u32 place = (u32)call->args[0];

	if (!(call->args[3] & IORING_ENTER_REGISTERED_RING))
		return file_of(task, place);
	if (place >= REGISTERED_RINGS || !bpf_core_field_exists(task->io_uring))
		return 0;
	rings = BPF_CORE_READ(task, io_uring);
	if (!rings || !bpf_core_field_exists(rings->registered_rings))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), (void *)rings + bpf_core_field_offset(rings->registered_rings) +
			      place * sizeof(file));
	return file;
}

struct bucket_walk { void *bucket; u32 left, empty; };

/* False: no further. */
static __always_inline bool look_at_bucket(struct bucket_walk *at)
{
	void *first = 0;

	if (!at->left)
		return false;
	if (bpf_probe_read_kernel(&first, sizeof(first), at->bucket) || first) {
		at->empty = 0;
		return false;
	}
	at->bucket += bpf_core_type_size(struct io_hash_bucket);
	at->left--;
	return true;
}

/* Whether no request waits in this table for its file to become ready. The kernel verifies this function by itself, also where
 * nobody calls it because there are no such tables: it must be valid there too. */
__noinline int is_table_empty(u64 address)
{
	struct io_hash_table *table = (void *)address;
	struct bucket_walk at = { .empty = 1 };

	if (!bpf_core_field_exists(table->hbs) || !bpf_core_field_exists(table->hash_bits))
		return 0;
	u32 bits = BPF_CORE_READ(table, hash_bits);
	at.bucket = BPF_CORE_READ(table, hbs);
	if (!at.bucket || bits > MOST_HASH_BITS)
		return 0;
	at.left = 1U << bits;
	at.bucket += bpf_core_field_offset(struct io_hash_bucket, list);
	REPEAT(1U << MOST_HASH_BITS, look_at_bucket(&at));
	return at.empty;
}

/* Whether every request that was made on this ring has completed for good. Each is counted as the kernel takes it, and each completion;
 * one that completes again and again waits in a table meanwhile. Where the kernel itself fetches requests, or has other tables
 * (before 6.0), that is not known. */
static __always_inline bool is_ring_at_rest(struct file *file)
{
	struct io_ring_ctx *ring = BPF_CORE_READ(file, private_data);

	if (!ring || !bpf_core_field_exists(ring->cancel_table) || (BPF_CORE_READ(ring, flags) & IORING_SETUP_SQPOLL) ||
	    BPF_CORE_READ(ring, cached_sq_head) != BPF_CORE_READ(ring, cached_cq_tail))
		return false;
	if (bpf_core_field_exists(ring->cancel_table_locked) &&
	    !is_table_empty((u64)ring + bpf_core_field_offset(ring->cancel_table_locked)))
		return false;
	return is_table_empty((u64)ring + bpf_core_field_offset(ring->cancel_table));
}

/* The first request that completes after a wait is what the wait was for. Where it completes in the waiter's own
 * context, that is after the waiter has got a CPU: its errand waits for this. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_async_done, void *ring, void *request)
{
	struct task_struct *current = current_task();
	struct thread *t;

	if (frozen)
		return 0;
	t = thread_of(current);
	if (!t || t->completed || !request)
		return 0;
	t->completed = object_of_file((u64)BPF_CORE_READ((struct io_kiocb *)request, file));
	if (t->completes && t->errand)
		send_errand(t, current, t->errand);
	t->errand = 0;
	t->completes = 0;
	return 0;
}

#endif
