/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the processor's kernel lays out what it saved of a user thread, and how that is read. */
#ifndef HOLDUP_ARCH_H
#define HOLDUP_ARCH_H

/* A field of saved registers that the kernel vouches for, and of some that it does not. */
#define DIRECTLY(r, field) ((r)->field)
#define BY_PROBES(r, field) BPF_CORE_READ(r, field)

#if defined(__TARGET_ARCH_x86)
#include "arch/x86_64.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch/aarch64.h"
#else
#error "the registers of this processor are not known"
#endif

#endif
