/* Keeps a counter in a mapped FILE, as runtimes keep their statistics, and lets the disk have it after every change:
 * FILE TIMES. Nothing here waits for the disk on purpose. */
#define _GNU_SOURCE
#include "truth.h"
#include <sys/mman.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static uint64_t count(volatile unsigned long *counter)
{
    uint64_t before = truth_now();
    ++*counter;
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited = 0;
    int file = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, times;
    unsigned long *counter = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || counter == MAP_FAILED)
        return 1;
    for (times = atoi(argv[2]); times > 0; times--) {
        waited += count(counter);
        if (sync_file_range(file, 0, PAGE, SYNC_FILE_RANGE_WRITE) != 0)
            return 1;
    }
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
