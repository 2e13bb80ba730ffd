/* fuse_memory NODE FOLDER poll|futex|stack|unmap UID: mounts as fusermount3 does for an ordinary user, becomes UID, and is a process that
 * waits with its array, its lock or the upper part of its stack on pages of a FUSE file, or
 * that unmaps such pages which it has written to, which keeps its address space locked. Then the pages are dropped, and the daemon does not give them again. */
#define _GNU_SOURCE
#include "fuse.h"
#include <grp.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

enum { BYTES = 1 << 20 };

static char content[BYTES];

static void wait_on_stack(char *memory)
{
    /* The stack begins in the middle of a page that is there, and what is above it was never read. */
    char *top = memory + BYTES / 2 - 64;
    struct timespec long_time = {1000, 0};
    __asm__ volatile("mov %0, %%rsp\n"
                     "push $0\n"
                     "mov $35, %%eax\n"
                     "mov %1, %%rdi\n"
                     "xor %%esi, %%esi\n"
                     "syscall\n"
                     "ud2\n"
                     :
                     : "r"(top), "r"(&long_time)
                     : "memory", "rax", "rdi", "rsi", "rcx", "r11");
}

int main(int argc, char **argv)
{
    struct fuse_daemon daemon = {.content = content, .size = BYTES};
    pthread_t server;
    char path[128], state[128];
    int ends[2], share = argc > 3 && strcmp(argv[3], "stack") == 0 ? MAP_PRIVATE : MAP_SHARED;
    if (argc != 5 || pipe(ends) != 0)
        return 2;
    unsigned uid = atoi(argv[4]);
    daemon.fd = open(argv[1], O_RDWR | O_CLOEXEC);
    snprintf(path, sizeof path, "fd=%d,rootmode=40755,user_id=%u,group_id=%u", daemon.fd, uid, uid);
    if (daemon.fd < 0 || mount("hostile", argv[2], "fuse", MS_NOSUID | MS_NODEV, path) != 0)
        fuse_die("mount fuse");
    if (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
        fuse_die("become the user");
    /* Who has changed his uid hides from himself in /proc until he runs another program. */
    prctl(PR_SET_DUMPABLE, 1);
    if (pthread_create(&server, NULL, fuse_serve, &daemon) != 0 || chdir(argv[2]) != 0)
        return 1;
    /* An array of one that waits for a pipe which nobody writes to; a lock whose value is 7. */
    struct pollfd array = {ends[0], POLLIN, 0};
    if (strcmp(argv[3], "poll") == 0)
        memcpy(content, &array, sizeof array);
    else if (strcmp(argv[3], "futex") == 0)
        content[0] = 7;
    int child = fork();
    if (child == 0) {
        close(3);
        /* The daemon's descriptor would keep the file system alive when the daemon has been killed. */
        close(daemon.fd);
        int writes = strcmp(argv[3], "unmap") == 0 || share == MAP_PRIVATE;
        int fd = open("data", writes ? O_RDWR : O_RDONLY);
        char *memory = mmap(NULL, BYTES, PROT_READ | (writes ? PROT_WRITE : 0), share, fd, 0);
        if (fd < 0 || memory == MAP_FAILED)
            _exit(1);
        madvise(memory, BYTES, MADV_RANDOM);
        if (strcmp(argv[3], "poll") == 0) {
            poll((struct pollfd *)memory, 1, -1);
        } else if (strcmp(argv[3], "futex") == 0) {
            syscall(SYS_futex, memory, FUTEX_WAIT, 7, NULL, NULL, 0);
        } else if (strcmp(argv[3], "unmap") == 0) {
            char go;
            memset(memory, 1, BYTES / 2);
            if (read(ends[0], &go, 1) == 1)
                munmap(memory, BYTES);
        } else {
            wait_on_stack(memory);
        }
        _exit(1);
    }
    snprintf(path, sizeof path, "/proc/%d/wchan", child);
    do {
        usleep(10000);
        int fd = open(path, O_RDONLY);
        ssize_t got = read(fd, state, sizeof state - 1);
        state[got > 0 ? got : 0] = 0;
        close(fd);
    } while (strstr(state, "poll") == NULL && strstr(state, "futex") == NULL && strstr(state, "nanosleep") == NULL &&
             strstr(state, "pipe") == NULL);
    daemon.mute = MUTE_READ;
    struct {
        struct fuse_out_header out;
        struct fuse_notify_inval_inode_out what;
    } drop = {{sizeof drop, FUSE_NOTIFY_INVAL_INODE, 0}, {FUSE_FILE_INODE, 0, 0}};
    if (strcmp(argv[3], "unmap") == 0) {
        if (write(ends[1], "x", 1) != 1)
            return 1;
    } else if (share == MAP_SHARED && write(daemon.fd, &drop, sizeof drop) != sizeof drop)
        fuse_die("drop the pages");
    ready(child);
    for (;;)
        pause();
}
