/* Resolves one name with c-ares, one try of one second, and says how long it waited in select. */
#include "channel.h"
#include <netdb.h>

static void resolved(void *done, int status, int timeouts, struct hostent *host)
{
    (void)timeouts;
    printf("%s\n", status == ARES_SUCCESS ? host->h_name : ares_strerror(status));
    *(int *)done = 1;
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
