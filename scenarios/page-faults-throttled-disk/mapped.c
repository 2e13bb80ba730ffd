/* Adds up the first byte of every page of a FILE by way of a mapping. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static unsigned long sum_pages(const unsigned char *bytes, off_t length)
{
    unsigned long sum = 0;
    off_t at;
    for (at = 0; at < length; at += PAGE)
        sum += *(const volatile unsigned char *)(bytes + at);
    return sum;
}

int main(int argc, char **argv)
{
    struct stat status;
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    unsigned char *bytes;
    if (fd < 0 || fstat(fd, &status) != 0)
        return 1;
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return 1;
    printf("%lu\n", sum_pages(bytes, status.st_size));
    return 0;
}
