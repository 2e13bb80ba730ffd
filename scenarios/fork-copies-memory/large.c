/* Fills 256 MB in small pages and starts 40 programs: by fork|spawn. The truth is what starting took the parent. */
#include "truth.h"
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PROGRAMS = 40 };
static const size_t SIZE = 256u << 20;
extern char **environ;

__attribute__((noinline)) static pid_t start_program(int by_fork)
{
    char *arguments[] = {"true", NULL};
    pid_t child = -1;
    if (!by_fork)
        return posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0 ? child : -1;
    child = fork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(1);
    }
    return child;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited = 0, before, queued;
    int by_fork = argc < 2 || strcmp(argv[1], "spawn") != 0, number;
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t at;
    if (memory == MAP_FAILED || madvise(memory, SIZE, MADV_NOHUGEPAGE) != 0)
        return 1;
    for (at = 0; at < SIZE; at += 4096)
        memory[at] = 1;
    for (number = 0; number < PROGRAMS; number++) {
        queued = truth_queued();
        before = truth_now();
        pid_t child = start_program(by_fork);
        waited += truth_now() - before - (truth_queued() - queued);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
    }
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
