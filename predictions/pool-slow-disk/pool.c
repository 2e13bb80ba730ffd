/* Four threads share 60 jobs of 6 ms; every second one also writes a block through: pool FOLDER. */
#include "work.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int next;
static int file;

static void *worker(void *nothing)
{
    for (int job; (job = atomic_fetch_add(&next, 1)) < 60;) {
        compute(6000);
        if (job % 2)
            write_through(file, job);
    }
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    file = block_in(argc > 1 ? argv[1] : ".");
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
