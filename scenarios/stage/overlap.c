/* Rounds in which one thread computes for COMPUTE ms of CPU time while another writes 4 KiB to FILE and waits until it
 * is on the disk; the round ends when both are done. Making the shorter of the two faster gains nothing.
 *
 * The truth is what the rounds spent in the one that was done last (and in it alone): its time without what it queued
 * for a CPU; of the rounds that the other one made long, nothing. */
#include "truth.h"
#include <pthread.h>

enum { ROUNDS = 15 };

static pthread_barrier_t begin, end;
static const char *file;
static uint64_t written[ROUNDS], asleep[ROUNDS], computed[ROUNDS], writer_queued;

__attribute__((noinline)) static void compute(uint64_t ns)
{
    uint64_t until = truth_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
    volatile unsigned sum = 0;
    unsigned step;
    while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < until)
        for (step = 0; step < 500000; step++)
            sum += step;
}

__attribute__((noinline)) static void write_down(int fd)
{
    static char page[4096];
    if (pwrite(fd, page, sizeof page, 0) != (ssize_t)sizeof page || fdatasync(fd))
        perror(file);
}

static void *write_rounds(void *nothing)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644), round;
    for (round = 0; round < ROUNDS; round++) {
        uint64_t began, queued;
        pthread_barrier_wait(&begin);
        queued = truth_queued();
        began = truth_now();
        write_down(fd);
        written[round] = truth_now() - began;
        queued = truth_queued() - queued;
        asleep[round] = written[round] > queued ? written[round] - queued : 0;
        pthread_barrier_wait(&end);
    }
    writer_queued = truth_queued();
    close(fd);
    return nothing;
}

int main(int argc, char **argv)
{
    uint64_t started, waited = 0;
    long compute_ms;
    pthread_t writer;
    int round, of_compute;
    if (argc < 4)
        return 2;
    compute_ms = atol(argv[1]);
    file = argv[2];
    of_compute = strcmp(argv[3], "compute") == 0;
    pthread_barrier_init(&begin, NULL, 2);
    pthread_barrier_init(&end, NULL, 2);
    pthread_create(&writer, NULL, write_rounds, NULL);
    started = truth_now();
    for (round = 0; round < ROUNDS; round++) {
        uint64_t began;
        pthread_barrier_wait(&begin);
        began = truth_now();
        compute((uint64_t)compute_ms * 1000000);
        computed[round] = truth_now() - began;
        pthread_barrier_wait(&end);
        if (of_compute && computed[round] > written[round])
            waited += (uint64_t)compute_ms * 1000000;
        if (!of_compute && written[round] >= computed[round])
            waited += asleep[round];
    }
    pthread_join(writer, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued() + writer_queued);
    return 0;
}
