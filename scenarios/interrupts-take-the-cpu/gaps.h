/* When the CPU was taken away for moments, as a program sees it by its own clock: a gap of microseconds is an interrupt, a longer one
 * somebody else's turn. A gap has in it what the CPU, or a hypervisor, needs to take the interrupt, which no kernel sees: with short
 * interrupts that is as long as they are. */
#pragma once
#include "truth.h"

#define GAP_LEAST_NS 700u
#define GAP_MOST_NS 100000u

/* The sum of all gaps until then, nanoseconds. */
static inline uint64_t gaps_until(uint64_t until)
{
    uint64_t last = truth_now(), gaps = 0, now;
    do {
        now = truth_now();
        if (now - last > GAP_LEAST_NS && now - last < GAP_MOST_NS)
            gaps += now - last;
        last = now;
    } while (now < until);
    return gaps;
}
