/* Reads the first byte of every page of FILE by way of a mapping, PASSES times: FILE PASSES. */
#include "truth.h"
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static unsigned long look_up(const volatile unsigned char *table, off_t length)
{
    unsigned long sum = 0;
    off_t at;
    for (at = 0; at < length; at += PAGE)
        sum += table[at];
    return sum;
}

int main(int argc, char **argv)
{
    struct stat status;
    int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1, passes;
    unsigned char *table;
    unsigned long sum = 0;
    if (fd < 0 || fstat(fd, &status) != 0)
        return 1;
    table = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (table == MAP_FAILED)
        return 1;
    for (passes = atoi(argv[2]); passes > 0; passes--)
        sum += look_up(table, status.st_size);
    return sum == 1;
}
