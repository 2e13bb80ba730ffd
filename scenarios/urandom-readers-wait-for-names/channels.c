/* A job on many threads: each resolves a name for each of its objects through a c-ares channel of its own, as a curl handle
 * for each object does, and so takes bytes from /dev/urandom each time: THREADS OBJECTS. Each thread begins a little later
 * than the one before, so that they are no crowd. The truth is the time that the thread which ended last waited for
 * answers. */
#include "channel.h"
#include <netdb.h>
#include <pthread.h>

static int objects;

/* Nanoseconds between the beginnings of two threads. */
enum { APART = 5000000 };

struct worker {
    pthread_t thread;
    uint64_t begins;
    uint64_t waited, queued, ended;
};

static void resolved(void *done, int status, int timeouts, struct hostent *host)
{
    (void)timeouts;
    (void)host;
    if (status != ARES_SUCCESS)
        abort();
    *(int *)done = 1;
}

/* Waits until it is time, if it is not yet. */
static void wait_until(uint64_t when)
{
    struct timespec time = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)};
    if (when > truth_now())
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void *work(void *argument)
{
    struct worker *self = argument;
    ares_channel channel;
    int object, done;
    wait_until(self->begins);
    for (object = 0; object < objects; object++) {
        if (ares_init(&channel) != ARES_SUCCESS)
            abort();
        done = 0;
        ares_gethostbyname(channel, "cache.shop.test", AF_INET, resolved, &done);
        while (!done)
            self->waited += wait_for_answer(channel);
        ares_destroy(channel);
    }
    self->queued = truth_queued();
    self->ended = truth_now();
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now();
    int count = argc > 1 ? atoi(argv[1]) : 1, at;
    struct worker *workers = calloc((size_t)count, sizeof *workers), *last = workers;
    objects = argc > 2 ? atoi(argv[2]) : 1;
    if (workers == NULL || ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
        return 1;
    for (at = 0; at < count; at++) {
        workers[at].begins = started + (uint64_t)APART * (uint64_t)at;
        if (pthread_create(&workers[at].thread, NULL, work, &workers[at]) != 0)
            return 1;
    }
    for (at = 0; at < count; at++) {
        pthread_join(workers[at].thread, NULL);
        if (workers[at].ended > last->ended)
            last = &workers[at];
    }
    truth_write(getenv("HOLDUP_TRUTH"), last->waited, truth_now() - started, last->queued);
    return 0;
}
