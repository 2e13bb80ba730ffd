/* Measures a program that is not ours from inside, without a frame of its own in any stack: nothing is
 * interposed; it looks at the clocks when the program begins and when it ends.
 *
 * In: LD_PRELOAD names this library; HOLDUP_TRUTH the file; TRUTH_OF what counts as the trouble:
 *   blocked  (default) what the main thread was neither running nor ready for
 *   user, system       the process's CPU time (getrusage)
 *   queued             what the main thread was ready for and not running
 * Out: a line as truth.h has it. Children are not measured: the preload ends here. */
#define _GNU_SOURCE
#include "truth.h"
#include <sys/resource.h>

static uint64_t started, cpu_before, queued_before;
static pid_t owner;
static char *path, *kind;

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("TRUTH_OF");
    const char *file = getenv("HOLDUP_TRUTH");
    path = file ? strdup(file) : NULL;
    kind = strdup(wanted ? wanted : "blocked");
    unsetenv("LD_PRELOAD");
    owner = getpid();
    queued_before = truth_queued();
    cpu_before = truth_clock(CLOCK_THREAD_CPUTIME_ID);
    started = truth_now();
}

__attribute__((destructor)) static void end(void)
{
    uint64_t elapsed = truth_now() - started;
    uint64_t cpu = truth_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    uint64_t queued = truth_queued() - queued_before;
    uint64_t waited = 0;
    struct rusage used;
    if (getpid() != owner)
        return;
    getrusage(RUSAGE_SELF, &used);
    if (strcmp(kind, "user") == 0)
        waited = (uint64_t)used.ru_utime.tv_sec * 1000000000u + (uint64_t)used.ru_utime.tv_usec * 1000u;
    else if (strcmp(kind, "system") == 0)
        waited = (uint64_t)used.ru_stime.tv_sec * 1000000000u + (uint64_t)used.ru_stime.tv_usec * 1000u;
    else if (strcmp(kind, "queued") == 0)
        waited = queued;
    else if (elapsed > cpu + queued)
        waited = elapsed - cpu - queued;
    truth_write(path, waited, elapsed, queued);
}
