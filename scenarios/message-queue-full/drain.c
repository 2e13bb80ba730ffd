/* Makes a System V message queue and takes messages from it, with a pause of 50 ms after each or without: stall|healthy NAME.
 *
 * The number of the queue is written into the file NAME. */
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096 };

int main(int argc, char **argv)
{
    struct { long type; char text[SIZE]; } message;
    struct timespec pause = {0, 50000000};
    FILE *file;
    int queue;
    if (argc != 3)
        return 2;
    queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    file = fopen(argv[2], "w");
    if (queue < 0 || file == NULL || fprintf(file, "%d\n", queue) < 0 || fclose(file) != 0)
        return 1;
    if (write(3, "ready\n", 6) != 6 || close(3) != 0)
        return 1;
    while (msgrcv(queue, &message, SIZE, 0, 0) >= 0)
        if (strcmp(argv[1], "stall") == 0)
            nanosleep(&pause, NULL);
    return 0;
}
