/* Touches ten pages that another process fills: SOCKET. */
#include "descriptor.h"
#include "truth.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PAGES = 10 };

/* A descriptor of the faults in MEMORY. */
static int watch(void *memory)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(unsigned long)memory, PAGE * PAGES},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0 || ioctl(faults, UFFDIO_REGISTER, &range) != 0)
        return -1;
    return faults;
}

__attribute__((noinline)) static uint64_t touch_page(const volatile char *page)
{
    uint64_t before = truth_now();
    (void)*page;
    return truth_now() - before;
}

int main(int argc, char **argv)
{
    uint64_t started = truth_now(), waited = 0;
    char *memory = mmap(NULL, PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int faults = argc == 2 && memory != MAP_FAILED ? watch(memory) : -1, page;
    if (faults < 0 || send_descriptor(argv[1], faults) != 0)
        return 1;
    for (page = 0; page < PAGES; page++)
        waited += touch_page(memory + page * PAGE);
    truth_write(getenv("HOLDUP_TRUTH"), waited, truth_now() - started, truth_queued());
    return 0;
}
