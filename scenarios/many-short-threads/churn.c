/* Does 8000 small pieces of work, in a thread each or in one: many|one. The truth is the main thread's CPU time
 * in the kernel: nearly all of it makes threads. What they take to end is beside it where CPUs are free. */
#define _GNU_SOURCE
#include "truth.h"
#include <pthread.h>
#include <sys/resource.h>

enum { PIECES = 8000 };

static void *piece(void *sum)
{
    volatile unsigned step;
    for (step = 0; step < 2000; step++)
        *(unsigned *)sum += step;
    return NULL;
}

static void *pieces(void *sum)
{
    int done;
    for (done = 0; done < PIECES * 20; done++)
        piece(sum);
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now();
    struct rusage used;
    int many = argc < 2 || strcmp(argv[1], "one") != 0, number, threads = many ? PIECES : 1;
    unsigned sum = 0;
    pthread_t thread;
    for (number = 0; number < threads; number++) {
        if (pthread_create(&thread, NULL, many ? piece : pieces, &sum) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    getrusage(RUSAGE_THREAD, &used);
    truth_write(getenv("HOLDUP_TRUTH"), (uint64_t)used.ru_stime.tv_sec * 1000000000u + (uint64_t)used.ru_stime.tv_usec * 1000u, truth_now() - started, truth_queued());
    return 0;
}
