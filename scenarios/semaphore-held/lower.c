/* Lowers the semaphore of the set whose number is in the file NAME. */
#include "truth.h"
#include <sys/ipc.h>
#include <sys/sem.h>

__attribute__((noinline)) static uint64_t lower(int set)
{
    struct sembuf down = {0, -1, 0};
    uint64_t before = truth_now();
    if (semop(set, &down, 1) != 0)
        perror("semop");
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    int set;
    if (file == NULL || fscanf(file, "%d", &set) != 1)
        return 1;
    fclose(file);
    waited = lower(set);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
