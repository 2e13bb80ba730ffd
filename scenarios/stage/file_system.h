/* What the FUSE file systems of scenarios share. */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Says "ready" on descriptor 3: the kernel has accepted the mount. */
static void *mounted(struct fuse_conn_info *connection, struct fuse_config *config)
{
    (void)connection;
    (void)config;
    if (write(3, "ready\n", 6) != 6)
        exit(1);
    close(3);
    return NULL;
}

/* What a directory is, to whoever looks. */
static inline int of_directory(struct stat *status)
{
    memset(status, 0, sizeof *status);
    status->st_mode = S_IFDIR | 0755;
    status->st_nlink = 2;
    return 0;
}
