/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Who is in the way, as the kernel itself has it: the owner of a kernel lock, of a priority-inheritance futex, the
 * tracer. A kernel lock is known from the contention tracepoints (Linux 5.19 and later), which fire only for a
 * thread that did not get its lock; a thread that waits for anything else pays one comparison.
 */
#ifndef HOLDUP_LOCKS_H
#define HOLDUP_LOCKS_H

#include "objects.h"

/* Flags of contention_begin, as the kernel has them. */
#define LCB_F_SPIN (1U << 0)
#define LCB_F_READ (1U << 1)
#define LCB_F_RT (1U << 3)
#define LCB_F_PERCPU (1U << 4)
#define LCB_F_MUTEX (1U << 5)

#define OWNER_FLAGS 7UL           /* low bits of an owner field that are not part of the address */
#define RWSEM_READER_OWNED 1UL    /* the owner field then names the last reader, who may have let go */
#define RT_HAS_WAITERS 1UL

/* The owner's ids; where nobody can be named they are 0. */
static __always_inline void set_owner(struct thread *t, u8 kind, struct task_struct *owner)
{
	t->holder_kind = kind;
	t->holder[HOLDUP_OWNER_TID] = owner ? BPF_CORE_READ(owner, pid) : 0;
	t->holder[HOLDUP_OWNER_PID] = owner ? BPF_CORE_READ(owner, tgid) : 0;
}

/* The owner of a real-time mutex, which had another type before 5.15. */
static __always_inline struct task_struct *rt_owner(void *lock)
{
	u64 owner;
	if (bpf_core_type_exists(struct rt_mutex_base))
		owner = (u64)BPF_CORE_READ((struct rt_mutex_base *)lock, owner);
	else
		owner = (u64)BPF_CORE_READ((struct rt_mutex___before_base *)lock, owner);
	return (void *)(owner & ~RT_HAS_WAITERS);
}

/* The kernel queues a thread that locks a priority-inheritance futex behind its owner. */
static __always_inline bool find_pi_owner(struct thread *t, struct task_struct *task)
{
	if (!bpf_core_field_exists(task->pi_blocked_on))
		return false;
	struct rt_mutex_waiter *waiter = BPF_CORE_READ(task, pi_blocked_on);
	void *lock = waiter ? BPF_CORE_READ(waiter, lock) : 0;
	struct task_struct *owner = lock ? rt_owner(lock) : 0;
	if (!owner)
		return false;
	set_owner(t, HOLDUP_HOLDER_PI, owner);
	return true;
}

/* A thread that is traced has its tracer as parent. */
static __always_inline void find_tracer(struct thread *t, struct task_struct *task)
{
	set_owner(t, HOLDUP_HOLDER_TRACER, BPF_CORE_READ(task, parent));
}

/* Where a thread entered the kernel. A lock is believed to be what it sleeps for only while it is in there still: the
 * end of its wait may not have been seen. */
static __always_inline u64 entry_of(struct task_struct *task)
{
	/* Kernels that announce contention know this; for others the way here is cut out. */
	if (!HAVE_TASK_PT_REGS)
		return 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	return entry_by(regs);
}

/* Who owns the lock that the thread is about to sleep for. */
static __always_inline void find_lock_owner(struct thread *t, struct task_struct *task)
{
	void *lock = (void *)t->contended;
	u32 flags = t->contended_flags;
	u64 owner = 0;

	if (t->contended_in != entry_of(task)) {
		t->contended = 0;
		return;
	}
	if (flags & LCB_F_PERCPU) {
	} else if (flags & LCB_F_RT) {
		owner = (u64)rt_owner(lock);
	} else if (flags & LCB_F_MUTEX) {
		if (bpf_core_field_exists(((struct mutex *)0)->owner))
			owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
	} else if (bpf_core_field_exists(((struct rw_semaphore *)0)->owner)) {
		owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
		if (owner & RWSEM_READER_OWNED)
			owner = 0;
	}
	set_owner(t, HOLDUP_HOLDER_KERNEL_LOCK, (void *)(owner & ~OWNER_FLAGS));
	t->holder[HOLDUP_LOCK_FLAGS] = flags;
	t->holder[HOLDUP_LOCK_SPACE] = t->contended_space;
	t->holder[HOLDUP_LOCK_OBJECT] = t->contended_object;
}

/* The process whose address space this semaphore guards; 0 if it is no such lock. */
static __always_inline u32 space_of_lock(u64 lock, struct task_struct *task)
{
	struct mm_struct *mm = (void *)(lock - bpf_core_field_offset(struct mm_struct, mmap_lock));
	struct task_struct *owner;

	if (!bpf_core_field_exists(mm->mmap_lock))
		return 0;
	if (task->mm == mm)
		return task->tgid;
	/* Another's: what lies around the lock is one only if it is the address space of the task it names. */
	if (!bpf_core_field_exists(mm->owner))
		return 0;
	owner = BPF_CORE_READ(mm, owner);
	if (!owner || BPF_CORE_READ(owner, mm) != mm)
		return 0;
	return BPF_CORE_READ(owner, tgid);
}

/* The file or directory whose inode this semaphore belongs to; 0 if it is no such lock. */
static __always_inline u32 object_of_lock(u64 lock)
{
	struct inode *inode = (void *)(lock - bpf_core_field_offset(struct inode, i_rwsem));

	if (!bpf_core_field_exists(inode->i_rwsem) || BPF_CORE_READ(inode, i_data.host) != inode)
		return 0;
	return object_of_inode((u64)inode);
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention_begin, void *lock, unsigned int flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	if (frozen || (flags & LCB_F_SPIN))
		return 0;
	t = thread_of(task);
	if (!t)
		return 0;
	t->contended_flags = flags;
	t->contended_in = entry_of(task);
	t->contended_space = 0;
	t->contended_object = 0;
	if (!(flags & (LCB_F_MUTEX | LCB_F_RT | LCB_F_PERCPU))) {
		t->contended_space = space_of_lock((u64)lock, task);
		if (!t->contended_space)
			t->contended_object = object_of_lock((u64)lock);
	}
	t->contended = (u64)lock;
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int result)
{
	struct thread *t = thread_of(bpf_get_current_task_btf());
	if (t && t->contended == (u64)lock)
		t->contended = 0;
	return 0;
}

#endif
