/* A FUSE file system with one file, `data`, that reads from a SOURCE and takes DELAY_MS for each read.
 *
 * slowfs MOUNT SOURCE DELAY_MS [names]. With `names`, looking at the file takes as long. Runs in the foreground with one thread; says "ready" on descriptor 3 when
 * the kernel has accepted the mount. The file has the source's mode, so that a program stays one. */
#include "file_system.h"

static int source;
static long delay_ms;
static int names;

static void take_the_delay(void)
{
    struct timespec delay = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    nanosleep(&delay, NULL);
}

static int slow_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    (void)file;
    if (strcmp(path, "/") == 0) {
        return of_directory(status);
    }
    if (strcmp(path, "/data") != 0)
        return -ENOENT;
    if (names)
        take_the_delay();
    return fstat(source, status) == 0 ? 0 : -errno;
}

static int slow_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
    ssize_t count;
    (void)path;
    (void)file;
    take_the_delay();
    count = pread(source, buffer, size, offset);
    return count < 0 ? -errno : (int)count;
}

static const struct fuse_operations operations = {
    .getattr = slow_getattr,
    .read = slow_read,
    .init = mounted,
};

int main(int argc, char **argv)
{
    char *arguments[] = {argv[0], "-f", "-s", NULL, NULL};
    names = argc == 5 && strcmp(argv[4], "names") == 0;
    if (argc != 4 && !names) {
        fprintf(stderr, "usage: slowfs MOUNT SOURCE DELAY_MS [names]\n");
        return 2;
    }
    arguments[3] = argv[1];
    source = open(argv[2], O_RDONLY | O_CLOEXEC);
    delay_ms = atol(argv[3]);
    if (source < 0) {
        perror(argv[2]);
        return 1;
    }
    return fuse_main(4, arguments, &operations, NULL);
}
