/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* aarch64. */
#ifndef HOLDUP_ARCH_AARCH64_H
#define HOLDUP_ARCH_AARCH64_H

/* Bytes of a kernel stack with pages of 4 and 16 KiB, and with pages of 64 KiB. */
#define STACK_BYTES 16384
#define STACK_BYTES_LARGER 65536
/* Of pstate: which level and stack; 0 is user mode, with a further bit for 32-bit code. */
#define PSTATE_LEVEL 0xf
/* Of thread_info.flags: the task runs 32-bit code, whose calls have other numbers. */
#define TIF_32BIT (1UL << 22)
#define EPOLL_EVENT_BYTES 16

/* A kernel thread has zeros there. */
static __always_inline bool entered_from_user(const struct pt_regs *regs)
{
	return !(BPF_CORE_READ(regs, pstate) & PSTATE_LEVEL) && BPF_CORE_READ(regs, pc) && BPF_CORE_READ(regs, sp);
}

static __always_inline bool in_call_of_32_bit(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread_info.flags) & TIF_32BIT;
}

/* The number of a 32-bit call, as its table has it, and its arguments. What is in none has -1, which no table has. */
#define NUMBER_OF_32_BIT(r) (u64)(s64)BPF_CORE_READ(r, syscallno)
#define ARGUMENTS_OF_32_BIT(call, r)                                                                                           \
	do {                                                                                                                   \
		(call)->args[0] = (u32)BPF_CORE_READ(r, orig_x0);                                                              \
		(call)->args[1] = (u32)BPF_CORE_READ(r, regs[1]);                                                              \
		(call)->args[2] = (u32)BPF_CORE_READ(r, regs[2]);                                                              \
		(call)->args[3] = (u32)BPF_CORE_READ(r, regs[3]);                                                              \
	} while (0)

/* The number of x86-64 for one of this machine's; -1 where there is none, and in no call. */
static __always_inline s32 common_number(s32 number)
{
	u64 at = (u32)number;

	if (at >= 512)
		return -1;
	barrier_var(at);
	return (s32)call_of_machine[at & 511] - 1;
}

#define CALL_BY_REGISTERS(call, r, READ)                                                                                       \
	do {                                                                                                                   \
		(call)->number = common_number(READ(r, syscallno));                                                            \
		(call)->args[0] = READ(r, orig_x0);                                                                            \
		(call)->args[1] = READ(r, regs[1]);                                                                            \
		(call)->args[2] = READ(r, regs[2]);                                                                            \
		(call)->args[3] = READ(r, regs[3]);                                                                            \
	} while (0)

static __always_inline void copy_regs(struct holdup_regs *out, const struct pt_regs *regs)
{
	out->ip = BPF_CORE_READ(regs, pc);
	out->sp = BPF_CORE_READ(regs, sp);
	out->saved[0] = BPF_CORE_READ(regs, regs[19]);
	out->saved[1] = BPF_CORE_READ(regs, regs[20]);
	out->saved[2] = BPF_CORE_READ(regs, regs[21]);
	out->saved[3] = BPF_CORE_READ(regs, regs[22]);
	out->saved[4] = BPF_CORE_READ(regs, regs[23]);
	out->saved[5] = BPF_CORE_READ(regs, regs[24]);
	out->saved[6] = BPF_CORE_READ(regs, regs[25]);
	out->saved[7] = BPF_CORE_READ(regs, regs[26]);
	out->saved[8] = BPF_CORE_READ(regs, regs[27]);
	out->saved[9] = BPF_CORE_READ(regs, regs[28]);
	out->saved[10] = BPF_CORE_READ(regs, regs[29]);
	out->saved[11] = BPF_CORE_READ(regs, regs[30]);
}

static __always_inline u64 fifth_argument(const struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, regs[4]);
}

/* What a call returns, as it returns. */
static __always_inline s64 returned_by(const struct pt_regs *regs)
{
	return BPF_CORE_READ(regs, regs[0]);
}

static __always_inline u64 entry_by(const struct pt_regs *regs)
{
	return regs->pc ^ (regs->sp << 16) ^ ((u64)(u32)regs->syscallno << 48);
}

static __always_inline bool sampled_in_user(const struct bpf_perf_event_data *ctx)
{
	return !(ctx->regs.pstate & PSTATE_LEVEL);
}

static __always_inline void copy_sampled_regs(struct holdup_regs *out, const struct bpf_perf_event_data *ctx)
{
	out->ip = ctx->regs.pc;
	out->sp = ctx->regs.sp;
	out->saved[0] = ctx->regs.regs[19];
	out->saved[1] = ctx->regs.regs[20];
	out->saved[2] = ctx->regs.regs[21];
	out->saved[3] = ctx->regs.regs[22];
	out->saved[4] = ctx->regs.regs[23];
	out->saved[5] = ctx->regs.regs[24];
	out->saved[6] = ctx->regs.regs[25];
	out->saved[7] = ctx->regs.regs[26];
	out->saved[8] = ctx->regs.regs[27];
	out->saved[9] = ctx->regs.regs[28];
	out->saved[10] = ctx->regs.regs[29];
	out->saved[11] = ctx->regs.regs[30];
}

/* The CPU's own timer and calls from other CPUs are announced as devices' interrupts are, under these names. */
static __always_inline u32 kind_of_irq(const struct irqaction *action)
{
	char name[8] = {};

	if (bpf_probe_read_kernel_str(name, sizeof(name), action->name) <= 0)
		return HOLDUP_BY_DEVICE;
	if (__builtin_memcmp(name, "arch_ti", sizeof(name)) == 0)
		return HOLDUP_BY_TIMER;
	return __builtin_memcmp(name, "IPI", 4) == 0 ? HOLDUP_BY_CPU : HOLDUP_BY_DEVICE;
}

#endif
