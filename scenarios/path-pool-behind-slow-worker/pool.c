/* Four workers take tasks from a queue; the main thread waits until all are done. Every task takes 20 ms, but the sixth
 * what the argument says, in ms. The truth is the time of the slow task and of the one before it, which its worker did. */
#include "truth.h"
#include <pthread.h>

enum { WORKERS = 4, TASKS = 12 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int next_task, open_tasks = TASKS;
static long slow_ms;

__attribute__((noinline)) static void do_task(long ms)
{
    struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&delay, NULL);
}

static void *work(void *nothing)
{
    for (;;) {
        int task;
        pthread_mutex_lock(&queue_lock);
        task = next_task++;
        pthread_mutex_unlock(&queue_lock);
        if (task >= TASKS)
            return nothing;
        do_task(task == 5 ? slow_ms : 20);
        pthread_mutex_lock(&queue_lock);
        if (--open_tasks == 0)
            pthread_cond_signal(&all_done);
        pthread_mutex_unlock(&queue_lock);
    }
}

__attribute__((noinline)) static void await_all(void)
{
    pthread_mutex_lock(&queue_lock);
    while (open_tasks > 0)
        pthread_cond_wait(&all_done, &queue_lock);
    pthread_mutex_unlock(&queue_lock);
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now();
    pthread_t workers[WORKERS];
    int worker;
    slow_ms = argc > 1 ? atol(argv[1]) : 20;
    for (worker = 0; worker < WORKERS; worker++)
        pthread_create(&workers[worker], NULL, work, NULL);
    await_all();
    for (worker = 0; worker < WORKERS; worker++)
        pthread_join(workers[worker], NULL);
    truth_write(getenv("HOLDUP_TRUTH"), (uint64_t)(slow_ms + 20) * 1000000, truth_now() - started, truth_queued());
    return 0;
}
