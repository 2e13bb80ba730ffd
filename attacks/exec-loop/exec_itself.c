/* Runs itself again and again, with a thread that is killed by that; with `fork`, makes children that end at once, each of which makes
 * another, so that numbers of processes come round. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_the_end(void *argument)
{
    for (;;)
        pause();
    return argument;
}

int main(int argc, char **argv)
{
    char pid[16];
    pthread_t thread;
    if (fcntl(3, F_GETFD) >= 0 && dprintf(3, "ready\n") > 0)
        close(3);
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        for (;;)
            if (fork() == 0)
                _exit(fork() == 0 ? 0 : 1);
            else
                while (waitpid(-1, NULL, WNOHANG) > 0)
                    ;
    }
    if (pthread_create(&thread, NULL, wait_for_the_end, NULL) != 0)
        return 1;
    snprintf(pid, sizeof pid, "%d", argc > 1 ? atoi(argv[1]) + 1 : 0);
    execl("/proc/self/exe", argv[0], pid, (char *)NULL);
    return 1;
}
