/* Decides about the system calls of a sandbox after MILLISECONDS each: SOCKET MILLISECONDS. Lets each go on. */
#include "descriptor.h"
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

static int decide(int listener, struct timespec delay)
{
    struct seccomp_notif call = {0};
    struct seccomp_notif_resp answer = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return -1;
    nanosleep(&delay, NULL);
    answer.id = call.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

int main(int argc, char **argv)
{
    long ms = argc == 3 ? atol(argv[2]) : -1;
    struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
    int listening = ms < 0 ? -1 : listen_at(argv[1]), listener;
    if (listening < 0 || write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    listener = receive_descriptor(listening);
    while (listener >= 0 && decide(listener, delay) == 0)
        ;
    return 0;
}
