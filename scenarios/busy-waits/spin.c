/* One thread holds a spin lock while it works; another wants the lock, and with it the program is done. */
#include "truth.h"
#include <pthread.h>

static pthread_spinlock_t ledger_lock;
static pthread_barrier_t taken;
static uint64_t hold_ns;

static void *post_entries(void *nothing)
{
    uint64_t until;
    pthread_spin_lock(&ledger_lock);
    pthread_barrier_wait(&taken);
    until = truth_now() + hold_ns;
    while (truth_now() < until)
        ;
    pthread_spin_unlock(&ledger_lock);
    pause();
    return nothing;
}

__attribute__((noinline)) static uint64_t read_balance(void)
{
    uint64_t began = truth_clock(CLOCK_THREAD_CPUTIME_ID), spun;
    pthread_spin_lock(&ledger_lock);
    spun = truth_clock(CLOCK_THREAD_CPUTIME_ID) - began;
    pthread_spin_unlock(&ledger_lock);
    return spun;
}

/* spin MILLISECONDS */
int main(int argc, char **argv)
{
    uint64_t began = truth_now(), queued = truth_queued(), spun;
    pthread_t worker;
    if (argc != 2)
        return 2;
    hold_ns = strtoull(argv[1], NULL, 10) * 1000000u;
    pthread_spin_init(&ledger_lock, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&taken, NULL, 2);
    if (pthread_create(&worker, NULL, post_entries, NULL))
        return 1;
    pthread_barrier_wait(&taken);
    spun = read_balance();
    truth_write(getenv("HOLDUP_TRUTH"), spun, truth_now() - began, truth_queued() - queued);
    return 0;
}
