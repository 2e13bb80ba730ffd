/* Works for a while, and sees by its own clock when it did not: a gap of microseconds is an interrupt, a longer one
 * somebody else's turn. A gap has in it what the CPU, or a hypervisor, needs to take the interrupt, which no kernel sees:
 * with short interrupts that is as long as they are. */
#define _GNU_SOURCE
#include "truth.h"

#define GAP_LEAST_NS 700u
#define GAP_MOST_NS 100000u

/* count MILLISECONDS */
int main(int argc, char **argv)
{
    uint64_t began = truth_now(), queued = truth_queued(), last = began, gaps = 0, now, until;
    if (argc != 2)
        return 2;
    until = began + strtoull(argv[1], NULL, 10) * 1000000u;
    do {
        now = truth_now();
        if (now - last > GAP_LEAST_NS && now - last < GAP_MOST_NS)
            gaps += now - last;
        last = now;
    } while (now < until);
    truth_write(getenv("HOLDUP_TRUTH"), gaps, now - began, truth_queued() - queued);
    return 0;
}
