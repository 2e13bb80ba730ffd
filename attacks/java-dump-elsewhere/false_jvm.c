/* false_jvm tmp|cwd FOLDER MINE: looks like a Java virtual machine of an unknown build that waits, with a handler for SIGQUIT. Its /tmp,
 * or its current folder, is FOLDER. */
#define _GNU_SOURCE
#include "fuse.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

static void nothing(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    char path[512];
    if (argc != 4)
        return 2;
    snprintf(path, sizeof path, "%s/libjvm.so", argv[3]);
    int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_RDWR | O_CREAT, 0755);
    static char bytes[1 << 20];
    ssize_t size = read(from, bytes, sizeof bytes);
    if (to < 0 || write(to, bytes, size) != size)
        return 1;
    if (mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, 0) == MAP_FAILED)
        return 1;
    signal(SIGQUIT, nothing);
    own_namespaces(0);
    if (strcmp(argv[1], "tmp") == 0 && mount(argv[2], "/tmp", NULL, MS_BIND, NULL) != 0)
        fuse_die("bind");
    if (strcmp(argv[1], "cwd") == 0 && chdir(argv[2]) != 0)
        fuse_die("chdir");
    /* A machine that is too young is not asked. */
    sleep(3);
    ready(getpid());
    for (;;)
        pause();
}
