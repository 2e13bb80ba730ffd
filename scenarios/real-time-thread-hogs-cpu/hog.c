/* Has its CPU for four fifths of the time, by a real-time policy, until it is killed. */
#define _GNU_SOURCE
#include "truth.h"
#include <sched.h>

#define BUSY_NS 8000000u
#define PAUSE_NS 2000000

int main(void)
{
    struct sched_param first = {.sched_priority = 1};
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (sched_setscheduler(0, SCHED_FIFO, &first)) {
        perror("sched_setscheduler");
        return 1;
    }
    if (write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    for (;;) {
        uint64_t until = truth_now() + BUSY_NS;
        while (truth_now() < until)
            ;
        nanosleep(&pause, NULL);
    }
}
