/* A thread `saver` replaces a mapping that has unsaved data, while the main thread asks for memory: remap FILE BUSY.
 *
 * The kernel writes the data of a mapping of a FUSE file back when the mapping goes, and keeps the process's memory map
 * locked until it is written. The file system says in the FIFO BUSY that it is writing. The truth is what the main
 * thread then waited for its memory, of the sum of the threads' lives. */
#define _GNU_SOURCE
#include "truth.h"
#include <pthread.h>
#include <sys/mman.h>

enum { SIZE = 4096 };
static char *cache;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

__attribute__((noinline)) static void replace_cache(void)
{
    if (mmap(cache, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        die("replace");
}

static void *save(void *lived)
{
    uint64_t born = truth_now();
    replace_cache();
    *(uint64_t *)lived = truth_now() - born;
    return NULL;
}

__attribute__((noinline)) static uint64_t ask_for_memory(void)
{
    uint64_t began = truth_now();
    if (mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        die("mmap");
    return truth_now() - began;
}

int main(int argc, char **argv)
{
    uint64_t born = truth_now(), lived = 0, waited;
    pthread_t saver;
    char line[32];
    int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        die("open");
    cache = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (cache == MAP_FAILED)
        die("map the file");
    cache[0] = 1;
    pthread_create(&saver, NULL, save, &lived);
    pthread_setname_np(saver, "saver");
    fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, line, sizeof line) <= 0)
        die(argv[2]);
    waited = ask_for_memory();
    pthread_join(saver, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), waited, lived + truth_now() - born, truth_queued());
    return 0;
}
