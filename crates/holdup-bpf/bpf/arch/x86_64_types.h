/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Of kernel.h: x86-64's part. */
#define HOLDUP_SAVED 6 /* rbx, rbp, r12, r13, r14, r15 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
struct thread_info { u32 status; };

#pragma clang attribute pop

/* The context of a sample: not the kernel's own structure but a stable layout for programs, never relocated. */
struct sample_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
