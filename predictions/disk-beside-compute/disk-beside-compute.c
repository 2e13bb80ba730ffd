/* Computes for 800 ms, and beside that a thread writes 8 blocks through: disk-beside-compute FOLDER. */
#include "work.h"
#include <pthread.h>

static void *writer(void *folder)
{
    int file = block_in(folder);
    for (int i = 0; i < 8; i++)
        write_through(file, i);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_create(&thread, NULL, writer, argc > 1 ? argv[1] : ".");
    compute(800000);
    pthread_join(thread, NULL);
    return 0;
}
