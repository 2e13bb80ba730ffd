/* One thread makes 70 things, 3 ms of computing each; two take them through a queue of four places and sleep for 22 ms with each. */
#include "work.h"
#include <pthread.h>

enum { THINGS = 70, PLACES = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queued, taken;

static void *consumer(void *nothing)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        if (taken == THINGS) {
            pthread_mutex_unlock(&lock);
            return nothing;
        }
        taken++;
        while (queued == 0)
            pthread_cond_wait(&not_empty, &lock);
        queued--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        rest(without() ? 0 : 22000);
    }
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, consumer, NULL);
    for (int i = 0; i < THINGS; i++) {
        compute(3000);
        pthread_mutex_lock(&lock);
        while (queued == PLACES)
            pthread_cond_wait(&not_full, &lock);
        queued++;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
