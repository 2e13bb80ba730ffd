/* A FUSE file system with one file, `data`, whose first write takes a while.
 *
 * writefs MOUNT BUSY DELAY_MS: says so in the FIFO BUSY when the first write has come, and answers it DELAY_MS later.
 * Keeps nothing. Says "ready" on descriptor 3 when the kernel has accepted the mount. */
#include "file_system.h"

enum { SIZE = 4096 };
static const char *busy;
static long delay_ms;

static int data_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    int root = strcmp(path, "/") == 0;
    (void)file;
    if (!root && strcmp(path, "/data") != 0)
        return -ENOENT;
    memset(status, 0, sizeof *status);
    status->st_mode = root ? S_IFDIR | 0755 : S_IFREG | 0644;
    status->st_nlink = 1;
    status->st_size = root ? 0 : SIZE;
    return 0;
}

static int data_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
    (void)path;
    (void)offset;
    (void)file;
    memset(buffer, 0, size);
    return (int)size;
}

static int data_write(const char *path, const char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
    struct timespec delay = {delay_ms / 1000, delay_ms % 1000 * 1000000};
    int fd;
    (void)path;
    (void)buffer;
    (void)offset;
    (void)file;
    if (busy != NULL) {
        fd = open(busy, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "busy\n", 5) != 5)
            return -EIO;
        close(fd);
        busy = NULL;
        nanosleep(&delay, NULL);
    }
    return (int)size;
}

static const struct fuse_operations operations = {
    .getattr = data_getattr,
    .read = data_read,
    .write = data_write,
    .init = mounted,
};

int main(int argc, char **argv)
{
    char *arguments[] = {argv[0], "-f", "-s", NULL, NULL};
    if (argc != 4) {
        fprintf(stderr, "usage: writefs MOUNT BUSY DELAY_MS\n");
        return 2;
    }
    arguments[3] = argv[1];
    busy = argv[2];
    delay_ms = atol(argv[3]);
    return fuse_main(4, arguments, &operations, NULL);
}
