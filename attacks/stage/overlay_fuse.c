/* overlay_fuse NODE FOLDER PROGRAM [root]: runs PROGRAM from an overlay whose lower layer is a FUSE file system of this process. When it
 * sleeps, the daemon takes requests and answers none. With `root` it does not
 * run it: the overlay is then its root and its current folder, it has code without a file and a libjvm.so, for all of which names are
 * looked up below its root. */
#define _GNU_SOURCE
#include "fuse.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

static char content[1 << 20];

static void nothing(int number)
{
    (void)number;
}

static void sleep_below(const char *root, const char *program)
{
    static const unsigned char code[] = {0xb8, 35, 0, 0, 0, 0x0f, 0x05, 0xc3}; /* mov eax, nanosleep; syscall; ret */
    struct timespec moment = {0, 50000000};
    int from = open(program, O_RDONLY), to = open("libjvm.so", O_RDWR | O_CREAT, 0755);
    ssize_t size = read(from, content, sizeof content);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to < 0 || write(to, content, size) != size || page == MAP_FAILED ||
        mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, 0) == MAP_FAILED)
        _exit(1);
    memcpy(page, code, sizeof code);
    signal(SIGQUIT, nothing);
    if (chroot(root) != 0 || chdir("/") != 0)
        _exit(1);
    for (;;)
        ((void (*)(struct timespec *, void *))page)(&moment, NULL);
}

int main(int argc, char **argv)
{
    struct fuse_daemon daemon = {.content = content};
    char options[512], state[512];
    pthread_t server;
    int fd;
    if (argc < 4 || (fd = open(argv[3], O_RDONLY)) < 0)
        return 2;
    daemon.size = read(fd, content, sizeof content);
    own_namespaces(0);
    if (chdir(argv[2]) != 0 || mkdir("lower", 0755) != 0 || mkdir("empty", 0755) != 0 || mkdir("merged", 0755) != 0)
        fuse_die("mkdir");
    fuse_mount(&daemon, argv[1], "lower");
    if (pthread_create(&server, NULL, fuse_serve, &daemon) != 0)
        return 1;
    snprintf(options, sizeof options, "lowerdir=%s/lower:%s/empty", argv[2], argv[2]);
    if (mount("overlay", "merged", "overlay", 0, options) != 0)
        fuse_die("mount overlay");
    int child = fork();
    if (child == 0) {
        close(3);
        if (argc == 5)
            sleep_below("merged", argv[3]);
        execl("merged/data", "data", "1000", (char *)NULL);
        _exit(1);
    }
    do {
        usleep(10000);
        snprintf(options, sizeof options, "/proc/%d/wchan", child);
        fd = open(options, O_RDONLY);
        ssize_t got = read(fd, state, sizeof state - 1);
        state[got > 0 ? got : 0] = 0;
        close(fd);
    } while (strstr(state, "nanosleep") == NULL);
    daemon.mute = MUTE_LOOK;
    ready(child);
    for (;;)
        pause();
}
