/* Four threads want one mutex, and its owner sleeps for 4 ms; without the wait each has its own. */
#include "work.h"
#include <pthread.h>

static pthread_mutex_t locks[4];

static void *worker(void *number)
{
    pthread_mutex_t *lock = &locks[without() ? (long)number : 0];
    for (int i = 0; i < 45; i++) {
        pthread_mutex_lock(lock);
        rest(4000);
        pthread_mutex_unlock(lock);
        compute(1000);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_mutex_init(&locks[i], NULL);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
