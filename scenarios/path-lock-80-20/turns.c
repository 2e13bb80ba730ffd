/* Two threads take turns under one mutex (`shared`) or have one each (`own`): the long one holds it for 80 ms on average, the
 * short one for 20 ms. Each lets go only once the other stands in line.
 *
 * The long one sleeps and the short one waits for a signal that does not come, so that the two are told apart by their
 * cause. The truth is the time of the long one's turns, as it asked for it. */
#include "truth.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

enum { TURNS = 8 };

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER, own_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t long_has_it, short_has_it;
static uint64_t long_turns, queued;

/* Longer and shorter in turn: what always takes as long looks like polling. */
__attribute__((noinline)) static void long_turn(int turn)
{
    struct timespec delay = {0, turn % 2 ? 100000000 : 60000000};
    nanosleep(&delay, NULL);
    long_turns += (uint64_t)delay.tv_nsec;
}

__attribute__((noinline)) static void short_turn(const sigset_t *none)
{
    struct timespec delay = {0, 20000000};
    sigtimedwait(none, NULL, &delay);
}

__attribute__((noinline)) static void enter_ledger(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
}

static void *take_long_turns(void *lock)
{
    int turn;
    for (turn = 0; turn < TURNS; turn++) {
        enter_ledger(lock);
        sem_post(&long_has_it);
        long_turn(turn);
        pthread_mutex_unlock(lock);
        sem_wait(&short_has_it);
    }
    queued += truth_queued();
    return NULL;
}

int main(int argc, char **argv)
{
    int shared = argc < 2 || strcmp(argv[1], "own") != 0;
    uint64_t started = truth_now();
    pthread_t other;
    sigset_t none;
    int turn;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR2);
    sigprocmask(SIG_BLOCK, &none, NULL);
    sem_init(&long_has_it, 0, 0);
    sem_init(&short_has_it, 0, 0);
    pthread_create(&other, NULL, take_long_turns, &ledger_lock);
    for (turn = 0; turn < TURNS; turn++) {
        sem_wait(&long_has_it);
        enter_ledger(shared ? &ledger_lock : &own_lock);
        sem_post(&short_has_it);
        short_turn(&none);
        pthread_mutex_unlock(shared ? &ledger_lock : &own_lock);
    }
    pthread_join(other, NULL);
    truth_write(getenv("HOLDUP_TRUTH"), long_turns, truth_now() - started, queued + truth_queued());
    return 0;
}
