/* A thread `saver` replaces a mapping that has unsaved data, while the main thread asks for memory: remap FILE BUSY.
 *
 * The kernel writes the data of a mapping of a FUSE file back when the mapping goes, and keeps the process's memory map
 * locked until it is written. The file system says in the FIFO BUSY that it is writing. The truth is what the main
 * thread then waited for its memory, of the sum of the threads' lives. The saver lives to the end, so that the program's
 * last wait is not one for a thread. */
#define _GNU_SOURCE
#include "truth.h"
#include <pthread.h>
#include <sys/mman.h>

enum { SIZE = 4096 };
static char *cache;
static uint64_t saver_born;

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

static void *save(void *unused)
{
    (void)unused;
    saver_born = truth_now();
    replace_cache();
    pause();
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
    uint64_t born = truth_now(), waited;
    struct timespec rest = {0, 20000000};
    pthread_t saver;
    char line[32];
    int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        die("open");
    cache = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (cache == MAP_FAILED)
        die("map the file");
    cache[0] = 1;
    pthread_create(&saver, NULL, save, NULL);
    pthread_setname_np(saver, "saver");
    fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, line, sizeof line) <= 0)
        die(argv[2]);
    waited = ask_for_memory();
    /* Until the saver has come to rest: else the path may end with it, and never come by the wait. */
    nanosleep(&rest, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), waited, 2 * truth_now() - saver_born - born, truth_queued());
    return 0;
}
