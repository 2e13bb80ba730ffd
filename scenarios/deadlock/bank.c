/* Two threads move money between two accounts, each of which has a mutex: bank opposite|same.
 *
 * `opposite`: each thread has locked its first account before it asks for the second, which is the other's first.
 * `same`: both lock the accounts in one order.
 *
 * A process that hangs can't write its truth at the end: it does so when it is told to end. The truth is what both
 * threads have waited for their second lock, of the time that the program ran. */
#define _GNU_SOURCE
#include "truth.h"
#include <pthread.h>
#include <signal.h>

static pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER, current = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_have_one;
static uint64_t began;
static volatile uint64_t asked;
static int opposite;

static void end(int signal)
{
    uint64_t now = truth_now();
    (void)signal;
    truth_write(getenv("HOLDUP_TRUTH"), asked ? now - asked : 0, now - began, 0);
    _exit(1);
}

__attribute__((noinline)) static void transfer(pthread_mutex_t *from, pthread_mutex_t *to)
{
    pthread_mutex_lock(from);
    if (opposite) {
        pthread_barrier_wait(&both_have_one);
        asked = truth_now();
    }
    pthread_mutex_lock(to);
    pthread_mutex_unlock(to);
    pthread_mutex_unlock(from);
}

static void *transfer_back(void *unused)
{
    (void)unused;
    if (opposite)
        transfer(&current, &savings);
    else
        transfer(&savings, &current);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t teller;
    began = truth_now();
    opposite = argc == 2 && strcmp(argv[1], "opposite") == 0;
    signal(SIGTERM, end);
    pthread_barrier_init(&both_have_one, NULL, 2);
    pthread_create(&teller, NULL, transfer_back, NULL);
    pthread_setname_np(teller, "teller");
    transfer(&savings, &current);
    pthread_join(teller, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), 0, truth_now() - began, truth_queued());
    return 0;
}
