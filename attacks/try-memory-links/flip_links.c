/* flip_links PARENT NAME TARGET: PARENT/NAME is now a folder, now another with names that holdup uses, all links to TARGET. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char *const names[] = {"upper", "work", "over", "lower", "merged"};
    if (argc != 4 || chdir(argv[1]) != 0)
        return 2;
    mkdir("trap", 0755);
    int trap = open("trap", O_DIRECTORY | O_RDONLY);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (symlinkat(argv[3], trap, names[i]) != 0)
            return 1;
    if (dprintf(3, "ready\n") < 0)
        return 1;
    close(3);
    for (;;) {
        if (renameat2(AT_FDCWD, "trap", AT_FDCWD, argv[2], RENAME_EXCHANGE) != 0 && errno == EPERM)
            return 1;
        usleep(rand() % 60);
    }
}
