/* The main thread polls an eventfd; a worker sleeps SECONDS and writes it. */
#include "truth.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

static int event;
static time_t seconds;
static uint64_t worker_queued;

static void *work(void *nothing)
{
    struct timespec delay = {seconds, 0};
    uint64_t one = 1;
    nanosleep(&delay, NULL);
    if (write(event, &one, sizeof one) != (ssize_t)sizeof one)
        perror("eventfd");
    worker_queued = truth_queued();
    return nothing;
}

__attribute__((noinline)) static uint64_t wait_for_worker(void)
{
    struct pollfd waited_for = {event, POLLIN, 0};
    uint64_t before = truth_now();
    poll(&waited_for, 1, -1);
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited;
    pthread_t worker;
    seconds = argc > 1 ? atol(argv[1]) : 1;
    event = eventfd(0, EFD_CLOEXEC);
    pthread_create(&worker, NULL, work, NULL);
    waited = wait_for_worker();
    pthread_join(worker, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started,
                truth_queued() + worker_queued);
    return 0;
}
