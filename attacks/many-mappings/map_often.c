/* map_often mappings: maps its own program 60,000 times with rights to run it; map_often files FOLDER: maps 4,000 files of different
 * names, each a copy of it. Then calls its sleep through the last one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The kernel allows 65,530. */
enum { MAPPINGS = 60000, FILES = 4000, PAGE = 4096 };

int main(int argc, char **argv)
{
    char path[512];
    static char bytes[1 << 16];
    int program = open("/proc/self/exe", O_RDONLY);
    ssize_t size = read(program, bytes, sizeof bytes);
    if (argc > 1 && strcmp(argv[1], "mappings") == 0) {
        for (int number = 0; number < MAPPINGS; number++)
            /* Another protection each time, or the kernel would make one mapping of two. */
            if (mmap(NULL, PAGE, number % 2 ? PROT_EXEC : PROT_EXEC | PROT_READ, MAP_PRIVATE, program, 0) == MAP_FAILED)
                break;
    } else if (argc == 3) {
        for (int number = 0; number < FILES; number++) {
            snprintf(path, sizeof path, "%s/%d.so", argv[2], number);
            int file = open(path, O_RDWR | O_CREAT, 0755);
            if (file < 0 || write(file, bytes, size) != size ||
                mmap(NULL, size, PROT_EXEC | PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED)
                return 1;
            close(file);
        }
    }
    if (dprintf(3, "ready\n") < 0)
        return 1;
    close(3);
    for (;;)
        usleep(5000);
}
