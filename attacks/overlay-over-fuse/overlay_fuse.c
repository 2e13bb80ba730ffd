/* overlay_fuse NODE FOLDER PROGRAM: runs PROGRAM from an overlay whose lower layer is a FUSE file system of this process. When it
 * sleeps, the daemon takes requests and answers none. */
#define _GNU_SOURCE
#include "fuse.h"
#include <pthread.h>

static char content[1 << 20];

int main(int argc, char **argv)
{
    struct fuse_daemon daemon = {.content = content};
    char options[512], state[512];
    pthread_t server;
    int fd;
    if (argc != 4 || (fd = open(argv[3], O_RDONLY)) < 0)
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
