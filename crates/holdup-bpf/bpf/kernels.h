/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What older kernels lack, and how it is done there. Each thing is decided by the running kernel's type information
 * when the programs are loaded; the way that is not taken is cut out before it is verified, so it costs nothing
 * and may use what that kernel does not know. Two things cannot even lie in a program that such a kernel is
 * given: an atomic operation that returns a value (numbers come from a queue instead) and a callback (on_switch
 * has a second form without).
 */
#ifndef HOLDUP_KERNELS_H
#define HOLDUP_KERNELS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "wire.h"

/* Whether sched_switch hands over the state that the leaving task had. */
const volatile u8 have_switch_state = 0;

/* Threads whose system call could not be read. */
u64 unreadable_calls = 0;

/* Task storage that tracing programs may use hangs on the task itself. */
#define HAVE_TASK_STORAGE bpf_core_field_exists(((struct task_struct___storage *)0)->bpf_storage)
#define HAVE_CURRENT_BTF bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)
#define HAVE_TASK_PT_REGS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

/* The task that runs here. Where the kernel hands it out as a mere number it is read through probes: use OF. */
static __always_inline struct task_struct *current_task(void)
{
	if (HAVE_CURRENT_BTF)
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/* A field of a task that may have come from current_task(). */
#define OF(task, field) (HAVE_CURRENT_BTF ? (task)->field : BPF_CORE_READ(task, field))

/* For each number of this machine's calls: 1 + that of x86-64, which stands for the call everywhere behind this; 0 none. */
const volatile u16 call_of_machine[512] = {};

#include "arch.h"

/* What the entry from user mode saved lies at the top of the kernel stack; null when nothing plausible lies
 * there, as with a kernel thread. For kernels without bpf_task_pt_regs. */
static __always_inline struct pt_regs *regs_on_stack(struct task_struct *task)
{
	void *stack = BPF_CORE_READ(task, stack);
	struct pt_regs *regs = stack + STACK_BYTES - bpf_core_type_size(struct pt_regs);

	if (!entered_from_user(regs))
		regs = stack + STACK_BYTES_LARGER - bpf_core_type_size(struct pt_regs);
	return entered_from_user(regs) ? regs : 0;
}

/* What a task's entry into the kernel saved, to be read through probes; null: not known. */
static __always_inline struct pt_regs *regs_of(struct task_struct *task)
{
	if (HAVE_TASK_PT_REGS)
		return (struct pt_regs *)bpf_task_pt_regs(task);
	return regs_on_stack(task);
}

/* A kernel address as a structure that is read directly, without a helper a step; a wrong one reads as nothing. Where the
 * kernel cannot do that, VIA reads through probes. */
extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym __weak;
#define VIA(pointer, type, field)                                                                                              \
	(bpf_ksym_exists(bpf_rdonly_cast) && TYPE_ID(type)                                                                     \
		 ? ((type *)bpf_rdonly_cast(pointer, TYPE_ID(type)))->field                                                      \
		 : BPF_CORE_READ((type *)(pointer), field))

/* Numbers of types as the kernel has them; 0: not known. From user space and not by relocation: that is given an extract of the kernel's
 * types, with other numbers. */
struct holdup_type_ids { u32 task, files, table, file, inode, head; };
const volatile struct holdup_type_ids type_ids = {};
#define TYPE_ID(type)                                                                                                          \
	_Generic((type *)0, struct task_struct *: type_ids.task, struct files_struct *: type_ids.files,                        \
		 struct fdtable *: type_ids.table, struct file *: type_ids.file, struct inode *: type_ids.inode,                \
		 struct hlist_head *: type_ids.head)

/* A loop whose body the verifier looks at until nothing new comes of it, and not once a turn: of a path of forty names that is
 * a tenth of the work, in each program that describes files. Kernels 6.4 to 6.9 know it too, and some of them do not see that
 * nothing new comes; those and older ones count. */
#define HAVE_OPEN_LOOPS (bpf_ksym_exists(bpf_iter_num_new) && bpf_ksym_exists(bpf_preempt_disable))
struct bpf_iter_num { u64 __opaque[1]; } __attribute__((aligned(8)));
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/* `step` returns true to go on. */
#define REPEAT(most, step)                                                                                                     \
	({                                                                                                                     \
		if (HAVE_OPEN_LOOPS) {                                                                                         \
			struct bpf_iter_num turns;                                                                             \
			bpf_iter_num_new(&turns, 0, most);                                                                     \
			while (bpf_iter_num_next(&turns)) {                                                                    \
				if (!(step))                                                                                   \
					break;                                                                                 \
			}                                                                                                      \
			bpf_iter_num_destroy(&turns);                                                                          \
		} else {                                                                                                       \
			for (u32 turn_ = 0; turn_ < (most); turn_++) {                                                         \
				if (!(step))                                                                                   \
					break;                                                                                 \
			}                                                                                                      \
		}                                                                                                              \
	})

/* For each number of a call of a 32-bit program: 1 + that of the 64-bit one with the same arguments; 0 none. */
const volatile u16 call_of_32_bit[512] = {};

static __always_inline void read_call_of_32_bit(struct holdup_call *call, struct task_struct *task)
{
	struct pt_regs *regs = regs_of(task);
	u64 number;

	__builtin_memset(call, 0, sizeof(*call));
	call->number = -1;
	if (!regs)
		return;
	number = NUMBER_OF_32_BIT(regs);
	if (number >= 512)
		return;
	barrier_var(number);
	call->number = (s32)call_of_32_bit[number & 511] - 1;
	if (call->number < 0)
		return;
	ARGUMENTS_OF_32_BIT(call, regs);
}

/* The system call that a task is in, by what its entry into the kernel saved. */
static __always_inline void read_call(struct holdup_call *call, struct task_struct *task)
{
	call->zero = 0;
	if (in_call_of_32_bit(task)) {
		read_call_of_32_bit(call, task);
		return;
	}
	if (HAVE_TASK_PT_REGS) {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
		CALL_BY_REGISTERS(call, regs, DIRECTLY);
		return;
	}
	struct pt_regs *regs = regs_on_stack(task);
	__builtin_memset(call, 0, sizeof(*call));
	call->number = -1;
	if (!regs) {
		__sync_fetch_and_add(&unreadable_calls, 1);
		return;
	}
	CALL_BY_REGISTERS(call, regs, BY_PROBES);
}

/* Of the states of a task. */
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200

/* The state of a task that leaves its CPU, where sched_switch does not hand it over. It may have been woken
 * since, which TASK_WAKING says. */
static __always_inline u32 state_of(struct task_struct *task)
{
	struct task_struct___state_renamed *renamed = (void *)task;
	if (bpf_core_field_exists(renamed->__state))
		return BPF_CORE_READ(renamed, __state);
	return BPF_CORE_READ((struct task_struct___state *)task, state);
}

/* The inode into whose page cache a page is added: the tracepoint hands over a folio, or a page. */
static __always_inline u64 inode_of_page(void *page)
{
	if (bpf_core_type_exists(struct folio))
		return (u64)BPF_CORE_READ((struct folio *)page, mapping, host);
	return (u64)BPF_CORE_READ((struct page *)page, mapping, host);
}

/* Numbers that were not handed out yet. Who takes one puts back the next of the same lane, HOLDUP_LANES further;
 * between the two nobody else has that lane, in whatever context. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, HOLDUP_LANES);
	__type(value, u32);
} numbers SEC(".maps");

/* 0: none was left, because every lane is in use at this moment. */
static __always_inline u32 next_number(void)
{
	u32 number = 0;
	if (bpf_map_pop_elem(&numbers, &number))
		return 0;
	u32 next = number + HOLDUP_LANES;
	bpf_map_push_elem(&numbers, &next, BPF_ANY);
	return number;
}

#endif
