/* Resolves one name with c-ares, one try of one second, and says how long it waited in select. */
#include "truth.h"
#include <ares.h>
#include <netdb.h>
#include <sys/select.h>

static void resolved(void *done, int status, int timeouts, struct hostent *host)
{
    (void)timeouts;
    printf("%s\n", status == ARES_SUCCESS ? host->h_name : ares_strerror(status));
    *(int *)done = 1;
}

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

int main(void)
{
    uint64_t started = truth_now(), waited = 0;
    struct ares_options options = {0};
    ares_channel channel;
    int done = 0;
    options.timeout = 1000;
    options.tries = 1;
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
        ares_init_options(&channel, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES) != ARES_SUCCESS)
        return 1;
    ares_gethostbyname(channel, "db.shop.test", AF_INET, resolved, &done);
    while (!done)
        waited += wait_for_answer(channel);
    ares_destroy(channel);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
