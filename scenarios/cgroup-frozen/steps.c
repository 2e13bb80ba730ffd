/* Opens the GATE and takes steps of a millisecond until FILE exists; the longest step is the time in which it was not let run. */
#include "truth.h"

__attribute__((noinline)) static uint64_t step(void)
{
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    return truth_now();
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), longest = 0, last, now;
    int gate = argc == 3 ? open(argv[1], O_WRONLY) : -1;
    /* It may be frozen anywhere, also between two steps, and as soon as the gate is open. */
    last = truth_now();
    if (gate < 0 || dprintf(gate, "%d\n", getpid()) < 0)
        return 1;
    close(gate);
    do {
        now = step();
        longest = now - last > longest ? now - last : longest;
        last = now;
    } while (access(argv[2], F_OK) != 0);
    now = step();
    longest = now - last > longest ? now - last : longest;
    truth_write(getenv("HOLDUP_TRUTH"), longest, truth_now() - started, truth_queued());
    return 0;
}
