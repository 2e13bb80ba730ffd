/* cut_file FOLDER: a child maps a copy of this program from FOLDER and sleeps in code of it, again and again anew; the parent cuts the
 * file to pieces of different lengths and fills it again without end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static char bytes[1 << 20];

static sigjmp_buf again;

static void go_on(int number)
{
    /* The code that it came back to is gone. */
    siglongjmp(again, number);
}

extern const char __ehdr_start[];

/* Without a call to anything else: it runs from the copy. */
__attribute__((noinline)) static long nap(struct timespec *moment)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(35), "D"(moment), "S"(NULL) : "rcx", "r11", "memory");
    return result + 1;
}

int main(int argc, char **argv)
{
    char path[512];
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/copy.so", argv[1]);
    int program = open("/proc/self/exe", O_RDONLY), file = open(path, O_RDWR | O_CREAT, 0755);
    ssize_t size = read(program, bytes, sizeof bytes);
    if (file < 0 || pwrite(file, bytes, size, 0) != size)
        return 1;
    int child = fork();
    if (child == 0) {
        close(3);
        signal(SIGBUS, go_on);
        signal(SIGSEGV, go_on);
        struct timespec moment = {0, 20000000};
        char *volatile copy = NULL;
        sigsetjmp(again, 1);
        for (;;) {
            if (copy != NULL)
                munmap(copy, size);
            copy = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
            ((long (*)(struct timespec *))(copy + ((const char *)nap - __ehdr_start)))(&moment);
        }
    }
    if (dprintf(3, "ready %d\n", child) < 0)
        return 1;
    close(3);
    for (unsigned round = 0;; round++) {
        if (ftruncate(file, round % 3 ? round * 64 % size : 0) != 0)
            return 1;
        usleep(round % 100);
        if (pwrite(file, bytes, size, 0) != size)
            return 1;
        usleep(round % 1000);
    }
}
