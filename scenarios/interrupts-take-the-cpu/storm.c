/* A profiler that was left on: clocks that interrupt CPU 0 again and again, and nobody who reads what they find. */
#define _GNU_SOURCE
#include "truth.h"
#include <linux/perf_event.h>
#include <sys/syscall.h>

#define CLOCKS 2
#define PERIOD_NS 60000

int main(void)
{
    for (int i = 0; i < CLOCKS; i++) {
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
    if (write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    for (;;)
        pause();
}
