/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* x86-64. */
#ifndef HOLDUP_ARCH_X86_64_H
#define HOLDUP_ARCH_X86_64_H

/* Bytes of a kernel stack, as it is built, and as it is built with the address sanitizer. */
#define STACK_BYTES 16384
#define STACK_BYTES_LARGER 32768
/* The segments of user code (64 and 32 bits) and of user data. */
#define USER_CS 0x33
#define USER_CS_32 0x23
#define USER_SS 0x2b
/* Of thread_info.status: the task is in a call of the 32-bit kind, whose numbers and registers are others. */
#define TS_COMPAT 2
#define EPOLL_EVENT_BYTES 12 /* it is packed */

static __always_inline bool entered_from_user(const struct pt_regs *regs)
{
	u64 cs = BPF_CORE_READ(regs, cs);
	return (cs == USER_CS || cs == USER_CS_32) && BPF_CORE_READ(regs, ss) == USER_SS;
}

static __always_inline bool in_call_of_32_bit(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.status) && (BPF_CORE_READ(task, thread_info.status) & TS_COMPAT);
}

/* The number of a 32-bit call, as its table has it, and its arguments. */
#define NUMBER_OF_32_BIT(r) BPF_CORE_READ(r, orig_ax)
#define ARGUMENTS_OF_32_BIT(call, r)                                                                                           \
	do {                                                                                                                   \
		(call)->args[0] = (u32)BPF_CORE_READ(r, bx);                                                                   \
		(call)->args[1] = (u32)BPF_CORE_READ(r, cx);                                                                   \
		(call)->args[2] = (u32)BPF_CORE_READ(r, dx);                                                                   \
		(call)->args[3] = (u32)BPF_CORE_READ(r, si);                                                                   \
	} while (0)

/* The number of a call is x86-64's own. */
#define CALL_BY_REGISTERS(call, r, READ)                                                                                       \
	do {                                                                                                                   \
		(call)->number = READ(r, orig_ax);                                                                             \
		(call)->args[0] = READ(r, di);                                                                                 \
		(call)->args[1] = READ(r, si);                                                                                 \
		(call)->args[2] = READ(r, dx);                                                                                 \
		(call)->args[3] = READ(r, r10);                                                                                \
	} while (0)

static __always_inline void copy_regs(struct holdup_regs *out, const struct pt_regs *regs)
{
	out->ip = BPF_CORE_READ(regs, ip);
	out->sp = BPF_CORE_READ(regs, sp);
	out->saved[0] = BPF_CORE_READ(regs, bx);
	out->saved[1] = BPF_CORE_READ(regs, bp);
	out->saved[2] = BPF_CORE_READ(regs, r12);
	out->saved[3] = BPF_CORE_READ(regs, r13);
	out->saved[4] = BPF_CORE_READ(regs, r14);
	out->saved[5] = BPF_CORE_READ(regs, r15);
}

static __always_inline u64 fifth_argument(const struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, r8);
}

/* What a call returns, as it returns. */
static __always_inline s64 returned_by(const struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, ax);
}

static __always_inline u64 entry_by(const struct pt_regs *regs)
{
	return regs->ip ^ (regs->sp << 16) ^ ((u64)regs->orig_ax << 48);
}

static __always_inline bool sampled_in_user(const struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) != 0;
}

static __always_inline void copy_sampled_regs(struct holdup_regs *out, const struct bpf_perf_event_data *ctx)
{
	out->ip = ctx->regs.ip;
	out->sp = ctx->regs.sp;
	out->saved[0] = ctx->regs.bx;
	out->saved[1] = ctx->regs.bp;
	out->saved[2] = ctx->regs.r12;
	out->saved[3] = ctx->regs.r13;
	out->saved[4] = ctx->regs.r14;
	out->saved[5] = ctx->regs.r15;
}

/* The CPU's own timer and calls from other CPUs have announcements of their own. */
static __always_inline u32 kind_of_irq(const struct irqaction *action)
{
	return HOLDUP_BY_DEVICE;
}

#endif
