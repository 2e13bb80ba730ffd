/* A client asks a server over loopback TCP, both of them in the run; the server takes the milliseconds of the argument
 * for each answer. The truth is what the server slept, as it asked for it. */
#include "truth.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { QUESTIONS = 6 };

static void serve(int listener, long ms)
{
    struct timespec delay = {0, 0};
    int client = accept(listener, NULL, NULL);
    int question = 0;
    uint64_t slept = 0;
    char byte;
    while (read(client, &byte, 1) == 1) {
        delay.tv_nsec = (question++ % 2 ? ms * 3 / 2 : ms / 2) * 1000000;
        nanosleep(&delay, NULL);
        slept += (uint64_t)delay.tv_nsec;
        if (send(client, &byte, 1, 0) != 1)
            break;
    }
    close(client);
    truth_write(getenv("HOLDUP_TRUTH"), slept, 0, 0);
}

__attribute__((noinline)) static void ask(int server)
{
    char byte = 'q';
    if (send(server, &byte, 1, 0) != 1 || recv(server, &byte, 1, 0) != 1)
        exit(1);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    uint64_t started = truth_now();
    int listener = socket(AF_INET, SOCK_STREAM, 0), server = socket(AF_INET, SOCK_STREAM, 0), question;
    long ms = argc > 1 ? atol(argv[1]) : 150;
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1) ||
        getsockname(listener, (void *)&address, &length))
        return 1;
    if (fork() == 0) {
        close(server);
        serve(listener, ms);
        _exit(0);
    }
    if (connect(server, (void *)&address, length))
        return 1;
    for (question = 0; question < QUESTIONS; question++)
        ask(server);
    close(server);
    wait(NULL);
    truth_write(getenv("HOLDUP_TRUTH"), 0, truth_now() - started, truth_queued());
    return 0;
}
