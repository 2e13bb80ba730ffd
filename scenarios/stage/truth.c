/* Measures a program that is not ours from inside, without a frame of its own in any stack: nothing is
 * interposed; it looks at the clocks when the program begins and when it ends.
 *
 * In: LD_PRELOAD names this library; HOLDUP_TRUTH the file; TRUTH_OF what counts as the trouble:
 *   blocked  (default) what the main thread was neither running nor ready for
 *   cpu                the main thread's CPU time; exact, where the split into user and system is sampled
 *   queued             what the main thread was ready for and not running
 *   throttled          what its cgroup was stopped for, by the file that TRUTH_FILE names (cpu.stat)
 * Out: a line as truth.h has it. Children are not measured: the preload ends here. */
#define _GNU_SOURCE
#include "truth.h"

static uint64_t started, cpu_before, queued_before, throttled_before;
static pid_t owner;
static char *path, *kind, *stat_file;

/* Nanoseconds that the cgroup was stopped for: throttled_time in version 1, throttled_usec in version 2. */
static uint64_t throttled(void)
{
    char line[128];
    unsigned long long value = 0, found = 0;
    FILE *file = stat_file ? fopen(stat_file, "re") : NULL;
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "throttled_time %llu", &value) == 1)
            found = value;
        else if (sscanf(line, "throttled_usec %llu", &value) == 1)
            found = value * 1000;
    }
    fclose(file);
    return found;
}

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("TRUTH_OF");
    const char *file = getenv("HOLDUP_TRUTH");
    path = file ? strdup(file) : NULL;
    kind = strdup(wanted ? wanted : "blocked");
    stat_file = getenv("TRUTH_FILE") ? strdup(getenv("TRUTH_FILE")) : NULL;
    unsetenv("LD_PRELOAD");
    owner = getpid();
    queued_before = truth_queued();
    throttled_before = throttled();
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
    else if (strcmp(kind, "throttled") == 0)
        waited = throttled() - throttled_before;
    else if (elapsed > cpu + queued)
        waited = elapsed - cpu - queued;
    truth_write(path, waited, elapsed, queued);
}
