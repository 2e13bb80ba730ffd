/* Looks at the clock again and again, each time by a system call: what every look is where the kernel's clock can only
 * be read by the kernel. */
#define _GNU_SOURCE
#include "truth.h"
#include <sys/resource.h>
#include <sys/syscall.h>

/* CPU time in the kernel. */
static uint64_t in_kernel(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_stime.tv_sec * 1000000000u + (uint64_t)usage.ru_stime.tv_usec * 1000u;
}

/* look TIMES */
int main(int argc, char **argv)
{
    uint64_t began = truth_now(), queued = truth_queued(), cpu = in_kernel();
    struct timespec now;
    if (argc != 2)
        return 2;
    for (unsigned long left = strtoul(argv[1], NULL, 10); left; left--)
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    cpu = in_kernel() - cpu;
    truth_write(getenv("HOLDUP_TRUTH"), cpu, truth_now() - began, truth_queued() - queued);
    return 0;
}
