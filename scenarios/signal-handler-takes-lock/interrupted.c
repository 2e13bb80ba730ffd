/* A program whose handler of a signal calls a function that takes a lock of the C library.
 *
 * interrupted localtime|flag: a child turns times into dates all the time; a timer's signal comes every 200 us. Its handler does the same
 * (`localtime`), or sets a flag (`flag`). Sooner or later a signal comes while the lock of the time zone is taken; the handler then waits
 * for its own thread, until another timer kills the child.
 *
 * The truth is what the child waited until then, of the time that the program lived. */
#define _GNU_SOURCE
#include "truth.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t due;
static _Atomic uint64_t *beat;
static int calls;

/* Reads the file of the time zone again where its name has changed, with the lock held: long enough to be interrupted. */
static void turn(time_t when)
{
    setenv("TZ", when % 2 ? "Europe/Paris" : "Europe/Rome", 1);
    localtime(&when);
}

__attribute__((noinline)) static void note_time(int unused)
{
    time_t now = 0;
    (void)unused;
    due = 1;
    if (calls)
        localtime(&now);
}

__attribute__((noinline)) static void work(uint64_t until)
{
    for (time_t when = 0; truth_now() < until; when++) {
        turn(when);
        atomic_store(beat, truth_now());
    }
}

/* Nothing but this ends a child that waits for itself. */
static void end_after_three_seconds(void)
{
    struct sigevent kill_it = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec once = {.it_value = {3, 0}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &kill_it, &timer) != 0 || timer_settime(timer, 0, &once, NULL) != 0)
        _exit(1);
}

int main(int count, char **words)
{
    struct itimerval often = {{0, 200}, {0, 200}};
    uint64_t began = truth_now();
    pid_t child;
    int status;
    if (count != 2)
        return 1;
    calls = strcmp(words[1], "localtime") == 0;
    beat = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (beat == MAP_FAILED)
        return 1;
    atomic_store(beat, began);
    child = fork();
    if (child == 0) {
        end_after_three_seconds();
        signal(SIGALRM, note_time);
        setitimer(ITIMER_REAL, &often, NULL);
        work(began + 2500000000ull);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status))
        truth_write(getenv("HOLDUP_TRUTH"), truth_now() - atomic_load(beat), 0, 0);
    else
        truth_write(getenv("HOLDUP_TRUTH"), 0, truth_now() - began, truth_queued());
    return 0;
}
