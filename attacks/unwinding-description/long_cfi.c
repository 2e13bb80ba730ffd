/* A function of which the description for unwinding has 60 KB of instructions, all of them before the first address, and 60000 places
 * from which it calls itself: each is an address of its own, for which they are run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 60000, PLACE_BYTES = 16, DEPTH = 100, THREADS = 8 };

/* rdi: how deep, rsi: address of the place, rdx: how far to the next place. */
__asm__(".text\n"
        ".globl deep\n"
        ".type deep, @function\n"
        "deep: .cfi_startproc\n"
        ".rept 30000\n"
        ".cfi_escape 0x0e, 0x08\n"
        ".endr\n"
        "sub $8, %rsp\n"
        ".cfi_def_cfa_offset 16\n"
        "jmp *%rsi\n"
        ".p2align 4\n"
        ".globl places\n"
        "places:\n"
        ".rept 60000\n"
        ".p2align 4\n"
        "call again\n"
        "jmp out\n"
        ".endr\n"
        "out: add $8, %rsp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size deep, . - deep\n"
        "again: .cfi_startproc\n"
        "dec %rdi\n"
        "jz 1f\n"
        "add %rdx, %rsi\n"
        "jmp deep\n"
        "1: jmp nap\n"
        ".cfi_endproc\n");

extern const char places[];
void deep(long depth, const char *place, long step);

__attribute__((used)) void nap(void)
{
    struct timespec moment = {0, 1000000};
    syscall(SYS_nanosleep, &moment, NULL);
}

/* Goes on where no thread has been, so that there are more addresses than anybody remembers. */
__attribute__((noreturn)) static void *descend(void *argument)
{
    for (unsigned round = (long)argument;; round += THREADS)
        deep(DEPTH, places + (long)round * DEPTH % (PLACES - DEPTH - 1) * PLACE_BYTES, PLACE_BYTES);
}

int main(void)
{
    pthread_t thread;
    if (dprintf(3, "ready\n") < 0)
        return 1;
    close(3);
    for (long number = 1; number < THREADS; number++)
        if (pthread_create(&thread, NULL, descend, (void *)number) != 0)
            return 1;
    descend(NULL);
}
