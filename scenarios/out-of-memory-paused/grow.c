/* Opens the GATE and fills MEGABYTES of memory: GATE MEGABYTES. */
#include "truth.h"
#include <sys/mman.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static uint64_t grow(volatile char *memory, size_t length)
{
    uint64_t longest = 0, before, took;
    size_t at;
    for (at = 0; at < length; at += PAGE) {
        before = truth_now();
        memory[at] = 1;
        took = truth_now() - before;
        longest = took > longest ? took : longest;
    }
    return longest;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited;
    size_t length = argc == 3 ? (size_t)atol(argv[2]) << 20 : 0;
    int gate = argc == 3 ? open(argv[1], O_WRONLY) : -1;
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (gate < 0 || memory == MAP_FAILED || dprintf(gate, "%d\n", getpid()) < 0)
        return 1;
    close(gate);
    waited = grow(memory, length);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
