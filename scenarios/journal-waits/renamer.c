/* Changes a file's mode TIMES times, and syncs nothing: FILE TIMES. */
#include "truth.h"
#include <sys/stat.h>

__attribute__((noinline)) static uint64_t change_mode(int file, mode_t mode)
{
    uint64_t before = truth_now();
    if (fchmod(file, mode) != 0)
        perror("fchmod");
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited = 0;
    int file = argc == 3 ? open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1, times;
    if (file < 0)
        return 1;
    for (times = atoi(argv[2]); times > 0; times--) {
        struct timespec pause = {0, 2000000};
        waited += change_mode(file, times % 2 ? 0600 : 0644);
        nanosleep(&pause, NULL);
    }
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
