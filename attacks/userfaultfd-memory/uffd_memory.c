/* uffd_memory NODE poll|futex|stack|exec: waits with its array, its lock, the upper part of its stack or its code on pages that only
 * its own handler could give, and the handler never does. Whoever reads such a page waits for the handler, which is in no file system. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int fd;
static char *taken_back;

/* All pages of `memory` are the handler's from now on. */
static void hand_over(const char *node, char *memory)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register all = {.range = {(unsigned long)memory, BYTES}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    int opened = open(node, O_RDWR | O_CLOEXEC);
    fd = opened < 0 ? -1 : ioctl(opened, USERFAULTFD_IOC_NEW, O_CLOEXEC);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &all) != 0)
        die(node);
}

/* Gives the first page. */
static void give(char *memory, const void *content, size_t size)
{
    static char page[4096] __attribute__((aligned(4096)));
    struct uffdio_copy copy = {.dst = (unsigned long)memory, .src = (unsigned long)page, .len = sizeof page};
    memcpy(page, content, size);
    if (ioctl(fd, UFFDIO_COPY, &copy) != 0)
        die("give a page");
}

static void ready(void)
{
    char line[32];
    int size = snprintf(line, sizeof line, "ready %d\n", getpid());
    if (write(3, line, size) != size)
        exit(1);
    close(3);
}

/* The kernel has read the page when the call waits; who reads it then gets no answer. */
static void *take_back(void *unused)
{
    (void)unused;
    usleep(200000);
    madvise(taken_back, 4096, MADV_DONTNEED);
    ready();
    pause();
    return NULL;
}

static void take_back_later(char *memory)
{
    pthread_t thread;
    taken_back = memory;
    if (pthread_create(&thread, NULL, take_back, NULL) != 0)
        exit(1);
}

/* In front of `memory` is a page that is there: the stack begins in it and goes on in what nobody gives. */
static void wait_on_stack(char *memory)
{
    struct timespec long_time = {1000, 0};
    __asm__ volatile("mov %0, %%rsp\n"
                     "mov $35, %%eax\n"
                     "mov %1, %%rdi\n"
                     "xor %%esi, %%esi\n"
                     "syscall\n"
                     "ud2\n"
                     :
                     : "r"(memory - 64), "r"(&long_time)
                     : "memory", "rax", "rdi", "rsi", "rcx", "r11");
}

int main(int argc, char **argv)
{
    static const unsigned char code[] = {0xb8, 35, 0, 0, 0, 0x0f, 0x05, 0xc3}; /* mov eax, nanosleep; syscall; ret */
    struct timespec long_time = {1000, 0};
    int ends[2];
    if (argc != 3 || pipe(ends) != 0)
        return 2;
    char *page = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *memory = page + 4096;
    if (page == MAP_FAILED)
        die("mmap");
    memset(page, 0, 4096);
    hand_over(argv[1], memory);
    if (strcmp(argv[2], "poll") == 0) {
        give(memory, &(struct pollfd){ends[0], POLLIN, 0}, sizeof(struct pollfd));
        take_back_later(memory);
        poll((struct pollfd *)memory, 1, -1);
    } else if (strcmp(argv[2], "futex") == 0) {
        give(memory, &(int){7}, sizeof(int));
        take_back_later(memory);
        syscall(SYS_futex, memory, FUTEX_WAIT, 7, NULL, NULL, 0);
    } else if (strcmp(argv[2], "stack") == 0) {
        ready();
        wait_on_stack(memory);
    } else {
        memcpy(page, code, sizeof code);
        ready();
        ((void (*)(struct timespec *, void *))page)(&long_time, NULL);
    }
    return 1;
}
