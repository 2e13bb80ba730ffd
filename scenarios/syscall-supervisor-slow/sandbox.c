/* Lets another process decide about its chdir calls, and makes ten: SOCKET. */
#include "descriptor.h"
#include "truth.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* A filter that asks about CHDIR and allows the rest; its listener. */
static int ask_about_chdir(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chdir, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

__attribute__((noinline)) static uint64_t change_directory(void)
{
    uint64_t before = truth_now();
    if (chdir("/") != 0)
        perror("chdir");
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited = 0;
    int listener = argc == 2 ? ask_about_chdir() : -1, calls;
    if (listener < 0 || send_descriptor(argv[1], listener) != 0)
        return 1;
    close(listener);
    for (calls = 0; calls < 10; calls++)
        waited += change_directory();
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
