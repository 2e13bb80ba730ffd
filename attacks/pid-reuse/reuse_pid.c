/* A process with a number that is its own only now and then: it ends, and one of another name gets the same number, again and again.
 * It is the child, so the number is free as soon as its parent has waited for it. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[1 << 16] __attribute__((aligned(16)));
static pid_t wanted;

/* Ends at once, unless it has the number. */
static int take_number(void *name)
{
    if (wanted != 0 && getpid() != wanted)
        _exit(0);
    prctl(PR_SET_NAME, name);
    for (;;)
        pause();
}

/* A child with the number; it shares nothing with us but memory, until it ends. */
static pid_t child_with_number(char *name)
{
    for (;;) {
        pid_t pid = clone(take_number, stack + sizeof stack, CLONE_VM | SIGCHLD, name);
        if (pid < 0)
            exit(1);
        if (wanted == 0 || pid == wanted)
            return pid;
        waitpid(pid, NULL, 0);
    }
}

int main(void)
{
    pid_t pid = child_with_number("first");
    wanted = pid;
    dprintf(3, "ready %d\n", pid);
    close(3);
    /* Whoever is told the number has begun to look by then, on a busy machine too. */
    sleep(4);
    for (;;) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        pid = child_with_number("second");
        usleep(20000);
    }
}
