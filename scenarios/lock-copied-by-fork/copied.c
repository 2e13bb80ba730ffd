/* A process that forks while a thread of it has a lock; the child asks for that lock, or for another one.
 *
 * copied same|other: a thread `keeper` takes a lock; then the main thread forks, and lets the keeper release it. The child asks
 * for its copy of that lock, which nobody will release, or of the other one, which is free. A second later an alarm ends it.
 *
 * The truth is what the child waited, of the time that the parent lived. */
#define _GNU_SOURCE
#include "truth.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER, other_lock = PTHREAD_MUTEX_INITIALIZER;
static int taken[2], forked[2];
static uint64_t asked;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *keep(void *unused)
{
    char byte = 0;
    pthread_setname_np(pthread_self(), "keeper");
    pthread_mutex_lock(&log_lock);
    if (write(taken[1], &byte, 1) != 1 || read(forked[0], &byte, 1) != 1)
        die("pipe");
    pthread_mutex_unlock(&log_lock);
    return unused;
}

static void given_up(int unused)
{
    (void)unused;
    truth_write(getenv("HOLDUP_TRUTH"), truth_now() - asked, 0, 0);
    _exit(0);
}

__attribute__((noinline)) static void write_log(pthread_mutex_t *lock)
{
    asked = truth_now();
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

int main(int count, char **words)
{
    uint64_t began = truth_now();
    pthread_t keeper;
    char byte = 0;
    pid_t child;
    if (count != 2 || pipe2(taken, O_CLOEXEC) != 0 || pipe2(forked, O_CLOEXEC) != 0)
        die("copied same|other");
    if (pthread_create(&keeper, NULL, keep, NULL) != 0 || read(taken[0], &byte, 1) != 1)
        die("keeper");
    child = fork();
    if (child == 0) {
        signal(SIGALRM, given_up);
        alarm(1);
        write_log(strcmp(words[1], "same") == 0 ? &log_lock : &other_lock);
        _exit(0);
    }
    if (child < 0 || write(forked[1], &byte, 1) != 1)
        die("fork");
    pthread_join(keeper, NULL);
    if (waitpid(child, NULL, 0) != child)
        die("waitpid");
    truth_write(getenv("HOLDUP_TRUTH"), 0, truth_now() - began, truth_queued());
    return 0;
}
