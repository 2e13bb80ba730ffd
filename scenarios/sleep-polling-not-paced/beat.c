/* beat apart|paced: wakes fifty times, 50 ms after it has done the last of its work, or at fixed times 50 ms apart. */
#include "truth.h"

#define TIMES 50
#define PERIOD_NS 50000000

static struct timespec at(uint64_t ns)
{
    struct timespec instant = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    return instant;
}

/* Up to half a millisecond of work. */
__attribute__((noinline)) static void look(int time)
{
    uint64_t until = truth_now() + (uint64_t)(time * 7 % 10) * 50000;
    while (truth_now() < until)
        ;
    if (access("/nowhere", F_OK) == 0)
        exit(1);
}

int main(int count, char **words)
{
    int paced = count == 2 && strcmp(words[1], "paced") == 0;
    uint64_t began = truth_now(), next = began, waited = 0;

    for (int time = 0; time < TIMES; time++) {
        look(time);
        next = (paced ? next : truth_now()) + PERIOD_NS;
        struct timespec instant = at(next);
        uint64_t before = truth_now();
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &instant, NULL) != 0)
            ;
        waited += truth_now() - before;
    }
    /* Nearly all of the queueing comes after a sleep, and is none. */
    uint64_t queued = truth_queued();
    truth_write(getenv("HOLDUP_TRUTH"), paced || waited < queued ? 0 : waited - queued, truth_now() - began, queued);
    return 0;
}
