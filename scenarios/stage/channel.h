/* How a program that uses c-ares waits for its answers. */
#include "truth.h"
#include <ares.h>
#include <sys/select.h>

/* One round: waits for the channel's sockets as long as c-ares wants, and returns the nanoseconds. */
__attribute__((noinline)) static uint64_t wait_for_answer(ares_channel channel)
{
    struct timeval limit = {5, 0}, *wait;
    fd_set readable, writable;
    uint64_t before, after;
    int count;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    count = ares_fds(channel, &readable, &writable);
    wait = ares_timeout(channel, &limit, &limit);
    before = truth_now();
    select(count, &readable, &writable, NULL, wait);
    after = truth_now();
    ares_process(channel, &readable, &writable);
    return after - before;
}
