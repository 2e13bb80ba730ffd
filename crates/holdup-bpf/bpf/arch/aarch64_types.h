/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Of kernel.h: aarch64's part. */
#define HOLDUP_SAVED 12 /* x19 to x28, x29 (frame pointer), x30 (link register) */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs { u64 regs[31], sp, pc, pstate, orig_x0; s32 syscallno; };
struct thread_info { unsigned long flags; };

#pragma clang attribute pop

/* The context of a sample: struct user_pt_regs, a stable layout for programs, never relocated. */
struct sample_regs { u64 regs[31], sp, pc, pstate; };
