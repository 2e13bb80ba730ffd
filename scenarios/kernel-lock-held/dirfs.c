/* A FUSE file system with directories only, in which making `first` takes a second from when a gate opens.
 *
 * dirfs MOUNT BUSY GATE: says so in the FIFO BUSY when it is asked to make `first`, answers a second after a
 * line has come through the FIFO GATE, and makes everything else at once. Says "ready" on descriptor 3 when
 * the kernel has accepted the mount. Several threads, so that only the kernel's lock is in the way. */
#include "file_system.h"

static const char *busy, *gate;

static int dir_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    (void)file;
    if (strcmp(path, "/") != 0 && strcmp(path, "/other") != 0)
        return -ENOENT;
    return of_directory(status);
}

static int dir_mkdir(const char *path, mode_t mode)
{
    struct timespec delay = {1, 0};
    const char *name = strrchr(path, '/');
    char line[32];
    int fd;
    (void)mode;
    if (name == NULL || strcmp(name, "/first") != 0)
        return 0;
    fd = open(busy, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "busy\n", 5) != 5)
        return -EIO;
    close(fd);
    fd = open(gate, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, line, sizeof line) <= 0)
        return -EIO;
    close(fd);
    nanosleep(&delay, NULL);
    return -EEXIST;
}

static const struct fuse_operations operations = {
    .getattr = dir_getattr,
    .mkdir = dir_mkdir,
    .init = mounted,
};

int main(int argc, char **argv)
{
    char *arguments[] = {argv[0], "-f", NULL, NULL};
    if (argc != 4) {
        fprintf(stderr, "usage: dirfs MOUNT BUSY GATE\n");
        return 2;
    }
    arguments[2] = argv[1];
    busy = argv[2];
    gate = argv[3];
    return fuse_main(3, arguments, &operations, NULL);
}
