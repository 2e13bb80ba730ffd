/* Makes a System V semaphore and raises it a second after the gate has opened, or before: stall|healthy NAME GATE.
 *
 * The number of the set is written into the file NAME. */
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sembuf up = {0, 1, 0};
    struct timespec second = {1, 0};
    char line[64];
    FILE *file;
    int set;
    if (argc != 4)
        return 2;
    set = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    file = fopen(argv[2], "w");
    if (set < 0 || file == NULL || fprintf(file, "%d\n", set) < 0 || fclose(file) != 0)
        return 1;
    if (strcmp(argv[1], "healthy") == 0 && semop(set, &up, 1) != 0)
        return 1;
    if (write(3, "ready\n", 6) != 6 || close(3) != 0)
        return 1;
    file = fopen(argv[3], "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL)
        return 1;
    if (strcmp(argv[1], "stall") == 0) {
        nanosleep(&second, NULL);
        if (semop(set, &up, 1) != 0)
            return 1;
    }
    pause();
    return 0;
}
