/* Measures a program that is not ours from inside, without a frame of its own in any stack: nothing is
 * interposed; it looks at the clocks when the program begins and when it ends.
 *
 * In: LD_PRELOAD names this library; HOLDUP_TRUTH the file; TRUTH_OF what counts as the trouble:
 *   blocked  (default) what the main thread was neither running nor ready for
 *   cpu                the main thread's CPU time; exact, where the split into user and system is sampled
 *   queued             what the main thread was ready for and not running
 * Out: a line as truth.h has it. Children are not measured: the preload ends here. */
#define _GNU_SOURCE
#include "truth.h"

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
    if (getpid() != owner)
        return;
    if (strcmp(kind, "cpu") == 0)
        waited = cpu;
    else if (strcmp(kind, "queued") == 0)
        waited = queued;
    else if (elapsed > cpu + queued)
        waited = elapsed - cpu - queued;
    truth_write(path, waited, elapsed, queued);
}
