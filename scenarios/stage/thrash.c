/* Goes over MEGABYTES of memory of its own PASSES times after having filled it, a byte a page. */
#include "truth.h"
#include <sys/mman.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static void touch_all(volatile unsigned char *memory, size_t length)
{
    size_t at;
    for (at = 0; at < length; at += PAGE)
        memory[at]++;
}

/* Pages that a compressor can do something with, and no two the same. */
static void fill(unsigned char *memory, size_t length)
{
    unsigned char page[PAGE];
    size_t at;
    for (at = 0; at < PAGE; at++)
        page[at] = (unsigned char)(at * at >> 7);
    for (at = 0; at < length; at += PAGE) {
        memcpy(memory + at, page, PAGE);
        memcpy(memory + at, &at, sizeof at);
    }
}

int main(int argc, char **argv)
{
    size_t length = argc == 3 ? (size_t)atol(argv[1]) << 20 : 0;
    int pass, passes = argc == 3 ? atoi(argv[2]) : 0;
    unsigned char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 1;
    madvise(memory, length, MADV_NOHUGEPAGE);
    fill(memory, length);
    for (pass = 0; pass < passes; pass++)
        touch_all(memory, length);
    return 0;
}
