/* Pushes a line into the terminal that it was given, and into its controlling one, in every way there is; so does a child that goes on
 * for half a second. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void push(int fd, const char *key)
{
    ioctl(fd, TIOCSTI, key);
    /* The kernel looks at 32 bits of the request, a filter at 64. */
    syscall(SYS_ioctl, (long)fd, (1L << 32) | TIOCSTI, key);
    syscall(SYS_ioctl, (1L << 32) | fd, (long)TIOCSTI, key);
#ifdef __x86_64__
    /* x32's number of the same call, and the call of 32-bit programs, whose pointers are short. */
    syscall(0x40000000 | 514, (long)fd, (long)TIOCSTI, key);
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low != MAP_FAILED) {
        long result;
        *low = *key;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(54), "b"(fd), "c"(TIOCSTI), "d"(low) : "memory");
        munmap(low, 4096);
    }
#endif
}

static void push_all(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    for (const char *key = "id\n"; *key; key++) {
        for (int fd = 0; fd < 10; fd++)
            push(fd, key);
        if (terminal >= 0)
            push(terminal, key);
    }
    if (terminal >= 0)
        close(terminal);
}

int main(void)
{
    /* A filter that kills for one of these may not save the terminal from the others. */
    for (int way = 0; way < 2; way++) {
        if (fork() == 0) {
            signal(SIGHUP, SIG_IGN);
            for (int round = 0; round < 50; round++) {
                push_all();
                usleep(10000);
            }
            _exit(0);
        }
    }
    push_all();
    usleep(50000);
    return 0;
}
