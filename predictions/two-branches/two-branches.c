/* One thread sleeps ten times 90 ms, another takes ten bytes from a FIFO, then both are joined: two-branches FIFO. */
#include "work.h"
#include <pthread.h>

static void *sleeper(void *nothing)
{
    for (int i = 0; i < 10; i++)
        rest(without() ? 0 : 90000);
    return nothing;
}

static void *taker(void *path)
{
    int fifo = open(path, O_RDONLY);
    for (int i = 0; i < 10; i++) {
        char byte;
        must(read(fifo, &byte, 1) == 1, "read the FIFO");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, sleeper, NULL);
    pthread_create(&threads[1], NULL, taker, argc > 1 ? argv[1] : "");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    compute(50000);
    return 0;
}
