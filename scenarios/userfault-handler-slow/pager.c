/* Fills the pages of another process on demand, each after MILLISECONDS: SOCKET MILLISECONDS. As a virtual machine's pages
 * are fetched while it runs already. */
#include "descriptor.h"
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

enum { PAGE = 4096 };

static int fill(int faults, struct timespec delay)
{
    static char page[PAGE] __attribute__((aligned(PAGE)));
    struct uffd_msg fault;
    struct uffdio_copy copy = {0};
    if (read(faults, &fault, sizeof fault) != (ssize_t)sizeof fault)
        return -1;
    nanosleep(&delay, NULL);
    copy.src = (unsigned long)page;
    copy.dst = fault.arg.pagefault.address & ~(unsigned long)(PAGE - 1);
    copy.len = PAGE;
    return ioctl(faults, UFFDIO_COPY, &copy);
}

int main(int argc, char **argv)
{
    long ms = argc == 3 ? atol(argv[2]) : -1;
    struct timespec delay = {ms / 1000, ms % 1000 * 1000000};
    int listening = ms < 0 ? -1 : listen_at(argv[1]), faults;
    if (listening < 0 || write(3, "ready\n", 6) != 6)
        return 1;
    close(3);
    faults = receive_descriptor(listening);
    while (faults >= 0 && fill(faults, delay) == 0)
        ;
    return 0;
}
