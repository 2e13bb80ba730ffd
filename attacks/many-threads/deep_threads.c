/* Ten thousand threads, or as many as the kernel lets a user have, each a hundred calls deep; most sleep for long. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { THREADS = 10000, DEPTH = 100, STACK_BYTES = 64 * 1024, BUSY = 500 };

__attribute__((noinline)) static void descend(int depth, long number)
{
    volatile char room[16] = {0};
    if (depth > 0)
        descend(depth - 1, number);
    else
        while (getppid() >= 0)
            usleep(number % (THREADS / BUSY) == 0 ? 10000 : 100000000);
    room[0]++;
}

static void *run(void *argument)
{
    char name[16];
    snprintf(name, sizeof name, "t%ld", (long)argument);
    prctl(PR_SET_NAME, name);
    descend(DEPTH, (long)argument);
    return NULL;
}

int main(void)
{
    pthread_attr_t how;
    pthread_t thread;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    for (long number = 0; number < THREADS; number++)
        if (pthread_create(&thread, &how, run, (void *)number) != 0)
            break;
    if (dprintf(3, "ready\n") < 0)
        return 1;
    for (;;)
        pause();
}
