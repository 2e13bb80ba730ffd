/* Four processes lock a file, sleep for 15 ms with it, let it go and compute for 3 ms, ten times: file-locks FOLDER. Without the
 * wait each locks its own. */
#include "work.h"
#include <sys/file.h>
#include <sys/wait.h>

static void process(const char *folder, int number)
{
    char path[512];
    snprintf(path, sizeof path, "%s/lock.%d", folder, without() ? number : 0);
    int file = open(path, O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < 10; i++) {
        must(flock(file, LOCK_EX) == 0, "flock");
        rest(15000);
        flock(file, LOCK_UN);
        compute(3000);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            process(argc > 1 ? argv[1] : ".", i);
    while (wait(NULL) > 0)
        ;
    return 0;
}
