/* A FUSE file system without a library: what a hostile user mounts in a user namespace of his own.
 *
 * In: a folder, and the node of /dev/fuse. Out: a mount, and answers for a root folder with one file `data` of a size and content
 * that the caller gives. A daemon that is mute takes requests and never answers: even SIGKILL does not end who waits for one. */
#ifndef ATTACKS_FUSE_H
#define ATTACKS_FUSE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUSE_REQUEST_BYTES (1 << 18)
#define FUSE_FILE_INODE 2

/* What the daemon keeps to itself. */
enum fuse_mute {
    ANSWER_ALL,
    MUTE_READ,   /* names are answered, contents not taken and not given */
    MUTE_LOOK,   /* not even names */
};

struct fuse_daemon {
    int fd;
    const char *content;
    size_t size;
    volatile int mute;
    unsigned mode; /* of the file */
};

static void fuse_die(const char *what)
{
    perror(what);
    exit(1);
}

static void fuse_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        fuse_die(path);
    close(fd);
}

/* A user and a mount namespace in which the caller is root. */
__attribute__((unused)) static void own_namespaces(int more)
{
    char line[64];
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | more) != 0)
        fuse_die("unshare");
    fuse_put("/proc/self/setgroups", "deny");
    snprintf(line, sizeof line, "0 %u 1", uid);
    fuse_put("/proc/self/uid_map", line);
    snprintf(line, sizeof line, "0 %u 1", gid);
    fuse_put("/proc/self/gid_map", line);
}

__attribute__((unused)) static void fuse_mount(struct fuse_daemon *daemon, const char *node, const char *place)
{
    char options[128];
    daemon->fd = open(node, O_RDWR | O_CLOEXEC);
    if (daemon->fd < 0)
        fuse_die(node);
    snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", daemon->fd);
    if (mount("hostile", place, "fuse", 0, options) != 0)
        fuse_die("mount fuse");
}

static void fuse_answer(struct fuse_daemon *daemon, uint64_t unique, int error, const void *body, size_t size)
{
    static __thread char buffer[FUSE_REQUEST_BYTES + 64];
    struct fuse_out_header *out = (void *)buffer;
    out->len = sizeof *out + size;
    out->error = error;
    out->unique = unique;
    if (size > 0)
        memcpy(out + 1, body, size);
    /* The kernel refuses an answer to who has been killed; there is nothing to do then. */
    if (write(daemon->fd, buffer, out->len) < 0)
        return;
}

static void fuse_attr(struct fuse_daemon *daemon, uint64_t inode, struct fuse_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    attr->ino = inode;
    attr->nlink = 1;
    attr->blksize = 4096;
    if (inode == FUSE_ROOT_ID) {
        attr->mode = S_IFDIR | 0755;
    } else {
        attr->mode = daemon->mode ? daemon->mode : (S_IFREG | 0755);
        attr->size = daemon->size;
        attr->blocks = daemon->size / 512;
    }
}

/* Answers requests for ever. */
__attribute__((unused)) static void *fuse_serve(void *argument)
{
    struct fuse_daemon *daemon = argument;
    char *request = malloc(FUSE_REQUEST_BYTES);
    struct fuse_in_header *in = (void *)request;
    void *body = in + 1;
    for (;;) {
        ssize_t got = read(daemon->fd, request, FUSE_REQUEST_BYTES);
        if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
            continue;
        if (got < 0)
            return NULL;
        if (daemon->mute == MUTE_LOOK && in->opcode != FUSE_INIT)
            continue;
        switch (in->opcode) {
        case FUSE_INIT: {
            struct fuse_init_in *asked = body;
            struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = asked->max_readahead,
                                        .max_write = 1 << 17, .max_background = 16, .congestion_threshold = 12};
            fuse_answer(daemon, in->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_LOOKUP: {
            struct fuse_entry_out out = {.nodeid = FUSE_FILE_INODE, .attr_valid = 0, .entry_valid = 0};
            if (strcmp(body, "data") != 0) {
                fuse_answer(daemon, in->unique, -ENOENT, NULL, 0);
                break;
            }
            fuse_attr(daemon, FUSE_FILE_INODE, &out.attr);
            fuse_answer(daemon, in->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_SETATTR:
        case FUSE_GETATTR: {
            struct fuse_attr_out out = {.attr_valid = 0};
            fuse_attr(daemon, in->nodeid, &out.attr);
            fuse_answer(daemon, in->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_OPEN:
        case FUSE_OPENDIR: {
            struct fuse_open_out out = {.fh = 1};
            fuse_answer(daemon, in->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_READ: {
            struct fuse_read_in *asked = body;
            size_t size = 0;
            if (daemon->mute == MUTE_READ)
                break;
            if (asked->offset < daemon->size)
                size = daemon->size - asked->offset < asked->size ? daemon->size - asked->offset : asked->size;
            fuse_answer(daemon, in->unique, 0, daemon->content + asked->offset, size);
            break;
        }
        case FUSE_WRITE: {
            struct fuse_write_in *asked = body;
            struct fuse_write_out out = {.size = asked->size};
            if (daemon->mute == MUTE_READ)
                break;
            fuse_answer(daemon, in->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_READDIR:
        case FUSE_FLUSH:
        case FUSE_RELEASE:
        case FUSE_RELEASEDIR:
        case FUSE_ACCESS:
            fuse_answer(daemon, in->unique, 0, NULL, 0);
            break;
        case FUSE_STATFS: {
            struct fuse_statfs_out out = {.st = {.bsize = 4096, .namelen = 255, .frsize = 4096}};
            fuse_answer(daemon, in->unique, 0, &out, sizeof out);
            break;
        }
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
            break;
        default:
            fuse_answer(daemon, in->unique, -ENOSYS, NULL, 0);
        }
    }
}

/* Says on descriptor 3 that the trap is set; `pid` is whom to look at, in the first process namespace's numbers. */
__attribute__((unused)) static void ready(int pid)
{
    char line[32];
    int size = snprintf(line, sizeof line, "ready %d\n", pid);
    if (write(3, line, size) != size)
        exit(1);
    close(3);
}
#endif
