/* As many threads as CPUs (2 to 4) post entries: four fifths of the work is done under a mutex, `shared` by all or each its `own`.
 *
 * Work is CPU time, so that it takes as long on a busy machine. The truth is what the threads waited in
 * pthread_mutex_lock, of the sum of the threads' lives. */
#include "truth.h"
#include <pthread.h>

enum { MOST = 4, ENTRIES = 100 };
static const uint64_t UNDER_LOCK_NS = 4000000, OUTSIDE_NS = 1000000;

struct ledger {
    pthread_t thread;
    pthread_mutex_t *lock;
    uint64_t waited, lived, queued;
};

static pthread_mutex_t ledger_lock[MOST];

/* The clock of a thread's CPU time is a system call: it is looked at now and then, so that work stays work. */
static void work(uint64_t ns)
{
    uint64_t until = truth_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
    volatile unsigned sum = 0;
    unsigned step;
    while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < until)
        for (step = 0; step < 50000; step++)
            sum += step;
}

__attribute__((noinline)) static void post_entry(struct ledger *mine)
{
    uint64_t queued = truth_queued(), asked = truth_now(), waited;
    pthread_mutex_lock(mine->lock);
    waited = truth_now() - asked;
    /* Once the lock is handed over, waiting for a CPU is another trouble. */
    queued = truth_queued() - queued;
    mine->waited += waited > queued ? waited - queued : 0;
    work(UNDER_LOCK_NS);
    pthread_mutex_unlock(mine->lock);
    work(OUTSIDE_NS);
}

static void *post_entries(void *argument)
{
    struct ledger *mine = argument;
    uint64_t started = truth_now();
    int entry;
    for (entry = 0; entry < ENTRIES; entry++)
        post_entry(mine);
    mine->lived = truth_now() - started;
    mine->queued = truth_queued();
    return NULL;
}

int main(int argc, char **argv)
{
    int shared = argc < 2 || strcmp(argv[1], "own") != 0;
    struct ledger ledgers[MOST] = {0};
    uint64_t waited = 0, lived = 0, queued = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = cpus < 2 ? 2 : cpus > MOST ? MOST : (int)cpus;
    int number;
    for (number = 0; number < threads; number++) {
        pthread_mutex_init(&ledger_lock[number], NULL);
        ledgers[number].lock = &ledger_lock[shared ? 0 : number];
    }
    for (number = 1; number < threads; number++)
        pthread_create(&ledgers[number].thread, NULL, post_entries, &ledgers[number]);
    /* The main thread is one of them, so that little of its life is a join. */
    post_entries(&ledgers[0]);
    for (number = 0; number < threads; number++) {
        if (number > 0)
            pthread_join(ledgers[number].thread, NULL);
        waited += ledgers[number].waited;
        lived += ledgers[number].lived;
        queued += ledgers[number].queued;
    }
    truth_write(getenv("HOLDUP_TRUTH"), waited, lived, queued);
    return 0;
}
