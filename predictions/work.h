/* What the programs of the predictions are made of: CPU time by the thread's own clock, sleeps, disk writes, and the word for
 * whether the wait is really taken away (WITHOUT=1 in the environment). */
#ifndef WORK_H
#define WORK_H
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Whether this is the run without the wait. */
static inline int without(void)
{
    const char *word = getenv("WITHOUT");
    return word && *word == '1';
}

/* Uses the CPU for so many microseconds of the thread's own CPU time: the same work on a busy machine as on an idle one. */
static inline void compute(long us)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    long long end = now.tv_sec * 1000000000LL + now.tv_nsec + us * 1000LL;
    do {
        for (volatile int step = 0; step < 40000; step++)
            ;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000000LL + now.tv_nsec < end);
}

/* Sleeps so many microseconds. */
static inline void rest(long us)
{
    struct timespec length = {us / 1000000, us % 1000000 * 1000};
    if (us > 0)
        nanosleep(&length, NULL);
}

/* Dies with a word about what failed. */
static inline void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        exit(1);
    }
}

/* A file of one block in this folder, written already: what follows changes no metadata. */
static inline int block_in(const char *folder)
{
    char path[512], block[4096] = {0};
    snprintf(path, sizeof path, "%s/block.%d", folder, (int)getpid());
    int file = open(path, O_CREAT | O_RDWR, 0600);
    must(file >= 0 && write(file, block, sizeof block) == sizeof block && fsync(file) == 0, path);
    return file;
}

/* Writes the block and waits until the disk has it. */
static inline void write_through(int file, int what)
{
    char block[4096];
    memset(block, what, sizeof block);
    must(pwrite(file, block, sizeof block, 0) == sizeof block && fdatasync(file) == 0, "write and sync");
}
#endif
