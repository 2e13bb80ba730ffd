/* fill_tables mounts|sockets|words FOLDER: fills a table that is read of a process, and waits: 20,000 mounts of its own namespace; as many
 * open sockets as it may have; a megabyte of words on its command line, and two in its environment. */
#define _GNU_SOURCE
#include "fuse.h"
#include <sys/resource.h>
#include <sys/socket.h>

enum { MANY = 20000, WORD_BYTES = 100 * 1024, WORDS = 8, VARIABLES = 8 };

int main(int argc, char **argv)
{
    if (argc < 3 || chdir(argv[2]) != 0)
        return 2;
    if (strcmp(argv[1], "mounts") == 0) {
        own_namespaces(0);
        if (mkdir("place", 0755) != 0 || mount("tmpfs", "place", "tmpfs", 0, NULL) != 0)
            fuse_die("mount");
        for (int number = 0; number < MANY; number++)
            if (mount("place", "place", NULL, MS_BIND, NULL) != 0)
                break;
    } else if (strcmp(argv[1], "sockets") == 0) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int number = 0; number < MANY; number++)
            if (socket(AF_INET, SOCK_STREAM, 0) < 0)
                break;
    } else if (argc == 3) {
        /* The words are this program's own the second time. */
        char *words[WORDS + 4] = {argv[0], argv[1], argv[2]}, *variables[VARIABLES + 1] = {NULL};
        for (int number = 0; number < WORDS; number++) {
            words[3 + number] = malloc(WORD_BYTES);
            memset(words[3 + number], 'a' + number, WORD_BYTES - 1);
            words[3 + number][WORD_BYTES - 1] = 0;
        }
        for (int number = 0; number < VARIABLES; number++)
            variables[number] = words[3 + number % WORDS];
        execve("/proc/self/exe", words, variables);
        fuse_die("execve");
    }
    ready(getpid());
    for (;;)
        pause();
}
