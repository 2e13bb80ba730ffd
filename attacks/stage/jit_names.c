/* jit_names list MEBIBYTES: runs code without a file at many addresses, 100 frames deep, and has a list of names in which every
 * line covers all of them. /tmp is one of a mount namespace of its own, so nothing is left on the machine. jit_names
 * fifo|zero|secret|loop FILE: the same code, and in the place of the list a FIFO, a link to a device, a link to FILE, or a link to itself. */
#define _GNU_SOURCE
#include "fuse.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { PIECES = 4096, PIECE_BYTES = 16, DEPTH = 100 };

static void nap(void)
{
    struct timespec moment = {0, 1000000};
    syscall(SYS_nanosleep, &moment, NULL);
}

int main(int argc, char **argv)
{
    char path[64];
    if (argc != 3)
        return 2;
    own_namespaces(0);
    if (mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") != 0)
        fuse_die("mount /tmp");
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    int failed = 0;
    if (strcmp(argv[1], "fifo") == 0)
        failed = mkfifo(path, 0666);
    else if (strcmp(argv[1], "list") != 0)
        failed = symlink(argv[1][0] == 'z' ? "/dev/zero" : argv[1][0] == 's' ? argv[2] : path, path);
    else {
        FILE *list = fopen(path, "w");
        for (long bytes = atol(argv[2]) << 20; list && bytes > 0; bytes -= 17)
            fputs("0 7fffffffffff a\n", list);
        failed = list == NULL || fclose(list) != 0;
    }
    if (failed)
        fuse_die(path);
    unsigned char *code =
        mmap(NULL, (PIECES + 1) * PIECE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        fuse_die("mmap");
    for (int i = 0; i < PIECES; i++) {
        /* push rbp; mov rbp,rsp; dec edi; jz to pop; call the next piece; pop rbp; ret */
        static const unsigned char piece[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x74, 5, 0xe8, 3, 0, 0, 0, 0x5d, 0xc3};
        memcpy(code + i * PIECE_BYTES, piece, sizeof piece);
    }
    code[PIECES * PIECE_BYTES] = 0xc3;
    /* The deepest piece of each descent calls nap: its `call` is patched to a stub `jmp [rip]` after all pieces. */
    unsigned char *stub = mmap(code + (PIECES + 256) * PIECE_BYTES, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stub == MAP_FAILED)
        fuse_die("mmap");
    unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
    void (*to)(void) = nap;
    memcpy(stub, jump, sizeof jump);
    memcpy(stub + sizeof jump, &to, sizeof to);
    ready(getpid());
    for (unsigned round = 0;; round++) {
        int first = round * 37 % (PIECES - DEPTH - 1);
        unsigned char *deepest = code + (first + DEPTH) * PIECE_BYTES;
        int near = 3, far = stub - (deepest + 13);
        memcpy(deepest + 9, &far, sizeof far);
        ((void (*)(int))(code + first * PIECE_BYTES))(DEPTH + 2);
        memcpy(deepest + 9, &near, sizeof near);
    }
}
