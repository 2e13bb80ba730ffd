/* Starts the program that the first argument names and waits for it; the truth is what the start took: a child made by
 * vfork holds its parent up until it has loaded its program. */
#include "truth.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

__attribute__((noipa)) static pid_t start(char *program)
{
    char *arguments[] = {program, NULL};
    pid_t child = 0;
    if (posix_spawn(&child, program, NULL, NULL, arguments, environ))
        exit(1);
    return child;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited;
    pid_t child;
    if (argc < 2)
        return 2;
    child = start(argv[1]);
    waited = truth_now() - started;
    waitpid(child, NULL, 0);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
