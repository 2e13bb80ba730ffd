/* Sends 30 messages of 4 KiB to the queue whose number is in the file NAME; a queue holds 16 KiB unless it was told. */
#include "truth.h"
#include <sys/ipc.h>
#include <sys/msg.h>

enum { SIZE = 4096, MESSAGES = 30 };

__attribute__((noinline)) static uint64_t send_all(int queue)
{
    struct { long type; char text[SIZE]; } message = {1, ""};
    uint64_t before = truth_now();
    int sent;
    for (sent = 0; sent < MESSAGES; sent++)
        if (msgsnd(queue, &message, SIZE, 0) != 0)
            perror("msgsnd");
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    int queue;
    if (file == NULL || fscanf(file, "%d", &queue) != 1)
        return 1;
    fclose(file);
    waited = send_all(queue);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
