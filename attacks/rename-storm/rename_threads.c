/* Sixteen threads that rename themselves without end, sleep for a moment now and then, and make others that end at once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, BETWEEN_SLEEPS = 256 };

static void *end_at_once(void *argument)
{
    return argument;
}

static void *rename_itself(void *argument)
{
    struct timespec moment = {0, 100000};
    char name[16];
    pthread_t thread;
    for (unsigned long round = (unsigned long)argument << 32;; round++) {
        snprintf(name, sizeof name, "%lx", round * 2654435761u);
        prctl(PR_SET_NAME, name);
        if (round % BETWEEN_SLEEPS == 0) {
            nanosleep(&moment, NULL);
            if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
                pthread_detach(thread);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (dprintf(3, "ready\n") < 0)
        return 1;
    close(3);
    for (unsigned long number = 1; number < THREADS; number++)
        if (pthread_create(&thread, NULL, rename_itself, (void *)number) != 0)
            return 1;
    rename_itself(NULL);
}
