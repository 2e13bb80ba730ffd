/* A profiler that was left on: clocks that interrupt CPU 0 again and again, and nobody who reads what they find. How long an interrupt takes
 * differs by machine, so there are as many clocks as take more than a quarter of the CPU, by the gaps that a program sees in its own time. */
#define _GNU_SOURCE
#include "gaps.h"
#include "truth.h"
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>

#define MAX_CLOCKS 12
#define PERIOD_NS 60000
#define LOOK_NS 30000000u
#define MIN_PARTS_OF_100 28u

static int taken_enough(void)
{
    uint64_t began = truth_now(), gaps = gaps_until(began + LOOK_NS);
    return gaps * 100 >= (truth_now() - began) * MIN_PARTS_OF_100;
}

int main(void)
{
    cpu_set_t first, all;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (sched_getaffinity(0, sizeof all, &all) || sched_setaffinity(0, sizeof first, &first))
        return 1;
    for (int i = 0; i < MAX_CLOCKS && !taken_enough(); i++) {
        struct perf_event_attr clock = {
            .type = PERF_TYPE_SOFTWARE,
            .size = sizeof clock,
            .config = PERF_COUNT_SW_CPU_CLOCK,
            .sample_period = PERIOD_NS + (uint64_t)i * 1000,
        };
        if (syscall(SYS_perf_event_open, &clock, -1, 0, -1, PERF_FLAG_FD_CLOEXEC) < 0) {
            perror("perf_event_open");
            return 1;
        }
    }
    if (sched_setaffinity(0, sizeof all, &all) || write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    for (;;)
        pause();
}
