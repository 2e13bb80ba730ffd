/* Four threads keep 3000 blocks of 2 to 34 KiB each, and free and allocate them at random.
 *
 * The truth is what the threads neither ran nor were ready for, of the sum of their lives. */
#include "truth.h"
#include <pthread.h>

enum { THREADS = 4, BLOCKS = 3000, TURNS = 200000 };

struct worker {
    pthread_t thread;
    uint64_t waited, lived, queued;
    unsigned random;
};

__attribute__((noinline)) static void allocate(struct worker *mine)
{
    static const unsigned LEAST = 2048, MOST = 32768;
    void **blocks = calloc(BLOCKS, sizeof *blocks);
    int turn;
    for (turn = 0; blocks != NULL && turn < TURNS; turn++) {
        unsigned at;
        mine->random = mine->random * 1103515245u + 12345u;
        at = (mine->random >> 8) % BLOCKS;
        free(blocks[at]);
        blocks[at] = malloc(LEAST + (mine->random >> 4) % MOST);
    }
}

static void *work(void *argument)
{
    struct worker *mine = argument;
    uint64_t started = truth_now(), busy = truth_clock(CLOCK_THREAD_CPUTIME_ID);
    allocate(mine);
    mine->lived = truth_now() - started;
    mine->queued = truth_queued();
    busy = truth_clock(CLOCK_THREAD_CPUTIME_ID) - busy;
    mine->waited = mine->lived > busy + mine->queued ? mine->lived - busy - mine->queued : 0;
    return NULL;
}

int main(void)
{
    struct worker workers[THREADS] = {0};
    uint64_t waited = 0, lived = 0, queued = 0;
    int number;
    for (number = 0; number < THREADS; number++)
        workers[number].random = (unsigned)number + 1;
    for (number = 1; number < THREADS; number++)
        pthread_create(&workers[number].thread, NULL, work, &workers[number]);
    /* The main thread is one of them, so that little of its life is a join. */
    work(&workers[0]);
    for (number = 0; number < THREADS; number++) {
        if (number > 0)
            pthread_join(workers[number].thread, NULL);
        waited += workers[number].waited;
        lived += workers[number].lived;
        queued += workers[number].queued;
    }
    truth_write(getenv("HOLDUP_TRUTH"), waited, lived, queued);
    return 0;
}
